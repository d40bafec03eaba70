package sqldb

import (
	"context"

	"github.com/cadastre-dev/cadastre/problem"
)

// RowOutcome is the result for one row of a bulk input: the thing as the row
// left it, or the row's problems.
type RowOutcome[Thing any] struct {
	Row      *Thing           `json:",omitempty"`
	Problems problem.Problems `json:",omitempty"`
}

// RowPath returns the input path of a row of a bulk mutation.
func RowPath(i int) string { return problem.Index("input.items", i) }

// CheckRows refuses an input with no rows or too many.
func CheckRows(count, limit int) error {
	if count == 0 {
		return problem.Invalid("input.items", "must not be empty")
	}
	if count > limit {
		return problem.Invalid("input.items", "has %d entries, at most %d are allowed", count, limit)
	}
	return nil
}

// RefuseRows returns the problems of all rows as one error, if atomic is set
// and any row has one.
func RefuseRows[Thing any](atomic bool, outcomes []RowOutcome[Thing]) error {
	if !atomic {
		return nil
	}
	var problems problem.Problems
	for _, outcome := range outcomes {
		problems = append(problems, outcome.Problems...)
	}
	return problems.Err()
}

// lockBuckets is the number of locks for each class of LockBuckets.
const lockBuckets = 256

// LockBuckets serializes writers of the same names of a class until the
// transaction ends, with advisory locks. To bound the number of locks, names
// share them. The locks are taken in a fixed order. SQLite has only one writer,
// so it needs no lock.
func (tx *Tx) LockBuckets(ctx context.Context, class int, names []string) error {
	if !tx.db.Postgres() || len(names) == 0 {
		return nil
	}
	return tx.db.Execute(Uncounted(ctx), tx, `SELECT pg_advisory_xact_lock($1, b.bucket) FROM (
		SELECT DISTINCT (hashtext(value) & $3) AS bucket FROM jsonb_array_elements_text($2::jsonb) ORDER BY bucket OFFSET 0) AS b`,
		class, JSONOf(names), lockBuckets-1)
}
