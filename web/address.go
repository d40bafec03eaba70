package web

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// clientAddress returns the address of a request, without the port. This is the
// peer's address or, if the peer is a trusted proxy, the last address in
// X-Forwarded-For that is not a trusted proxy. The addresses before it could be
// forged.
func clientAddress(r *http.Request, trusted []netip.Prefix) string {
	peer, ok := parseAddress(r.RemoteAddr)
	if !ok {
		return r.RemoteAddr
	}
	if !isWithin(peer, trusted) {
		return peer.String()
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && isWithin(peer, trusted); i-- {
		hop, ok := parseAddress(strings.TrimSpace(hops[i]))
		if !ok {
			break
		}
		peer = hop
	}
	return peer.String()
}

// parseAddress parses an address with or without a port. It removes a zone, and
// unmaps an IPv4-mapped address, since the networks of proxies are unmapped.
func parseAddress(text string) (netip.Addr, bool) {
	pair, err := netip.ParseAddrPort(text)
	ip := pair.Addr()
	if err != nil {
		ip, err = netip.ParseAddr(strings.Trim(text, "[]"))
	}
	return ip.Unmap().WithZone(""), err == nil
}

func isWithin(ip netip.Addr, networks []netip.Prefix) bool {
	for _, network := range networks {
		if network.Contains(ip) {
			return true
		}
	}
	return false
}

// rateLimitKey returns the key of an address's bucket: an IPv4 address, or the
// /64 of an IPv6 address because one client has all of a /64.
func rateLimitKey(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Is4() {
		return address
	}
	prefix, err := ip.Prefix(64)
	if err != nil {
		return address
	}
	return prefix.String()
}

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
