package sqldb

import (
	"context"

	"github.com/cadastre-dev/cadastre/problem"
)

// RowOutcome is what became of one of many rows of an input: the thing as the row
// left it, or what is wrong with the row.
type RowOutcome[Thing any] struct {
	Row      *Thing           `json:",omitempty"`
	Problems problem.Problems `json:",omitempty"`
}

// RowPath returns the path of a row of the input of a mutation for many.
func RowPath(i int) string { return problem.Index("input.items", i) }

// CheckRows refuses an input without rows, and one with more than there may be.
func CheckRows(count, limit int) error {
	if count == 0 {
		return problem.Invalid("input.items", "must not be empty")
	}
	if count > limit {
		return problem.Invalid("input.items", "has %d entries, at most %d are allowed", count, limit)
	}
	return nil
}

// RefuseRows refuses all rows together, where that is asked for and something is
// wrong with one: with all that is wrong with any.
func RefuseRows[Thing any](atomic bool, outcomes []RowOutcome[Thing]) error {
	if !atomic {
		return nil
	}
	var problems problem.Problems
	for _, outcome := range outcomes {
		for _, one := range outcome.Problems {
			problems.AddBoundedProblem(one)
		}
	}
	return problems.Err()
}

// lockBuckets is how many locks LockBuckets has for each class.
const lockBuckets = 256

// LockBuckets makes the writers of the same names of a class wait for each other
// until the transaction ends, by advisory locks. So that many names take few of
// them, some names share a lock. They are taken in one order. On SQLite there is
// one writer anyway.
func (tx *Tx) LockBuckets(ctx context.Context, class int, names []string) error {
	if !tx.db.Postgres() || len(names) == 0 {
		return nil
	}
	return tx.db.Execute(Uncounted(ctx), tx, `SELECT pg_advisory_xact_lock($1, b.bucket) FROM (
		SELECT DISTINCT (hashtext(value) & $3) AS bucket FROM jsonb_array_elements_text($2::jsonb) ORDER BY bucket OFFSET 0) AS b`,
		class, JSONOf(names), lockBuckets-1)
}
