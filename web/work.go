package web

import (
	"runtime"
	"sync/atomic"
	"time"
)

// work measures what operations take that no counter of statements, rows and
// bytes shows: the scans of the database and the searches in memory.
type work struct{ running atomic.Int64 }

// Of measured time.
const (
	freeTime      = 2 * time.Millisecond // of an operation, which its price covers
	nanosecondsOf = 100                  // a cost of 1
)

// run is an operation that runs: when it began, how much processor time the process
// had taken, and how many other operations ran.
type run struct {
	of        *work
	began     time.Time
	processor time.Duration
	beside    int64
}

// begin begins to measure an operation.
func (w *work) begin() run { return run{w, time.Now(), processorTime(), w.running.Add(1)} }

// ran is how long an operation ran, how much processor time the process took
// meanwhile, and how many operations ran on average.
type ran struct {
	elapsed, processor time.Duration
	beside             float64
}

// end ends it.
func (r run) end() ran {
	return ran{time.Since(r.began), processorTime() - r.processor, max(1, float64(r.beside+r.of.running.Add(-1)+1)/2)}
}

// cost returns the cost of an operation's share of the cores. When more run than
// there are cores, each has a part of one, so all of them together are never
// charged more than the machine did. Other programs are not
// charged. The processor time of another process is unknown: isOutside says that a
// database of that kind ran statements, so that the time that passed counts.
func (r ran) cost(isOutside bool) int64 {
	share := float64(r.elapsed) * min(1, float64(runtime.GOMAXPROCS(0))/r.beside)
	if !isOutside {
		share = min(share, float64(r.processor)/r.beside)
	}
	return int64((time.Duration(share) - freeTime) / nanosecondsOf)
}
