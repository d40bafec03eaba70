// Package web serves HTTP: GraphQL with its limits and persisted documents,
// OpenStack-compatible APIs, /mcp, health, metrics, the IDE and the console. It
// knows no SQL and no resolver. It checks permissions for schema and metrics only.
package web

import (
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/rest"
)

// Profile is how much the server reveals and accepts.
type Profile string

const (
	// Open is for development and trusted networks: the IDE, the console, hints
	// at names of the schema, metrics without a token, and any query by GET.
	Open Profile = "open"
	// Locked is for exposed servers: no IDE, no hints at names of the schema in
	// error messages, and only persisted documents by GET.
	Locked Profile = "locked"
)

// SchemaAccess says who may read the schema, at /schema.graphql and by
// introspection. Introspection needs a token in any case.
type SchemaAccess string

const (
	SchemaForAnyone  SchemaAccess = "anyone"
	SchemaForViewers SchemaAccess = "viewers" // viewers with a valid token
	SchemaForAdmins  SchemaAccess = "admins"
	SchemaForNobody  SchemaAccess = "nobody"
)

// SchemaAccess returns the default schema access of a profile.
func (p Profile) SchemaAccess() SchemaAccess {
	if p == Open {
		return SchemaForAnyone
	}
	return SchemaForViewers
}

// Options configure a handler.
type Options struct {
	// Executor runs the operations. Required.
	Executor *graph.Executor
	// Doors are the OpenStack-compatible APIs that the server has, each under its
	// path; nil for none.
	Doors []*rest.Door
	// Authenticate returns the viewer of a request by its headers; see
	// auth.Authenticator. Required.
	Authenticate func(ctx context.Context, header http.Header) (access.Viewer, error)
	// Ready returns an error while the server cannot serve requests; nil means
	// that it always can.
	Ready func(ctx context.Context) error
	// Version is the version of the program, for /metrics and /mcp.
	Version string
	// Log gets a line for each request, without tokens and variables; nil is
	// slog.Default().
	Log *slog.Logger
	// Profile is Open or Locked; empty is Locked.
	Profile Profile
	// SchemaAccess says who may read the schema; empty is SchemaForAnyone in
	// the open profile and SchemaForViewers in the locked one.
	SchemaAccess SchemaAccess
	// DemoRoles are the roles of a demo that users can choose in the IDE and
	// the console. The first is the default. Without any, the pages ask for a
	// token.
	DemoRoles []DemoRole
	// SlowOperation is the running time from which an operation is logged as
	// slow; 0 logs none.
	SlowOperation time.Duration
	// Memory is how many bytes the process may use. Long requests may take a
	// quarter, and unread answers another. 0 means no limit.
	Memory int64
	// Limits bound the work of a request; the zero value is DefaultLimits().
	Limits Limits
	// AllowedOrigins are the origins whose pages may send requests, such as
	// https://dash.example.org; none by default. CheckOrigin must return nil
	// for each. The server's own pages may always send requests.
	AllowedOrigins []string
	// Trusted are documents that requests may name by their hash; nil for none.
	Trusted *TrustedDocuments
	// TrustedOnly refuses clients' documents that are neither in Trusted nor, if
	// the console is served, the console's. It requires Trusted or the console.
	TrustedOnly bool
	// Console serves the console in the locked profile, too.
	Console bool
	// SignIn has the ways to sign in at the console. Pasting a token is always
	// possible.
	SignIn SignIn
	// TrustedProxies are the networks of the proxies in front of the server.
	// The server trusts their X-Forwarded-For; none by default.
	TrustedProxies []netip.Prefix
	// Tools says which tools for agents /mcp serves; none by default.
	Tools Tools
	// MetricsElsewhere omits /metrics, for servers that serve Metrics on
	// another listener. In the locked profile, /metrics needs the token of an
	// administrator or a service.
	MetricsElsewhere bool
	// Metrics is the registry that /metrics shows. This package registers its
	// metrics there; nil means a new registry.
	Metrics *prometheus.Registry
	// Cloud serves /metrics/cloud, unless MetricsElsewhere is set; nil for none.
	Cloud http.Handler
}

func (o Options) servesConsole() bool { return o.Console || o.Profile == Open }

