// Package soak sets how much random tests do: a third by default, all with
// CADASTRE_TEST_FULL, and as much as configured in make soak.
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

// Rounds returns the number of rounds of a random test: a third of the full
// number, at least one. It is the full number if CADASTRE_TEST_FULL is set.
func Rounds(full int) int {
	if os.Getenv("CADASTRE_TEST_FULL") != "" {
		return full
	}
	return (full + 2) / 3
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
