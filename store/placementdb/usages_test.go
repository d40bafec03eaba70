package placementdb_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestListsOfConsumersUseIndexes explains the statements that sum the usage of
// consumers on SQLite, and that list the consumers of a user. A co-routine would
// count the groups for each allocation.
func TestListsOfConsumersUseIndexes(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite(t))
	usages := func(by placement.UsageGrouping) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := s.Usages(ctx, placement.UsageFilter{By: by}, nil)
			return err
		}
	}
	user := "ada"
	for name, row := range map[string]struct {
		plan string // begins like this
		read func(context.Context) error
	}{
		"usages by project": {"MATERIALIZE n\n", usages(placement.UsagesByProject)},
		"usages by user":    {"MATERIALIZE n\n", usages(placement.UsagesByUser)},
		"usages by type":    {"MATERIALIZE n\n", usages(placement.UsagesByType)},
		"consumers of a user": {
			"SEARCH consumers USING INDEX consumer_user_id_created_at_uuid (user_id=?)\n",
			func(ctx context.Context) error {
				_, err := s.Consumers(ctx, placement.ConsumerFilter{UserID: &user}, page.Order{Field: "CREATED_AT"},
					page.Request{})
				return err
			},
		},
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
			if err != nil || !strings.HasPrefix(plan, row.plan) {
				t.Errorf("%s: %v\n%s", name, err, plan)
			}
			explained++
		})
		if err := row.read(ctx); err != nil || explained != 1 {
			t.Errorf("%s: %d statements, %v, want 1", name, explained, err)
		}
	}
}
