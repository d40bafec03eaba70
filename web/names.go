package web

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// named returns a handler that answers requests for this machine only, if the
// server listens on a loopback address: the name must be localhost, a loopback
// address or the host of an allowed origin. Otherwise a page could let its own
// name resolve to a loopback address and read the answers.
func named(next http.Handler, on net.Addr, origins []string) http.Handler {
	if at, ok := on.(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		return next
	}
	allowed := func(host string) bool {
		name := hostname(host)
		return isThisMachine(name) || slices.ContainsFunc(origins, func(origin string) bool {
			_, of, _ := strings.Cut(strings.TrimSuffix(origin, anyPort), "://")
			return strings.EqualFold(hostname(of), name)
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "" && !allowed(r.Host) {
			plain(w, http.StatusMisdirectedRequest,
				"a server on a loopback address answers to localhost and loopback addresses; "+
					"add the origins of other names to --allowed-origins\n")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostname returns a host without its port, in lower case.
func hostname(host string) string {
	return strings.ToLower((&url.URL{Host: host}).Hostname())
}
