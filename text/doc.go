// Package text checks and compares incoming strings: case folding, limits of
// length, near misses, decimals, and JSON that is kept as it came.
package text
