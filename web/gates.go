package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/internal/tracing"
	"github.com/cadastre-dev/cadastre/web/admission"
	"github.com/prometheus/client_golang/prometheus"
)

// The lanes of the gate for work.
const (
	operations = iota // being read, run or answered
	readings          // long requests and requests of greedy viewers, and answers from memory
	searches          // heavy operations that run
	statements        // other operations that run and need a connection
)

// The lanes of the gate for bytes.
const (
	bodyBytes   = iota // memory for long requests, until they are answered
	answerBytes        // answers that are being made or that clients have not read
)

// gates bound the resources that all operations share.
type gates struct{ work, bytes *admission.Gate }

// How long an operation waits for its place, and for anything else.
const waitForPlace, waitToRun = time.Second, 5 * time.Second

func newGates(options Options) gates {
	places, cores := options.Executor.Places(), max(1, runtime.GOMAXPROCS(0)/2)
	gate := func(lanes ...admission.Lane) *admission.Gate {
		for i := range lanes {
			lanes[i].Waited = tracing.Waited
		}
		return admission.NewGate(lanes...)
	}
	return gates{
		work: gate(
			admission.Lane{Name: "operations", Limit: int64(options.Limits.Concurrent), Wait: waitForPlace},
			admission.Lane{Name: "readings", Limit: int64(cores), Wait: waitToRun},
			admission.Lane{Name: "searches", Limit: int64(places.Searches), Wait: waitToRun},
			admission.Lane{Name: "statements", Limit: int64(places.Statements), Wait: waitToRun}),
		bytes: gate(
			admission.Lane{Name: "body_bytes", Limit: options.Memory / 4, Wait: waitToRun},
			admission.Lane{Name: "unread_bytes", Limit: options.Memory / 4, Wait: waitToRun}),
	}
}

// caller is the viewer and the party of an operation, and the bucket that pays.
type caller struct {
	viewer access.Viewer
	party  admission.Party
	payer  bucket
}

// callerOf returns the caller of a request. A connection from a trusted proxy
// carries many clients, so it has no share.
func callerOf(viewer access.Viewer, payer bucket, r *http.Request) caller {
	of := admission.Party{Viewer: principal(viewer), Project: viewer.ProjectID, Trusted: viewer.IsAdmin() ||
		viewer.IsService()}
	if peer, _, err := net.SplitHostPort(r.RemoteAddr); err == nil && peer == requestLogOf(r.Context()).address {
		of.Connection = r.RemoteAddr
	}
	return caller{viewer, of, payer}
}

// held is one operation's use of the gates.
type held struct {
	work, bytes admission.Pass
	payer       bucket
	turns       bool // whether it took a turn to be read
}

// enter takes a place for an operation to be read and answered. The caller must
// call h.end.
func (g *gates) enter(ctx context.Context, of caller) (*held, *refusal) {
	h := &held{work: g.work.Pass(of.party), bytes: g.bytes.Pass(of.party), payer: of.payer}
	return h, refusedAtGate(h.work.Take(ctx, operations, 1))
}

// end releases everything that the operation holds.
func (h *held) end() {
	h.work.Give()
	h.bytes.Give()
}

// refusedAtGate returns the refusal for an error of a gate, or nil for nil.
func refusedAtGate(err error) *refusal {
	switch {
	case errors.Is(err, admission.ErrOverShare):
		return &refusal{status: http.StatusTooManyRequests, code: graph.CodeRateLimited, retryAfter: 1,
			message: "too many operations of you or your project are running; try again later"}
	case err != nil:
		return &refusal{status: http.StatusServiceUnavailable, code: graph.CodeUnavailable, retryAfter: 1,
			message: "the server is busy; try again later"}
	}
	return nil
}

// Describe describes the metrics of gates, buckets and streams.
func (t *transport) Describe(descriptions chan<- *prometheus.Desc) {
	prometheus.DescribeByCollect(t, descriptions)
}

