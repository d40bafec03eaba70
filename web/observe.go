package web

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/tracing"
)

// observe returns a handler that logs and measures requests to next, each with
// an id: the client's if it is valid, otherwise a new one. A panic becomes an
// internal error, or closes the connection if the answer has begun.
func observe(next http.Handler, options Options, measured *measurements) http.Handler {
	log := options.Log
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		id := r.Header.Get("X-Request-Id")
		if !isRequestID(id) {
			id = newRequestID(r, rand.Text)
		}
		entry := &requestLog{address: clientAddress(r, options.TrustedProxies)}
		ctx, endSpan := tracing.Request(r)
		r = r.WithContext(context.WithValue(graph.WithRequestID(ctx, id), requestLogKey{}, entry))
		recorder := &recorder{ResponseWriter: w}
		header := w.Header()
		header.Set("X-Request-Id", id)
		header.Set("X-Content-Type-Options", "nosniff")
		measured.inFlight.Inc()
		defer func() {
			measured.inFlight.Dec()
			if panicked := recover(); panicked != nil {
				measured.panics.Inc()
				log.ErrorContext(r.Context(), "panic", "requestId", id, "panic",
					panicked, "stack", string(debug.Stack()))
				if recorder.status != 0 {
					panic(http.ErrAbortHandler) // the answer has begun: only closing the connection reveals the failure
				}
				refuse(recorder, r, mediaJSON, refusal{status: http.StatusInternalServerError,
					code: graph.CodeInternal, message: "internal error"})
			}
			took := time.Since(began)
			measured.answered(route(r), r, recorder.status, took, entry.streams)
			attributes := []slog.Attr{slog.String("requestId", id),
				slog.String("method", r.Method), slog.String("path", clip(r.URL.Path, 100)),
				slog.Int("status", recorder.status),
				slog.Int64("bytes", recorder.bytes), slog.String("took", took.String()),
				slog.String("address", entry.address),
				slog.String("user", entry.viewer.UserID), slog.String("operation", entry.operation),
				slog.String("code", entry.code)}
			log.LogAttrs(r.Context(), level(r, recorder.status), "request", traced(r.Context(), attributes)...)
			endSpan(route(r), recorder.status)
		}()
		next.ServeHTTP(recorder, r)
		if recorder.status == 0 {
			recorder.status = http.StatusOK
		}
	})
}

// traced returns attributes of a log line, with the id of the trace if there is one.
func traced(ctx context.Context, attributes []slog.Attr) []slog.Attr {
	if id := tracing.ID(ctx); id != "" {
		return append(attributes, slog.String("trace", id))
	}
	return attributes
}

// level returns the level of a log line. Successful health checks and scrapes of
// metrics are at the debug level, so that they do not fill the log.
func level(r *http.Request, status int) slog.Level {
	switch r.URL.Path {
	case "/livez", "/readyz", "/metrics", "/metrics/cloud":
		if status == http.StatusOK {
			return slog.LevelDebug
		}
	}
	return slog.LevelInfo
}

// route returns the pattern that matched a request: one of few, for labels.
func route(r *http.Request) string {
	if r.Pattern == "" {
		return "none"
	}
	return r.Pattern
}

// isRequestID reports whether an id from a client can be used in logs and
// answers.
func isRequestID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for _, c := range []byte(id) {
		if c != '_' && c != '-' && c != '.' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

func clip(text string, maxBytes int) string {
	if len(text) > maxBytes {
		return strings.ToValidUTF8(text[:maxBytes], "") + "..."
	}
	return text
}

// requestLog collects the values for the log line of a request.
type requestLog struct {
	address   string // of the client
	viewer    access.Viewer
	operation string
	code      string
	streams   bool // whether the answer is a stream, which lasts as long as a client listens
}

type requestLogKey struct{}

// requestLogOf returns the log entry of a request, for handlers to fill.
func requestLogOf(ctx context.Context) *requestLog { return ctx.Value(requestLogKey{}).(*requestLog) }

// recorder notes the status and size of an answer.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	return n, err
}

// Unwrap returns the writer, for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// measurements are the metrics of requests. The values of labels come from
// fixed sets: routes, methods, statuses, kinds of operation and codes.
type measurements struct {
	requests   *prometheus.CounterVec
	seconds    *prometheus.HistogramVec
	inFlight   prometheus.Gauge
	operations map[ast.Operation]prometheus.Counter
	errors     *prometheus.CounterVec
	cost       prometheus.Counter
	panics     prometheus.Counter
	events     prometheus.Counter
	ended      *prometheus.CounterVec
}

func newMeasurements(registry *prometheus.Registry, version string) *measurements {
	m := &measurements{
		requests: counters("http_requests_total", "Requests answered, by route, method and status.", "route", "method",
			"status"),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "cadastre_http_request_seconds", Help: "Time from a request's headers to the end of its answer.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"route"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "cadastre_http_requests_in_flight", Help: "Requests being answered.",
		}),
		operations: map[ast.Operation]prometheus.Counter{},
		errors:     counters("graphql_errors_total", "GraphQL errors answered, by code.", "code"),
		cost:       counter("graphql_cost_total", "Estimated cost of the operations run."),
		panics: counter("http_panics_total",
			"Panics outside resolvers; those inside count as errors of the code INTERNAL."),
		events: counter("subscription_events_total", "Events of subscriptions sent."),
		ended:  counters("streams_ended_total", "WebSockets and event streams that ended, by reason.", "why"),
	}
	for _, why := range endings {
		m.ended.WithLabelValues(why)
	}
	operations := counters("graphql_operations_total", "GraphQL operations run, by kind.", "kind")
	for _, kind := range []ast.Operation{ast.Query, ast.Mutation, ast.Subscription} {
		m.operations[kind] = operations.WithLabelValues(string(kind))
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "cadastre_build_info", Help: "Always 1; the version is the label.",
		ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	registry.MustRegister(m.requests, m.seconds, m.inFlight, operations, m.errors,
		m.cost, m.panics, m.events, m.ended, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: "cadastre_" + name, Help: help})
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "cadastre_" + name, Help: help}, labels)
}

// priced counts the price of an operation that runs. A counter panics at a
// negative number, so none reaches it.
func (m *measurements) priced(cost int64) { m.cost.Add(float64(max(cost, 0))) }

// answered counts an answer and, unless it was a stream, the time it took.
func (m *measurements) answered(route string, r *http.Request, status int, took time.Duration, streams bool) {
	method := r.Method
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodOptions, http.MethodHead:
	default:
		method = "other"
	}
	m.requests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
	if !streams {
		observer := m.seconds.WithLabelValues(route)
		if id := tracing.ID(r.Context()); id != "" {
			observer.(prometheus.ExemplarObserver).
				ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": id})
		} else {
			observer.Observe(took.Seconds())
		}
	}
}
