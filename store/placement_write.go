package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/catalog"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/inventory"
	"github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/placement"
)

// Every write of a provider first locks the provider's row, and several rows in
// the order of their numbers; consumers come before providers. So no two writers
// wait for each other in a circle, and what hangs off a locked provider holds
// still.

// CreateResourceProvider creates a provider, for administrators and services.
func (s *Store) CreateResourceProvider(ctx context.Context, input placement.NewProvider) (*placement.World, *placement.Provider, error) {
	if err := catalog.MayWritePlacement(catalog.ViewerFrom(ctx), "create a resource provider"); err != nil {
		return nil, nil, err
	}
	if err := problemsOf(input.Validate("input")).Err(); err != nil {
		return nil, nil, err
	}
	uuid := newUUID()
	if input.UUID != nil {
		uuid = *input.UUID
	}
	world, created, err := s.changeProvider(ctx, "create a resource provider", uuid, func(tx *ent.Tx, t *touched) error {
		if err := s.refuseTaken(ctx, tx, uuid, input.Name); err != nil {
			return err
		}
		now := s.now()
		create := tx.ResourceProvider.Create().SetUUID(uuid).SetName(input.Name).SetGeneration(0).SetVersion(0).
			SetCreatedAt(now).SetUpdatedAt(now)
		var problems catalog.Problems
		if input.Parent != nil {
			parent, err := s.providerRow(ctx, tx, *input.Parent, "KEY SHARE")
			if err != nil {
				return err
			}
			if parent == 0 {
				problems.Add("input.parent", "must be an existing resource provider, %s is none", *input.Parent)
			}
			create.SetParentID(parent)
		}
		if input.Resource != nil {
			linked, err := s.linkedResource(ctx, tx, *input.Resource, &problems)
			if err != nil {
				return err
			}
			create.SetResourceID(linked)
		}
		if err := problems.Err(); err != nil {
			return err
		}
		row, err := create.Save(ctx)
		if err != nil {
			return err
		}
		t.ids = []int64{row.ID}
		return nil
	})
	if isDuplicate(err) {
		return nil, nil, catalog.Refuse(catalog.ErrAlreadyExists, "a resource provider with this name, uuid or resource exists already").On("input").Because(err)
	}
	return world, created, err
}

// refuseTaken refuses a uuid and a name that a provider has.
func (s *Store) refuseTaken(ctx context.Context, tx *ent.Tx, uuid, name string) error {
	var refusal *catalog.Refusal
	err := s.query(ctx, tx, `SELECT uuid FROM resource_providers WHERE uuid = $1 OR name = $2`, func(rows *sql.Rows) error {
		var taken string
		if err := rows.Scan(&taken); err != nil {
			return err
		}
		if taken == uuid {
			refusal = catalog.Refuse(catalog.ErrAlreadyExists, "a resource provider %s exists already", uuid).On("input.uuid")
		} else if refusal == nil {
			refusal = catalog.Refuse(catalog.ErrAlreadyExists, "a resource provider named %q exists already", name).On("input.name")
		}
		return nil
	}, uuid, name)
	if err != nil || refusal == nil {
		return err
	}
	return refusal
}

// linkedResource is the row of the resource that a provider is to be linked to.
func (s *Store) linkedResource(ctx context.Context, tx *ent.Tx, uuid string, problems *catalog.Problems) (int64, error) {
	row, err := tx.Resource.Query().Where(visibleResources(ctx), resource.UUID(uuid)).OnlyID(ctx)
	if ent.IsNotFound(err) {
		problems.Add("input.resource", "must be an existing resource, %s is none", uuid)
		return 0, nil
	}
	return row, err
}

// providerRow is the number of a provider's row, 0 for none, and locks it.
func (s *Store) providerRow(ctx context.Context, tx *ent.Tx, uuid, lock string) (int64, error) {
	var id int64
	err := s.query(ctx, tx, `SELECT id FROM resource_providers WHERE uuid = $1`+s.locking(lock),
		func(rows *sql.Rows) error { return rows.Scan(&id) }, uuid)
	return id, err
}

