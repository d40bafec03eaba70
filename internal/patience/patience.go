// Package patience bounds how long tests wait. The variable
// CADASTRE_TEST_PATIENCE multiplies the times on a slow machine.
package patience

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// longestTurn bounds how much of the limit one turn of Until uses. If the
// machine stalls for seconds, the awaited work stalls, too.
const longestTurn = 250 * time.Millisecond

// Of returns the duration multiplied by CADASTRE_TEST_PATIENCE, a number above
// 0. Without that variable it returns the duration unchanged.
func Of(t testing.TB, d time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv("CADASTRE_TEST_PATIENCE")
	if text == "" {
		return d
	}
	factor, err := strconv.ParseFloat(text, 64)
	if err != nil || !(factor > 0) {
		t.Fatalf("CADASTRE_TEST_PATIENCE is %q, not a number above 0", text)
	}
	return time.Duration(float64(d) * factor)
}

// Until calls done every 5 ms until it returns true, and reports whether it did
// so within the limit multiplied as by Of. A turn counts for at most
// longestTurn.
func Until(t testing.TB, limit time.Duration, done func() bool) bool {
	t.Helper()
	left := Of(t, limit)
	for began := time.Now(); !done(); began = time.Now() {
		if left <= 0 {
			return false
		}
		time.Sleep(5 * time.Millisecond)
		left -= min(time.Since(began), longestTurn)
	}
	return true
}
