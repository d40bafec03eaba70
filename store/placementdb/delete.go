package placementdb

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// DeleteResourceProvider deletes a provider, which must have no children and no
// allocations. It returns the provider as it was, with a world that contains
// it.
func (s *PlacementStore) DeleteResourceProvider(ctx context.Context,
	uuid string) (*placement.World, *placement.Provider, error) {
	world, deleted, err := s.DeleteResourceProviders(ctx, placement.TreeDeletion{Provider: uuid})
	if err != nil {
		return nil, nil, err
	}
	return world, deleted[0], nil
}

// DeleteResourceProviders deletes a provider, or its whole subtree if
// WithDescendants is set. It deletes nothing if one of them has allocations, or
// a child that would stay. It returns the providers as they were, parents
// before their children, with a world that contains them.
func (s *PlacementStore) DeleteResourceProviders(ctx context.Context,
	deletion placement.TreeDeletion) (*placement.World, []*placement.Provider, error) {
	var deleted []*placement.Provider
	err := s.Write(sqldb.DryRun(ctx, deletion.DryRun), "deleteResourceProvider", func(tx *sqldb.Tx) error {
		states, err := s.lockForDeletion(ctx, tx, deletion)
		if err != nil {
			return err
		}
		deleted = lists.Map(states, func(state providerState) *placement.Provider { return &state.Provider })
		return s.deleteLocked(ctx, tx, deletion.Provider, states)
	}, &deleted)
	if err != nil {
		return nil, nil, fmt.Errorf("deleteResourceProvider: %w", err)
	}
	world := s.worldAfter(ctx, nil)
	if !deletion.DryRun {
		world = world.With(placement.Update{Providers: lists.Map(deleted,
			func(p *placement.Provider) placement.Provider { return *p })})
	}
	return world, lists.Map(deleted, func(p *placement.Provider) *placement.Provider { return inTree(world, p) }), nil
}

// deleteLocked deletes locked providers, records and publishes the deletions.
func (s *PlacementStore) deleteLocked(ctx context.Context, tx *sqldb.Tx, root string, states []providerState) error {
	rows := sqldb.JSONOf(lists.Map(states, func(state providerState) int64 { return state.Row }))
	if len(states) > 1 { // SQLite deletes no parent before its children
		if err := s.Execute(ctx, tx, `UPDATE resource_providers SET parent_id = NULL WHERE `+
			s.Listed("id", "$1", "bigint"), rows); err != nil {
			return err
		}
	}
	err := s.Execute(ctx, tx, `DELETE FROM resource_providers WHERE `+s.Listed("id", "$1", "bigint"), rows)
	if sqldb.IsReferred(err) {
		return problem.Refuse(problem.ErrInUse, "resource provider %s has child providers or allocations", root).
			On("input.provider").Because(err)
	}
	if err != nil {
		return err
	}
	for i := range states {
		tx.Record(ctx,
			sqldb.Event{Kind: "ResourceProvider", Key: states[i].UUID, Before: providerFields(&states[i].Provider)})
		tx.Deleted("ResourceProvider", states[i].UUID)
	}
	s.publish(tx,
		ownCommit{deleted: lists.Map(states, func(state providerState) placement.Provider { return state.Provider })})
	return nil
}

// lockForDeletion locks the providers of a deletion and returns their states,
// parents before their children. It refuses providers that are in use.
func (s *PlacementStore) lockForDeletion(ctx context.Context, tx *sqldb.Tx,
	deletion placement.TreeDeletion) ([]providerState, error) {
	depths := map[int64]int{}
	var inUse string
	below := ""
	if deletion.WithDescendants {
		below = ` UNION ALL SELECT p.id, tree.depth + 1 FROM resource_providers p JOIN tree ON p.parent_id = tree.id`
	}
	err := s.Query(ctx, tx, `WITH RECURSIVE tree (id, depth) AS (SELECT id, 0 FROM resource_providers WHERE uuid = $1`+below+`)
		SELECT p.id, p.uuid, (SELECT depth FROM tree WHERE tree.id = p.id),
			EXISTS (SELECT 1 FROM resource_providers c WHERE c.parent_id = p.id AND c.id NOT IN (SELECT id FROM tree)),
			EXISTS (SELECT 1 FROM allocations a WHERE a.provider_id = p.id)
		FROM resource_providers p WHERE p.id IN (SELECT id FROM tree) ORDER BY p.id`+s.Locking("UPDATE OF p"),
		func(rows *sql.Rows) error {
			var id int64
			var uuid string
			var depth int
			var children, allocations bool
			err := rows.Scan(&id, &uuid, &depth, &children, &allocations)
			depths[id] = depth
			switch {
			case inUse != "":
			case children:
				inUse = "resource provider " + uuid + " has child providers"
			case allocations:
				inUse = "resource provider " + uuid + " has allocations"
			}
			return err
		}, deletion.Provider)
	switch {
	case err != nil:
		return nil, err
	case len(depths) == 0:
		return nil, problem.Refuse(problem.ErrNotFound, "resource provider %s does not exist", deletion.Provider).
			On("input.provider")
	case len(depths) > placement.MaxDeleted:
		return nil, problem.Invalid("input.provider", "has %d descendants, at most %d providers are deleted together",
			len(depths)-1, placement.MaxDeleted)
	case inUse != "":
		return nil, problem.Refuse(problem.ErrInUse, "%s", inUse).On("input.provider")
	}
	states, err := s.readProviders(ctx, tx, slices.Sorted(maps.Keys(depths)), func() {})
	for i := range states {
		// A provider may have left the tree before it was locked.
		if _, stays := depths[states[i].parentRow]; depths[states[i].Row] > 0 && !stays {
			return nil, sqldb.ErrRetry
		}
	}
	slices.SortFunc(states, func(a, b providerState) int {
		return cmp.Or(cmp.Compare(depths[a.Row], depths[b.Row]), cmp.Compare(a.UUID, b.UUID))
	})
	return states, err
}
