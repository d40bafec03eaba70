//go:build !unix

package web

import "time"

var begun = time.Now()

// processorTime returns the time since the process began. On this system the
// elapsed time counts.
func processorTime() time.Duration { return time.Since(begun) }
