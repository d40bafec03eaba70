// Package problem has the refusals of operations, by kind, and the problems of
// inputs, with their paths.
package problem
