package web

import "time"

// Limits bound what requests can cost. In each field zero means no limit;
// DefaultLimits gives the defaults that the comments state. docs/limits.md
// explains them to operators.
type Limits struct {
	// BodyBytes bounds the body of a request: 1 MiB. More is 413.
	BodyBytes int64
	// Tokens bounds the tokens of a document: 3000.
	Tokens int
	// OperationTime bounds the time that an operation runs, statements included:
	// 10 s. What is not resolved by then is TIMEOUT.
	OperationTime time.Duration
}

// DefaultLimits are the limits of a server that is told nothing.
func DefaultLimits() Limits {
	return Limits{
		BodyBytes:     1 << 20,
		Tokens:        3000,
		OperationTime: 10 * time.Second,
	}
}
