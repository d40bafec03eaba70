package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/web/admission"
)

// gates bound what all operations share. An operation passes them in this order,
// so that nobody who waits keeps another one from going on.
type gates struct {
	operations *admission.Gate // that were read and are not answered
	bodies     *admission.Gate // bytes of memory that long requests take until they are answered
	readings   *admission.Gate // requests that are being read: long ones, and those of greedy viewers
	unread     *admission.Gate // bytes of answers that clients have not taken
	searches   *admission.Gate // heavy operations that run
	statements *admission.Gate // other ones that run and need a connection of their own
	points     *admission.Counts
}

func newGates(options Options) gates {
	places := options.Executor.Places()
	return gates{
		operations: admission.NewGate(int64(options.Limits.Concurrent)),
		bodies:     admission.NewGate(options.Memory / 4),
		readings:   admission.NewGate(int64(max(1, runtime.GOMAXPROCS(0)/2))),
		unread:     admission.NewGate(options.Memory / 4),
		searches:   admission.NewGate(int64(places.Searches)),
		statements: admission.NewGate(int64(places.Statements)),
		points:     &admission.Counts{},
	}
}

// How long an operation waits at a gate.
const (
	waitForPlace = time.Second     // to be read
	waitToRun    = 5 * time.Second // once it is read
)

// partyOf returns on whose behalf a request is made. A connection of a proxy is
// that of many.
func partyOf(viewer access.Viewer, r *http.Request) admission.Party {
	of := admission.Party{Viewer: principal(viewer), Project: viewer.ProjectID, Trusted: viewer.IsAdmin() || viewer.IsService()}
	if peer, _, err := net.SplitHostPort(r.RemoteAddr); err == nil && peer == requestLogOf(r.Context()).address {
		of.Connection = r.RemoteAddr
	}
	return of
}

// enter takes a place for a request to be read and answered.
func (g *gates) enter(ctx context.Context, of admission.Party) (*admission.Pass, *refusal) {
	pass, err := g.operations.Enter(ctx, of, 1, waitForPlace)
	return pass, refusedAtGate(err)
}

// Of memory for bodies.
const (
	smallBody    = 16 << 10 // bytes of a body that needs no room
	memoryOfBody = 8        // what a byte of a body becomes while it is read and answered
)

// receive takes room for a body of so many bytes.
func (g *gates) receive(ctx context.Context, of admission.Party, bytes int64) (*admission.Pass, *refusal) {
	if bytes <= smallBody {
		return nil, nil
	}
	pass, err := g.bodies.Enter(ctx, of, memoryOfBody*bytes, waitToRun)
	return pass, refusedAtGate(err)
}

// read takes a place for a request that is long to read, or whose viewer is
// greedy.
func (g *gates) read(ctx context.Context, of admission.Party) (*admission.Pass, *refusal) {
	pass, err := g.readings.Enter(ctx, of, 1, waitToRun)
	return pass, refusedAtGate(err)
}

// running is what an operation has while it runs.
type running struct{ place, runs, writes, unread *admission.Pass }

// run takes what an operation needs to run, besides its place: room for an answer
// of so many bytes, and a place among those that it runs beside; a heavy mutation
// has one among either. What took a turn to be read takes another one to be
// answered from memory.
func (g *gates) run(ctx context.Context, of admission.Party, operation *document.Operation, place *admission.Pass, bytes int64, turns bool) (*running, *refusal) {
	held := &running{place: place}
	var err error
	if bytes > smallAnswer {
		if held.unread, err = g.unread.Enter(ctx, of, bytes, waitToRun); err != nil {
			return nil, refusedAtGate(err)
		}
	}
	switch operation.Needs {
	case document.NeedsNothing:
		if turns {
			held.runs, err = g.readings.Enter(ctx, of, 1, waitToRun)
		}
	case document.NeedsLong:
		held.runs, err = g.searches.Enter(ctx, of, 1, waitToRun)
		if err == nil && operation.Definition.Operation == ast.Mutation {
			held.writes, err = g.statements.Enter(ctx, of, 1, waitToRun)
		}
	case document.NeedsDatabase:
		held.runs, err = g.statements.Enter(ctx, of, 1, waitToRun)
	}
	if err != nil {
		held.end()
		return nil, refusedAtGate(err)
	}
	return held, nil
}

