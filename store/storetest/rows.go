package storetest

import (
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// OneByOne runs a separate mutation for each row. It returns the problems of
// each, with the paths that they would have in a bulk mutation.
func OneByOne[Row any](rows []Row, change func(Row) error) []problem.Problems {
	refused := make([]problem.Problems, len(rows))
	for i, row := range rows {
		for _, wrong := range problem.InError(change(row)) {
			wrong.Field = sqldb.RowPath(i) + strings.TrimPrefix(wrong.Field, "input")
			refused[i] = append(refused[i], wrong)
		}
	}
	return refused
}

// Together runs a bulk mutation for rows, and fails if its problems differ from
// the refusals of the single mutations. If an atomic mutation is refused,
// contents must stay the same. Then Together runs the mutation again without
// atomic, to write the valid rows as the single mutations did.
func Together[Thing any](t *testing.T, atomic bool, refused []problem.Problems, contents func() string,
	change func(atomic bool) ([]sqldb.RowOutcome[Thing], error)) {
	t.Helper()
	before := contents()
	outcomes, err := change(atomic)
	told, ok := problem.Of(err)
	if !ok || err != nil && !atomic {
		t.Fatal(err)
	}
	if atomic && !slices.Equal(told, slices.Concat(refused...)) {
		t.Fatalf("refused as a whole by %v, one by one by %v", told, refused)
	}
	if len(told) > 0 {
		if contents() != before {
			t.Fatal("what was refused as a whole left something")
		}
		if outcomes, err = change(false); err != nil {
			t.Fatal(err)
		}
	}
	if len(outcomes) != len(refused) {
		t.Fatalf("%d outcomes of %d rows", len(outcomes), len(refused))
	}
	for i, outcome := range outcomes {
		if !slices.Equal(outcome.Problems, refused[i]) || (outcome.Row == nil) != (len(refused[i]) > 0) {
			t.Fatalf("row %d: %v, one by one %v", i, outcome.Problems, refused[i])
		}
	}
}
