package web

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/cadastre-dev/cadastre/graph"
)

// anyPort ends an allowed origin that may have any port.
const anyPort = ":*"

// allowedHeaders are the headers that pages of allowed origins may send. The
// server reads some of them. The others come from browser clients and tracers,
// which add them to every request; the server ignores them.
const allowedHeaders = "Accept, Authorization, Cache-Control, Cadastre-Position, Content-Type, Idempotency-Key, X-Auth-Token, X-Request-Id, X-Requested-With, X-Correlation-Id, " +
	"traceparent, tracestate, baggage, sentry-trace, b3, X-B3-TraceId, X-B3-SpanId, X-B3-ParentSpanId, X-B3-Sampled, X-B3-Flags, " +
	"uber-trace-id, newrelic, X-Amzn-Trace-Id, X-Cloud-Trace-Context, X-Datadog-Origin, X-Datadog-Parent-Id, X-Datadog-Sampling-Priority, X-Datadog-Trace-Id, " +
	"apollographql-client-name, apollographql-client-version, Apollo-Require-Preflight, X-Apollo-Operation-Id, X-Apollo-Operation-Name, " +
	"graphql-client-name, graphql-client-version, GraphQL-Preflight"

// CheckOrigin returns an error unless origin is an origin such as
// https://dash.example.org or http://localhost:3000, as browsers send it: scheme
// and host in lower case, without a path or a default port. The port may be `*`
// if the host is localhost or a loopback address.
func CheckOrigin(origin string) error {
	base, wild := strings.CutSuffix(origin, anyPort)
	address, err := url.Parse(base)
	if err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "" ||
		address.Scheme+"://"+strings.ToLower(address.Host) != base ||
		address.Port() == map[string]string{"http": "80", "https": "443"}[address.Scheme] {
		return fmt.Errorf("%q is not an origin: write it as https://dash.example.org, without a path", origin)
	}
	if wild && (address.Port() != "" || !isThisMachine(address.Hostname())) {
		return fmt.Errorf("%q is not an origin: only localhost and loopback addresses may have any port, as http://localhost:*", origin)
	}
	return nil
}

// isThisMachine reports whether a host is localhost or a loopback address.
func isThisMachine(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// allows reports whether an allowed origin matches the origin of a page.
func allows(allowed, origin string) bool {
	base, wild := strings.CutSuffix(allowed, anyPort)
	if !wild {
		return allowed == origin
	}
	rest, ok := strings.CutPrefix(origin, base)
	if !ok || rest == "" {
		return ok
	}
	_, err := strconv.ParseUint(rest[1:], 10, 16)
	return rest[0] == ':' && err == nil
}

// isAllowed reports whether pages of an origin may send requests.
func (t *transport) isAllowed(origin string) bool {
	return origin != "" &&
		slices.ContainsFunc(t.AllowedOrigins, func(allowed string) bool { return allows(allowed, origin) })
}

// crossOrigin returns a handler that answers pages of allowed origins with
// next. From pages of other origins it refuses preflights, and requests that
// could change something.
func (t *transport) crossOrigin(next http.Handler) http.Handler {
	refuse := func(w http.ResponseWriter, r *http.Request) {
		t.refuse(w, r, mediaJSON, refusal{status: http.StatusForbidden, code: graph.CodeForbidden,
			message: refusalOf(r.Header.Get("Origin"))})
	}
	preflight := func(w http.ResponseWriter, r *http.Request, isAllowed bool) (answered bool) {
		if isAllowed {
			allowRequests(w.Header(), "GET, POST", allowedHeaders)
			w.WriteHeader(http.StatusNoContent)
		} else {
			refuse(w, r)
		}
		return true
	}
	return t.byOrigin(next, refuse, "Cadastre-Position, Retry-After, X-Request-Id", preflight)
}

// allowRequests sets the headers of an answer to a preflight request.
func allowRequests(header http.Header, methods, headers string) {
	header.Set("Access-Control-Allow-Methods", methods)
	header.Set("Access-Control-Allow-Headers", headers)
	header.Set("Access-Control-Max-Age", "600")
}

// byOrigin returns a handler that answers requests with next, and lets pages of
// allowed origins read the exposed headers. refuse answers requests from pages
// of other origins that could change something. preflight answers preflight
// requests, or reports that it did not.
func (t *transport) byOrigin(
	next http.Handler, refuse http.HandlerFunc, exposed string,
	preflight func(w http.ResponseWriter, r *http.Request, isAllowed bool) (answered bool),
) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(refuse)
	protected := protection.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header, origin := w.Header(), r.Header.Get("Origin")
		header.Add("Vary", "Origin")
		isAllowed := t.isAllowed(origin)
		if isAllowed {
			header.Set("Access-Control-Allow-Origin", origin)
			header.Set("Access-Control-Expose-Headers", exposed)
		}
		isPreflight := origin != "" && r.Method == http.MethodOptions &&
			r.Header.Get("Access-Control-Request-Method") != ""
		switch {
		case isPreflight && preflight(w, r, isAllowed):
		case isAllowed:
			next.ServeHTTP(w, r)
		default:
			protected.ServeHTTP(w, r)
		}
	})
}

// refusalOf returns the message that refuses requests from pages of an origin.
// It names the flag that allows them.
func refusalOf(origin string) string {
	if CheckOrigin(origin) != nil { // none, or not one that could be allowed
		return "requests from other sites are refused, except from those in --allowed-origins of the server"
	}
	return fmt.Sprintf("requests from %s are refused: it is not in --allowed-origins of the server", clip(origin, 200))
}

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
