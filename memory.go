package main

import (
	"context"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

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

// Memory that is not used any more is given back when nothing was collected for
// so long, and there is so much of it: an idle program allocates too little to
// ever collect what a busy time has left.
const (
	returnEvery = 5 * time.Second
	returnBytes = 32 << 20
)

// returnMemory gives memory back to the system whenever the program has become
// idle, until the context ends.
func returnMemory(ctx context.Context) {
	ticks := time.NewTicker(returnEvery)
	defer ticks.Stop()
	collected, least := heldMemory()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		cycles, held := heldMemory()
		if idle := cycles == collected; idle && held > least+returnBytes {
			debug.FreeOSMemory()
			cycles, least = heldMemory()
		}
		collected, least = cycles, min(least, held)
	}
}

// heldMemory returns how often garbage was collected, and how many bytes the heap
// has of the system.
func heldMemory() (cycles, held uint64) {
	samples := []metrics.Sample{
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	for _, sample := range samples[1:] {
		held += sample.Value.Uint64()
	}
	return samples[0].Value.Uint64(), held
}

// cacheBytes returns how much of a SQLite file is kept in memory, by all
// connections together, in a process that may use so much.
func cacheBytes(memory int64) int64 {
	if memory == 0 {
		return store.DefaultCacheBytes
	}
	return min(store.DefaultCacheBytes, memory/8)
}
