package placementdb_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// maxHistoryBytes is the size of a year of a cloud of 1,000 hosts that the documents
// promise.
const maxHistoryBytes = 64_000_000

// largeSample returns a sample of 1,000 hosts in 133 aggregates, of 133 projects and
// 50 flavors: with three classes as many series as a bucket may have. No figure
// and no name follows from another.
func largeSample(r *rand.Rand, names []string) placement.HistorySample {
	classes := []string{"DISK_GB", "MEMORY_MB", "VCPU"}
	providers := make([]placement.Provider, 1000)
	for i := range providers {
		uuid := storetest.UUID(i)
		providers[i] = placement.Provider{UUID: uuid, Root: uuid, Name: uuid, Aggregates: []string{names[i%133]}}
		for k, class := range classes {
			total := []int32{4000, 512 << 10, 128}[k]
			providers[i].Inventories = append(providers[i].Inventories,
				placement.Inventory{ResourceClass: class, Total: total, Reserved: r.Int32N(total / 50),
					MinUnit: 1, MaxUnit: total, StepSize: 1, AllocationRatio: 4,
					Capacity: int64(total) * 4, Used: r.Int64N(int64(total) * 4)})
		}
	}
	sample := placement.SampleOf(placement.NewWorld(placement.Names{ResourceClasses: classes}, providers), nil)
	var usages []*placement.UsageGroup
	for i := range 133 {
		of := &placement.UsageGroup{ProjectID: &names[200+i]}
		for _, class := range classes {
			of.Usages = append(of.Usages,
				placement.ResourceUsage{ResourceClass: class, Used: r.Int64N(1 << 24), Held: r.Int64N(1 << 10)})
		}
		usages = append(usages, of)
	}
	sample.AddProjects(usages, false)
	fits := map[string]placement.FlavorFit{}
	for i := range 50 {
		fits[fmt.Sprintf("flavor-%d.large", i)] = placement.FlavorFit{Flavor: names[400+i],
			Fit: &placement.Fit{AtLeast: r.Int64N(20000), AtMost: r.Int64N(20000)}}
	}
	sample.AddFlavors(fits)
	return sample
}

// packedSamples returns contents of a bucket with some samples, by grouping.
func packedSamples(t *testing.T, samples []placement.HistorySample) map[placement.CapacityHistoryGrouping]string {
	t.Helper()
	packed := map[placement.CapacityHistoryGrouping]string{}
	for _, by := range placement.CapacityHistoryGroupings() {
		var content placement.HistoryContent
		for _, sample := range samples {
			content = content.With(sample[by])
		}
		text, err := content.Pack()
		if err != nil || content.IsCut || len(content.Rows) == 0 {
			t.Fatalf("%s has %d series, cut %v: %v", by, len(content.Rows), content.IsCut, err)
		}
		packed[by] = text
	}
	return packed
}

// TestAYearOfAThousandHostsIsSmall fills the history of a year and measures the
// table with its indexes.
func TestAYearOfAThousandHostsIsSmall(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	var names []string
	for range 450 {
		names = append(names, fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", r.Uint32(), r.IntN(1<<16),
			r.IntN(1<<12), r.IntN(1<<12), r.Int64N(1<<48)))
	}
	var samples []placement.HistorySample
	for range 12 {
		samples = append(samples, largeSample(r, names))
	}
	one, several := packedSamples(t, samples[:1]), packedSamples(t, samples)
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		before := historyBytes(t, s)
		now, rows := time.Date(2026, 3, 10, 0, 0, 0, 0, time.UTC), 0
		for _, size := range placement.CapacityBucketSizes() {
			for _, by := range placement.CapacityHistoryGroupings() {
				packed := several[by]
				switch {
				case size == placement.BucketOfFiveMinutes && by == placement.HistoryByProject:
					continue
				case size == placement.BucketOfFiveMinutes,
					size == placement.BucketOfHour && by == placement.HistoryByProject:
					packed = one[by]
				}
				n := int(size.Age() / size.Duration())
				rows += n
				insertBuckets(t, s, size, by, now, n, packed)
				t.Logf("%5d of %-12s by %-14s: %6d bytes", n, size, by, len(packed))
			}
		}
		bytes := historyBytes(t, s) - before
		t.Logf("%d rows, %.1f MB", rows, float64(bytes)/1e6)
		if bytes > maxHistoryBytes || bytes < maxHistoryBytes/4 {
			t.Errorf("a year has %d bytes", bytes)
		}
	})
}

// insertBuckets inserts buckets with the same content.
func insertBuckets(
	t *testing.T, s *store.Store, size placement.CapacityBucketSize, by placement.CapacityHistoryGrouping,
	now time.Time, n int, packed string,
) {
	t.Helper()
	tx, err := s.Ent.Tx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		_, err := tx.ExecContext(t.Context(),
			`INSERT INTO capacity_buckets (size, begins_at, series, content) VALUES ($1, $2, $3, $4)`,
			string(size), now.Add(-time.Duration(i)*size.Duration()), string(by), packed)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// historyBytes returns the size of a SQLite file, or of the table on PostgreSQL.
func historyBytes(t *testing.T, s *store.Store) (bytes int64) {
	t.Helper()
	statement := `SELECT page_count * page_size FROM pragma_page_count, pragma_page_size`
	if s.Postgres() {
		statement = `SELECT pg_total_relation_size('capacity_buckets')`
	}
	if err := s.Query(t.Context(), s.Pool, statement, func(rows *sql.Rows) error {
		return rows.Scan(&bytes)
	}); err != nil {
		t.Fatal(err)
	}
	return bytes
}
