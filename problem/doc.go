// Package problem holds how an input or an operation is refused: the kinds of
// refusal, and every problem of an input with its path.
package problem
