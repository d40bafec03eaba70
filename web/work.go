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

// run is an operation that runs, and how many others ran when it began.
type run struct {
	of     *work
	began  time.Time
	beside int64
}

// begin begins to measure an operation.
func (w *work) begin() run { return run{w, time.Now(), w.running.Add(1)} }

// ran is how long an operation ran, and beside how many others on average.
type ran struct {
	elapsed time.Duration
	beside  float64
}

// end ends it.
func (r run) end() ran {
	return ran{time.Since(r.began), float64(r.beside+r.of.running.Add(-1)+1) / 2}
}

// cost returns the cost of an operation's share of the cores. When more run than
// there are cores, each has a part of one, so all of them together are never
// charged more than the machine did.
func (r ran) cost() int64 {
	share := min(1, float64(runtime.GOMAXPROCS(0))/max(1, r.beside))
	return int64((time.Duration(float64(r.elapsed)*share) - freeTime) / nanosecondsOf)
}
