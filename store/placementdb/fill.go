package placementdb

import (
	"context"
	"fmt"
	"slices"

	"github.com/cadastre-dev/cadastre/ent"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// InsertProviders inserts providers with their inventories, traits and aggregates
// in a transaction, parents before children whatever their order. The traits,
// resource classes and resources that they refer to must exist; Used is ignored
// and begins at 0. The world is read again after the commit.
func (s *PlacementStore) InsertProviders(ctx context.Context, tx *sqldb.Tx, providers []placement.Provider) error {
	var traits, classes, resources []string
	for i := range providers {
		traits = append(traits, providers[i].Traits...)
		for _, inventory := range providers[i].Inventories {
			classes = append(classes, inventory.ResourceClass)
		}
		if providers[i].Resource != "" {
			resources = append(resources, providers[i].Resource)
		}
	}
	names := &fillNames{}
	var err error
	if names.traits, err = s.rowsNamed(ctx, tx, "traits", sqldb.Distinct(traits)); err != nil {
		return err
	}
	if names.classes, err = s.rowsNamed(ctx, tx, "resource_classes", sqldb.Distinct(classes)); err != nil {
		return err
	}
	rows, err := tx.Resource.Query().Where(sqldb.Among(entresource.FieldUUID, resources)).All(ctx)
	if err != nil {
		return err
	}
	names.resources = lists.Index(rows, func(row *ent.Resource) (string, int64) { return row.UUID, row.ID })
	ids := map[string]int64{}
	for len(providers) > 0 {
		level := slices.DeleteFunc(slices.Clone(providers), func(p placement.Provider) bool { return p.Parent != "" && ids[p.Parent] == 0 })
		if len(level) == 0 {
			return fmt.Errorf("provider %s has a parent that is not among the providers", providers[0].UUID)
		}
		if err := s.insertLevel(ctx, tx, level, ids, names); err != nil {
			return err
		}
		providers = slices.DeleteFunc(slices.Clone(providers), func(p placement.Provider) bool { return ids[p.UUID] != 0 })
	}
	return nil
}

// fillNames are the rows of what providers refer to.
type fillNames struct{ traits, classes, resources map[string]int64 }

// insertLevel writes providers whose parents are there.
func (s *PlacementStore) insertLevel(ctx context.Context, tx *sqldb.Tx, level []placement.Provider, ids map[string]int64, names *fillNames) error {
	now := s.Now()
	for chunk := range slices.Chunk(level, sqldb.RowsAtOnce) {
		creates := make([]*ent.ResourceProviderCreate, len(chunk))
		for i, p := range chunk {
			creates[i] = tx.ResourceProvider.Create().SetUUID(p.UUID).SetName(p.Name).SetGeneration(0).SetVersion(0).
				SetCreatedAt(now).SetUpdatedAt(now)
			if p.Parent != "" {
				creates[i].SetParentID(ids[p.Parent])
			}
			if p.Resource != "" {
				creates[i].SetResourceID(names.resources[p.Resource])
			}
		}
		created, err := tx.ResourceProvider.CreateBulk(creates...).Save(ctx)
		if err != nil {
			return err
		}
		var below belowProviders
		for i, p := range chunk {
			id := created[i].ID
			ids[p.UUID] = id
			tx.Created("ResourceProvider", p.UUID)
			below.add(id, &p, names.classes, names.traits)
		}
		if err := s.insertBelow(ctx, tx, below); err != nil {
			return err
		}
	}
	return nil
}

// InsertClaims writes claims in a transaction that holds more than them; all must
// fit. The caller loads the world after the commit.
func (s *PlacementStore) InsertClaims(ctx context.Context, tx *sqldb.Tx, claims []placement.Claim) error {
	var consumers []placement.ConsumerClaim
	for i := range claims {
		consumers = append(consumers, claims[i].Consumers...)
	}
	c, err := s.lockForClaim(ctx, tx, concernedBy(consumers))
	if err != nil {
		return err
	}
	for i := range claims {
		if refusals := c.ledger.Claim(&claims[i], "input", c.known()); len(refusals) > 0 {
			return refusalOf(s.cache.World(), refusals)
		}
	}
	return s.writeClaim(ctx, c)
}