// answered gives back the places of an operation whose answer is complete, and
// keeps its bytes. A small answer keeps its place until it is sent, so that there
// are not more of them than places.
func (h *running) answered(bytes int64) {
	h.runs.Leave()
	h.writes.Leave()
	if h.unread != nil {
		h.unread.Change(bytes)
		h.place.Leave()
	}
}

// sent notes how many bytes of the answer are still to be sent.
func (h *running) sent(left int) { h.unread.Change(int64(left)) }

// end gives back everything but the place, which whoever took it gives back.
func (h *running) end() {
	h.runs.Leave()
	h.writes.Leave()
	h.unread.Leave()
}

// refusedAtGate returns the refusal of somebody who waited at a gate in vain.
func refusedAtGate(err error) *refusal {
	switch {
	case errors.Is(err, admission.ErrOverShare):
		return &refusal{status: http.StatusTooManyRequests, code: graph.CodeRateLimited, retryAfter: 1,
			message: "too much is being worked on for you or your project at once; try again later"}
	case err != nil:
		return &refusal{status: http.StatusServiceUnavailable, code: graph.CodeUnavailable, retryAfter: 1, message: "the server is busy; try again later"}
	}
	return nil
}

// Describe describes the metrics of the gates.
func (g *gates) Describe(descriptions chan<- *prometheus.Desc) {
	prometheus.DescribeByCollect(g, descriptions)
}

// Collect collects them. Of what is in use, only projects that have something are
// among the labels.
func (g *gates) Collect(metrics chan<- prometheus.Metric) {
	for _, of := range []struct {
		name string
		gate *admission.Gate
	}{{"operations", g.operations}, {"body_bytes", g.bodies}, {"readings", g.readings}, {"unread_bytes", g.unread}, {"searches", g.searches}, {"statements", g.statements}} {
		told := metricsOf{metrics, "cadastre_" + of.name}
		used, waiting := of.gate.InUse()
		told.tell(prometheus.GaugeValue, "_in_use", "How much of the gate docs/limits.md describes is in use.", float64(used))
		told.tell(prometheus.GaugeValue, "_waiting", "Operations that wait at it.", float64(waiting))
		for project, used := range of.gate.InUseByProjects() {
			told.tell(prometheus.GaugeValue, "_in_use_by_project", "How much of it a project uses.", float64(used), "project", project)
		}
		for project, count := range of.gate.Counts() {
			told.tell(prometheus.CounterValue, "_waits_total", "How often operations of a project waited at it.", float64(count.Waits), "project", project)
			told.tell(prometheus.CounterValue, "_wait_seconds_total", "How long they did.", count.Waited.Seconds(), "project", project)
			told.refused(project, count)
		}
	}
	told := metricsOf{metrics, "cadastre_points"}
	for project, count := range g.points.All() {
		told.refused(project, count)
	}
}

// metricsOf sends metrics whose names begin alike.
type metricsOf struct {
	to   chan<- prometheus.Metric
	name string
}

// tell sends a metric with labels, each a name and a value.
func (m metricsOf) tell(kind prometheus.ValueType, suffix, help string, value float64, labels ...string) {
	var names, values []string
	for i := 0; i < len(labels); i += 2 {
		text := labels[i+1]
		if text == admission.Others {
			text = "others"
		}
		names, values = append(names, labels[i]), append(values, strings.ToValidUTF8(text, "\uFFFD"))
	}
	m.to <- prometheus.MustNewConstMetric(prometheus.NewDesc(m.name+suffix, help, names, nil), kind, value, values...)
}

// refused sends how often a project was refused, and why.
func (m metricsOf) refused(project string, count admission.Count) {
	const help = "Operations of a project that were refused here: by 429 because it had its share, or by 503 because the server was full."
	for why, times := range map[string]uint64{"share": count.OverShare, "full": count.Full} {
		if times > 0 {
			m.tell(prometheus.CounterValue, "_refused_total", help, float64(times), "project", project, "why", why)
		}
	}
}
