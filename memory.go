package main

import (
	"context"
	"log/slog"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/cadastre-dev/cadastre/store"
)

const (
	// garbagePercent is the value of GOGC: the garbage, in percent of the live
	// heap, that starts a collection. With Go's default of 100, collections
	// took a quarter of the time of a list, because the live heap is small and
	// an answer leaves much garbage.
	garbagePercent = 400
	// memoryShare is the part of the memory of the machine, or of its
	// container, that becomes the soft memory limit. Near it, Go collects
	// garbage more often.
	memoryShare = 0.75
)

// useMemory sets the garbage collector's targets, unless the variables GOGC and
// GOMEMLIMIT do. It returns the memory limit in bytes, 0 for none.
func useMemory(log *slog.Logger) int64 {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	_, err := memlimit.Set(memlimit.WithRatio(memoryShare),
		memlimit.WithProvider(memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)))
	if err != nil {
		log.Warn("the memory limit is unknown: set GOMEMLIMIT", "error", err)
	}
	limit := debug.SetMemoryLimit(-1) // reads the limit
	if limit == math.MaxInt64 {
		return 0
	}
	log.Debug("memory", "limit", limit)
	return limit
}

// The program returns unused memory to the system when it allocated less than
// idleBytes and no collection ran for returnEvery, and the heap has returnBytes
// more than at its smallest. An idle program allocates too little to ever
// collect the garbage of a busy time. A program with little to do collects it
// itself, and returning memory would delay its answers by up to 0.3 s.
const (
	returnEvery = 5 * time.Second
	returnBytes = 32 << 20
	idleBytes   = 8 << 20
	// returnAtMost is the longest time until the program tries again, in
	// intervals of returnEvery. Memory that was in use, such as an answer that
	// a client did not read, may be unused by then. Go itself collects every
	// two minutes.
	returnAtMost = 24
)

// returnMemory returns memory to the system whenever the program becomes idle,
// until the context ends, in the background. It checks at the given interval. As
// long as the program stays idle, it tries again after twice the time, up to
// returnAtMost intervals.
func returnMemory(ctx context.Context, every time.Duration) {
	last := memoryInUse()
	least := last.held
	go func() {
		ticks := time.NewTicker(every)
		defer ticks.Stop()
		for idle, next := 0, 1; ; {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
			}
			now := memoryInUse()
			if idle++; now.collections != last.collections || now.allocated > last.allocated+idleBytes {
				idle, next = 0, 1
			}
			if idle >= next && now.held > least+returnBytes {
				runtime.GC() // a sync.Pool drops its contents after two collections
				debug.FreeOSMemory()
				now = memoryInUse()
				idle, next = 0, min(2*next, returnAtMost)
			}
			last, least = now, min(least, now.held)
		}
	}()
}

// memoryUse has the number of garbage collections, the bytes that the program
// allocated since it began, and the bytes of the heap that it holds.
type memoryUse struct{ collections, allocated, held uint64 }

func memoryInUse() (of memoryUse) {
	samples := []metrics.Sample{
		{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/gc/heap/allocs:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	of.collections, of.allocated = samples[0].Value.Uint64(), samples[1].Value.Uint64()
	for _, sample := range samples[2:] {
		of.held += sample.Value.Uint64()
	}
	return of
}

// cacheBytes returns the size in bytes of the SQLite page cache, for all
// connections together, in a process with this memory limit; 0 is no limit.
func cacheBytes(memory int64) int64 {
	if memory == 0 {
		return store.DefaultCacheBytes
	}
	return min(store.DefaultCacheBytes, memory/8)
}
