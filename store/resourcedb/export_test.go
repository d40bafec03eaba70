package resourcedb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"entgo.io/ent/dialect"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/query"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/resource/resident"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// Internals for the tests of plans.

// HashOf returns the hash by which values are found.
func HashOf(text string) int64 { return sqldb.HashOf(text) }

// Statement is a statement that was sent, with its arguments.
type Statement struct {
	Query string
	Args  []any
}

// RecordStatements returns a store that reads the same database and records
// every statement that it sends. The original store is unaffected.
func RecordStatements(s *ResourceStore) (*ResourceStore, *[]Statement) {
	r := &recorder{Database: s.Pool}
	return &ResourceStore{DB: &sqldb.DB{Pool: s.Pool, Driver: r, Ent: ent.NewClient(ent.Driver(r))},
		metadefs: s.metadefs, options: s.options, limits: s.limits, walk: s.walk}, &r.statements
}

// Walking returns a store that reads the same database, with other limits for
// text searches: few is the maximum number of rows that count as few, walked
// the number of resources to look at in the order of a list.
func Walking(s *ResourceStore, few, walked int) *ResourceStore {
	return &ResourceStore{DB: s.DB, metadefs: s.metadefs, options: s.options, limits: s.limits,
		walk: query.Walk{Few: few, Most: walked}}
}

// ByBoth returns the row ids of the visible resources that meet a condition, in
// order, as each compiler finds them. bySets is nil if sets cannot decide the
// condition.
func ByBoth(ctx context.Context, s *ResourceStore, c resource.Condition) (bySQL, bySets []int64, err error) {
	known, err := s.knownCapabilities(ctx, c.CapabilityNames(), nil)
	if err != nil {
		return nil, nil, err
	}
	of := clause{FilterCondition: resource.FilterCondition{Condition: c},
		compiler: sqlCompiler{access.ViewerFrom(ctx), known}}
	rows, err := resourceTable.All(ctx, s.DB, matchingAll(ctx, []clause{of}))
	bySQL = lists.Map(rows, func(row *ent.Resource) int64 { return row.ID })
	slices.Sort(bySQL)
	held, heldErr := s.resourcesAt(ctx)
	if err := errors.Join(err, heldErr); err != nil || held == nil || !query.DecidedBySets(c) {
		return bySQL, nil, err
	}
	bySets = append([]int64{}, held.Matching([]resident.Clause{seenBySets(ctx), held.compile(c)})...)
	slices.Sort(bySets)
	return bySQL, bySets, nil
}

type recorder struct {
	*sqldb.Database
	statements []Statement
}

func (r *recorder) Query(ctx context.Context, query string, args, v any) error {
	r.statements = append(r.statements, Statement{query, args.([]any)})
	return r.Database.Query(ctx, query, args, v)
}

// Explain returns the plan of the database for a statement.
func Explain(t testing.TB, s *ResourceStore, statement Statement) string {
	t.Helper()
	explain := "EXPLAIN QUERY PLAN "
	if s.Pool.Dialect() == dialect.Postgres {
		explain = "EXPLAIN "
	}
	rows, err := s.Pool.QueryContext(t.Context(), explain+statement.Query, statement.Args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var plan []string
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		if err := rows.Scan(values...); err != nil {
			t.Fatal(err)
		}
		last := *values[len(values)-1].(*any)
		if text, ok := last.([]byte); ok {
			last = string(text)
		}
		plan = append(plan, fmt.Sprint(last))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(plan, "\n")
}
