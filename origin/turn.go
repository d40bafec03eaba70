package origin

import "time"

// Turn is the time of the next pass of a program that repeats passes over a
// scope.
type Turn struct {
	// Interval is the time between passes.
	Interval time.Duration
	// Due is when the next pass begins. The zero time is due at any time.
	Due time.Time
	// Failures is the number of passes in a row that failed.
	Failures int
	ended    time.Time // the end of the program's own last pass
}

// Outcome is how a pass of a program ended.
type Outcome int

const (
	// Succeeded means that the pass was complete.
	Succeeded Outcome = iota
	// Failed means that the pass was not complete.
	Failed
	// Taken means that another program makes a pass over the scope.
	Taken
)

const (
	// jitter is the largest part of a wait that is added or subtracted.
	jitter = 0.1
	// takenWait is the time until the next look at a scope that another program
	// reads.
	takenWait = 15 * time.Second
	// maxBackoff is the longest wait after failures, unless the interval is longer.
	maxBackoff = time.Hour
	// precision is the precision of a lag.
	precision = time.Second
)

// Look returns the turn after a look at the scope at a time. lag is the time
// since the end of the last complete pass, nil for none. The turn waits while
// another program makes a pass. If another program has completed a pass since
// this program's last one, the interval counts from the end of that pass.
// random is from 0 to 1.
func (t Turn) Look(now time.Time, isRunning bool, lag *time.Duration, random float64) Turn {
	if isRunning {
		return t.until(now.Add(spread(takenWait, random)))
	}
	if lag == nil {
		return t
	}
	if completed := now.Add(-*lag); completed.After(t.ended.Add(precision)) {
		t.Failures = 0
		return t.until(completed.Add(spread(t.Interval, random)))
	}
	return t
}

// End returns the turn after a pass of the program ended at a time. The wait
// doubles with each failure after the first, up to maxBackoff. random is from 0
// to 1.
func (t Turn) End(now time.Time, outcome Outcome, random float64) Turn {
	wait := t.Interval
	switch outcome {
	case Taken:
		return t.until(now.Add(spread(takenWait, random)))
	case Succeeded:
		t.Failures = 0
	case Failed:
		for range t.Failures {
			if wait < maxBackoff {
				wait = min(2*wait, maxBackoff)
			}
		}
		t.Failures++
	}
	t.ended = now
	return t.until(now.Add(spread(wait, random)))
}

func (t Turn) until(due time.Time) Turn {
	if due.After(t.Due) {
		t.Due = due
	}
	return t
}

// spread returns a time from 1-jitter to 1+jitter times the given one.
func spread(wait time.Duration, random float64) time.Duration {
	return time.Duration(float64(wait) * (1 + jitter*(2*random-1)))
}
