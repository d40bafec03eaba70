package placementdb

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/inventory"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// SetInventories replaces the inventories of a provider.
func (s *PlacementStore) SetInventories(ctx context.Context, input placement.ProviderInventories) (*placement.World, *placement.Provider, error) {
	return s.writeInventories(ctx, "setInventories", input, placement.ValidateInventories("input.inventories", input.Inventories),
		func(i int) string { return fmt.Sprintf("input.inventories[%d]", i) }, s.replaceInventories)
}

// SetInventory writes one inventory of a provider, which may have had it or not.
func (s *PlacementStore) SetInventory(ctx context.Context, input placement.InventoryChange) (*placement.World, *placement.Provider, error) {
	one := placement.ProviderInventories{Provider: input.Provider, Generation: input.Generation, Inventories: []placement.Inventory{input.Inventory}}
	return s.writeInventories(ctx, "setInventory", one, placement.ValidateInventory("input.inventory", input.Inventory),
		func(int) string { return "input.inventory" }, s.putInventories)
}

// writeInventories writes inventories of a provider, given what is wrong with them
// and the path of each.
func (s *PlacementStore) writeInventories(
	ctx context.Context, mutation string, input placement.ProviderInventories, found []placement.Problem, path func(int) string,
	write func(ctx context.Context, tx *sqldb.Tx, provider int64, input placement.ProviderInventories, classes map[string]int64) error,
) (*placement.World, *placement.Provider, error) {
	return s.changeProvider(ctx, mutation, func(tx *providerTx) (int64, error) {
		problems := problemsOf(found)
		classes, err := s.classRows(ctx, tx.Tx, input.Inventories, path, &problems)
		if err != nil {
			return 0, err
		}
		if err := problems.Err(); err != nil {
			return 0, err
		}
		id, err := s.lockProvider(ctx, tx, input.Provider, input.Generation)
		if err != nil {
			return 0, err
		}
		if err := write(ctx, tx.Tx, id, input, classes); err != nil {
			return 0, err
		}
		return id, s.bump(ctx, tx.Tx, id, true)
	})
}

// DeleteInventory deletes one inventory of a provider.
func (s *PlacementStore) DeleteInventory(ctx context.Context, input placement.InventoryDeletion) (*placement.World, *placement.Provider, error) {
	if err := problemsOf(placement.ValidateName("input.resourceClass", input.ResourceClass)).Err(); err != nil {
		return nil, nil, err
	}
	return s.changeProvider(ctx, "deleteInventory", func(tx *providerTx) (int64, error) {
		provider, err := s.lockProvider(ctx, tx, input.Provider, input.Generation)
		if err != nil {
			return 0, err
		}
		var id, used int64
		err = s.Query(ctx, tx, `SELECT i.id, i.used FROM inventories i JOIN resource_classes c ON c.id = i.resource_class_id
			WHERE i.provider_id = $1 AND c.name = $2`, func(rows *sql.Rows) error { return rows.Scan(&id, &used) }, provider, input.ResourceClass)
		switch {
		case err != nil:
			return 0, err
		case id == 0:
			return 0, problem.Refuse(problem.ErrNotFound, "resource provider %s has no inventory of %s", input.Provider, input.ResourceClass).On("input.resourceClass")
		case used > 0:
			return 0, problem.Refuse(problem.ErrInUse, "resource provider %s has allocations of %s", input.Provider, input.ResourceClass).On("input.resourceClass")
		}
		if err := s.Execute(ctx, tx, `DELETE FROM inventories WHERE id = $1`, id); err != nil {
			return 0, err
		}
		return provider, s.bump(ctx, tx.Tx, provider, true)
	})
}

// replaceInventories makes a locked provider have exactly these inventories,
// whose use stays. To leave out a class that is used is ErrInUse.
func (s *PlacementStore) replaceInventories(ctx context.Context, tx *sqldb.Tx, provider int64, input placement.ProviderInventories, classes map[string]int64) error {
	kept := lists.Set(input.Inventories, func(inventory placement.Inventory) int64 { return classes[inventory.ResourceClass] })
	var dropped []int64
	var used []string
	err := s.Query(ctx, tx, `SELECT i.id, i.resource_class_id, i.used, c.name FROM inventories i JOIN resource_classes c ON c.id = i.resource_class_id
		WHERE i.provider_id = $1 ORDER BY c.name`, func(rows *sql.Rows) error {
		var id, class, use int64
		var name string
		if err := rows.Scan(&id, &class, &use, &name); err != nil || kept[class] {
			return err
		}
		dropped = append(dropped, id)
		if use > 0 {
			used = append(used, name)
		}
		return nil
	}, provider)
	if err != nil {
		return err
	}
	if len(used) > 0 {
		return problem.Refuse(problem.ErrInUse, "resource provider %s has allocations of %s", input.Provider, strings.Join(used, ", ")).On("input.inventories")
	}
	if len(dropped) > 0 {
		if err := s.Execute(ctx, tx, `DELETE FROM inventories WHERE `+s.Listed("id", "$1", "bigint"), sqldb.JSONOf(dropped)); err != nil {
			return err
		}
	}
	return s.putInventories(ctx, tx, provider, input, classes)
}

// putInventories writes inventories of a locked provider over those that it has;
// their use stays.
func (s *PlacementStore) putInventories(ctx context.Context, tx *sqldb.Tx, provider int64, input placement.ProviderInventories, classes map[string]int64) error {
	if len(input.Inventories) == 0 {
		return nil
	}
	creates := lists.Map(input.Inventories, func(given placement.Inventory) *ent.InventoryCreate {
		return newInventory(tx, provider, classes[given.ResourceClass], given).SetUsed(0)
	})
	return tx.Inventory.CreateBulk(creates...).
		OnConflict(entsql.ConflictColumns(inventory.FieldProviderID, inventory.FieldResourceClassID)).
		Update(func(u *ent.InventoryUpsert) {
			u.UpdateTotal().UpdateReserved().UpdateMinUnit().UpdateMaxUnit().UpdateStepSize().UpdateAllocationRatio().UpdateCapacity()
		}).Exec(ctx)
}

func newInventory(tx *sqldb.Tx, provider, class int64, i placement.Inventory) *ent.InventoryCreate {
	return tx.Inventory.Create().SetProviderID(provider).SetResourceClassID(class).
		SetTotal(i.Total).SetReserved(i.Reserved).SetMinUnit(i.MinUnit).SetMaxUnit(i.MaxUnit).SetStepSize(i.StepSize).
		SetAllocationRatio(i.AllocationRatio).SetCapacity(placement.Capacity(i.Total, i.Reserved, i.AllocationRatio))
}

// classRows returns the row ids of the classes that inventories are of; unknown
// ones are problems.
func (s *PlacementStore) classRows(ctx context.Context, tx *sqldb.Tx, inventories []placement.Inventory, path func(int) string, problems *problem.Problems) (map[string]int64, error) {
	var names []string
	for _, given := range inventories {
		if len(placement.ValidateName("", given.ResourceClass)) == 0 {
			names = append(names, given.ResourceClass)
		}
	}
	known, err := s.rowsNamed(ctx, tx, "resource_classes", names)
	var unknown []placement.Problem
	for i, given := range inventories {
		if known[given.ResourceClass] == 0 && slices.Contains(names, given.ResourceClass) {
			unknown = append(unknown, placement.UnknownClass(problem.Join(path(i), "resourceClass"), given.ResourceClass))
		}
	}
	*problems = append(*problems, problemsIn(s.cache.World(), unknown)...)
	return known, err
}
