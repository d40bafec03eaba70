package sqldb_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// partsOfNames returns parts that create two traits and one resource class. The
// part of the class expects the given number of rows.
func partsOfNames(s *store.Store, classes int) []sqldb.Part {
	text := func(table string) string {
		return `INSERT INTO ` + table +
			` (created_at, updated_at, name, standard) SELECT {at}, {at}, d.name, false FROM ` +
			s.Rows("{rows}", "d", "name text") + ` WHERE true RETURNING id`
	}
	class := sqldb.PartOf("classes", text("resource_classes"), [][]any{{"CUSTOM_PART"}})
	class.Rows = classes
	return []sqldb.Part{sqldb.PartOf("traits", text("traits"), [][]any{{"CUSTOM_PART_A"}, {"CUSTOM_PART_B"}}), class}
}

// countOf returns the number of rows of a table that meet a condition.
func countOf(t *testing.T, s *store.Store, on sqldb.Conn, table, condition string) int {
	t.Helper()
	counts, err := sqldb.Column[int](t.Context(), s.DB, on, `SELECT COUNT(*) FROM `+table+` WHERE `+condition)
	if err != nil {
		t.Fatal(err)
	}
	return counts[0]
}

// TestPartsAreWrittenWholeOrAgain makes a part write fewer rows than expected.
// The transaction must leave no rows, events or changes, and must be retried.
// This holds for WriteParts and WriteLast, with notes in one statement or in
// several.
func TestPartsAreWrittenWholeOrAgain(t *testing.T) {
	t.Parallel()
	type write = func(*sqldb.Tx, context.Context, time.Time, []sqldb.Part) error
	for name, run := range map[string]write{"at once": (*sqldb.Tx).WriteParts, "last": (*sqldb.Tx).WriteLast} {
		for _, noted := range []int{1, 2500} {
			t.Run(fmt.Sprintf("%s, %d noted", name, noted), func(t *testing.T) {
				t.Parallel()
				storetest.Each(t, func(t *testing.T, s *store.Store) {
					before := countOf(t, s, s.Pool, "changes", "true")
					attempts := 0
					err := s.Write(storetest.AsAdmin(), "createTrait", func(tx *sqldb.Tx) error {
						attempts++
						ctx := storetest.AsAdmin()
						tx.Record(ctx, sqldb.Event{Kind: "Trait", Key: "CUSTOM_PART_A"})
						for i := range noted {
							tx.Changed("Trait", fmt.Sprint("CUSTOM_NOTED_", i))
						}
						return run(tx, ctx, s.Now(), partsOfNames(s, max(1, 3-attempts)))
					})
					if err != nil || attempts != 2 {
						t.Errorf("%d attempts: %v", attempts, err)
					}
					for condition, want := range map[string]int{"traits": 2, "resource_classes": 1} {
						if got := countOf(t, s, s.Pool, condition, "name LIKE 'CUSTOM_PART%'"); got != want {
							t.Errorf("%d rows of %s, want %d", got, condition, want)
						}
					}
					if events := countOf(t, s, s.Pool, "audit_events", "key = 'CUSTOM_PART_A'"); events != 1 {
						t.Errorf("%d events", events)
					}
					if changes := countOf(t, s, s.Pool, "changes", "true") - before; changes != noted {
						t.Errorf("%d changes, want %d", changes, noted)
					}
				})
			})
		}
	}
}

// TestATrialShowsWhatIsWrittenLast checks a trial, which writes no notes. It
// must still run the postponed statement at the end of the mutation.
func TestATrialShowsWhatIsWrittenLast(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		err := s.Try(storetest.AsAdmin(), func(ctx context.Context, trial *sqldb.Trial) error {
			err := s.Write(ctx, "createTrait", func(tx *sqldb.Tx) error {
				return tx.WriteLast(ctx, s.Now(), partsOfNames(s, 1))
			})
			if written := countOf(t, s, trial, "traits", "name LIKE 'CUSTOM_PART%'"); written != 2 {
				t.Errorf("%d traits in the trial", written)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if left := countOf(t, s, s.Pool, "traits", "name LIKE 'CUSTOM_PART%'"); left != 0 {
			t.Errorf("%d traits after it", left)
		}
	})
}
