package patience_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
)

func TestOfMultiplies(t *testing.T) {
	for factor, want := range map[string]time.Duration{"": 2 * time.Second, "1": 2 * time.Second,
		"2.5": 5 * time.Second, "0.5": time.Second} {
		t.Setenv("CADASTRE_TEST_PATIENCE", factor)
		if got := patience.Of(t, 2*time.Second); got != want {
			t.Errorf("with the factor %q: got %v, want %v", factor, got, want)
		}
	}
}

func TestUntilReportsWhetherItWasDone(t *testing.T) {
	t.Parallel()
	calls := 0
	if !patience.Until(t, time.Minute, func() bool { calls++; return calls == 3 }) || calls != 3 {
		t.Errorf("not done after %d calls", calls)
	}
	if patience.Until(t, time.Millisecond, func() bool { return false }) {
		t.Error("done, though it never was")
	}
}

// TestUntilLooksAgainAfterAPause simulates a machine that stalls for longer
// than the limit.
func TestUntilLooksAgainAfterAPause(t *testing.T) {
	t.Setenv("CADASTRE_TEST_PATIENCE", "1")
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		if !patience.Until(t, time.Second, func() bool {
			if looks++; looks == 1 {
				time.Sleep(time.Minute)
			}
			return looks == 100
		}) {
			t.Errorf("given up after %d looks", looks)
		}
	})
}
