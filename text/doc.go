// Package text checks and compares incoming strings: case folding, length
// limits, near misses, decimals, and JSON kept verbatim.
package text
