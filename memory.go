package main

import (
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const (
	// garbagePercent is how much garbage there may be for what is in use until it
	// is collected. With Go's 100, collecting took a quarter of the time of a list:
	// what is in use is small, and an answer leaves much behind.
	garbagePercent = 400
	// memoryShare is the share of the memory of the machine, or of its container,
	// near which garbage is collected more often.
	memoryShare = 0.75
)

// useMemory decides how much memory the process takes, where the variables GOGC
// and GOMEMLIMIT do not.
func useMemory(log *slog.Logger) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	limit, err := memlimit.Set(memlimit.WithRatio(memoryShare),
		memlimit.WithProvider(memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)))
	if err != nil {
		log.Warn("the limit of memory is not known: set GOMEMLIMIT", "error", err)
		return
	}
	log.Debug("memory", "limit", limit)
}
