// Package soak says how much random tests do: little in make test, more in make
// race, and as much as make soak sets.
package soak

import (
	"os"
	"strconv"
	"testing"
)

// Seed returns where random tests begin: CADASTRE_SOAK_SEED, 1 without it.
func Seed(t testing.TB) uint64 {
	t.Helper()
	return uint64(Count(t, "CADASTRE_SOAK_SEED", 1))
}

// Rounds returns how many rounds a random test has: a third of the full number, at
// least one. It is the full number where the race detector watches, and where
// CADASTRE_TEST_FULL is set.
func Rounds(full int) int {
	if watched || os.Getenv("CADASTRE_TEST_FULL") != "" {
		return full
	}
	return (full + 2) / 3
}

// Count returns the whole number in a variable of the environment, from 0 up.
// Where the variable is empty it returns the Rounds of a full number. Any other
// text fails the test.
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
