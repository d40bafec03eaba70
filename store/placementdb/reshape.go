package placementdb

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

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
