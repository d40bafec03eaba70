package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/internal/pause"
)

// metrics are values of a server's metrics, by name with labels.
type metrics map[string]float64

// metricsOf returns the sums of the servers' metrics.
func (c *cloud) metricsOf(ctx context.Context) metrics {
	sums := metrics{}
	for _, s := range c.servers {
		p := newParty(s.host, "", operatorAddress, 1)
		text, err := p.get(ctx, "/metrics")
		p.close()
		if err != nil {
			continue
		}
		for line := range strings.Lines(text) {
			name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
			if number, err := strconv.ParseFloat(value, 64); ok && err == nil && told(name) {
				sums[name] += number
			}
		}
	}
	return sums
}

// told reports whether a report tells of a metric.
func told(name string) bool {
	for _, beginning := range []string{"cadastre_operations", "cadastre_readings", "cadastre_unread_bytes", "cadastre_searches", "cadastre_statements", "cadastre_points", "go_sql_wait"} {
		if strings.HasPrefix(name, beginning) {
			return true
		}
	}
	return false
}

// tells returns what metrics tell of an attack: what counters grew by, and the
// most that gauges were.
func tells(before, after metrics, most metrics) map[string]float64 {
	all := map[string]float64{}
	for name, value := range after {
		if grew := value - before[name]; isCounter(name) && grew > 0 {
			all[name] = grew
		}
	}
	for name, value := range most {
		if !isCounter(name) && value > 0 {
			all[name] = value
		}
	}
	return all
}

func isCounter(name string) bool {
	plain, _, _ := strings.Cut(name, "{")
	return strings.HasSuffix(plain, "_total")
}

// watch samples the metrics until the context ends, and returns the most that
// each was.
func (c *cloud) watch(ctx context.Context) metrics {
	most := metrics{}
	for ctx.Err() == nil {
		for name, value := range c.metricsOf(ctx) {
			most[name] = max(most[name], value)
		}
		pause.For(ctx, 300*time.Millisecond)
	}
	return most
}

// settle waits until nothing is worked on any more, and returns how long that
// took.
func (c *cloud) settle(ctx context.Context, atMost time.Duration) time.Duration {
	began := time.Now()
	for time.Since(began) < atMost && ctx.Err() == nil {
		now := c.metricsOf(ctx)
		if now["cadastre_operations_in_use"]+now["cadastre_unread_bytes_in_use"]+now["cadastre_searches_in_use"]+now["cadastre_statements_in_use"] == 0 {
			break
		}
		pause.For(ctx, 100*time.Millisecond)
	}
	return time.Since(began)
}

// sortedNames returns the names of metrics in their order.
func sortedNames(all map[string]float64) []string { return slices.Sorted(maps.Keys(all)) }

// resetPeak has the system count the peak of a process's memory anew.
func (s *server) resetPeak() {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.PID), []byte("5"), 0) // else the peak is that of its life
}

// memory returns what a process has of memory, and the most that it had.
func (s *server) memory() (now, peak int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID))
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		number, err := strconv.ParseInt(fields[1], 10, 64)
		switch {
		case err != nil:
		case fields[0] == "VmRSS:":
			now = number << 10
		case fields[0] == "VmHWM:":
			peak = number << 10
		}
	}
	return now, peak
}
