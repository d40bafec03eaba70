package placementdb_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

func isKind(err, kind error) bool { return errors.Is(err, kind) }

// TestTheWorldIsTheDatabase makes random concurrent changes, and compares the
// world in memory with a freshly read one.
func TestTheWorldIsTheDatabase(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		var writers sync.WaitGroup
		for seed := range 4 {
			writers.Go(func() {
				history := newChanges(uint64(seed))
				for range 60 {
					history.change(t, storetest.AsAdmin(), s)
				}
			})
		}
		writers.Wait()
		sameWorld(t, s)
		isCounted(t, s)
	})
}

// TestMovesCannotFormALoop runs moves concurrently that are valid on their own.
func TestMovesCannotFormALoop(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := storetest.AsAdmin()
		uuids := []string{storetest.UUID(1), storetest.UUID(2), storetest.UUID(3)}
		for _, uuid := range uuids {
			if _, _, err := s.CreateResourceProvider(ctx, placement.NewProvider{Name: uuid, UUID: &uuid}); err != nil {
				t.Fatal(err)
			}
		}
		for range 10 {
			var moves sync.WaitGroup
			for i, uuid := range uuids {
				moves.Go(func() {
					_, _, err := s.UpdateResourceProvider(ctx,
						placement.ProviderPatch{Provider: uuid, Parent: &uuids[(i+1)%len(uuids)]})
					if err != nil && !refused(err) {
						t.Error(err)
					}
				})
			}
			moves.Wait()
			sameWorld(t, s)
			roots := 0
			for provider := range worldOf(t, s).Providers() {
				if provider.Parent == "" {
					roots++
				}
			}
			if roots == 0 {
				t.Fatal("the moves formed a loop")
			}
			for _, uuid := range uuids {
				if _, _, err := s.UpdateResourceProvider(ctx,
					placement.ProviderPatch{Provider: uuid, Parent: new("")}); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// TestListsAreFoundByAnIndex checks that a claim does not scan all providers to
// find the ones that it names.
func TestListsAreFoundByAnIndex(t *testing.T) {
	t.Parallel()
	plan, err := storetest.Open(t, storetest.Postgres(t)).PlanOfListed(t.Context())
	if err != nil || strings.Contains(plan, "Seq Scan on resource_providers") {
		t.Errorf("%v\n%s", err, plan)
	}
}

// TestWhatGoesIsRefusedOrKept creates and deletes names and resources while
// providers refer to them. The later writer is refused, and nothing else fails.
func TestWhatGoesIsRefusedOrKept(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx, uuid := storetest.AsAdmin(), storetest.UUID(1)
		if _, _, err := s.CreateResourceProvider(ctx, placement.NewProvider{Name: "host", UUID: &uuid}); err != nil {
			t.Fatal(err)
		}
		inventory := placement.Inventory{ResourceClass: "CUSTOM_GOLD", Total: 1, MinUnit: 1,
			MaxUnit: 1, StepSize: 1, AllocationRatio: 1}
		reshape := placement.Reshape{Inventories: []placement.ProviderInventories{{Provider: uuid,
			Inventories: []placement.Inventory{inventory}}}}
		none := placement.ProviderInventories{Provider: uuid}
		host := storetest.UUID(2)
		var clients sync.WaitGroup
		for _, steps := range [][]func() error{
			{
				func() error {
					_, err := s.CreateResource(ctx, resource.Input{UUID: &host, Type: "physical:host", Name: "host"})
					return err
				},
				func() error { _, err := s.DeleteResource(ctx, host, nil); return err },
			},
			{
				func() error {
					_, _, err := s.UpdateResourceProvider(ctx, placement.ProviderPatch{Provider: uuid, Resource: &host})
					return err
				},
				func() error {
					_, _, err := s.UpdateResourceProvider(ctx,
						placement.ProviderPatch{Provider: uuid, Resource: new("")})
					return err
				},
			},
			{
				func() error { _, err := s.CreateTrait(ctx, "CUSTOM_FAST"); return err },
				func() error { _, err := s.DeleteTrait(ctx, "CUSTOM_FAST"); return err },
				func() error { _, err := s.CreateResourceClass(ctx, "CUSTOM_GOLD"); return err },
				func() error { _, err := s.DeleteResourceClass(ctx, "CUSTOM_GOLD"); return err },
			},
			{
				func() error {
					_, _, err := s.SetProviderTraits(ctx,
						placement.ProviderTraits{Provider: uuid, Traits: []string{"CUSTOM_FAST"}})
					return err
				},
				func() error {
					_, _, err := s.SetProviderTraits(ctx, placement.ProviderTraits{Provider: uuid})
					return err
				},
			},
			{
				func() error {
					_, _, err := s.SetInventory(ctx, placement.InventoryChange{Provider: uuid, Inventory: inventory})
					return err
				},
				func() error { _, _, err := s.SetInventories(ctx, none); return err },
				func() error { _, _, _, err := s.Reshape(ctx, reshape); return err },
				func() error { _, _, err := s.SetInventories(ctx, none); return err },
			},
		} {
			clients.Go(func() {
				for i := range 80 {
					if err := steps[i%len(steps)](); err != nil && !refused(err) {
						t.Error(err)
					}
				}
			})
		}
		clients.Wait()
		sameWorld(t, s)
	})
}
