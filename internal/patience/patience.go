// Package patience bounds how long tests wait: by times that a slow machine
// multiplies with the variable CADASTRE_TEST_PATIENCE.
package patience

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// Of returns the duration multiplied by CADASTRE_TEST_PATIENCE, a number above
// 0; without that variable it returns the duration itself.
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
// so within the limit multiplied as by Of.
func Until(t testing.TB, limit time.Duration, done func() bool) bool {
	t.Helper()
	for deadline := time.Now().Add(Of(t, limit)); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}
