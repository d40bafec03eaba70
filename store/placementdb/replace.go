package placementdb

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// SetOnResourceProviders replaces inventories, traits and aggregates of
// providers in one transaction. An atomic input makes all replacements or none;
// otherwise the valid ones are made. It returns the world afterwards and the
// outcome of each, in order.
func (s *PlacementStore) SetOnResourceProviders(ctx context.Context,
	input placement.Replacements) (*placement.World, []ProviderOutcome, error) {
	if err := sqldb.CheckRows(len(input.Items), placement.MaxReplacements); err != nil {
		return nil, nil, err
	}
	return s.replaceOn(ctx, "setOnResourceProviders", input, sqldb.RowPath)
}

// SetProviderTraits replaces the traits of a provider.
func (s *PlacementStore) SetProviderTraits(ctx context.Context,
	input placement.ProviderTraits) (*placement.World, *placement.Provider, error) {
	return s.replaceOnOne(ctx, "setProviderTraits",
		placement.Replacement{Provider: &input.Provider, Generation: input.Generation,
			Traits: append([]string{}, input.Traits...)})
}

// SetProviderAggregates replaces the aggregates of a provider.
func (s *PlacementStore) SetProviderAggregates(ctx context.Context,
	input placement.ProviderAggregates) (*placement.World, *placement.Provider, error) {
	return s.replaceOnOne(ctx, "setProviderAggregates",
		placement.Replacement{Provider: &input.Provider, Generation: input.Generation,
			Aggregates: append([]string{}, input.Aggregates...)})
}

// replaceOnOne runs a single replacement.
func (s *PlacementStore) replaceOnOne(ctx context.Context, mutation string,
	one placement.Replacement) (*placement.World, *placement.Provider, error) {
	input := placement.Replacements{Items: []placement.Replacement{one}, Atomic: true}
	world, outcomes, err := s.replaceOn(ctx, mutation, input, func(int) string { return "input" })
	if err != nil {
		return nil, nil, err
	}
	return world, outcomes[0].Row, nil
}

func (s *PlacementStore) replaceOn(ctx context.Context, mutation string, input placement.Replacements,
	path func(int) string) (*placement.World, []ProviderOutcome, error) {
	var outcomes []ProviderOutcome
	err := s.Write(ctx, mutation, func(tx *sqldb.Tx) error {
		r := &replacing{Tx: tx, now: s.Now()}
		if err := s.readForReplacement(ctx, r, input.Items); err != nil {
			return err
		}
		outcomes = r.judge(s.cache.World(), input.Items, path)
		if err := sqldb.RefuseRows(input.Atomic, outcomes); err != nil {
			return err
		}
		return s.writeReplaced(ctx, r)
	}, &outcomes)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", mutation, err)
	}
	return s.inTrees(ctx, outcomes), outcomes, nil
}

// replacing is a transaction that replaces parts of providers.
type replacing struct {
	*sqldb.Tx
	now             time.Time
	traits, classes map[string]int64         // row ids, by name
	before          map[int64]*providerState // the locked providers, by row id
	uuids, names    map[string]int64         // their row ids, by uuid and by name
	replaced        []replaced
}

// replaced is a provider before and after the replacement.
type replaced struct{ before, after *providerState }

// readForReplacement reads the providers of replacements, and the traits and
// classes that the replacements name. It locks all of them until the
// transaction ends.
func (s *PlacementStore) readForReplacement(ctx context.Context, r *replacing,
	items []placement.Replacement) (err error) {
	var uuids, providers, traits, classes []string
	for i := range items {
		item := &items[i]
		if item.Provider != nil {
			uuids = append(uuids, *item.Provider)
		} else if item.ProviderName != nil && placement.IsProviderName(*item.ProviderName) {
			providers = append(providers, *item.ProviderName)
		}
		traits = append(traits, item.Traits...)
		for _, inventory := range item.Inventories {
			classes = append(classes, inventory.ResourceClass)
		}
	}
	if r.traits, err = s.rowsOf(ctx, r.Tx, "traits", traits); err != nil {
		return err
	}
	if r.classes, err = s.rowsOf(ctx, r.Tx, "resource_classes", classes); err != nil {
		return err
	}
	return s.lockReplaced(ctx, r, lists.Distinct(uuids), lists.Distinct(providers))
}

