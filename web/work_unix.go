//go:build unix

package web

import (
	"syscall"
	"time"
)

// processorTime returns the processor time that the process has used.
func processorTime() time.Duration {
	var of syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &of) != nil {
		return 0
	}
	return time.Duration(of.Utime.Nano() + of.Stime.Nano())
}
