package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/web/admission"
)

// gates bound what all operations share. An operation passes them in this order,
// so that nobody who waits keeps another one from going on.
type gates struct {
	operations *admission.Gate // that were read and are not answered
	readings   *admission.Gate // long requests that are being read
	unread     *admission.Gate // bytes of answers that clients have not taken
	searches   *admission.Gate // heavy operations that run
	statements *admission.Gate // other ones that run and need the database
}

func newGates(options Options) gates {
	places := options.Executor.Places()
	return gates{
		operations: admission.NewGate(int64(options.Limits.Concurrent)),
		readings:   admission.NewGate(int64(max(1, runtime.GOMAXPROCS(0)/2))),
		unread:     admission.NewGate(options.Memory / 4),
		searches:   admission.NewGate(int64(places.Searches)),
		statements: admission.NewGate(int64(places.Statements)),
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

// read takes a place for a request that is long to read.
func (g *gates) read(ctx context.Context, of admission.Party) (*admission.Pass, *refusal) {
	pass, err := g.readings.Enter(ctx, of, 1, waitToRun)
	return pass, refusedAtGate(err)
}

// running is what an operation has while it runs.
type running struct{ place, runs, unread *admission.Pass }

// run takes what an operation needs to run, besides its place: room for an answer
// of so many bytes, and a place among those that it runs beside.
func (g *gates) run(ctx context.Context, of admission.Party, operation *document.Operation, place *admission.Pass, bytes int64) (*running, *refusal) {
	held := &running{place: place}
	var err error
	if bytes > smallAnswer {
		if held.unread, err = g.unread.Enter(ctx, of, bytes, waitToRun); err != nil {
			return nil, refusedAtGate(err)
		}
	}
	switch operation.Needs {
	case document.NeedsLong:
		held.runs, err = g.searches.Enter(ctx, of, 1, waitToRun)
	case document.NeedsDatabase:
		held.runs, err = g.statements.Enter(ctx, of, 1, waitToRun)
	}
	if err != nil {
		held.unread.Leave()
		return nil, refusedAtGate(err)
	}
	return held, nil
}

// answered gives back the places of an operation whose answer is complete, and
// keeps its bytes. A small answer keeps its place until it is sent, so that there
// are not more of them than places.
func (h *running) answered(bytes int64) {
	h.runs.Leave()
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

// Collect collects them. Only projects that have something are among the labels.
func (g *gates) Collect(metrics chan<- prometheus.Metric) {
	for _, of := range []struct {
		name string
		gate *admission.Gate
	}{{"operations", g.operations}, {"readings", g.readings}, {"unread_bytes", g.unread}, {"searches", g.searches}, {"statements", g.statements}} {
		gauge := func(suffix, help string, value int64, project ...string) {
			var labels []string
			if len(project) > 0 {
				labels = []string{"project"}
			}
			description := prometheus.NewDesc("cadastre_"+of.name+suffix, help, labels, nil)
			metrics <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, float64(value), project...)
		}
		used, waiting := of.gate.InUse()
		gauge("_in_use", "How much of the gate docs/limits.md describes is in use.", used)
		gauge("_waiting", "Operations that wait at it.", int64(waiting))
		for project, used := range of.gate.InUseByProjects() {
			gauge("_in_use_by_project", "How much of it a project uses.", used, project)
		}
	}
}
