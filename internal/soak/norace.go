//go:build !race

package soak

// watched is whether the race detector watches.
const watched = false
