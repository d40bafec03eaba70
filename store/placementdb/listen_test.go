package placementdb_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/placement/placementtest"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// within waits until a condition holds, looking often.
func within(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("after %s: not %s", limit, what)
		}
		time.Sleep(time.Millisecond)
	}
}

func worldOf(t testing.TB, s *store.Store) *placement.World {
	t.Helper()
	world, err := s.World(storetest.AsAdmin())
	if err != nil {
		t.Fatal(err)
	}
	return world
}

// sameWorld holds that a store's world is the one that the database has.
func sameWorld(t testing.TB, s *store.Store) {
	t.Helper()
	difference, err := s.WorldDifference(context.Background())
	if err != nil || difference != "" {
		t.Errorf("the world in memory and a new one differ: %s %v", difference, err)
	}
}

// TestServersFollowEachOther changes everything that can be changed on either of
// two servers: within a second of each commit the other answers the same.
func TestServersFollowEachOther(t *testing.T) {
	t.Parallel()
	url := storetest.Postgres(t)
	servers := []*store.Store{storetest.Open(t, url), storetest.Open(t, url)}
	ctx := storetest.AsAdmin()
	history := newChanges(7)
	for i := range 120 {
		at := servers[i%2]
		history.change(t, ctx, at)
		if i%10 == 9 {
			within(t, time.Second, "the same world", func() bool {
				return placementtest.Difference(worldOf(t, servers[0]), worldOf(t, servers[1])) == ""
			})
		}
	}
	for _, s := range servers {
		within(t, time.Second, "the world of the database", func() bool {
			difference, err := s.WorldDifference(ctx)
			return err == nil && difference == ""
		})
		if age := s.WorldAge(); age != 0 {
			t.Errorf("the world is %s old", age)
		}
		if err := s.Ready(ctx); err != nil {
			t.Error(err)
		}
	}
}

// TestALateStateBringsNoDeletedProviderBack loads the world anew between a commit
// and its arrival, after another process deleted what was committed.
func TestALateStateBringsNoDeletedProviderBack(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for i := range 2 {
			if _, _, err := s.CreateResourceProvider(storetest.AsAdmin(), placement.NewProvider{Name: uuidOf(i), UUID: new(uuidOf(i))}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.DeletedElsewhere(t.Context(), uuidOf(0)); err != nil {
			t.Fatal(err)
		}
		if difference, err := s.WorldDifference(t.Context()); err != nil || difference != "" {
			t.Errorf("the world differs from the database: %s, error %v", difference, err)
		}
	})
}

// TestAWriteBringsAllThatItSaw writes on one server what builds on a commit of
// another one that it was not told of yet: its world has both at once, and never
// a part of the first.
func TestAWriteBringsAllThatItSaw(t *testing.T) {
	t.Parallel()
	url := storetest.Postgres(t)
	servers := []*store.Store{storetest.Open(t, url), storetest.Open(t, url)}
	for i := range 4 {
		roomyProvider(t, servers[0], uuidOf(i))
	}
	within(t, time.Second, "the same world", func() bool { return placementtest.Difference(worldOf(t, servers[0]), worldOf(t, servers[1])) == "" })
	used := func(s *store.Store, i int) int64 {
		provider, _ := worldOf(t, s).Provider(uuidOf(i))
		return provider.Inventories[0].Used
	}
	claim := func(s *store.Store, consumer int, generation *int64, providers ...int) {
		t.Helper()
		c := placement.ConsumerClaim{UUID: uuidOf(consumer), ProjectID: "p", UserID: "u", Generation: generation}
		for _, provider := range providers {
			c.Allocations = append(c.Allocations, claimOne(uuidOf(provider), "").Consumers[0].Allocations...)
		}
		if _, err := s.SetAllocations(storetest.AsAdmin(), placement.Claim{Consumers: []placement.ConsumerClaim{c}}); err != nil {
			t.Fatal(err)
		}
	}

	claim(servers[0], 100, nil, 0, 1)
	claim(servers[1], 101, nil, 1, 2)
	if got := []int64{used(servers[1], 0), used(servers[1], 1), used(servers[1], 2)}; !slices.Equal(got, []int64{1, 2, 1}) {
		t.Errorf("after a claim on what another server's claim left, the world has the use %v", got)
	}

	parent, child := uuidOf(50), uuidOf(51)
	if _, _, err := servers[0].CreateResourceProvider(storetest.AsAdmin(), placement.NewProvider{Name: "parent", UUID: &parent}); err != nil {
		t.Fatal(err)
	}
	world, _, err := servers[1].CreateResourceProvider(storetest.AsAdmin(), placement.NewProvider{Name: "child", UUID: &child, Parent: &parent})
	if err != nil {
		t.Fatal(err)
	}
	if provider, _ := world.Provider(child); provider.Root != parent {
		t.Errorf("a child of another server's parent has the root %s", provider.Root)
	}

	claim(servers[0], 102, nil, 3)
	claim(servers[0], 102, new(int64(1)), 0)
	if _, _, err := servers[1].DeleteResourceProvider(storetest.AsAdmin(), uuidOf(3)); err != nil {
		t.Fatal(err)
	}
	if got := used(servers[1], 0); got != 2 {
		t.Errorf("after the deletion of a provider that another server's claim left for another one, that has the use %d", got)
	}
}