// lockReplaced locks providers by uuid and by name, in the order of their row
// ids, and records their states. It takes a state from the world, or from the
// database if the world lacks the locked version.
func (s *PlacementStore) lockReplaced(ctx context.Context, r *replacing, uuids, names []string) error {
	r.before, r.uuids, r.names = map[int64]*providerState{}, map[string]int64{}, map[string]int64{}
	world := s.cache.World()
	unread := []int64{}
	err := s.Query(ctx, r, `SELECT id, uuid, name, version, COALESCE(parent_id, 0) FROM resource_providers WHERE id IN (
			SELECT id FROM resource_providers WHERE `+s.Listed("uuid", "$1", "text")+`
			UNION SELECT id FROM resource_providers WHERE `+s.Listed("name", "$2", "text")+
		`) ORDER BY id`+s.Locking("NO KEY UPDATE"),
		func(rows *sql.Rows) error {
			var id, version, parent int64
			var uuid, name string
			err := rows.Scan(&id, &uuid, &name, &version, &parent)
			r.uuids[uuid], r.names[name] = id, id
			if held, found := world.Provider(uuid); found && held.Row == id && held.Version == version {
				r.before[id] = &providerState{parentRow: parent, Provider: *held}
			} else {
				unread = append(unread, id)
			}
			return err
		}, sqldb.JSONOf(uuids), sqldb.JSONOf(names))
	if err != nil || len(unread) == 0 {
		return err
	}
	states, err := s.readProviders(ctx, r, unread, func() {})
	for i := range states {
		r.before[states[i].Row] = &states[i]
	}
	return err
}

// judge checks replacements, records the valid ones in r.replaced, and returns
// the outcome of each.
func (r *replacing) judge(world *placement.World, items []placement.Replacement,
	path func(int) string) []ProviderOutcome {
	outcomes := make([]ProviderOutcome, len(items))
	known := placement.KnownNames{Traits: setOf(r.traits), ResourceClasses: setOf(r.classes)}
	var found []placement.Problem
	var of []int
	for i := range items {
		wrong := items[i].Validate(path(i), known)
		for range wrong {
			of = append(of, i)
		}
		found = append(found, wrong...)
	}
	for i, one := range problemsIn(world, found) {
		outcomes[of[i]].Problems = append(outcomes[of[i]].Problems, one)
	}
	taken := map[int64]bool{}
	for i := range items {
		outcome := &outcomes[i]
		before, err := r.provider(&items[i], taken)
		if len(outcome.Problems) == 0 && err == nil {
			outcome.Row, err = r.replace(&items[i], before)
		}
		if len(outcome.Problems) == 0 {
			outcome.Problems = problem.InError(problem.Under(err, path(i)))
		}
	}
	return outcomes
}

// provider returns the locked provider of a replacement. It refuses an unknown
// or repeated provider, and one with another generation.
func (r *replacing) provider(item *placement.Replacement, taken map[int64]bool) (*providerState, error) {
	var row int64
	var field, words string
	switch {
	case item.Provider != nil:
		row, field, words = r.uuids[*item.Provider], "provider", *item.Provider
	case item.ProviderName != nil:
		row, field, words = r.names[*item.ProviderName], "providerName", fmt.Sprintf("%q", *item.ProviderName)
	}
	before := r.before[row]
	switch {
	case before == nil:
		return nil, problem.Refuse(problem.ErrNotFound, "resource provider %s does not exist", words).On(field)
	case taken[row]:
		return nil, problem.Refuse(problem.ErrInvalidInput, "duplicate resource provider %s", words).On(field)
	}
	taken[row] = true
	if item.Generation != nil && *item.Generation != before.Generation {
		return nil, problem.Refuse(problem.ErrConcurrentUpdate, "resource provider %s has generation %d, not %d",
			before.UUID, before.Generation, *item.Generation).On("generation")
	}
	return before, nil
}

// replace records and returns the provider after a replacement. It returns
// ErrInUse if the replacement removes inventories in use.
func (r *replacing) replace(item *placement.Replacement, before *providerState) (*placement.Provider, error) {
	after, moves, inUse := item.On(&before.Provider)
	if len(inUse) > 0 {
		return nil, problem.Refuse(problem.ErrInUse, "resource provider %s has allocations of %s", before.UUID,
			strings.Join(inUse, ", ")).On("inventories")
	}
	if moves {
		after.UpdatedAt = r.now
	}
	r.replaced = append(r.replaced,
		replaced{before: before, after: &providerState{parentRow: before.parentRow, Provider: after}})
	return &after, nil
}

