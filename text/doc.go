// Package text holds what is common to every text that comes in: case folding,
// limits of length, near misses, decimals, and JSON that is kept as it came.
package text
