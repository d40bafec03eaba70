package placementdb

import (
	"testing"
	"time"
)

// TestAReadyWorldIsFresh checks that a world which counts as fresh was complete
// within StaleAfter, and that a process catches up often enough for that.
func TestAReadyWorldIsFresh(t *testing.T) {
	t.Parallel()
	for _, listening := range []bool{true, false} {
		for since := time.Duration(0); since < 2*StaleAfter; since += 100 * time.Millisecond {
			if age := ageOf(since, listening); age <= StaleAfter && since > StaleAfter || age > since {
				t.Errorf("a world that was complete %s ago is taken to be %s old, listening %t", since, age, listening)
			}
		}
		if wait := pollAfter(listening, false); wait != poll {
			t.Errorf("after a catch up that failed, listening %t, the next one comes after %s", listening, wait)
		}
	}
	if wait := pollAfter(true, true) + pollAfter(true, true)/4; wait > StaleAfter*5/6 {
		t.Errorf("a process that is told of nothing catches up after %s", wait)
	}
	if wait := pollAfter(false, true); wait != poll {
		t.Errorf("a process that cannot listen catches up after %s", wait)
	}
}
