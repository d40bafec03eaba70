package placementdb_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// makeTree creates a root with two children. The first has a child with VCPU.
// The uuids are of the numbers from first on.
func makeTree(s *store.Store, first int) error {
	var items []placement.NewProvider
	for i, parent := range []int{-1, 0, 0, 1} {
		one := placement.NewProvider{Name: fmt.Sprint("tree ", first+i), UUID: new(storetest.UUID(first + i))}
		if parent >= 0 {
			one.Parent = new(storetest.UUID(first + parent))
		}
		if i == 3 {
			one.Inventories = []placement.Inventory{{ResourceClass: "VCPU", Total: 8, MinUnit: 1,
				MaxUnit: 8, StepSize: 1, AllocationRatio: 1}}
		}
		items = append(items, one)
	}
	_, _, err := s.CreateResourceProviders(storetest.AsAdmin(), placement.NewProviders{Items: items, Atomic: true})
	return err
}

// deleteTree deletes a provider and returns the names of the deleted ones.
func deleteTree(s *store.Store, provider int, withDescendants, dryRun bool) (string, error) {
	world, deleted, err := s.DeleteResourceProviders(storetest.AsAdmin(),
		placement.TreeDeletion{Provider: storetest.UUID(provider), WithDescendants: withDescendants, DryRun: dryRun})
	var names []string
	for _, one := range deleted {
		if found, ok := world.Provider(one.UUID); !ok || found.Parent != one.Parent {
			return "", fmt.Errorf("the world lacks %s below %s", one.Name, one.Parent)
		}
		names = append(names, strings.TrimPrefix(one.Name, "tree "))
	}
	return strings.Join(names, " "), err
}

// TestATreeIsDeletedOrNone deletes a tree with and without allocations.
func TestATreeIsDeletedOrNone(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		if err := makeTree(s, 10); err != nil {
			t.Fatal(err)
		}
		if err := setVCPUs(storetest.AsAdmin(), s, vcpus("p", 100, 13, 1)); err != nil {
			t.Fatal(err)
		}
		if _, err := deleteTree(s, 10, true, false); !errors.Is(err, problem.ErrInUse) ||
			!strings.Contains(err.Error(), storetest.UUID(13)+" has allocations") {
			t.Errorf("with allocations: %v", err)
		}
		if _, err := s.DeleteAllocations(storetest.AsAdmin(), storetest.UUID(100)); err != nil {
			t.Fatal(err)
		}
		if _, err := deleteTree(s, 10, false, false); !errors.Is(err, problem.ErrInUse) {
			t.Errorf("a root without its descendants: %v", err)
		}
		order := "10 11 12 13"
		if storetest.UUID(12) < storetest.UUID(11) {
			order = "10 12 11 13"
		}
		for _, c := range []struct {
			provider int
			dryRun   bool
			want     string
			left     int
		}{{10, true, order, 4}, {11, false, "11 13", 2}, {10, false, "10 12", 0}} {
			got, err := deleteTree(s, c.provider, true, c.dryRun)
			if err != nil || got != c.want || worldOf(t, s).Len() != c.left {
				t.Errorf("deleted %q of %d, %v, %d are left; want %q and %d", got, c.provider, err,
					worldOf(t, s).Len(), c.want, c.left)
			}
		}
		if _, err := deleteTree(s, 10, true, false); !errors.Is(err, problem.ErrNotFound) {
			t.Errorf("a deleted tree: %v", err)
		}
	})
}

// TestRacingTreeDeletions creates, moves, fills and deletes trees from many
// clients on one and on two servers. A deletion is of the whole tree or of
// nothing, and the worlds equal the database.
func TestRacingTreeDeletions(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, servers []*store.Store) {
		var deleted atomic.Int64
		var working sync.WaitGroup
		for client := range 8 {
			working.Go(func() {
				d := rand.New(rand.NewPCG(5, uint64(client)))
				s := servers[client%len(servers)]
				for range 15 {
					first := 10 + 10*d.IntN(2)
					var err error
					switch d.IntN(4) {
					case 0:
						err = makeTree(s, first)
					case 1:
						err = setVCPUs(storetest.AsAdmin(), s, vcpus("p", 100+first, first+3, d.Int64N(2)))
					case 2:
						_, _, err = s.UpdateResourceProvider(storetest.AsAdmin(),
							placement.ProviderPatch{Provider: storetest.UUID(first + 3),
								Parent: new(storetest.UUID(30 - first + 1))})
					default:
						if _, err = deleteTree(s, first, true, false); err == nil {
							deleted.Add(1)
						}
					}
					if err != nil && problem.InError(err) == nil && !refused(err) {
						t.Error(err)
					}
				}
			})
		}
		working.Wait()
		for _, s := range servers {
			storetest.Within(t, 10*time.Second, "the world of the database", func() bool {
				difference, err := s.WorldDifference(storetest.AsAdmin())
				return err == nil && difference == ""
			})
		}
		if deleted.Load() == 0 {
			t.Error("no tree was deleted")
		}
	})
}
