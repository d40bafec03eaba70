package auth

import (
	"context"
	"sync"
	"time"
)

// connection is what it takes to ask another service: opened by the first
// caller that needs it, and kept. For retryAfter a failure is returned to all
// callers.
type connection[T any] struct {
	open       func(ctx context.Context) (T, error)
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
	value, c.failed = c.open(context.WithoutCancel(ctx)) // others wait for it, too
	if c.failed == nil {
		c.opened = &value
	}
	return value, c.failed
}
