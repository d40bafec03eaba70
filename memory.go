package main

import (
	"log/slog"
	"math"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/cadastre-dev/cadastre/store"
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
// and GOMEMLIMIT do not, and returns the limit, 0 for none.
func useMemory(log *slog.Logger) int64 {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	_, err := memlimit.Set(memlimit.WithRatio(memoryShare),
		memlimit.WithProvider(memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)))
	if err != nil {
		log.Warn("the limit of memory is not known: set GOMEMLIMIT", "error", err)
	}
	limit := debug.SetMemoryLimit(-1) // as it is
	if limit == math.MaxInt64 {
		return 0
	}
	log.Debug("memory", "limit", limit)
	return limit
}

// cacheBytes returns how much of a SQLite file is kept in memory, by all
// connections together, in a process that may use so much.
func cacheBytes(memory int64) int64 {
	if memory == 0 {
		return store.DefaultCacheBytes
	}
	return min(store.DefaultCacheBytes, memory/8)
}
