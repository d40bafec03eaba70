package placementdb

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

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

// Reshape moves inventories together with their allocations. It returns the
// world, the providers in the order of the input, and the consumers that have
// allocations afterwards.
func (s *PlacementStore) Reshape(ctx context.Context,
	reshape placement.Reshape) (*placement.World, []*placement.Provider, []*placement.Consumer, error) {
	if err := problemsOf(reshape.Validate("input")).Err(); err != nil {
		return nil, nil, nil, err
	}
	reshape.BeyondLimits = mayExceedLimits(ctx, "reshape")
	var providers []*placement.Provider
	var consumers []*placement.Consumer
	ctx = sqldb.DryRun(ctx, reshape.DryRun)
	err := s.Write(ctx, "reshape", func(tx *sqldb.Tx) (err error) {
		providers, consumers, err = s.applyReshape(ctx, tx, &reshape)
		return err
	}, &providers, &consumers)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("reshape: %w", err)
	}
	world := s.worldAfter(ctx, providers)
	for i, written := range providers {
		providers[i] = inTree(world, written)
	}
	return world, providers, holding(consumers...), nil
}

// applyReshape checks a reshape and writes it. It returns the providers after
// it, and the consumers that have allocations afterwards.
func (s *PlacementStore) applyReshape(ctx context.Context, tx *sqldb.Tx,
	reshape *placement.Reshape) ([]*placement.Provider, []*placement.Consumer, error) {
	var names []string
	of := concernedBy(reshape.Consumers)
	for _, listed := range reshape.Inventories {
		of.providers = append(of.providers, listed.Provider)
		for _, inventory := range listed.Inventories {
			names = append(names, inventory.ResourceClass)
		}
	}
	classes, err := s.rowsNamed(ctx, tx, "resource_classes", lists.Distinct(names))
	if err != nil {
		return nil, nil, err
	}
	of.classes = lists.Without(of.classes, names)
	c, err := s.lockForClaim(ctx, tx, of)
	if err == nil {
		err = s.checkSeen(ctx, c, c.Mutation, of)
	}
	if err != nil {
		return nil, nil, err
	}
	for name := range classes {
		c.classes[name] = true
	}
	before := s.contentsOf(c, consumersOf(reshape.Consumers))
	if refusals := c.ledger.Reshape(reshape, "input", c.known()); len(refusals) > 0 {
		if err := s.stillAbsent(ctx, c); err != nil {
			return nil, nil, err
		}
		return nil, nil, refusalOf(s.cache.World(), refusals)
	}
	had := c.audited(reshape.Inventories)
	if err := s.writeReshape(ctx, c, reshape, classes); err != nil {
		return nil, nil, err
	}
	if err := s.forgetRefusals(ctx, c); err != nil {
		return nil, nil, err
	}
	s.recordConsumers(ctx, c, tx.Mutation, consumersOf(reshape.Consumers), before)
	for i, listed := range reshape.Inventories {
		tx.Record(ctx, sqldb.Event{Kind: "ResourceProvider", Key: listed.Provider,
			Before: had[i], After: auditedInventories(listed.Inventories)})
	}
	known, unknown := s.statesAfter(c)
	written, err := s.publishClaim(ctx, c, known, unknown)
	if err != nil {
		return nil, nil, err
	}
	changed := lists.Map(reshape.Inventories, func(listed placement.ProviderInventories) *placement.Provider {
		return written[listed.Provider]
	})
	return changed, c.consumersAfter(reshape.Consumers), nil
}

// audited returns the inventories of locked providers for the audit log.
func (c *claimTx) audited(list []placement.ProviderInventories) []sqldb.Fields {
	return lists.Map(list, func(listed placement.ProviderInventories) sqldb.Fields {
		var inventories []placement.Inventory
		for _, locked := range c.providers[listed.Provider].inventories {
			inventories = append(inventories, locked.Inventory)
		}
		return auditedInventories(inventories)
	})
}

// auditedInventories returns inventories for the audit log, in the order of
// their classes.
func auditedInventories(list []placement.Inventory) sqldb.Fields {
	of := placement.Provider{Inventories: slices.SortedFunc(slices.Values(list), func(a, b placement.Inventory) int {
		return strings.Compare(a.ResourceClass, b.ResourceClass)
	})}
	return sqldb.Fields{"inventories": providerFields(&of)["inventories"]}
}

// writeReshape writes a reshape: first the new inventories next to the old
// ones, then the allocations. Last it deletes the inventories that the input
// left out.
func (s *PlacementStore) writeReshape(ctx context.Context, c *claimTx,
	reshape *placement.Reshape, classes map[string]int64) error {
	c.reshaped = map[string]bool{}
	for _, listed := range reshape.Inventories {
		c.reshaped[listed.Provider] = true
		if err := s.putInventories(ctx, c.Tx, c.providers[listed.Provider].id,
			listed.Inventories, classes); err != nil {
			return err
		}
	}
	if err := s.readInventories(ctx, c, slices.Collect(maps.Keys(c.reshaped))); err != nil {
		return err
	}
	var dropped []int64
	for provider := range c.reshaped {
		kept := c.ledger.Provider(provider).Inventories
		for class, was := range c.providers[provider].inventories {
			if _, stays := kept[class]; !stays {
				dropped = append(dropped, was.id)
				kept[class] = placement.Inventory{ResourceClass: class} // its use must become 0 first
			}
		}
	}
	if err := s.writeClaim(ctx, c); err != nil {
		return err
	}
	if len(dropped) == 0 {
		return nil
	}
	slices.Sort(dropped)
	return s.Execute(ctx, c, `DELETE FROM inventories WHERE used = 0 AND `+s.Listed("id", "$1", "bigint"),
		sqldb.JSONOf(dropped))
}
