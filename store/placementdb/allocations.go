package placementdb

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
)

// allocationList names the list of a provider's allocations in cursors.
const allocationList = "allocations"

// allocationBounds returns the rows between the cursors of a page.
func allocationBounds(request page.Request) (after, before int64, err error) {
	var problems problem.Problems
	isPosition := func(at page.Position) bool { _, err := strconv.ParseInt(at.ID, 10, 64); return err == nil }
	first, last := request.Positions(allocationList, isPosition, &problems)
	after, before = 0, math.MaxInt64
	if first != nil {
		after, _ = strconv.ParseInt(first.ID, 10, 64)
	}
	if last != nil {
		before, _ = strconv.ParseInt(last.ID, 10, 64)
	}
	return after, before, problems.Err()
}

// AllocationsOfProviders returns a page of the allocations of each provider that
// consumers have whom the viewer sees, in the order in which they were made.
func (s *PlacementStore) AllocationsOfProviders(ctx context.Context, uuids []string, request page.Request) (map[string]page.Page[*placement.Allocation], error) {
	after, before, err := allocationBounds(request)
	if err != nil {
		return nil, err
	}
	direction := "ASC"
	if request.Backward() {
		direction = "DESC"
	}
	pages := map[string]page.Page[*placement.Allocation]{}
	seen, args := visible.ConsumerClause(ctx, "o.project_id", 5)
	err = s.Query(ctx, s.Pool, `SELECT x.provider, x.id, x.consumer, x.class, x.used FROM (
			SELECT p.uuid AS provider, a.id AS id, o.uuid AS consumer, c.name AS class, a.used AS used,
				ROW_NUMBER() OVER (PARTITION BY a.provider_id ORDER BY a.id `+direction+`) AS place
			FROM allocations a JOIN resource_providers p ON p.id = a.provider_id JOIN consumers o ON o.id = a.consumer_id
			JOIN resource_classes c ON c.id = a.resource_class_id
			WHERE `+s.Listed("p.uuid", "$1", "text")+` AND a.id > $2 AND a.id < $3 AND `+seen+`
		) AS x WHERE x.place <= $4 ORDER BY x.provider, x.place`, func(rows *sql.Rows) error {
		var id int64
		a := new(placement.Allocation)
		err := rows.Scan(&a.Provider, &id, &a.Consumer, &a.ResourceClass, &a.Used)
		current := pages[a.Provider]
		if current.HasMore = len(current.Items) == request.Limit(); !current.HasMore {
			current.Items = append(current.Items, a)
			current.Cursors = append(current.Cursors, page.Position{List: allocationList, ID: strconv.FormatInt(id, 10)}.Cursor())
		}
		pages[a.Provider] = current
		return err
	}, append([]any{sqldb.JSONOf(uuids), after, before, request.Limit() + 1}, args...)...)
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

// AllocationsBehind reports of each provider whether there are allocations on
// the side where a page begins.
func (s *PlacementStore) AllocationsBehind(ctx context.Context, uuids []string, request page.Request) (map[string]bool, error) {
	after, before, err := allocationBounds(request)
	if err != nil {
		return nil, err
	}
	side, bound := "a.id <= $2", after
	if request.Backward() {
		side, bound = "a.id >= $2", before
	}
	seen, args := visible.OfConsumersClause(ctx, "a.consumer_id", 3)
	behind, err := sqldb.Column[string](ctx, s.DB, s.Pool, `SELECT DISTINCT p.uuid FROM allocations a JOIN resource_providers p ON p.id = a.provider_id
		WHERE `+s.Listed("p.uuid", "$1", "text")+` AND `+side+` AND `+seen, append([]any{sqldb.JSONOf(uuids), bound}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("look behind allocations: %w", err)
	}
	return lists.Set(behind, lists.Itself), nil
}

// CountAllocationsOfProviders returns how many allocations each provider has of
// consumers whom the viewer sees.
func (s *PlacementStore) CountAllocationsOfProviders(ctx context.Context, uuids []string) (map[string]int, error) {
	seen, args := visible.OfConsumersClause(ctx, "a.consumer_id", 2)
	counts, err := sqldb.Pairs[string, int](ctx, s.DB, s.Pool, `SELECT p.uuid, COUNT(*) FROM allocations a JOIN resource_providers p ON p.id = a.provider_id
		WHERE `+s.Listed("p.uuid", "$1", "text")+` AND `+seen+` GROUP BY p.uuid`, append([]any{sqldb.JSONOf(uuids)}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("count allocations of resource providers: %w", err)
	}
	return counts, nil
}
