// Package soak sets how much random tests do: a ninth of their rounds by
// default, another part with CADASTRE_TEST_PART. In make soak, each test has a
// variable for its number; see Count.
package soak

import (
	"os"
	"strconv"
	"testing"
)

// Seed returns the seed of random tests: CADASTRE_SOAK_SEED, or 1.
func Seed(t testing.TB) uint64 {
	t.Helper()
	return uint64(Count(t, "CADASTRE_SOAK_SEED", 1))
}

// Full reports whether random tests have all rounds: CADASTRE_TEST_PART is 1.
func Full() bool { return os.Getenv("CADASTRE_TEST_PART") == "1" }

// Rounds returns the number of rounds of a random test, at least one: the full
// number divided by CADASTRE_TEST_PART, which is 9 by default.
func Rounds(full int) int {
	part, err := strconv.Atoi(os.Getenv("CADASTRE_TEST_PART"))
	if err != nil || part < 1 {
		part = 9
	}
	return (full + part - 1) / part
}

// Count returns the non-negative integer in an environment variable. If the
// variable is empty, it returns Rounds of the full number. Any other string
// fails the test.
func Count(t testing.TB, variable string, full int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return Rounds(full)
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return int(n)
}
