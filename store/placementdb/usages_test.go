package placementdb_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestGroupsOfUsagesAreCountedOnce explains the statements that sum the usage of
// consumers on SQLite. A co-routine would count the groups for each allocation.
func TestGroupsOfUsagesAreCountedOnce(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite(t))
	for _, by := range []placement.UsageGrouping{
		placement.UsagesByProject, placement.UsagesByUser, placement.UsagesByType,
	} {
		explained := 0
		ctx := store.EachStatement(storetest.AsAdmin(), func(query string, args any) {
			plan := ""
			list, _ := args.([]any)
			err := s.Query(storetest.AsAdmin(), s.Pool, "EXPLAIN QUERY PLAN "+query, func(rows *sql.Rows) error {
				var line string
				err := rows.Scan(new(any), new(any), new(any), &line)
				plan += line + "\n"
				return err
			}, list...)
			if err != nil || !strings.HasPrefix(plan, "MATERIALIZE n\n") {
				t.Errorf("by %s: %v\n%s", by, err, plan)
			}
			explained++
		})
		if _, err := s.Usages(ctx, placement.UsageFilter{By: by}, nil); err != nil || explained != 1 {
			t.Errorf("by %s: %d statements, %v, want 1", by, explained, err)
		}
	}
}
