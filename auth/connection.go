package auth

import (
	"context"
	"sync"
	"time"
)

// connection is what it takes to ask another service: made by the first that
// needs it, and kept.
type connection[T any] struct {
	// open makes the connection. Its context does not end with that of the caller,
	// since others wait for the same connection.
	open func(ctx context.Context) (T, error)
	// retryAfter is how long after a failure open is not called again; until then
	// the failure is the answer.
	retryAfter time.Duration
	now        func() time.Time

	mu     sync.Mutex
	opened *T
	tried  time.Time
	failed error
}

func (c *connection[T]) get(ctx context.Context) (value T, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opened != nil {
		return *c.opened, nil
	}
	now := c.now()
	if c.failed != nil && now.Sub(c.tried) < c.retryAfter {
		return value, c.failed
	}
	c.tried = now
	value, c.failed = c.open(context.WithoutCancel(ctx))
	if c.failed == nil {
		c.opened = &value
	}
	return value, c.failed
}