// Collect collects the metrics of gates, buckets and streams. Their labels name
// only projects that use something, or that waited or were refused.
func (t *transport) Collect(metrics chan<- prometheus.Metric) {
	gauge, counter := prometheus.GaugeValue, prometheus.CounterValue
	tell := func(kind prometheus.ValueType, name, help string, value float64, labels ...string) {
		var names, values []string
		for i := 0; i < len(labels); i += 2 {
			text := strings.ToValidUTF8(strings.TrimPrefix(labels[i+1], "\x00"), "\uFFFD")
			names, values = append(names, labels[i]), append(values, text)
		}
		description := prometheus.NewDesc("cadastre_"+name, help, names, nil)
		metrics <- prometheus.MustNewConstMetric(description, kind, value, values...)
	}
	refused := func(name, project string, count admission.Count) {
		const help = "Refused operations of a project: share means over its share (429), full means that the server was full (503)."
		for why, times := range map[string]uint64{"share": count.OverShare, "full": count.Full} {
			if times > 0 {
				tell(counter, name+"_refused_total", help, float64(times), "project", project, "why", why)
			}
		}
	}
	for _, of := range append(t.gates.work.Usage(), t.gates.bytes.Usage()...) {
		tell(gauge, of.Lane+"_in_use", "Units of the gate in use, as described in docs/limits.md.", float64(of.Used))
		tell(gauge, of.Lane+"_waiting", "Operations waiting at the gate.", float64(of.Waiting))
		for project, used := range of.Projects {
			tell(gauge, of.Lane+"_in_use_by_project", "Units of the gate that a project uses.", float64(used),
				"project", project)
		}
		for project, count := range of.Counts {
			tell(counter, of.Lane+"_waits_total", "Waits or refusals of a project's operations.", float64(count.Waits),
				"project", project)
			tell(counter, of.Lane+"_wait_seconds_total", "Seconds that a project's operations waited at the gate.",
				count.Waited.Seconds(), "project", project)
			refused(of.Lane, project, count)
		}
	}
	for project, count := range t.buckets.refused.All() {
		refused("points", project, count)
	}
	tell(gauge, "streams_open", "Open WebSockets and event streams.",
		float64(t.streams.sockets.open()+t.streams.strangers.open()))
	tell(gauge, "subscriptions_open", "Open subscriptions.", float64(t.streams.subscriptions.open()))
}

// Limits bound the work of requests. In each field but DocumentBytes and
// PersistedBytes zero means no limit. The comments state the defaults, which
// DefaultLimits returns. docs/limits.md explains the limits to operators.
type Limits struct {
	// BodyBytes bounds the body of a request: 1 MiB. A longer body gets 413.
	BodyBytes int64
	document.Limits
	// AnswerBytes bounds the data of an answer: 16 MiB. The root field that
	// exceeds it is null, and so are the root fields after it.
	AnswerBytes int
	// ClientBytes is the minimum rate, in bytes a second, at which a client
	// must read a long answer after the first five seconds: 64 KiB. The server
	// closes the connection of a slower client.
	ClientBytes int
	// OperationTime bounds the time that an operation runs, statements
	// included: 10 s. Fields that are not resolved by then get errors with the
	// code TIMEOUT.
	OperationTime time.Duration
	// Concurrent bounds the operations in progress: 256. One connection may have
	// an eighth of them, one viewer a quarter, one project half. Further
	// operations wait for a second. If they still have no place, the answer is
	// 429 if a connection, viewer or project is at its share, otherwise 503.
	Concurrent int
	// PrincipalPoints is the rate of points that a viewer (a user in a project)
	// may spend: 1,000 a second, with a burst of four seconds' worth. An
	// operation costs one point, one more for each 1,000 of its cost and 20 more
	// for each root field of a mutation. Beyond the rate the answer is 429.
	PrincipalPoints float64
	// ServicePoints and AdminPoints are the rates for viewers with the service
	// role, 10,000, and for administrators, 5,000.
	ServicePoints float64
	AdminPoints   float64
	// AddressPoints is the rate of points that requests from one address may
	// spend before their tokens are checked: 5,000 a second, with a burst of
	// four seconds' worth. A request costs one point, and 50 more if its token
	// is refused.
	AddressPoints float64
	// Sockets bounds the open WebSockets and event streams of all viewers:
	// 2,000. ViewerSockets bounds the sockets of one viewer: 200. WebSockets without
	// a valid token are counted apart: a quarter of Sockets, and ViewerSockets
	// of one address.
	Sockets, ViewerSockets int
	// SocketOperations bounds the operations in progress on one WebSocket: 100.
	SocketOperations int
	// Subscriptions bounds all open subscriptions: 10,000. ViewerSubscriptions
	// bounds the subscriptions of one viewer: 1,000. The server refuses more.
	Subscriptions, ViewerSubscriptions int
	// PersistedBytes bounds the memory for automatically persisted documents:
	// 16 MiB. Zero keeps none.
	PersistedBytes int64
}

// DefaultLimits returns the limits of a server without options.
func DefaultLimits() Limits {
	return Limits{
		BodyBytes:       1 << 20,
		Limits:          document.DefaultLimits(),
		AnswerBytes:     16 << 20,
		ClientBytes:     64 << 10,
		OperationTime:   10 * time.Second,
		Concurrent:      256,
		PrincipalPoints: 1000,
		ServicePoints:   10_000,
		AdminPoints:     5000,
		AddressPoints:   5000,
		Sockets:         2000, ViewerSockets: 200, SocketOperations: 100,
		Subscriptions: 10_000, ViewerSubscriptions: 1000,
		PersistedBytes: 16 << 20,
	}
}

// ofFiles returns the limits for imports and exports. A document may have 1
// MiB, and any cost, because the price grows with the bytes of the files.
func (l Limits) ofFiles() document.Limits {
	limits := l.Limits
	limits.Cost, limits.DocumentBytes = 0, 1<<20
	return limits
}