// TestAFollowerOutlivesItsConnections cuts every connection: the server goes on
// with the world it has, and catches up.
func TestAFollowerOutlivesItsConnections(t *testing.T) {
	t.Parallel()
	url := storetest.PostgresDatabase(t)
	one, other := storetest.Open(t, url), storetest.Open(t, url)
	ctx := storetest.AsAdmin()
	db, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`); err != nil {
		t.Fatal(err)
	}
	input := placement.NewProvider{Name: "after the cut"}
	within(t, 5*time.Second, "writing again", func() bool {
		_, _, err := one.CreateResourceProvider(ctx, input)
		return err == nil
	})
	within(t, 5*time.Second, "caught up", func() bool {
		_, found := worldOf(t, other).ProviderNamed("after the cut")
		return found && other.WorldAge() == 0
	})
}

// TestAnIdleServerKeepsQuiet counts what two idle servers send to the database.
func TestAnIdleServerKeepsQuiet(t *testing.T) {
	t.Parallel()
	url := storetest.PostgresDatabase(t)
	for range 2 {
		storetest.Open(t, url)
	}
	db, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	busy := func() (n int) {
		t.Helper()
		err := db.QueryRow(`SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
			AND application_name = 'cadastre' AND query_start > clock_timestamp() - interval '1 second'`).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	within(t, 10*time.Second, "quiet", func() bool { return busy() == 0 })
	quiet := time.Now().Add(2 * time.Second)
	within(t, 5*time.Second, "quiet for long", func() bool {
		if n := busy(); n > 0 {
			t.Fatalf("%d connections of idle servers were used within a second", n)
		}
		return time.Now().After(quiet)
	})
}

// changes makes random changes of placement that are always allowed in form.
type changes struct {
	random  *rand.Rand
	made    int
	uuids   []string
	aggs    []string
	classes []string
	traits  []string
}

func newChanges(seed uint64) *changes {
	return &changes{random: rand.New(rand.NewPCG(seed, seed)), classes: []string{"VCPU", "MEMORY_MB"}, traits: []string{"COMPUTE_NODE"},
		aggs: []string{uuidOf(900), uuidOf(901), uuidOf(902)}}
}

func uuidOf(n int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(n)*2654435761, n) }

func some[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// change makes one change; refusals for good reason are part of the game.
//
//gocyclo:ignore
func (c *changes) change(t testing.TB, ctx context.Context, s *store.Store) {
	t.Helper()
	c.made++
	kind := c.random.IntN(12)
	if len(c.uuids) < 3 {
		kind = 0
	}
	var err error
	switch kind {
	case 0, 1:
		uuid := uuidOf(c.random.IntN(30))
		input := placement.NewProvider{Name: fmt.Sprintf("provider %d", c.made), UUID: &uuid}
		if len(c.uuids) > 0 && c.random.IntN(2) == 0 {
			parent := some(c.random, c.uuids)
			input.Parent = &parent
		}
		if _, _, err = s.CreateResourceProvider(ctx, input); err == nil {
			c.uuids = append(c.uuids, uuid)
		}
	case 2:
		_, _, err = s.DeleteResourceProvider(ctx, some(c.random, c.uuids))
	case 3:
		parent := some(c.random, append(c.uuids, ""))
		_, _, err = s.UpdateResourceProvider(ctx, placement.ProviderPatch{Provider: some(c.random, c.uuids), Parent: &parent})
	case 4:
		name := fmt.Sprintf("renamed %d", c.made)
		_, _, err = s.UpdateResourceProvider(ctx, placement.ProviderPatch{Provider: some(c.random, c.uuids), NewName: &name})
	case 5, 6:
		_, _, err = s.SetInventory(ctx, placement.OneInventory{Provider: some(c.random, c.uuids), Inventory: placement.Inventory{
			ResourceClass: some(c.random, c.classes), Total: int32(1 + c.random.IntN(20)), MinUnit: 1, MaxUnit: 20, StepSize: 1, AllocationRatio: 1.5}})
	case 7:
		_, _, err = s.SetProviderTraits(ctx, placement.ProviderTraits{Provider: some(c.random, c.uuids), Traits: []string{some(c.random, c.traits), placement.TraitShares}})
	case 8:
		_, _, err = s.SetProviderAggregates(ctx, placement.ProviderAggregates{Provider: some(c.random, c.uuids), Aggregates: []string{some(c.random, c.aggs)}})
	case 9:
		name := fmt.Sprintf("CUSTOM_%d", c.random.IntN(5))
		if c.random.IntN(2) == 0 {
			_, err = s.CreateTrait(ctx, name)
		} else {
			_, err = s.DeleteTrait(ctx, name)
		}
	case 10:
		_, err = s.SetAllocations(ctx, placement.Claim{Consumers: []placement.ConsumerClaim{{UUID: uuidOf(500 + c.random.IntN(10)), ProjectID: "p", UserID: "u",
			Allocations: []placement.ProviderAllocation{{Provider: some(c.random, c.uuids), Resources: []placement.Amount{{ResourceClass: some(c.random, c.classes), Amount: 1 + c.random.Int64N(5)}}}}}}})
	case 11:
		_, err = s.DeleteAllocations(ctx, uuidOf(500+c.random.IntN(10)))
	}
	if err != nil && !refused(err) {
		t.Errorf("change %d of kind %d: %v", c.made, kind, err)
	}
}

// refused reports whether an error is one of those that a caller causes.
func refused(err error) bool {
	for _, kind := range []error{problem.ErrInvalidInput, problem.ErrNotFound, problem.ErrAlreadyExists, problem.ErrConcurrentUpdate,
		problem.ErrInUse, problem.ErrCapacityExceeded} {
		if isKind(err, kind) {
			return true
		}
	}
	return false
}

// TestAUUIDCanBeGivenAgainAndAgain creates and deletes providers of one uuid from
// many sides: in the end the world and the database agree whether there is one.
func TestAUUIDCanBeGivenAgainAndAgain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		uuid := uuidOf(0)
		for range 10 {
			var writers sync.WaitGroup
			for range 12 {
				writers.Go(func() {
					for range 8 {
						_, _, err := s.CreateResourceProvider(storetest.AsAdmin(), placement.NewProvider{Name: "again", UUID: &uuid})
						if err != nil && !refused(err) {
							t.Error(err)
						}
						if _, _, err := s.DeleteResourceProvider(storetest.AsAdmin(), uuid); err != nil && !refused(err) {
							t.Error(err)
						}
					}
					if _, _, err := s.CreateResourceProvider(storetest.AsAdmin(), placement.NewProvider{Name: "again", UUID: &uuid}); err != nil && !refused(err) {
						t.Error(err)
					}
				})
			}
			writers.Wait()
			sameWorld(t, s)
		}
	})
}
