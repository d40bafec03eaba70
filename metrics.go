package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cadastre-dev/cadastre/origin"
	"github.com/cadastre-dev/cadastre/store"
)

const (
	// syncsEvery is the shortest time between two readings of the syncs.
	syncsEvery = 10 * time.Second
	// syncsTime is the time limit of a reading.
	syncsTime = 3 * time.Second
)

// standbyMetrics returns the metrics of the standbys that answer reads.
func standbyMetrics(s *store.Store) (all []prometheus.Collector) {
	outcomes := map[string]func(store.StandbyReads) int64{
		"read":   func(of store.StandbyReads) int64 { return of.Read },
		"behind": func(of store.StandbyReads) int64 { return of.Behind },
		"failed": func(of store.StandbyReads) int64 { return of.Failed },
	}
	for name := range s.StandbyReads() {
		for outcome, count := range outcomes {
			all = append(all, prometheus.NewCounterFunc(prometheus.CounterOpts{
				Name:        "cadastre_standby_reads_total",
				Help:        "Queries sent to a standby, by outcome: read, behind or failed.",
				ConstLabels: prometheus.Labels{"standby": name, "outcome": outcome},
			}, func() float64 { return float64(count(s.StandbyReads()[name])) }))
		}
	}
	return all
}

// syncMetrics are the metrics of the syncs, at most 1,000. A sync is the passes
// over one kind of things in one region of an origin. If the database does not
// answer, they show the states that were read last.
type syncMetrics struct {
	store  *store.Store
	log    *slog.Logger
	mu     sync.Mutex // guards the following
	states []*origin.State
	read   time.Time
}

// syncMetric is a metric with the function that computes its value from a state
// at a time. ok is false if there is no value.
type syncMetric struct {
	described *prometheus.Desc
	value     func(state *origin.State, now time.Time) (value float64, ok bool)
}

func newSyncMetric(name, help string, value func(*origin.State, time.Time) (float64, bool)) syncMetric {
	return syncMetric{prometheus.NewDesc("cadastre_sync_"+name, help, []string{"origin", "region", "kind"}, nil), value}
}

func allSyncMetrics() []syncMetric {
	count := func(name, help string, of func(*origin.State) int) syncMetric {
		return newSyncMetric(name, help, func(state *origin.State, _ time.Time) (float64, bool) {
			return float64(of(state)), true
		})
	}
	lag := func(state *origin.State, now time.Time) (float64, bool) {
		if state.CompletedAt == nil {
			return 0, false
		}
		return max(0, now.Sub(*state.CompletedAt).Seconds()), true
	}
	return []syncMetric{
		newSyncMetric("lag_seconds", "Time since the end of the last complete pass.", lag),
		count("failures", "Consecutive incomplete passes.", func(of *origin.State) int { return of.Failures }),
		count("present", "Things that are not gone.", func(of *origin.State) int { return of.Present }),
		count("absent", "Things that are absent from the last complete pass, but not gone.",
			func(of *origin.State) int { return of.Absent }),
		count("gone", "Things that are gone and not yet deleted.", func(of *origin.State) int { return of.Gone }),
		count("refused", "Absent things that the last complete pass did not declare gone, because of a limit.",
			func(of *origin.State) int { return of.Refused }),
	}
}

// Describe sends the descriptions of the metrics.
func (m *syncMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, metric := range allSyncMetrics() {
		to <- metric.described
	}
}

// Collect sends the metrics.
func (m *syncMetrics) Collect(to chan<- prometheus.Metric) {
	now := time.Now()
	for _, state := range m.current(now) {
		for _, metric := range allSyncMetrics() {
			if value, ok := metric.value(state, now); ok {
				to <- prometheus.MustNewConstMetric(metric.described, prometheus.GaugeValue, value,
					state.Origin, state.Region, state.Kind)
			}
		}
	}
}

// current returns the states of the syncs. It reads them again if they are old.
func (m *syncMetrics) current(now time.Time) []*origin.State {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Sub(m.read) < syncsEvery {
		return m.states
	}
	ctx, cancel := context.WithTimeout(context.Background(), syncsTime)
	defer cancel()
	m.read = now
	states, err := m.store.Syncs(ctx)
	if err != nil {
		m.log.Warn("cannot read the syncs for metrics", "error", err)
		return m.states
	}
	m.states = states
	return states
}
