package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/placement"
)

// Reshape moves inventories together with the allocations against them. It gives
// the world, the providers in the order of the input, and the consumers that have
// allocations afterwards.
func (s *Store) Reshape(ctx context.Context, reshape placement.Reshape) (*placement.World, []*placement.Provider, []*placement.Consumer, error) {
	if err := access.MayWritePlacement(access.ViewerFrom(ctx), "reshape"); err != nil {
		return nil, nil, nil, err
	}
	if err := problemsOf(reshape.Validate("input")).Err(); err != nil {
		return nil, nil, nil, err
	}
	var consumers []*placement.Consumer
	_, err := s.changePlacement(ctx, func(tx *ent.Tx, t *touched) (err error) {
		consumers, err = s.applyReshape(ctx, tx, &reshape, t)
		return err
	})
	if err != nil {
		return nil, nil, nil, fmt.Errorf("reshape: %w", err)
	}
	world := s.resident.world.Load()
	var providers []*placement.Provider
	for _, listed := range reshape.Inventories {
		if provider, found := world.Provider(listed.Provider); found {
			providers = append(providers, provider)
		}
	}
	return world, providers, consumers, nil
}

// applyReshape judges a reshape and writes it; it gives the consumers that have
// allocations afterwards.
func (s *Store) applyReshape(ctx context.Context, tx *ent.Tx, reshape *placement.Reshape, t *touched) ([]*placement.Consumer, error) {
	var names []string
	providers := given(reshape.Consumers)
	for _, listed := range reshape.Inventories {
		providers = append(providers, listed.Provider)
		for _, inventory := range listed.Inventories {
			names = append(names, inventory.ResourceClass)
		}
	}
	classes, err := s.rowsNamed(ctx, tx, "resource_classes", distinct(names))
	if err != nil {
		return nil, err
	}
	b, err := s.openBooks(ctx, tx, claimed(reshape.Consumers), providers)
	if err != nil {
		return nil, err
	}
	knows := func(class string) bool {
		if slices.Contains(names, class) {
			return classes[class] != 0
		}
		return s.knowsClass(ctx, tx, b)(class)
	}
	if objections := b.ledger.Reshape(reshape, "input", knows); len(objections) > 0 {
		if err := s.stillAbsent(ctx, tx, b, reshape.Consumers); err != nil {
			return nil, err
		}
		return nil, refusalOf(objections)
	}
	if err := s.writeReshape(ctx, tx, b, reshape, classes, t); err != nil {
		return nil, err
	}
	events := append(claimEvents(ctx, "reshape", claimed(reshape.Consumers)), s.reshapeEvents(ctx, reshape)...)
	return b.consumersOf(reshape.Consumers), s.recordAll(ctx, tx, events)
}

// writeReshape writes a reshape: the new inventories beside the old ones, then
// the allocations, then what was left out goes.
func (s *Store) writeReshape(ctx context.Context, tx *ent.Tx, b *books, reshape *placement.Reshape, classes map[string]int64, t *touched) error {
	b.reshaped = map[string]bool{}
	var rows []int64
	for _, listed := range reshape.Inventories {
		b.reshaped[listed.Provider] = true
		rows = append(rows, b.providers[listed.Provider].id)
		if err := s.putInventories(ctx, tx, b.providers[listed.Provider].id, listed.Inventories, classes); err != nil {
			return err
		}
	}
	if err := s.readStalls(ctx, tx, b, rows, func(string, placement.Inventory) {}); err != nil {
		return err
	}
	var dropped []int64
	for provider := range b.reshaped {
		kept := b.ledger.Provider(provider).Inventories
		for class, was := range b.providers[provider].inventories {
			if _, stays := kept[class]; !stays {
				dropped = append(dropped, was.id)
				kept[class] = placement.Inventory{ResourceClass: class} // its use goes to nought first
			}
		}
	}
	if err := s.closeBooks(ctx, tx, b, t); err != nil {
		return err
	}
	if len(dropped) == 0 {
		return nil
	}
	slices.Sort(dropped)
	return s.execute(ctx, tx, `DELETE FROM inventories WHERE used = 0 AND `+s.listed("id", "$1", "bigint"), jsonOf(dropped))
}

// reshapeEvents are the providers' part of a reshape for the audit log.
func (s *Store) reshapeEvents(ctx context.Context, reshape *placement.Reshape) []attributed {
	var events []attributed
	for _, listed := range reshape.Inventories {
		after := placement.Provider{Inventories: listed.Inventories}
		events = append(events, attributed{ctx: ctx, change: change{
			action: "reshape", kind: "ResourceProvider", key: listed.Provider,
			after: fields{"inventories": providerFields(&after)["inventories"]},
		}})
	}
	return events
}
