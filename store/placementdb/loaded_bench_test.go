package placementdb_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// BenchmarkLoadedWorld opens a database of 100,000 hosts, each with three
// resource classes, eleven of sixty traits, and three aggregates. It reports
// the time to open, and the memory of the world per pair of provider and
// resource class.
//
//	go test ./store/placementdb -run '^$' -bench LoadedWorld -benchtime 3x
func BenchmarkLoadedWorld(b *testing.B) {
	const hosts, classes = 100_000, 3
	filled := make([]placement.Provider, hosts)
	var names placement.Names
	for i := range 60 {
		names.Traits = append(names.Traits, fmt.Sprintf("CUSTOM_%02d", i))
	}
	for i := range filled {
		filled[i] = placement.Provider{
			UUID: storetest.UUID(i), Name: fmt.Sprintf("compute-%06d", i),
			Inventories: []placement.Inventory{inventoryOf("DISK_GB", 4_000),
				inventoryOf("MEMORY_MB", 262_144), inventoryOf("VCPU", 64)},
		}
		for n := range 11 {
			filled[i].Traits = append(filled[i].Traits, names.Traits[(i*(2*n+1)+n*5)%12+4*n])
		}
		for n := range 3 {
			filled[i].Aggregates = append(filled[i].Aggregates, storetest.UUID(1_000_000+100*n+i%(90+n)))
		}
	}
	for name, of := range map[string]func(testing.TB) string{"sqlite": storetest.SQLite,
		"postgres": storetest.Postgres} {
		b.Run(name, func(b *testing.B) {
			options := store.Options{URL: of(b), Log: slog.New(slog.DiscardHandler)}
			fill, err := store.Open(context.Background(), options)
			if err != nil {
				b.Fatal(err)
			}
			// On a busy machine the write may commit although the world is not
			// updated in time.
			if err := fill.FillPlacement(storetest.AsAdmin(), names, filled, nil); err != nil &&
				!errors.Is(err, problem.ErrOutcomeUnknown) {
				b.Fatal(err)
			}
			if err := fill.Close(); err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			var took time.Duration
			var held uint64
			for b.Loop() {
				before := heap()
				began := time.Now()
				s, err := store.Open(context.Background(), options)
				if err != nil {
					b.Fatal(err)
				}
				took += time.Since(began)
				held += heap() - before
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(took.Seconds()/float64(b.N), "s/open")
			b.ReportMetric(float64(held)/float64(b.N)/hosts/classes, "bytes/pair")
		})
	}
}

// heap returns the number of reachable bytes.
func heap() uint64 {
	var read runtime.MemStats
	for range 2 {
		runtime.GC()
	}
	runtime.ReadMemStats(&read)
	return read.HeapAlloc
}

func inventoryOf(class string, total int32) placement.Inventory {
	return placement.Inventory{ResourceClass: class, Total: total, MinUnit: 1, MaxUnit: total, StepSize: 1,
		AllocationRatio: 1, Capacity: int64(total)}
}