// lockProvider locks a provider that a mutation is about and gives the number of
// its row. An unknown one is ErrNotFound, another generation than the one given
// ErrConcurrentUpdate.
func (s *Store) lockProvider(ctx context.Context, tx *ent.Tx, uuid string, generation *int64) (int64, error) {
	var id, current int64
	err := s.query(ctx, tx, `SELECT id, generation FROM resource_providers WHERE uuid = $1`+s.locking("NO KEY UPDATE"),
		func(rows *sql.Rows) error { return rows.Scan(&id, &current) }, uuid)
	switch {
	case err != nil:
		return 0, err
	case id == 0:
		return 0, catalog.Refuse(catalog.ErrNotFound, "there is no resource provider %s", uuid).On("input.provider")
	case generation != nil && *generation != current:
		return 0, catalog.Refuse(catalog.ErrConcurrentUpdate, "resource provider %s has generation %d, not %d", uuid, current, *generation).On("input.generation")
	}
	return id, nil
}

// bump moves a locked provider's generation by so many steps, and its version.
func (s *Store) bump(ctx context.Context, tx *ent.Tx, id int64, steps int64) error {
	return s.execute(ctx, tx, `UPDATE resource_providers SET generation = generation + $1, version = version + 1, updated_at = $2 WHERE id = $3`,
		steps, s.now(), id)
}

// SetInventories replaces the inventories of a provider.
func (s *Store) SetInventories(ctx context.Context, input placement.ProviderInventories) (*placement.World, *placement.Provider, error) {
	if err := catalog.MayWritePlacement(catalog.ViewerFrom(ctx), "set inventories"); err != nil {
		return nil, nil, err
	}
	return s.changeProvider(ctx, "set inventories", input.Provider, func(tx *ent.Tx, t *touched) error {
		problems := problemsOf(placement.ValidateInventories("input.inventories", input.Inventories))
		classes, err := s.classRows(ctx, tx, "input.inventories", input.Inventories, &problems)
		if err != nil {
			return err
		}
		if err := problems.Err(); err != nil {
			return err
		}
		id, err := s.lockProvider(ctx, tx, input.Provider, input.Generation)
		if err != nil {
			return err
		}
		t.ids = []int64{id}
		if err := s.replaceInventories(ctx, tx, id, input, classes, "input.inventories"); err != nil {
			return err
		}
		return s.bump(ctx, tx, id, 1)
	})
}

