package placementdb_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// clock is a clock that tests set.
type clock struct{ unix atomic.Int64 }

func (c *clock) now() time.Time { return time.Unix(c.unix.Load(), 0) }

// openAt opens a store with a clock. The test closes it.
func openAt(t *testing.T, url string, of *clock) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{URL: url, Now: of.now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sampledUse returns a sample in which projects and flavors have random figures.
func sampledUse(r *rand.Rand) placement.HistorySample {
	sample := placement.SampleOf(placement.NewWorld(placement.Names{}, nil), nil)
	var usages []*placement.UsageGroup
	fits := map[string]placement.FlavorFit{}
	for _, name := range []string{"p", "q"} {
		if r.IntN(4) > 0 {
			usages = append(usages, &placement.UsageGroup{ProjectID: &name,
				Usages: []placement.ResourceUsage{{ResourceClass: "VCPU", Used: r.Int64N(9), Held: r.Int64N(3)}}})
		}
		if r.IntN(4) > 0 {
			fits[name] = placement.FlavorFit{Flavor: storetest.UUID(len(name)),
				Fit: &placement.Fit{AtLeast: r.Int64N(9), AtMost: 9 + r.Int64N(9)}}
		}
	}
	sample.AddProjects(usages, false)
	sample.AddFlavors(fits)
	return sample
}

// historyModel is the capacity history by its definition: the samples that were
// added, with the begins of their buckets, by size and grouping.
type historyModel map[bucketKey][]placement.HistoryContent

type bucketKey struct {
	size  placement.CapacityBucketSize
	begin time.Time
	by    placement.CapacityHistoryGrouping
}

// add adds a sample, unless its bucket of five minutes has one, and forgets the
// buckets that are too old or in the future. It reports whether it added it.
func (m historyModel) add(at time.Time, sample placement.HistorySample) bool {
	slot := bucketKey{placement.BucketOfFiveMinutes, placement.BucketOfFiveMinutes.Begin(at), placement.HistoryByClass}
	if _, ok := m[slot]; ok {
		return false
	}
	for _, size := range placement.CapacityBucketSizes() {
		for by, content := range sample {
			if by != placement.HistoryByProject || size != placement.BucketOfFiveMinutes {
				key := bucketKey{size, size.Begin(at), by}
				m[key] = append(m[key], content)
			}
		}
	}
	tomorrow := at.UTC().Add(24 * time.Hour).Format(time.DateOnly)
	for key := range m {
		if at.Sub(key.begin) >= key.size.Age() || key.begin.Format(time.DateOnly) > tomorrow {
			delete(m, key)
		}
	}
	return true
}

// compare compares the buckets of the database with the model.
func (m historyModel) compare(t *testing.T, s *store.Store) {
	t.Helper()
	var rows [][4]string
	err := s.Query(t.Context(), s.Pool, `SELECT size, begins_at, series, content FROM capacity_buckets`,
		func(found *sql.Rows) error {
			var begin time.Time
			var row [4]string
			err := found.Scan(&row[0], &begin, &row[2], &row[3])
			row[1] = begin.UTC().Format(time.RFC3339)
			rows = append(rows, row)
			return err
		})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != len(m) {
		t.Fatalf("%d buckets, want %d", len(rows), len(m))
	}
	for _, row := range rows {
		begin, err := time.Parse(time.RFC3339, row[1])
		if err != nil {
			t.Fatal(err)
		}
		got, err := placement.UnpackHistory(row[3])
		if err != nil {
			t.Fatal(err)
		}
		var want placement.HistoryContent
		key := bucketKey{placement.CapacityBucketSize(row[0]), begin.UTC(), placement.CapacityHistoryGrouping(row[2])}
		for _, sample := range m[key] {
			want = want.With(sample)
		}
		if !slices.Equal(got.Rows, want.Rows) {
			t.Fatalf("%v: %+v, want %+v", row[:3], got.Rows, want.Rows)
		}
	}
}

// TestTheHistoryIsThatOfAModel records random samples on one or two servers, whose
// clocks jump and which end and start again.
func TestTheHistoryIsThatOfAModel(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		var of [2]clock
		servers := []*store.Store{openAt(t, url, &of[0])}
		if servers[0].Postgres() {
			servers = append(servers, openAt(t, url, &of[1]))
		}
		defer func() {
			for _, s := range servers {
				_ = s.Close()
			}
		}()
		r, model, added := rand.New(rand.NewPCG(1, 2)), historyModel{}, 0
		now := time.Date(2026, 3, 10, 0, 0, 0, 0, time.UTC)
		for range 400 {
			now = now.Add([]time.Duration{time.Minute, 5 * time.Minute, -time.Minute, 7 * time.Hour, -5 * time.Hour,
				40 * time.Hour, -30 * 24 * time.Hour, 9 * 24 * time.Hour,
				41 * 24 * time.Hour, 0}[min(r.IntN(30), r.IntN(30), 9)])
			i := r.IntN(len(servers))
			if r.IntN(50) == 0 {
				if err := servers[i].Close(); err != nil {
					t.Fatal(err)
				}
				servers[i] = openAt(t, url, &of[i])
			}
			sample := sampledUse(r)
			isDue, withProjects, err := servers[i].HistoryDue(t.Context(), now)
			if err != nil {
				t.Fatal(err)
			}
			slot, hour := placement.BucketOfFiveMinutes, placement.BucketOfHour
			_, hasSlot := model[bucketKey{slot, slot.Begin(now), placement.HistoryByClass}]
			_, hasProjects := model[bucketKey{hour, hour.Begin(now), placement.HistoryByProject}]
			if isDue == hasSlot || withProjects == hasProjects {
				t.Fatalf("due %v with projects %v, want %v and %v", isDue, withProjects, !hasSlot, !hasProjects)
			}
			if !withProjects {
				delete(sample, placement.HistoryByProject)
			}
			isAdded, err := servers[i].RecordHistory(t.Context(), now, sample)
			if err != nil || isAdded != model.add(now, sample) {
				t.Fatalf("added %v: %v", isAdded, err)
			}
			if isAdded {
				added++
			}
			model.compare(t, servers[i])
		}
		if added < 100 || added > 380 {
			t.Errorf("%d of 400 samples were added", added)
		}
	})
}

