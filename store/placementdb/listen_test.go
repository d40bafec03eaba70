package placementdb_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/placement/placementtest"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

func worldOf(t testing.TB, s *store.Store) *placement.World {
	t.Helper()
	world, err := s.World(storetest.AsAdmin())
	if err != nil {
		t.Fatal(err)
	}
	return world
}

// sameWorld checks that a store's world equals the database.
func sameWorld(t testing.TB, s *store.Store) {
	t.Helper()
	difference, err := s.WorldDifference(context.Background())
	if err != nil || difference != "" {
		t.Errorf("the world in memory and a new one differ: %s %v", difference, err)
	}
}

// TestServersFollowEachOther makes every kind of change on either of two
// servers. Within a second of each commit the other server must answer the
// same.
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
			storetest.Within(t, time.Second, "the same world", func() bool {
				return placementtest.Difference(worldOf(t, servers[0]), worldOf(t, servers[1])) == ""
			})
		}
	}
	for _, s := range servers {
		storetest.Within(t, time.Second, "the world of the database", func() bool {
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

// TestALateStateBringsNoDeletedProviderBack reloads the world between a commit
// and its publication, after another process deleted the committed provider.
func TestALateStateBringsNoDeletedProviderBack(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for i := range 2 {
			if _, _, err := s.CreateResourceProvider(storetest.AsAdmin(),
				placement.NewProvider{Name: storetest.UUID(i), UUID: new(storetest.UUID(i))}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.DeletedElsewhere(t.Context(), storetest.UUID(0)); err != nil {
			t.Fatal(err)
		}
		if difference, err := s.WorldDifference(t.Context()); err != nil || difference != "" {
			t.Errorf("the world differs from the database: %s, error %v", difference, err)
		}
	})
}

// TestAWriteBringsAllThatItSaw writes on one server on top of a commit of
// another server, before its notification arrives. The world must get both
// commits together, and never a part of the first.
func TestAWriteBringsAllThatItSaw(t *testing.T) {
	t.Parallel()
	url := storetest.Postgres(t)
	servers := []*store.Store{storetest.Open(t, url), storetest.Open(t, url)}
	for i := range 4 {
		storetest.RoomyProvider(t, servers[0], storetest.UUID(i))
	}
	storetest.Within(t, time.Second, "the same world", func() bool {
		return placementtest.Difference(worldOf(t, servers[0]), worldOf(t, servers[1])) == ""
	})
	used := func(s *store.Store, i int) int64 {
		provider, _ := worldOf(t, s).Provider(storetest.UUID(i))
		return provider.Inventories[0].Used
	}
	claim := func(s *store.Store, consumer int, generation *int64, providers ...int) {
		t.Helper()
		c := placement.ConsumerClaim{UUID: storetest.UUID(consumer), ProjectID: "p",
			UserID: "u", Generation: generation}
		for _, provider := range providers {
			c.Allocations = append(c.Allocations, claimOne(storetest.UUID(provider), "").Consumers[0].Allocations...)
		}
		if _, err := s.SetAllocations(storetest.AsAdmin(),
			placement.Claim{Consumers: []placement.ConsumerClaim{c}}); err != nil {
			t.Fatal(err)
		}
	}

	claim(servers[0], 100, nil, 0, 1)
	claim(servers[1], 101, nil, 1, 2)
	if got := []int64{used(servers[1], 0), used(servers[1], 1),
		used(servers[1], 2)}; !slices.Equal(got, []int64{1, 2, 1}) {
		t.Errorf("after a claim on what another server's claim left, the world has the use %v", got)
	}

	parent, child := storetest.UUID(50), storetest.UUID(51)
	if _, _, err := servers[0].CreateResourceProvider(storetest.AsAdmin(),
		placement.NewProvider{Name: "parent", UUID: &parent}); err != nil {
		t.Fatal(err)
	}
	world, _, err := servers[1].CreateResourceProvider(storetest.AsAdmin(),
		placement.NewProvider{Name: "child", UUID: &child, Parent: &parent})
	if err != nil {
		t.Fatal(err)
	}
	if provider, _ := world.Provider(child); provider.Root != parent {
		t.Errorf("a child of another server's parent has the root %s", provider.Root)
	}

	claim(servers[0], 102, nil, 3)
	claim(servers[0], 102, new(int64(1)), 0)
	if _, _, err := servers[1].DeleteResourceProvider(storetest.AsAdmin(), storetest.UUID(3)); err != nil {
		t.Fatal(err)
	}
	if got := used(servers[1], 0); got != 2 {
		t.Errorf("after the deletion of a provider that another server's claim left for another one, that has the use %d", got)
	}
}

// TestAFollowerOutlivesItsConnections cuts every connection. The server must go
// on with its world, and catch up.
func TestAFollowerOutlivesItsConnections(t *testing.T) {
	t.Parallel()
	url := storetest.PostgresDatabase(t)
	one, other := storetest.Open(t, url), storetest.Open(t, url)
	ctx := storetest.AsAdmin()
	db := storetest.Database(t, url)
	if _, err := db.Exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`); err != nil {
		t.Fatal(err)
	}
	input := placement.NewProvider{Name: "after the cut"}
	storetest.Within(t, 5*time.Second, "writing again", func() bool {
		_, _, err := one.CreateResourceProvider(ctx, input)
		return err == nil
	})
	storetest.Within(t, 5*time.Second, "caught up", func() bool {
		_, found := worldOf(t, other).ProviderNamed("after the cut")
		return found && other.WorldAge() == 0
	})
}

// TestAnIdleServerKeepsQuiet repeatedly checks whether two idle servers sent a
// statement within the last second. They rarely poll, and each poll is visible
// for a second.
func TestAnIdleServerKeepsQuiet(t *testing.T) {
	t.Parallel()
	url := storetest.PostgresDatabase(t)
	for range 2 {
		storetest.Open(t, url)
	}
	db := storetest.Database(t, url)
	busy := func() (used bool) {
		t.Helper()
		err := db.QueryRow(`SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
			AND application_name = 'cadastre' AND query_start > clock_timestamp() - interval '1 second')`).Scan(&used)
		if err != nil {
			t.Fatal(err)
		}
		return used
	}
	storetest.Within(t, 10*time.Second, "quiet", func() bool { return !busy() })
	looks, found := 0, 0
	patience.Until(t, 3*time.Second, func() bool {
		looks++
		if busy() {
			found++
		}
		return false
	})
	if 4*found > 3*looks {
		t.Errorf("%d of %d looks found idle servers that used a connection within the last second", found, looks)
	}
}

// changes makes random, syntactically valid changes of placement.
type changes struct {
	random  *rand.Rand
	made    int
	last    string // the last change
	uuids   []string
	aggs    []string
	classes []string
	traits  []string
}

func newChanges(seed uint64) *changes {
	return &changes{random: rand.New(rand.NewPCG(seed, seed)),
		classes: []string{"VCPU", "MEMORY_MB"}, traits: []string{"COMPUTE_NODE"},
		aggs: []string{storetest.UUID(900), storetest.UUID(901), storetest.UUID(902)}}
}

func some[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// kindsOfChanges are the kinds of changes with their weights.
var kindsOfChanges = []struct {
	what   string
	weight int
	make   func(c *changes, ctx context.Context, s *store.Store) error
}{
	{"a creation", 2, (*changes).create},
	{"a deletion", 1, func(c *changes, ctx context.Context, s *store.Store) error {
		_, _, err := s.DeleteResourceProvider(ctx, c.provider())
		return err
	}},
	{"a move", 1, func(c *changes, ctx context.Context, s *store.Store) error {
		parent := some(c.random, append(c.uuids, ""))
		_, _, err := s.UpdateResourceProvider(ctx, placement.ProviderPatch{Provider: c.provider(), Parent: &parent})
		return err
	}},
	{"a name", 1, func(c *changes, ctx context.Context, s *store.Store) error {
		_, _, err := s.UpdateResourceProvider(ctx,
			placement.ProviderPatch{Provider: c.provider(), NewName: new(fmt.Sprintf("renamed %d", c.made))})
		return err
	}},
	{"an inventory", 2, func(c *changes, ctx context.Context, s *store.Store) error {
		_, _, err := s.SetInventory(ctx,
			placement.InventoryChange{Provider: c.provider(), Inventory: placement.Inventory{
				ResourceClass: some(c.random, c.classes), Total: int32(1 + c.random.IntN(20)), MinUnit: 1, MaxUnit: 20,
				StepSize: 1, AllocationRatio: 1.5}})
		return err
	}},
	{"traits", 1, func(c *changes, ctx context.Context, s *store.Store) error {
		_, _, err := s.SetProviderTraits(ctx, placement.ProviderTraits{Provider: c.provider(),
			Traits: []string{some(c.random, c.traits), placement.TraitShares}})
		return err
	}},
	{"aggregates", 1, func(c *changes, ctx context.Context, s *store.Store) error {
		_, _, err := s.SetProviderAggregates(ctx,
			placement.ProviderAggregates{Provider: c.provider(), Aggregates: []string{some(c.random, c.aggs)}})
		return err
	}},
	{"a trait", 1, func(c *changes, ctx context.Context, s *store.Store) error {
		change := s.CreateTrait
		if c.random.IntN(2) == 0 {
			change = s.DeleteTrait
		}
		_, err := change(ctx, fmt.Sprintf("CUSTOM_%d", c.random.IntN(5)))
		return err
	}},
	{"a claim", 1, func(c *changes, ctx context.Context, s *store.Store) error {
		_, err := s.SetAllocations(ctx,
			placement.Claim{Consumers: []placement.ConsumerClaim{{UUID: c.consumer(), ProjectID: "p", UserID: "u",
				Allocations: []placement.ProviderAllocation{{Provider: c.provider(),
					Resources: []placement.Amount{{ResourceClass: some(c.random, c.classes),
						Amount: 1 + c.random.Int64N(5)}}}}}}})
		return err
	}},
	{"a release", 1, func(c *changes, ctx context.Context, s *store.Store) error {
		_, err := s.DeleteAllocations(ctx, c.consumer())
		return err
	}},
}

func (c *changes) provider() string { return some(c.random, c.uuids) }

func (c *changes) consumer() string { return storetest.UUID(500 + c.random.IntN(10)) }

func (c *changes) create(ctx context.Context, s *store.Store) error {
	uuid := storetest.UUID(c.random.IntN(30))
	input := placement.NewProvider{Name: fmt.Sprintf("provider %d", c.made), UUID: &uuid}
	if len(c.uuids) > 0 && c.random.IntN(2) == 0 {
		input.Parent = new(c.provider())
	}
	_, _, err := s.CreateResourceProvider(ctx, input)
	if err == nil {
		c.uuids = append(c.uuids, uuid)
	}
	return err
}

// change makes one random change. The first ones are creations. Legitimate
// refusals are fine.
func (c *changes) change(t testing.TB, ctx context.Context, s *store.Store) {
	t.Helper()
	c.made++
	var kinds []int
	for i, kind := range kindsOfChanges {
		kinds = append(kinds, slices.Repeat([]int{i}, kind.weight)...)
	}
	kind := kindsOfChanges[0]
	if len(c.uuids) >= 3 {
		kind = kindsOfChanges[some(c.random, kinds)]
	}
	c.last = fmt.Sprintf("change %d, %s,", c.made, kind.what)
	if err := kind.make(c, ctx, s); err != nil && !refused(err) {
		t.Errorf("%s: %v", c.last, err)
	}
}

// refused reports whether an error is a refusal that a caller can cause.
func refused(err error) bool {
	for _, kind := range []error{problem.ErrInvalidInput, problem.ErrNotFound,
		problem.ErrAlreadyExists, problem.ErrConcurrentUpdate,
		problem.ErrInUse, problem.ErrCapacityExceeded} {
		if isKind(err, kind) {
			return true
		}
	}
	return false
}

// TestAUUIDCanBeGivenAgainAndAgain concurrently creates and deletes providers
// of one uuid. In the end the world and the database must agree whether the
// provider exists.
func TestAUUIDCanBeGivenAgainAndAgain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		uuid := storetest.UUID(0)
		for range 10 {
			var writers sync.WaitGroup
			for range 12 {
				writers.Go(func() {
					for range 8 {
						_, _, err := s.CreateResourceProvider(storetest.AsAdmin(),
							placement.NewProvider{Name: "again", UUID: &uuid})
						if err != nil && !refused(err) {
							t.Error(err)
						}
						if _, _, err := s.DeleteResourceProvider(storetest.AsAdmin(), uuid); err != nil &&
							!refused(err) {
							t.Error(err)
						}
					}
					if _, _, err := s.CreateResourceProvider(storetest.AsAdmin(),
						placement.NewProvider{Name: "again", UUID: &uuid}); err != nil && !refused(err) {
						t.Error(err)
					}
				})
			}
			writers.Wait()
			sameWorld(t, s)
		}
	})
}

// TestADryRunKnowsWhatItNames makes dry runs on one server right after another
// server created the providers. Their answers must show these providers.
func TestADryRunKnowsWhatItNames(t *testing.T) {
	t.Parallel()
	url := storetest.Postgres(t)
	servers := []*store.Store{storetest.Open(t, url), storetest.Open(t, url)}
	dry := store.DryRun(storetest.AsAdmin(), true)
	for round := range 10 {
		child, parent, claimed := storetest.UUID(3*round), storetest.UUID(3*round+1), storetest.UUID(3*round+2)
		storetest.RoomyProvider(t, servers[1], child)
		storetest.RoomyProvider(t, servers[0], parent)
		patch := placement.ProviderPatch{Provider: child, Parent: &parent}
		_, moved, err := servers[1].UpdateResourceProvider(dry, patch)
		if err != nil || moved.Root != parent {
			t.Errorf("a provider below another server's parent has the root %+v, %v", moved, err)
		}
		storetest.RoomyProvider(t, servers[0], claimed)
		claim := claimOne(claimed, storetest.UUID(1000))
		claim.DryRun = true
		if _, err := servers[1].SetAllocations(storetest.AsAdmin(), claim); err != nil {
			t.Fatal(err)
		}
		if _, found := worldOf(t, servers[1]).Provider(claimed); !found {
			t.Errorf("round %d: a claim's answer cannot show its provider", round)
		}
	}
}
