package sync

import (
	"context"
	"time"
)

// MaxRate is the number of requests to an endpoint in a second, and in a burst.
const MaxRate = maxRate

// Read returns the number of things of a kind.
func (c *Cloud) Read(ctx context.Context, kind Kind) (int, error) {
	things, _, err := c.read(ctx, kind, func(int) {})
	return len(things), err
}

// Each calls a function that succeeds for each of two elements.
func Each(ctx context.Context) error {
	return each(ctx, []int{1, 2}, func(context.Context, int, int) error { return nil })
}

// Bundle returns the origin of the namespaces that the pass imports.
func (p *Pass) Bundle() string { return p.bundle() }

// In returns the cloud in a region.
func (c *Cloud) In(region string) *Cloud { return c.in(region) }

// HoldEvery sets the time between two requests that keep other passes away.
func (p *Pass) HoldEvery(time time.Duration) { p.holdTime = time }