// New returns the handler of the whole server: /graphql, /import, /export, the
// Doors, /mcp if Tools is set, /livez, /readyz, /metrics unless
// MetricsElsewhere is set, /schema.graphql and, in the open profile, the IDE at
// / and the console at /console. In the locked profile the console needs the
// option Console.
func New(options Options) http.Handler {
	if options.Log == nil {
		options.Log = slog.Default()
	}
	if options.Metrics == nil {
		options.Metrics = prometheus.NewRegistry()
	}
	if options.Limits == (Limits{}) {
		options.Limits = DefaultLimits()
	}
	options.DemoRoles = append([]DemoRole{}, options.DemoRoles...) // JSON without any is a list, too
	options.SchemaAccess = cmp.Or(options.SchemaAccess, options.Profile.SchemaAccess())
	measured := newMeasurements(options.Metrics, options.Version)
	transport := newTransport(options, measured)
	mux := http.NewServeMux()
	for _, path := range []string{"/graphql", importPath, exportPath} {
		mux.Handle(path, transport.crossOrigin(transport))
	}
	if options.Tools != NoTools {
		mux.Handle(agentsPath, transport.crossOrigin(newAgents(transport)))
	}
	addDoors(mux, transport, options.Doors)
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", readyz(options))
	if !options.MetricsElsewhere {
		addMetrics(mux, options.Metrics, options.Cloud, transport.guarded)
	}
	mux.HandleFunc("GET /schema.graphql", transport.serveSchema)
	switch {
	case options.Profile == Open:
		addIDE(mux, options.DemoRoles)
	case options.Console:
		mux.Handle("GET /{$}", http.RedirectHandler("/console", http.StatusFound))
	default:
		mux.HandleFunc("GET /{$}", notServed("The IDE is not served in the profile locked. The API is at /graphql; "+
			"cadastre serve --profile open serves the IDE here.\n"))
	}
	if options.servesConsole() {
		transport.addConsole(mux)
	} else {
		none := notServed("The console is not served in the profile locked. The API is at /graphql; " +
			"cadastre serve --console serves the console here.\n")
		mux.HandleFunc("GET /console", none)
		mux.HandleFunc("GET /console/", none)
	}
	return observe(compressed(mux), options, measured)
}

// NewMetricsHandler returns a handler that serves only /metrics and, if there is a
// handler for it, /metrics/cloud.
func NewMetricsHandler(metrics *prometheus.Registry, cloud http.Handler) http.Handler {
	mux := http.NewServeMux()
	addMetrics(mux, metrics, cloud, func(next http.Handler) http.Handler { return next })
	return mux
}

func addMetrics(mux *http.ServeMux, metrics *prometheus.Registry, cloud http.Handler,
	guarded func(http.Handler) http.Handler) {
	mux.Handle("GET /metrics", guarded(promhttp.HandlerFor(metrics, promhttp.HandlerOpts{EnableOpenMetrics: true})))
	if cloud != nil {
		mux.Handle("GET /metrics/cloud", guarded(cloud))
	}
}

// compressedFrom is the minimum size in bytes of an answer that is compressed.
const compressedFrom = 1 << 10

// compressed returns a handler that compresses the long answers of next, except
// streams, for clients that accept zstd or gzip. It prefers zstd, which makes
// slightly shorter answers in the same time.
func compressed(next http.Handler) http.Handler {
	zipped := must(gzhttp.NewWrapper(gzhttp.MinSize(compressedFrom), gzhttp.CompressionLevel(gzip.BestSpeed),
		gzhttp.EnableZstd(true), gzhttp.PreferZstd(true), gzhttp.ZstdCompressionLevel(int(zstd.SpeedFastest))))(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isUpgrade(r) {
			next.ServeHTTP(w, r)
			return
		}
		if r.Header.Get("Accept-Encoding") == "" { // most programs
			w.Header().Add("Vary", "Accept-Encoding")
			next.ServeHTTP(w, r)
			return
		}
		zipped.ServeHTTP(w, r)
	})
}

// uncompressed returns the writer below the ones of compressed.
func uncompressed(w http.ResponseWriter) http.ResponseWriter {
	for {
		of, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if _, isOurs := w.(*recorder); isOurs || !ok {
			return w
		}
		w = of.Unwrap()
	}
}

// readyz returns a handler that answers 200 when the server can serve requests,
// otherwise 503 with the body of notReady. Only the log has the cause.
func readyz(options Options) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if options.Ready != nil {
			if err := options.Ready(r.Context()); err != nil {
				options.Log.WarnContext(r.Context(), "not ready", "requestId", graph.RequestID(r.Context()),
					"reason", err, "error", innermost(err))
				plain(w, http.StatusServiceUnavailable, notReady(err))
				return
			}
		}
		plain(w, http.StatusOK, "ready\n")
	}
}

// notReady returns the body of the answer to an error of Ready: the message of
// a refusal, never its cause or any other error.
func notReady(err error) string {
	if refusal, ok := errors.AsType[*problem.Refusal](err); ok {
		return "not ready: " + strings.TrimSuffix(refusal.Message, ", try again") + "\n"
	}
	return "not ready\n"
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}
