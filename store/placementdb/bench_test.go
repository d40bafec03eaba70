package placementdb_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// BenchmarkClaims measures claims of one consumer on one provider, for several
// numbers of clients and providers.
//
//	go test ./store -run '^$' -bench Claims -benchtime 3s
func BenchmarkClaims(b *testing.B) {
	for _, database := range []struct {
		name string
		url  func(testing.TB) string
	}{{"sqlite", storetest.SQLite}, {"postgres", storetest.Postgres}} {
		for _, providers := range []int{1, 1000, 10_000} {
			for _, clients := range []int{1, 4, 32} {
				b.Run(fmt.Sprintf("%s/providers=%d/clients=%d", database.name, providers, clients), func(b *testing.B) {
					s, err := store.Open(context.Background(),
						store.Options{URL: database.url(b), Log: slog.New(slog.DiscardHandler)})
					if err != nil {
						b.Fatal(err)
					}
					b.Cleanup(func() { _ = s.Close() })
					benchmarkClaims(b, s, providers, clients)
				})
			}
		}
	}
}

func benchmarkClaims(b *testing.B, s *store.Store, providers, clients int) {
	filled := make([]placement.Provider, providers)
	for i := range filled {
		filled[i] = placement.Provider{UUID: storetest.UUID(i),
			Name: fmt.Sprint("provider ", i), Inventories: []placement.Inventory{
				{ResourceClass: "VCPU", Total: 1_000_000_000, MinUnit: 1,
					MaxUnit: 10, StepSize: 1, AllocationRatio: 1}}}
	}
	if err := s.FillPlacement(storetest.AsAdmin(), placement.Names{}, filled, nil); err != nil {
		b.Fatal(err)
	}
	var next atomic.Int64
	var working sync.WaitGroup
	b.ResetTimer()
	for range clients {
		working.Go(func() {
			for {
				n := int(next.Add(1))
				if n > b.N {
					return
				}
				if _, err := s.SetAllocations(storetest.AsAdmin(),
					claimOne(storetest.UUID(n*7919%providers), storetest.UUID(1_000_000+n))); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	working.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "claims/s")
}

// BenchmarkInstant measures the cost of seeing the world and the database at
// one instant: the transaction, its snapshot, the change log.
func BenchmarkInstant(b *testing.B) {
	for name, url := range map[string]string{"sqlite": storetest.SQLite(b), "postgres": storetest.Postgres(b)} {
		b.Run(name, func(b *testing.B) {
			s := storetest.Open(b, url)
			storetest.RoomyProvider(b, s, storetest.UUID(1))
			for b.Loop() {
				if _, err := worldAtOnce(s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