// TestOneServerWritesEachBucket lets several writers record the same instants. Some
// give up.
func TestOneServerWritesEachBucket(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		servers := []*store.Store{storetest.Open(t, url)}
		if servers[0].Postgres() {
			servers = append(servers, storetest.Open(t, url))
		}
		var mu sync.Mutex
		model := historyModel{}
		begin := time.Date(2026, 3, 10, 0, 0, 0, 0, time.UTC)
		var running sync.WaitGroup
		for worker := range 4 {
			running.Go(func() {
				r := rand.New(rand.NewPCG(3, uint64(worker)))
				for step := range 30 {
					at := begin.Add(time.Duration(step/2)*5*time.Minute + time.Duration(r.IntN(300))*time.Second)
					ctx, cancel := context.WithCancel(t.Context())
					if r.IntN(5) == 0 {
						time.AfterFunc(time.Duration(r.IntN(4000))*time.Microsecond, cancel)
					}
					sample := sampledUse(r)
					isAdded, err := servers[worker%len(servers)].RecordHistory(ctx, at, sample)
					cancelled := ctx.Err() != nil
					cancel()
					switch {
					case err != nil && !cancelled:
						t.Error(err)
					case err == nil && isAdded:
						mu.Lock()
						if !model.add(at, sample) {
							t.Errorf("the bucket of %s was written twice", at)
						}
						mu.Unlock()
					}
				}
			})
		}
		running.Wait()
		model.compare(t, servers[0])
	})
}

// TestTheHistoryIsReadAsItsViewer reads all rows as several viewers.
func TestTheHistoryIsReadAsItsViewer(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		hotProviders(t, s, 1)
		world, err := s.World(storetest.AsAdmin())
		if err != nil {
			t.Fatal(err)
		}
		sample := placement.SampleOf(world,
			[]*placement.Allocation{{Provider: storetest.UUID(0), ResourceClass: "VCPU", Used: 2}})
		sample.AddProjects([]*placement.UsageGroup{{ProjectID: new("p"),
			Usages: []placement.ResourceUsage{{ResourceClass: "VCPU", Used: 5, Held: 2}}},
			{ProjectID: new("q"), Usages: []placement.ResourceUsage{{ResourceClass: "VCPU", Used: 7}}}}, false)
		if _, err := s.RecordHistory(t.Context(), s.Now(), sample); err != nil {
			t.Fatal(err)
		}
		as := func(role string) context.Context {
			return access.WithViewer(t.Context(), access.Viewer{UserID: "u", ProjectID: "p", Roles: []string{role}})
		}
		for _, of := range []struct {
			role    string
			by      placement.CapacityHistoryGrouping
			filter  placement.CapacityHistoryFilter
			want    []string
			refused bool
		}{
			{role: access.RoleReader, by: placement.HistoryByProject, want: []string{"p VCPU 5 2"}},
			{role: access.RoleService, by: placement.HistoryByProject, want: []string{"p VCPU 5 2", "q VCPU 7 0"}},
			{role: access.RoleReader, by: placement.HistoryByProject,
				filter: placement.CapacityHistoryFilter{ProjectIDs: []string{"q"}}},
			{role: access.RoleService, by: placement.HistoryByProject,
				filter: placement.CapacityHistoryFilter{ProjectIDs: []string{"q"}}, want: []string{"q VCPU 7 0"}},
			{role: access.RoleReader, by: placement.HistoryByClass, want: []string{" VCPU 0 -"}},
			{role: access.RoleService, by: placement.HistoryByClass, want: []string{" VCPU 0 2"}},
			{role: access.RoleService, by: placement.HistoryByClass,
				filter: placement.CapacityHistoryFilter{ResourceClasses: []string{"DISK_GB"}}},
			{role: "none", by: placement.HistoryByClass, refused: true},
		} {
			query := placement.HistoryQuery{By: of.by, Bucket: placement.BucketOfHour, CapacityHistoryFilter: of.filter}
			rows, _, _, err := s.History(as(of.role), query)
			var got []string
			for _, row := range rows {
				held := "-"
				if row.Held != nil {
					held = fmt.Sprint(row.Held.Max)
				}
				got = append(got,
					fmt.Sprintf("%s %s %d %s", row.Series.Group, row.Series.ResourceClass, row.Used.Max, held))
			}
			if !reflect.DeepEqual(got, of.want) || (err != nil) != of.refused {
				t.Errorf("%s by %s: %q %v, want %q", of.role, of.by, got, err, of.want)
			}
		}
	})
}
