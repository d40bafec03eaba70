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