// writeReplaced writes the replaced providers, and records and publishes them.
func (s *PlacementStore) writeReplaced(ctx context.Context, r *replacing) error {
	if len(r.replaced) == 0 {
		return nil
	}
	if err := s.writeDifferences(ctx, r); err != nil {
		return err
	}
	moved := lists.Map(r.replaced, func(one replaced) [2]int64 {
		return [2]int64{one.after.Row, one.after.Generation}
	})
	s.recordReplaced(ctx, r)
	return s.Execute(ctx, r, `UPDATE resource_providers SET generation = d.generation, version = version + 1,
		updated_at = CASE WHEN resource_providers.generation = d.generation THEN updated_at ELSE `+s.Time("$2")+` END
		FROM `+s.Rows("$1", "d", "id bigint", "generation bigint")+` WHERE `+
		s.IsRow("resource_providers.id", "$1", "d", "id"), sqldb.JSONOf(moved), r.now)
}

// recordReplaced records the written providers, and publishes them. Every
// transaction that writes a provider must increment its version by exactly one,
// even if the provider stays the same. From the version the world knows which
// state a commit was built on.
func (s *PlacementStore) recordReplaced(ctx context.Context, r *replacing) {
	states := make([]providerState, len(r.replaced))
	for i, one := range r.replaced {
		states[i] = *one.after
		r.Record(ctx, sqldb.Event{Kind: "ResourceProvider", Key: one.after.UUID,
			Before: providerFields(&one.before.Provider), After: providerFields(&one.after.Provider)})
		r.Changed("ResourceProvider", one.after.UUID)
	}
	s.publish(r.Tx, ownCommit{written: states})
}

// writeDifferences writes the rows by which the providers before and after
// differ: one statement for each kind of deleted rows, and one for each kind of
// new or changed rows.
func (s *PlacementStore) writeDifferences(ctx context.Context, r *replacing) error {
	var goneInventories, inventories, goneTraits, traits, goneAggregates, aggregates [][]any
	for _, one := range r.replaced {
		row, before, after := one.after.Row, &one.before.Provider, &one.after.Provider
		for _, i := range lists.Without(before.Inventories, after.Inventories) {
			if !slices.ContainsFunc(after.Inventories, func(other placement.Inventory) bool {
				return other.ResourceClass == i.ResourceClass
			}) {
				goneInventories = append(goneInventories, []any{row, i.ResourceClass})
			}
		}
		for _, i := range lists.Without(after.Inventories, before.Inventories) {
			inventories = append(inventories, inventoryRow(row, r.classes[i.ResourceClass], i))
		}
		for _, name := range lists.Without(before.Traits, after.Traits) {
			goneTraits = append(goneTraits, []any{row, name})
		}
		for _, name := range lists.Without(after.Traits, before.Traits) {
			traits = append(traits, []any{row, r.traits[name]})
		}
		for _, uuid := range lists.Without(before.Aggregates, after.Aggregates) {
			goneAggregates = append(goneAggregates, []any{row, uuid})
		}
		for _, uuid := range lists.Without(after.Aggregates, before.Aggregates) {
			aggregates = append(aggregates, []any{row, uuid})
		}
	}
	gone := func(table, alias, joined, name string) string {
		return `DELETE FROM ` + table + ` WHERE id IN (SELECT h.id FROM ` + s.Rows("$1", "d", "provider_id bigint", "name text") + joined + `
			JOIN ` + table + ` h ON h.provider_id = d.provider_id AND ` + alias + ` = ` + name + ` AND ` +
			s.IsRow("h.provider_id", "$1", "d", "provider_id") + `)`
	}
	return s.executeEach(ctx, r, []rowsStatement{
		{goneInventories,
			gone("inventories", "h.resource_class_id", ` JOIN resource_classes c ON c.name = d.name`, "c.id")},
		{goneTraits, gone("provider_traits", "h.trait_id", ` JOIN traits t ON t.name = d.name`, "t.id")},
		{goneAggregates, gone("provider_aggregates", "h.aggregate", "", "d.name")},
		{inventories, s.putInventoryRows()},
		{traits, s.insertProviderTraits()},
		{aggregates, s.insertProviderAggregates()},
	})
}
