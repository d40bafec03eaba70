package placementdb

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
)

// allocationList is the name of a provider's allocation list in cursors.
const allocationList = "allocations"

// allocationBounds are the positions around a page of allocations. A position
// is the uuid of a consumer and the name of a resource class.
type allocationBounds struct{ after, before *page.Position }

// boundsOf parses the cursors of a page.
func boundsOf(request page.Request) (allocationBounds, error) {
	var problems problem.Problems
	after, before := request.Positions(allocationList, nil, &problems)
	return allocationBounds{after, before}, problems.Err()
}

// beyond returns a condition for the rows on one side of a position, and its
// parameters, numbered from next. Without a position it returns no condition.
func beyond(side string, at *page.Position, next int) (clause string, args []any) {
	if at == nil {
		return "", nil
	}
	return fmt.Sprintf(" AND (o.uuid, c.name) %s ($%d, $%d)", side, next, next+1), []any{at.Key, at.ID}
}

// AllocationsOfProviders returns a page of allocations for each provider,
// ordered by consumer and resource class. It includes only consumers that the
// viewer sees.
func (s *PlacementStore) AllocationsOfProviders(ctx context.Context, uuids []string,
	request page.Request) (map[string]page.Page[*placement.Allocation], error) {
	bounds, err := boundsOf(request)
	if err != nil {
		return nil, err
	}
	direction := "ASC"
	if request.Backward() {
		direction = "DESC"
	}
	args := []any{sqldb.JSONOf(uuids), request.Limit() + 1}
	seen, more := visible.ConsumerClause(ctx, "o.project_id", len(args)+1)
	args = append(args, more...)
	after, more := beyond(">", bounds.after, len(args)+1)
	args = append(args, more...)
	before, more := beyond("<", bounds.before, len(args)+1)
	args = append(args, more...)
	pages := map[string]page.Page[*placement.Allocation]{}
	err = s.Query(ctx, s.Pool, `SELECT x.provider, x.consumer, x.class, x.used FROM (
			SELECT p.uuid AS provider, o.uuid AS consumer, c.name AS class, a.used AS used,
				ROW_NUMBER() OVER (PARTITION BY a.provider_id ORDER BY o.uuid `+direction+`, c.name `+direction+`) AS place
			FROM allocations a JOIN resource_providers p ON p.id = a.provider_id JOIN consumers o ON o.id = a.consumer_id
			JOIN resource_classes c ON c.id = a.resource_class_id
			WHERE `+s.Listed("p.uuid", "$1", "text")+` AND `+seen+after+before+`
		) AS x WHERE x.place <= $2 ORDER BY x.provider, x.place`, func(rows *sql.Rows) error {
		a := new(placement.Allocation)
		err := rows.Scan(&a.Provider, &a.Consumer, &a.ResourceClass, &a.Used)
		current := pages[a.Provider]
		if current.HasMore = len(current.Items) == request.Limit(); !current.HasMore {
			current.Items = append(current.Items, a)
			current.Cursors = append(current.Cursors,
				page.Position{List: allocationList, Key: a.Consumer, ID: a.ResourceClass}.Cursor())
		}
		pages[a.Provider] = current
		return err
	}, args...)
	if err != nil {
		return nil, fmt.Errorf("list allocations of resource providers: %w", err)
	}
	if request.Backward() {
		for _, page := range pages {
			slices.Reverse(page.Items)
			slices.Reverse(page.Cursors)
		}
	}
	return pages, nil
}

