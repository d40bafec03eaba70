// Package soak says how much the random tests do: a little in the gate, and as
// much as make soak sets.
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

// Count returns the whole number in a variable of the environment, from 0 up,
// and otherwise where the variable is empty. Any other text fails the test.
func Count(t testing.TB, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return int(n)
}
