package placementdb

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// readProviders reads the whole state of providers by the numbers of their rows,
// or of all when ids is nil: one statement for each table. The caller sees to it
// that the tables hold still. Seen is told of each row.
func (s *PlacementStore) readProviders(ctx context.Context, on sqldb.Conn, ids []int64, seen func()) ([]providerState, error) {
	var args []any
	where := func(string) string { return "" }
	if ids != nil {
		args = []any{sqldb.JSONOf(ids)}
		where = func(column string) string { return " WHERE " + s.Listed(column, "$1", "bigint") }
	}
	var states []providerState
	err := s.Query(ctx, on, `SELECT p.id, p.uuid, p.name, p.generation, p.version, COALESCE(parent.id, 0), COALESCE(parent.uuid, ''), COALESCE(r.uuid, ''), p.created_at, p.updated_at
		FROM resource_providers p
		LEFT JOIN resource_providers parent ON parent.id = p.parent_id
		LEFT JOIN resources r ON r.id = p.resource_id`+where("p.id"), func(rows *sql.Rows) error {
		seen()
		var p providerState
		err := rows.Scan(&p.Row, &p.UUID, &p.Name, &p.Generation, &p.Version, &p.parentRow, &p.Parent, &p.Resource, &p.CreatedAt, &p.UpdatedAt)
		p.CreatedAt, p.UpdatedAt = p.CreatedAt.UTC(), p.UpdatedAt.UTC()
		states = append(states, p)
		return err
	}, args...)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(states, func(a, b providerState) int { return cmp.Compare(a.Row, b.Row) })
	of := make(map[int64]*placement.Provider, len(states))
	for i := range states {
		of[states[i].Row] = &states[i].Provider
	}
	err = s.Query(ctx, on, `SELECT i.provider_id, c.name, i.total, i.reserved, i.min_unit, i.max_unit, i.step_size, i.allocation_ratio, i.capacity, i.used
		FROM inventories i JOIN resource_classes c ON c.id = i.resource_class_id`+where("i.provider_id"), func(rows *sql.Rows) error {
		seen()
		var id int64
		var i placement.Inventory
		err := rows.Scan(&id, &i.ResourceClass, &i.Total, &i.Reserved, &i.MinUnit, &i.MaxUnit, &i.StepSize, &i.AllocationRatio, &i.Capacity, &i.Used)
		if p := of[id]; p != nil {
			p.Inventories = append(p.Inventories, i)
		}
		return err
	}, args...)
	if err != nil {
		return nil, err
	}
	err = s.readTexts(ctx, on, `SELECT h.provider_id, t.name FROM provider_traits h JOIN traits t ON t.id = h.trait_id`+where("h.provider_id"), args, of, seen,
		func(p *placement.Provider) *[]string { return &p.Traits })
	if err != nil {
		return nil, err
	}
	err = s.readTexts(ctx, on, `SELECT a.provider_id, a.aggregate FROM provider_aggregates a`+where("a.provider_id"), args, of, seen,
		func(p *placement.Provider) *[]string { return &p.Aggregates })
	if err != nil {
		return nil, err
	}
	for i := range states {
		sortLists(&states[i].Provider)
	}
	return states, nil
}

// readTexts reads a text of a provider from each row, into a list of the
// provider's.
func (s *PlacementStore) readTexts(ctx context.Context, on sqldb.Conn, query string, args []any, of map[int64]*placement.Provider, seen func(), list func(*placement.Provider) *[]string) error {
	return s.Query(ctx, on, query, func(rows *sql.Rows) error {
		seen()
		var id int64
		var text string
		err := rows.Scan(&id, &text)
		if p := of[id]; p != nil {
			*list(p) = append(*list(p), text)
		}
		return err
	}, args...)
}

func sortLists(p *placement.Provider) {
	slices.SortFunc(p.Inventories, func(a, b placement.Inventory) int { return cmp.Compare(a.ResourceClass, b.ResourceClass) })
	slices.Sort(p.Traits)
	slices.Sort(p.Aggregates)
}

// readNames reads the names of all traits and resource classes.
func (s *PlacementStore) readNames(ctx context.Context, on sqldb.Conn) (placement.Names, error) {
	traits, err := sqldb.Column[string](ctx, s.DB, on, `SELECT name FROM traits`)
	if err != nil {
		return placement.Names{}, err
	}
	classes, err := sqldb.Column[string](ctx, s.DB, on, `SELECT name FROM resource_classes`)
	return placement.Names{Traits: traits, ResourceClasses: classes}, err
}
