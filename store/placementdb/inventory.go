package placementdb

import (
	"context"
	"database/sql"

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
	return s.changeProvider(ctx, "setInventory", func(tx *providerTx) (int64, error) {
		problems := problemsOf(placement.ValidateInventory("input.inventory", input.Inventory))
		classes, err := s.classRow(ctx, tx.Tx, input.Inventory.ResourceClass,
			"input.inventory.resourceClass", &problems)
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
		if err := s.putInventories(ctx, tx.Tx, id, []placement.Inventory{input.Inventory}, classes); err != nil {
			return 0, err
		}
		return id, s.bump(ctx, tx.Tx, id)
	})
}

// DeleteInventory deletes one inventory of a provider.
func (s *PlacementStore) DeleteInventory(ctx context.Context,
	input placement.InventoryDeletion) (*placement.World, *placement.Provider, error) {
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
			WHERE i.provider_id = $1 AND c.name = $2`, func(rows *sql.Rows) error {
			return rows.Scan(&id, &used)
		}, provider, input.ResourceClass)
		switch {
		case err != nil:
			return 0, err
		case id == 0:
			return 0, problem.Refuse(problem.ErrNotFound, "resource provider %s has no inventory of %s", input.Provider,
				input.ResourceClass).On("input.resourceClass")
		case used > 0:
			return 0, problem.Refuse(problem.ErrInUse, "resource provider %s has allocations of %s", input.Provider,
				input.ResourceClass).On("input.resourceClass")
		}
		if err := s.Execute(ctx, tx, `DELETE FROM inventories WHERE id = $1`, id); err != nil {
			return 0, err
		}
		return provider, s.bump(ctx, tx.Tx, provider)
	})
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

// putInventoryRows is insertInventories as an upsert. It keeps the use.
func (s *PlacementStore) putInventoryRows() string {
	return s.insertInventories() + ` WHERE true ON CONFLICT (provider_id, resource_class_id) DO UPDATE SET
		total = excluded.total, reserved = excluded.reserved, min_unit = excluded.min_unit, max_unit = excluded.max_unit,
		step_size = excluded.step_size, allocation_ratio = excluded.allocation_ratio, capacity = excluded.capacity`
}

// classRow returns the row id of a class by name. An unknown class is a
// problem.
func (s *PlacementStore) classRow(ctx context.Context, tx *sqldb.Tx, name, path string,
	problems *problem.Problems) (map[string]int64, error) {
	if len(placement.ValidateName("", name)) > 0 {
		return nil, nil
	}
	known, err := s.rowsNamed(ctx, tx, "resource_classes", []string{name})
	if known[name] == 0 {
		*problems = append(*problems,
			problemsIn(s.cache.World(), []placement.Problem{placement.UnknownClass(path, name)})...)
	}
	return known, err
}
