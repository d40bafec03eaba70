package placementdb

import (
	"context"
	"fmt"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// InsertProviders inserts providers with their inventories, traits and
// aggregates in a transaction. Their order does not matter, but each parent
// must be among them. The traits, resource classes and resources that they
// refer to must exist. Used is ignored and starts at 0. The caller must call
// PublishAll.
func (s *PlacementStore) InsertProviders(ctx context.Context, tx *sqldb.Tx, providers []placement.Provider) error {
	var traits, classes, resources []string
	uuids := map[string]bool{}
	for i := range providers {
		uuids[providers[i].UUID] = true
		traits = append(traits, providers[i].Traits...)
		for _, inventory := range providers[i].Inventories {
			classes = append(classes, inventory.ResourceClass)
		}
		if providers[i].Resource != "" {
			resources = append(resources, providers[i].Resource)
		}
	}
	c := &creation{Tx: tx, now: s.Now(), parents: map[string]int64{}, rows: map[string]int64{}}
	var err error
	if c.traits, err = s.rowsNamed(ctx, tx, "traits", lists.Distinct(traits)); err != nil {
		return err
	}
	if c.classes, err = s.rowsNamed(ctx, tx, "resource_classes", lists.Distinct(classes)); err != nil {
		return err
	}
	c.resources, err = sqldb.Pairs[string, int64](ctx, s.DB, tx,
		`SELECT uuid, id FROM resources WHERE `+s.Listed("uuid", "$1", "text"), sqldb.JSONOf(resources))
	if err != nil {
		return err
	}
	created := make([]*placement.Provider, len(providers))
	for i, p := range providers {
		if p.Parent != "" && !uuids[p.Parent] {
			return fmt.Errorf("the parent of provider %s is not among the providers", p.UUID)
		}
		p.ResourceRow = c.resources[p.Resource]
		created[i] = &p
		tx.Created("ResourceProvider", p.UUID)
	}
	return s.insertCreated(ctx, c, created)
}

// InsertClaims writes claims as a part of a transaction; all must fit. The
// caller must call PublishAll.
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
