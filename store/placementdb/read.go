package placementdb

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// readProviders reads complete providers by row id, or all if ids is nil, with
// one statement per table. The caller must prevent concurrent changes. It calls
// seen for each row.
func (s *PlacementStore) readProviders(ctx context.Context, on sqldb.Conn, ids []int64,
	seen func()) ([]providerState, error) {
	var args []any
	where := func(string) string { return "" }
	if ids != nil {
		args = []any{sqldb.JSONOf(ids)}
		where = func(column string) string { return " WHERE " + s.Listed(column, "$1", "bigint") }
	}
	var states []providerState
	err := s.Query(ctx, on, `SELECT p.id, p.uuid, p.generation, p.version, COALESCE(parent.id, 0), COALESCE(parent.uuid, ''), COALESCE(r.uuid, ''), COALESCE(r.id, 0), p.created_at, p.updated_at`+listed("p.")+`
		FROM resource_providers p
		LEFT JOIN resource_providers parent ON parent.id = p.parent_id
		LEFT JOIN resources r ON r.id = p.resource_id`+where("p.id"), func(rows *sql.Rows) error {
		seen()
		var p providerState
		err := rows.Scan(append([]any{&p.Row, &p.UUID, &p.Generation, &p.Version, &p.parentRow, &p.Parent, &p.Resource,
			&p.ResourceRow, &p.CreatedAt, &p.UpdatedAt},
			fieldsOf(&p.Provider)...)...)
		p.CreatedAt, p.UpdatedAt = p.CreatedAt.UTC(), p.UpdatedAt.UTC()
		states = append(states, p)
		return err
	}, args...)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(states, func(a, b providerState) int { return cmp.Compare(a.Row, b.Row) })
	places := make(map[int64]int, len(states))
	for i := range states {
		places[states[i].Row] = i
	}
	names := shared{}
	inventories := gathered[placement.Inventory]{states: states, places: places}
	err = s.Query(ctx, on, `SELECT i.provider_id, c.name, i.total, i.reserved, i.min_unit, i.max_unit, i.step_size, i.allocation_ratio, i.capacity, i.used
		FROM inventories i JOIN resource_classes c ON c.id = i.resource_class_id`+where("i.provider_id"),
		func(rows *sql.Rows) error {
			seen()
			var id int64
			var i placement.Inventory
			err := rows.Scan(&id, &i.ResourceClass, &i.Total, &i.Reserved, &i.MinUnit, &i.MaxUnit, &i.StepSize,
				&i.AllocationRatio, &i.Capacity, &i.Used)
			i.ResourceClass = names.text(i.ResourceClass)
			inventories.add(id, i)
			return err
		}, args...)
	if err != nil {
		return nil, err
	}
	inventories.distribute(func(p *placement.Provider) *[]placement.Inventory { return &p.Inventories })
	traits, err := s.readTexts(ctx, on,
		`SELECT h.provider_id, t.name FROM provider_traits h JOIN traits t ON t.id = h.trait_id`+where("h.provider_id"),
		args, &gathered[string]{states: states, places: places}, seen, names)
	if err != nil {
		return nil, err
	}
	traits.distribute(func(p *placement.Provider) *[]string { return &p.Traits })
	aggregates, err := s.readTexts(ctx, on, `SELECT a.provider_id, a.aggregate FROM provider_aggregates a`+
		where("a.provider_id"), args, &gathered[string]{states: states, places: places}, seen, names)
	if err != nil {
		return nil, err
	}
	aggregates.distribute(func(p *placement.Provider) *[]string { return &p.Aggregates })
	for i := range states {
		sortLists(&states[i].Provider)
	}
	return states, nil
}

// readTexts reads one string of a provider from each row and adds it to into.
func (s *PlacementStore) readTexts(ctx context.Context, on sqldb.Conn, query string, args []any, into *gathered[string],
	seen func(), names shared) (*gathered[string], error) {
	return into, s.Query(ctx, on, query, func(rows *sql.Rows) error {
		seen()
		var id int64
		var text string
		err := rows.Scan(&id, &text)
		into.add(id, names.text(text))
		return err
	}, args...)
}

// shared holds strings that many providers have, each once in memory.
type shared map[string]string

// text returns the stored copy of a string.
func (s shared) text(given string) string {
	if held, ok := s[given]; ok {
		return held
	}
	s[given] = given
	return given
}

// gathered collects list members of providers, in any order. A world keeps the
// lists, so distribute allocates each with its exact length.
type gathered[T any] struct {
	states []providerState
	places map[int64]int // indexes in states, by row id
	items  []placed[T]
}

// placed is a list member of the provider at an index.
type placed[T any] struct {
	at   int
	item T
}

// add adds a member, unless no provider has the row id.
func (g *gathered[T]) add(row int64, item T) {
	if at, ok := g.places[row]; ok {
		g.items = append(g.items, placed[T]{at, item})
	}
}

// distribute appends each item to the list of its provider.
func (g *gathered[T]) distribute(list func(*placement.Provider) *[]T) {
	lengths := make([]int, len(g.states))
	for i := range g.items {
		lengths[g.items[i].at]++
	}
	for i := range g.items {
		at := g.items[i].at
		to := list(&g.states[at].Provider)
		if *to == nil {
			*to = make([]T, 0, lengths[at])
		}
		*to = append(*to, g.items[i].item)
	}
}

func sortLists(p *placement.Provider) {
	slices.SortFunc(p.Inventories, func(a, b placement.Inventory) int {
		return cmp.Compare(a.ResourceClass, b.ResourceClass)
	})
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