// replaceInventories makes a locked provider have these inventories and no
// others, with the use that they have. A class that is left out while it is used
// is ErrInUse.
func (s *Store) replaceInventories(ctx context.Context, tx *ent.Tx, provider int64, input placement.ProviderInventories, classes map[string]int64, path string) error {
	kept := map[int64]bool{}
	for _, inventory := range input.Inventories {
		kept[classes[inventory.ResourceClass]] = true
	}
	var dropped []int64
	var used []string
	err := s.query(ctx, tx, `SELECT i.id, i.resource_class_id, i.used, c.name FROM inventories i JOIN resource_classes c ON c.id = i.resource_class_id
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
		return catalog.Refuse(catalog.ErrInUse, "resource provider %s has allocations of %s", input.Provider, strings.Join(used, ", ")).On(path)
	}
	if len(dropped) > 0 {
		if err := s.execute(ctx, tx, `DELETE FROM inventories WHERE `+s.listed("id", "$1", "bigint"), jsonOf(dropped)); err != nil {
			return err
		}
	}
	return s.putInventories(ctx, tx, provider, input.Inventories, classes)
}

// putInventories writes inventories of a locked provider over those that it has;
// their use stays.
func (s *Store) putInventories(ctx context.Context, tx *ent.Tx, provider int64, inventories []placement.Inventory, classes map[string]int64) error {
	if len(inventories) == 0 {
		return nil
	}
	creates := make([]*ent.InventoryCreate, len(inventories))
	for i, given := range inventories {
		creates[i] = newInventory(tx, provider, classes[given.ResourceClass], given).SetUsed(0)
	}
	return tx.Inventory.CreateBulk(creates...).
		OnConflict(entsql.ConflictColumns(inventory.FieldProviderID, inventory.FieldResourceClassID)).
		Update(func(u *ent.InventoryUpsert) {
			u.UpdateTotal().UpdateReserved().UpdateMinUnit().UpdateMaxUnit().UpdateStepSize().UpdateAllocationRatio().UpdateCapacity()
		}).Exec(ctx)
}

func newInventory(tx *ent.Tx, provider, class int64, i placement.Inventory) *ent.InventoryCreate {
	return tx.Inventory.Create().SetProviderID(provider).SetResourceClassID(class).
		SetTotal(i.Total).SetReserved(i.Reserved).SetMinUnit(i.MinUnit).SetMaxUnit(i.MaxUnit).SetStepSize(i.StepSize).
		SetAllocationRatio(i.AllocationRatio).SetCapacity(placement.Capacity(i.Total, i.Reserved, i.AllocationRatio))
}

// SetProviderTraits replaces the traits of a provider.
func (s *Store) SetProviderTraits(ctx context.Context, input placement.ProviderTraits) (*placement.World, *placement.Provider, error) {
	if err := catalog.MayWritePlacement(catalog.ViewerFrom(ctx), "set traits of a provider"); err != nil {
		return nil, nil, err
	}
	return s.changeProvider(ctx, "set traits of a provider", input.Provider, func(tx *ent.Tx, t *touched) error {
		problems := problemsOf(input.Validate("input"))
		if err := problems.Err(); err != nil {
			return err
		}
		known, err := s.rowsNamed(ctx, tx, "traits", input.Traits)
		if err != nil {
			return err
		}
		wanted := map[int64]bool{}
		for i, name := range input.Traits {
			if known[name] == 0 {
				problems.Add(fmt.Sprintf("input.traits[%d]", i), "must be an existing trait, %s is none", name)
			}
			wanted[known[name]] = true
		}
		if err := problems.Err(); err != nil {
			return err
		}
		id, err := s.lockProvider(ctx, tx, input.Provider, input.Generation)
		if err != nil {
			return err
		}
		t.ids = []int64{id}
		changed, err := s.replaceTraits(ctx, tx, id, wanted)
		if err != nil || !changed {
			return err
		}
		return s.bump(ctx, tx, id, 1)
	})
}

// replaceTraits makes a locked provider have the traits of these rows, and tells
// whether that changed anything.
func (s *Store) replaceTraits(ctx context.Context, tx *ent.Tx, provider int64, wanted map[int64]bool) (bool, error) {
	held := map[int64]bool{}
	err := s.query(ctx, tx, `SELECT trait_id FROM provider_traits WHERE provider_id = $1`, func(rows *sql.Rows) error {
		var trait int64
		err := rows.Scan(&trait)
		held[trait] = true
		return err
	}, provider)
	if err != nil {
		return false, err
	}
	var added, dropped []int64
	for trait := range wanted {
		if !held[trait] {
			added = append(added, trait)
		}
	}
	for trait := range held {
		if !wanted[trait] {
			dropped = append(dropped, trait)
		}
	}
	slices.Sort(added)
	if len(dropped) > 0 {
		if err := s.execute(ctx, tx, `DELETE FROM provider_traits WHERE provider_id = $1 AND `+s.listed("trait_id", "$2", "bigint"), provider, jsonOf(dropped)); err != nil {
			return false, err
		}
	}
	if len(added) > 0 {
		creates := make([]*ent.ProviderTraitCreate, len(added))
		for i, trait := range added {
			creates[i] = tx.ProviderTrait.Create().SetProviderID(provider).SetTraitID(trait)
		}
		if err := tx.ProviderTrait.CreateBulk(creates...).Exec(ctx); err != nil {
			return false, err
		}
	}
	return len(added)+len(dropped) > 0, nil
}

// SetProviderAggregates replaces the aggregates of a provider.
func (s *Store) SetProviderAggregates(ctx context.Context, input placement.ProviderAggregates) (*placement.World, *placement.Provider, error) {
	if err := catalog.MayWritePlacement(catalog.ViewerFrom(ctx), "set aggregates of a provider"); err != nil {
		return nil, nil, err
	}
	if err := problemsOf(input.Validate("input")).Err(); err != nil {
		return nil, nil, err
	}
	return s.changeProvider(ctx, "set aggregates of a provider", input.Provider, func(tx *ent.Tx, t *touched) error {
		id, err := s.lockProvider(ctx, tx, input.Provider, input.Generation)
		if err != nil {
			return err
		}
		t.ids = []int64{id}
		if err := s.execute(ctx, tx, `DELETE FROM provider_aggregates WHERE provider_id = $1`, id); err != nil {
			return err
		}
		creates := make([]*ent.ProviderAggregateCreate, len(input.Aggregates))
		for i, uuid := range input.Aggregates {
			creates[i] = tx.ProviderAggregate.Create().SetProviderID(id).SetAggregate(uuid)
		}
		if len(creates) > 0 {
			if err := tx.ProviderAggregate.CreateBulk(creates...).Exec(ctx); err != nil {
				return err
			}
		}
		return s.bump(ctx, tx, id, 1)
	})
}

// changeProvider is changePlacement for a mutation about one provider, which it
// gives as it is afterwards, with the world that it is in.
func (s *Store) changeProvider(ctx context.Context, what, uuid string, write func(tx *ent.Tx, t *touched) error) (*placement.World, *placement.Provider, error) {
	t, err := s.changePlacement(ctx, write)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", what, err)
	}
	world := s.resident.world.Load()
	if now, found := world.Provider(uuid); found {
		return world, now, nil
	}
	return world, &t.states[0].Provider, nil // deleted by another meanwhile
}

// classRows are the rows of the classes that inventories are of; unknown ones
// are problems.
func (s *Store) classRows(ctx context.Context, tx *ent.Tx, path string, inventories []placement.Inventory, problems *catalog.Problems) (map[string]int64, error) {
	var names []string
	for _, given := range inventories {
		if len(placement.ValidateName("", given.ResourceClass)) == 0 {
			names = append(names, given.ResourceClass)
		}
	}
	known, err := s.rowsNamed(ctx, tx, "resource_classes", names)
	for i, given := range inventories {
		if known[given.ResourceClass] == 0 && slices.Contains(names, given.ResourceClass) {
			problems.Add(fmt.Sprintf("%s[%d].resourceClass", path, i), "must be an existing resource class, %s is none", given.ResourceClass)
		}
	}
	return known, err
}

// rowsNamed are the numbers of rows of a table by their names.
func (s *Store) rowsNamed(ctx context.Context, on conn, table string, names []string) (map[string]int64, error) {
	rows := make(map[string]int64, len(names))
	err := s.query(ctx, on, `SELECT id, name FROM `+table+` WHERE `+s.listed("name", "$1", "text"), func(found *sql.Rows) error {
		var id int64
		var name string
		err := found.Scan(&id, &name)
		rows[name] = id
		return err
	}, jsonOf(names))
	return rows, err
}

// problemsOf are the violations of placement's rules as problems of an input.
func problemsOf(violations []placement.Violation) catalog.Problems {
	var problems catalog.Problems
	for _, violation := range violations {
		problems = append(problems, catalog.Problem{Field: violation.Path, Message: violation.Rule})
	}
	return problems
}

// newUUID is a random uuid (version 4 of RFC 9562).
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}
