package changedb_test

import (
	"testing"

	"github.com/cadastre-dev/cadastre/store/storetest"
)

// A backup of another PostgreSQL server has changes of transactions that this
// one has not begun. The next start makes them changes of the past.
func TestChangesOfAnotherServerAreOfThePast(t *testing.T) {
	t.Parallel()
	url := storetest.Postgres(t)
	storetest.Open(t, url)
	db := storetest.Database(t, url)
	for _, statement := range []string{
		`UPDATE changes SET "transaction" = 1000000000000 + id`,
		`INSERT INTO changes ("transaction", kind, key, created_at) VALUES (1000000000500, 'Pruned', '1000000000400', clock_timestamp())`,
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	of := `SELECT id, kind, CASE kind WHEN 'Pruned' THEN '' ELSE key END FROM changes`
	before := storetest.Rows(t, db, of)
	s := storetest.Open(t, url)
	future := storetest.Rows(t, db, `SELECT id FROM changes WHERE "transaction" >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint
		OR CASE kind WHEN 'Pruned' THEN key::bigint ELSE 0 END >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint`)
	if after := storetest.Rows(t, db, of); len(future) > 0 || len(after) != len(before) {
		t.Errorf("%d changes are of the future, %d changes, want %d", len(future), len(after), len(before))
	}
	if _, err := s.CreateTrait(storetest.AsAdmin(), "CUSTOM_NEXT"); err != nil {
		t.Fatal(err)
	}
}
