package web

import (
	"fmt"
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
// https://dash.example.org or http://localhost:3000: scheme and host, without a
// path. The port may be `*` if the host is localhost or a loopback address.
func CheckOrigin(origin string) error {
	base, wild := strings.CutSuffix(origin, anyPort)
	address, err := url.Parse(base)
	if err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "" ||
		address.Scheme+"://"+address.Host != base {
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
