package sqldb

import (
	"errors"
	"testing"
)

// TestServersOfThePastAreRefused has a process meet servers of one cluster. Two
// minutes after it refused a former primary, it meets another server.
func TestServersOfThePastAreRefused(t *testing.T) {
	t.Parallel()
	const system = 7
	former, standby := identity{1, system, 1}, identity{3, system, 0}
	for name, of := range map[string]struct {
		met     []identity // before a former primary is refused
		answers int64      // the run of a connection that answers meanwhile
		then    identity
		refused bool
	}{
		"no other server answers": {[]identity{former, {2, system, 2}}, 0, former, false},
		"the primary answers":     {[]identity{former, {2, system, 2}}, 2, former, true},
		"a standby alone answers": {[]identity{former, {2, system, 2}}, 0, standby, true},
		"it was a standby":        {[]identity{standby, {3, system, 2}}, 3, former, true},
	} {
		h := new(history)
		for _, one := range of.met {
			if _, err := h.note(one); err != nil {
				t.Errorf("%s: %+v is refused: %v", name, one, err)
			}
		}
		if _, err := h.note(former); !errors.Is(err, errPast) {
			t.Errorf("%s: the former primary is accepted: %v", name, err)
		}
		h.past = h.past.Add(-2 * pastFor)
		h.known(of.answers)
		if _, err := h.note(of.then); errors.Is(err, errPast) != of.refused {
			t.Errorf("%s: %+v is refused: %v, want %t", name, of.then, err, of.refused)
		}
	}
}
