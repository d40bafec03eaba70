package placementdb

import (
	"context"
	"fmt"
	"slices"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// SetInventories replaces the inventories of a provider.
func (s *PlacementStore) SetInventories(ctx context.Context,
	input placement.ProviderInventories) (*placement.World, *placement.Provider, error) {
	return s.replaceOnOne(ctx, "setInventories",
		placement.Replacement{Provider: &input.Provider, Generation: input.Generation,
			Inventories: append([]placement.Inventory{}, input.Inventories...)})
}

// SetInventory creates or replaces one inventory of a provider.
func (s *PlacementStore) SetInventory(ctx context.Context,
	input placement.InventoryChange) (*placement.World, *placement.Provider, error) {
	return s.changeProvider(ctx, "setInventory", func(r *replacing) (err error) {
		problems := problemsOf(placement.ValidateInventory("input.inventory", input.Inventory))
		class := input.Inventory.ResourceClass
		if r.classes, err = s.rowsOf(ctx, r.Tx, "resource_classes", []string{class}); err != nil {
			return err
		}
		if r.classes[class] == 0 && len(placement.ValidateName("", class)) == 0 {
			problems = append(problems, problemsIn(s.cache.World(), []placement.Problem{
				placement.UnknownClass("input.inventory.resourceClass", class)})...)
		}
		if err := problems.Err(); err != nil {
			return err
		}
		return s.replaceInventory(ctx, r, input.Provider, input.Generation, class,
			func(*placement.Inventory) ([]placement.Inventory, error) {
				return []placement.Inventory{input.Inventory}, nil
			})
	})
}

// DeleteInventory deletes one inventory of a provider. It returns ErrInUse if
// the provider has allocations of the class.
func (s *PlacementStore) DeleteInventory(ctx context.Context,
	input placement.InventoryDeletion) (*placement.World, *placement.Provider, error) {
	if err := problemsOf(placement.ValidateName("input.resourceClass", input.ResourceClass)).Err(); err != nil {
		return nil, nil, err
	}
	return s.changeProvider(ctx, "deleteInventory", func(r *replacing) error {
		return s.replaceInventory(ctx, r, input.Provider, input.Generation, input.ResourceClass,
			func(before *placement.Inventory) ([]placement.Inventory, error) {
				switch {
				case before == nil:
					return nil, problem.Refuse(problem.ErrNotFound, "resource provider %s has no inventory of %s",
						input.Provider, input.ResourceClass).On("resourceClass")
				case before.Used > 0:
					return nil, problem.Refuse(problem.ErrInUse, "resource provider %s has allocations of %s",
						input.Provider, input.ResourceClass).On("resourceClass")
				}
				return []placement.Inventory{}, nil
			})
	})
}

// replaceInventory locks a provider and replaces its inventory of one class by
// the result of a function. The function gets that inventory, or nil if there
// is none; an empty result deletes it.
func (s *PlacementStore) replaceInventory(ctx context.Context, r *replacing, uuid string, generation *int64,
	class string, by func(*placement.Inventory) ([]placement.Inventory, error)) error {
	before, err := s.lockProvider(ctx, r, uuid, generation)
	if err != nil {
		return err
	}
	var held *placement.Inventory
	var others []placement.Inventory
	for i := range before.Inventories {
		if one := &before.Inventories[i]; one.ResourceClass == class {
			held = one
		} else {
			others = append(others, *one)
		}
	}
	wanted, err := by(held)
	if err == nil {
		_, err = r.replace(&placement.Replacement{Inventories: append(wanted, others...)}, before)
	}
	if err != nil {
		return problem.Under(err, "input")
	}
	return s.writeReplaced(ctx, r)
}

// putInventories creates or replaces inventories of a locked provider. It keeps
// their use.
func (s *PlacementStore) putInventories(ctx context.Context, tx *sqldb.Tx, provider int64,
	inventories []placement.Inventory, classes map[string]int64) error {
	rows := lists.Map(inventories, func(i placement.Inventory) []any {
		return inventoryRow(provider, classes[i.ResourceClass], i)
	})
	return s.executeEach(ctx, tx, []rowsStatement{{rows, s.putInventoryRows()}})
}

// putInventoryRows returns a statement that inserts inventories. Where a
// provider has the class already, it replaces all but the use.
func (s *PlacementStore) putInventoryRows() string {
	return s.insertInventories() + ` WHERE true ON CONFLICT (provider_id, resource_class_id) DO UPDATE SET
		total = excluded.total, reserved = excluded.reserved, min_unit = excluded.min_unit, max_unit = excluded.max_unit,
		step_size = excluded.step_size, allocation_ratio = excluded.allocation_ratio, capacity = excluded.capacity`
}

// InventoriesUpdated counts the providers of UpdateInventories. Overused counts
// the changed ones whose use of the class exceeds their capacity.
type InventoriesUpdated struct {
	Changed, Unchanged, Overused int
	// Refused are the refused providers as they are, by name.
	Refused []RefusedInventory
}

// RefusedInventory is a provider with the problems of its inventory.
type RefusedInventory struct {
	Provider placement.Provider
	Problems problem.Problems
}

// UpdateInventories changes the inventories of one class of all providers that
// a filter selects. An atomic update changes all or none; otherwise the ones
// that stay valid. problems are the caller's problems with the rest of the
// input.
func (s *PlacementStore) UpdateInventories(
	ctx context.Context, input placement.InventoryUpdate, problems problem.Problems,
) (*placement.World, InventoriesUpdated, error) {
	var updated InventoriesUpdated
	if err := s.ShowWorld(ctx, nil); err != nil {
		return nil, updated, err
	}
	err := s.Write(ctx, "updateInventories", func(tx *sqldb.Tx) error {
		r := &replacing{Tx: tx, now: s.Now()}
		selected, err := s.lockForUpdate(ctx, r, &input, problems)
		if err != nil {
			return err
		}
		updated = r.update(&input, selected)
		if input.Atomic {
			var refused problem.Problems
			for _, one := range updated.Refused {
				refused = append(refused, one.Problems...)
			}
			if err := refused.Err(); err != nil {
				return err
			}
		}
		return s.writeReplaced(ctx, r)
	}, &updated)
	if err != nil {
		return nil, updated, fmt.Errorf("updateInventories: %w", err)
	}
	world := s.worldAfter(ctx, nil)
	for i := range updated.Refused {
		updated.Refused[i].Provider = *inTree(world, &updated.Refused[i].Provider)
	}
	return world, updated, nil
}

// lockForUpdate locks the selected providers and returns them, sorted by name.
// It leaves out providers that, once locked, do not match the filter.
func (s *PlacementStore) lockForUpdate(
	ctx context.Context, r *replacing, input *placement.InventoryUpdate, problems problem.Problems,
) ([]*placement.Provider, error) {
	world := s.cache.World()
	problems = append(problems, problemsIn(world, input.Validate(world, "input"))...)
	selected, problems := providersThat(world, "input.filter", input.Filter, problems)
	selected = slices.DeleteFunc(selected, input.Lacks)
	if len(selected) > placement.MaxReplacements {
		problems.Add("input.filter", "selects %d providers with the class, at most %d are changed together",
			len(selected), placement.MaxReplacements)
	}
	if err := problems.Err(); err != nil || len(selected) == 0 {
		return nil, err
	}
	var err error
	if r.classes, err = s.rowsOf(ctx, r.Tx, "resource_classes", []string{input.ResourceClass}); err != nil {
		return nil, err
	}
	uuids := lists.Map(selected, func(p *placement.Provider) string { return p.UUID })
	if err := s.lockReplaced(ctx, r, uuids, nil); err != nil {
		return nil, err
	}
	var locked placement.Update
	for _, state := range r.before {
		locked.Providers = append(locked.Providers, state.Provider)
	}
	selected, _ = providersThat(world.With(locked), "input.filter", input.Filter, nil)
	return slices.DeleteFunc(selected, func(p *placement.Provider) bool {
		return r.before[p.Row] == nil || input.Lacks(p)
	}), nil
}

// update applies an update to locked providers and records the changed ones.
func (r *replacing) update(input *placement.InventoryUpdate,
	selected []*placement.Provider) (updated InventoriesUpdated) {
	for _, provider := range selected {
		before := r.before[provider.Row]
		after, changes, problems := input.On(&before.Provider, "input")
		switch {
		case len(problems) > 0:
			updated.Refused = append(updated.Refused, RefusedInventory{before.Provider, problemsOf(problems)})
			continue
		case !changes:
			updated.Unchanged++
			continue
		}
		after.UpdatedAt = r.now
		r.replaced = append(r.replaced,
			replaced{before: before, after: &providerState{parentRow: before.parentRow, Provider: after}})
		updated.Changed++
		if input.IsOverused(&after) {
			updated.Overused++
		}
	}
	return updated
}
