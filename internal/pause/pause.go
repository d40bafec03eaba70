// Package pause waits for a time, unless a context ends first.
package pause

import (
	"context"
	"time"
)

// For waits for a time or until the context ends. It reports whether the whole
// time passed.
func For(ctx context.Context, length time.Duration) bool {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
