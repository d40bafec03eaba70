package web

import (
	"runtime"
	"sync/atomic"
	"time"
)

// work measures work that the counts of statements, rows and bytes do not show:
// scans in the database and searches in memory.
type work struct{ running atomic.Int64 }

// Constants of measured time.
const (
	freeTime = 2 * time.Millisecond // of an operation, covered by its price
	// freeOutside is freeTime if a database in another process runs statements
	// that are bounded by indexes. Their elapsed time is mostly waiting: during
	// an attack such a look-up takes up to 20 ms.
	freeOutside   = 20 * time.Millisecond
	nanosecondsOf = 100 // for a cost of 1
)

// run is a running operation: its start, the processor time of the process at
// the start, and the number of running operations.
type run struct {
	of        *work
	began     time.Time
	processor time.Duration
	beside    int64
}

// begin begins to measure an operation.
func (w *work) begin() run { return run{w, time.Now(), processorTime(), w.running.Add(1)} }

// ran is the time that an operation took, the processor time that the process
// used meanwhile, and the average number of running operations.
type ran struct {
	elapsed, processor time.Duration
	beside             float64
}

// end ends the measurement.
func (r run) end() ran {
	return ran{time.Since(r.began), processorTime() - r.processor, max(1, float64(r.beside+r.of.running.Add(-1)+1)/2)}
}

// cost returns the cost of an operation's share of the cores, minus its free
// time; it can be negative. When more operations run than there are cores, each
// has a part of a core. So the charges never exceed the work of this process.
// isOutside means that a database in another process ran statements. The
// processor time of that process is unknown, so the elapsed time counts. isLong
// means that no index bounds the statements.
func (r ran) cost(isOutside, isLong bool) int64 {
	share, free := float64(r.elapsed)*min(1, float64(runtime.GOMAXPROCS(0))/r.beside), freeTime
	switch {
	case !isOutside:
		share = min(share, float64(r.processor)/r.beside)
	case !isLong:
		free = freeOutside
	}
	return int64((time.Duration(share) - free) / nanosecondsOf)
}