// AllocationsBehind reports for each provider whether allocations precede its
// page, or follow it if the page is read backward. Without a cursor it returns
// nil.
func (s *PlacementStore) AllocationsBehind(ctx context.Context, uuids []string,
	request page.Request) (map[string]bool, error) {
	bounds, err := boundsOf(request)
	if err != nil {
		return nil, err
	}
	args := []any{sqldb.JSONOf(uuids)}
	seen, more := visible.ConsumerClause(ctx, "o.project_id", len(args)+1)
	args = append(args, more...)
	side, at := "<=", bounds.after
	if request.Backward() {
		side, at = ">=", bounds.before
	}
	if at == nil {
		return nil, nil
	}
	behind, more := beyond(side, at, len(args)+1)
	found, err := sqldb.Column[string](ctx, s.DB, s.Pool,
		`SELECT DISTINCT p.uuid FROM allocations a JOIN resource_providers p ON p.id = a.provider_id
		JOIN consumers o ON o.id = a.consumer_id JOIN resource_classes c ON c.id = a.resource_class_id
		WHERE `+s.Listed("p.uuid", "$1", "text")+` AND `+seen+behind, append(args, more...)...)
	if err != nil {
		return nil, fmt.Errorf("look for allocations beyond a page: %w", err)
	}
	return lists.Set(found, lists.Itself), nil
}

// CountAllocationsOfProviders returns the number of allocations of each
// provider. It counts only allocations of consumers that the viewer sees.
func (s *PlacementStore) CountAllocationsOfProviders(ctx context.Context, uuids []string) (map[string]int, error) {
	seen, args := visible.OfConsumersClause(ctx, "a.consumer_id", 2)
	counts, err := sqldb.Pairs[string, int](ctx, s.DB, s.Pool,
		`SELECT p.uuid, COUNT(*) FROM allocations a JOIN resource_providers p ON p.id = a.provider_id
		WHERE `+s.Listed("p.uuid", "$1", "text")+` AND `+seen+` GROUP BY p.uuid`,
		append([]any{sqldb.JSONOf(uuids)}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("count allocations of resource providers: %w", err)
	}
	return counts, nil
}

// mappingsText returns mappings as stored: a JSON object of provider uuids by
// suffix, or nil for none.
func mappingsText(mappings []placement.Mapping) *string {
	if len(mappings) == 0 {
		return nil
	}
	of := make(map[string][]string, len(mappings))
	for _, mapping := range mappings {
		of[mapping.Suffix] = mapping.Providers
	}
	return new(sqldb.JSONOf(of))
}

// mappingsOf parses stored mappings, and returns them ordered by suffix.
func mappingsOf(text *string) ([]placement.Mapping, error) {
	if text == nil {
		return nil, nil
	}
	var of map[string][]string
	if err := json.Unmarshal([]byte(*text), &of); err != nil {
		return nil, fmt.Errorf("parse the mappings of a consumer: %w", err)
	}
	mappings := make([]placement.Mapping, 0, len(of))
	for _, suffix := range slices.Sorted(maps.Keys(of)) {
		mappings = append(mappings, placement.Mapping{Suffix: suffix, Providers: of[suffix]})
	}
	return mappings, nil
}

// MappingsOfConsumers returns the mappings of the consumers that the viewer
// sees, by uuid of the consumer, each list ordered by suffix. A consumer
// without mappings is absent. Mappings may name deleted providers.
func (s *PlacementStore) MappingsOfConsumers(ctx context.Context,
	uuids []string) (map[string][]placement.Mapping, error) {
	if err := visible.SeesPlacement(ctx); err != nil {
		return nil, err
	}
	found := map[string][]placement.Mapping{}
	seen, args := visible.ConsumerClause(ctx, "c.project_id", 2)
	err := s.Query(ctx, s.Pool, `SELECT c.uuid, c.mappings FROM consumers c
		WHERE c.mappings IS NOT NULL AND `+s.Listed("c.uuid", "$1", "text")+` AND `+seen, func(rows *sql.Rows) error {
		var uuid, text string
		if err := rows.Scan(&uuid, &text); err != nil {
			return err
		}
		mappings, err := mappingsOf(&text)
		found[uuid] = mappings
		return err
	}, append([]any{sqldb.JSONOf(uuids)}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("list mappings of consumers: %w", err)
	}
	return found, nil
}
