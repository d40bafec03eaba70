package web

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/internal/tracing"
)

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
