//go:build race

package soak

// watched is whether the race detector is on.
const watched = true
