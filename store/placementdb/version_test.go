package placementdb_test

import (
	"testing"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// versions tracks the versions of a store's providers.
type versions struct {
	store *store.Store
	held  map[string]int64
	last  int64 // a row id of the change log
}

func versionsOf(t testing.TB, s *store.Store) *versions {
	t.Helper()
	v := &versions{store: s}
	var err error
	if v.held, _, v.last, err = s.ProviderVersions(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	return v
}

// moved checks the one transaction since the last call. It must have
// incremented the version of each provider that it noted in the change log by
// one, and no other version. If wanted is not nil, the noted providers must be
// exactly those.
func (v *versions) moved(t testing.TB, what string, wanted []string) {
	t.Helper()
	now, noted, last, err := v.store.ProviderVersions(t.Context(), v.last)
	if err != nil {
		t.Fatal(err)
	}
	for uuid, version := range now {
		before, found := v.held[uuid]
		switch {
		case !found:
		case noted[uuid] && version != before+1:
			t.Errorf("%s notes %s and moves its version from %d to %d", what, uuid, before, version)
		case !noted[uuid] && version != before:
			t.Errorf("%s does not note %s and moves its version from %d to %d", what, uuid, before, version)
		}
	}
	for _, uuid := range wanted {
		if !noted[uuid] {
			t.Errorf("%s does not note %s", what, uuid)
		}
	}
	if wanted != nil && len(wanted) != len(noted) {
		t.Errorf("%s notes %v, not only %v", what, noted, wanted)
	}
	v.held, v.last = now, last
}

// TestEveryWriteMovesTheVersionByOne runs each mutation that concerns
// providers, including some that change nothing. Each must increment the
// version of every noted provider by one. An unchanged provider keeps its
// generation.
func TestEveryWriteMovesTheVersionByOne(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := storetest.AsAdmin()
		a, b, c := storetest.UUID(1), storetest.UUID(2), storetest.UUID(3)
		for _, uuid := range []string{a, b, c} {
			storetest.RoomyProvider(t, s, uuid)
		}
		provider := func(_ *placement.World, _ *placement.Provider, err error) error { return err }
		traits := placement.ProviderTraits{Provider: a, Traits: []string{"COMPUTE_NODE"}}
		aggregates := placement.ProviderAggregates{Provider: a, Aggregates: []string{storetest.UUID(9)}}
		disk := placement.Inventory{ResourceClass: "DISK_GB", Total: 9, MinUnit: 1,
			MaxUnit: 9, StepSize: 1, AllocationRatio: 1}
		cpus := placement.Inventory{ResourceClass: "VCPU", Total: 1000, MinUnit: 1,
			MaxUnit: 9, StepSize: 1, AllocationRatio: 1}
		claim := claimOne(a, storetest.UUID(50))
		claim.Consumers[0].Allocations = append(claim.Consumers[0].Allocations,
			claimOne(b, "").Consumers[0].Allocations...)
		again := claim
		again.Consumers = []placement.ConsumerClaim{claim.Consumers[0]}
		again.Consumers[0].Generation = new(int64(1))
		moves := versionsOf(t, s)
		for _, mutation := range []struct {
			what    string
			writes  []string
			do      func() error
			changes bool // whether the generation of the first changes
		}{
			{"setProviderTraits", []string{a}, func() error {
				return provider(s.SetProviderTraits(ctx, traits))
			}, true},
			{"setProviderTraits with the same", []string{a}, func() error {
				return provider(s.SetProviderTraits(ctx, traits))
			}, false},
			{"setProviderAggregates", []string{a}, func() error {
				return provider(s.SetProviderAggregates(ctx, aggregates))
			}, true},
			{"setProviderAggregates with the same", []string{a}, func() error {
				return provider(s.SetProviderAggregates(ctx, aggregates))
			}, true},
			{"setOnResourceProviders", []string{a, b}, func() error {
				_, _, err := s.SetOnResourceProviders(ctx,
					placement.Replacements{Atomic: true, Items: []placement.Replacement{
						{Provider: &a, Traits: []string{}, Inventories: []placement.Inventory{cpus}},
						{Provider: &b, Traits: []string{"COMPUTE_NODE"}}}})
				return err
			}, true},
			{"setOnResourceProviders with the same", []string{a, b}, func() error {
				_, _, err := s.SetOnResourceProviders(ctx, placement.Replacements{Items: []placement.Replacement{
					{Provider: &a, Traits: []string{}}, {Provider: &b, Traits: []string{"COMPUTE_NODE"}}}})
				return err
			}, false},
			{"setInventory", []string{a}, func() error {
				return provider(s.SetInventory(ctx, placement.InventoryChange{Provider: a, Inventory: disk}))
			}, true},
			{"setInventory with the same", []string{a}, func() error {
				return provider(s.SetInventory(ctx, placement.InventoryChange{Provider: a, Inventory: disk}))
			}, true},
			{"setInventories", []string{a}, func() error {
				return provider(s.SetInventories(ctx,
					placement.ProviderInventories{Provider: a, Inventories: []placement.Inventory{disk, cpus}}))
			}, true},
			{"deleteInventory", []string{a}, func() error {
				return provider(s.DeleteInventory(ctx,
					placement.InventoryDeletion{Provider: a, ResourceClass: "DISK_GB"}))
			}, true},
			{"updateResourceProvider", []string{a}, func() error {
				return provider(s.UpdateResourceProvider(ctx,
					placement.ProviderPatch{Provider: a, NewName: new("another")}))
			}, false},
			{"updateResourceProvider with the same", []string{a}, func() error {
				return provider(s.UpdateResourceProvider(ctx,
					placement.ProviderPatch{Provider: a, NewName: new("another")}))
			}, false},
			{"a move", []string{a}, func() error {
				return provider(s.UpdateResourceProvider(ctx, placement.ProviderPatch{Provider: a, Parent: &c}))
			}, false},
			{"a move to where it is", []string{a}, func() error {
				return provider(s.UpdateResourceProvider(ctx, placement.ProviderPatch{Provider: a, Parent: &c}))
			}, false},
			{"setAllocations", []string{a, b}, func() error {
				_, err := s.SetAllocations(ctx, claim)
				return err
			}, true},
			{"setAllocations with the same", []string{a, b}, func() error {
				_, err := s.SetAllocations(ctx, again)
				return err
			}, true},
			{"reshape", []string{a, b}, func() error {
				_, _, _, err := s.Reshape(ctx, placement.Reshape{Inventories: []placement.ProviderInventories{
					{Provider: a, Generation: generationOf(t, s, a), Inventories: []placement.Inventory{cpus, disk}}},
					Consumers: claimOne(b, storetest.UUID(51)).Consumers})
				return err
			}, true},
			{"deleteAllocations", []string{a, b}, func() error {
				_, err := s.DeleteAllocations(ctx, storetest.UUID(50))
				return err
			}, false},
			{"deleteResourceProvider", []string{a}, func() error {
				return provider(s.DeleteResourceProvider(ctx, a))
			}, false},
		} {
			before := generationOf(t, s, mutation.writes[0])
			if err := mutation.do(); err != nil {
				t.Errorf("%s: %v", mutation.what, err)
			}
			moves.moved(t, mutation.what, mutation.writes)
			if after := generationOf(t, s, mutation.writes[0]); after != nil && mutation.changes != (*after > *before) {
				t.Errorf("%s moves the generation from %d to %d", mutation.what, *before, *after)
			}
		}
		history := newChanges(11)
		moves = versionsOf(t, s)
		for range 200 {
			history.change(t, ctx, s)
			moves.moved(t, history.last, nil)
		}
	})
}

// generationOf returns the generation of a provider, nil if it does not exist.
func generationOf(t testing.TB, s *store.Store, uuid string) *int64 {
	t.Helper()
	if provider, found := worldOf(t, s).Provider(uuid); found {
		return &provider.Generation
	}
	return nil
}
