package sqldb_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// A database whose locks lock nothing, or whose transactions cannot be compared,
// is refused before it is migrated. Functions of another schema replace
// PostgreSQL's own, as in an engine that only speaks its protocol.
func TestAServerRefusesADatabaseWithoutOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ instead, want string }{
		"locks that lock nothing": {`CREATE FUNCTION pg_advisory_xact_lock(bigint) RETURNS int LANGUAGE sql AS 'SELECT 1'`, "grants one advisory lock to two connections"},
		"locks that are hidden": {`CREATE VIEW pg_locks AS SELECT * FROM pg_catalog.pg_locks WHERE false`,
			"pg_locks does not show"},
		"snapshots that see all": {`CREATE FUNCTION pg_visible_in_snapshot(xid8, pg_snapshot) RETURNS boolean LANGUAGE sql AS 'SELECT true'`, "which transactions run"},
		"no snapshots": {`CREATE FUNCTION pg_current_snapshot() RETURNS int LANGUAGE sql AS 'SELECT 1'`,
			"lacks a function"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := storetest.EmptyPostgres(t)
			db := storetest.Database(t, address)
			if _, err := db.Exec(c.instead); err != nil {
				t.Fatal(err)
			}
			s, err := store.Open(t.Context(), store.Options{URL: before(t, address)})
			if err == nil {
				_ = s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if tables := storetest.Rows(t, db,
				"SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"); len(tables) > 0 {
				t.Errorf("the refused database has %v", tables)
			}
		})
	}
}

// before returns a URL where the schema stands before PostgreSQL's own.
func before(t *testing.T, address string) string {
	t.Helper()
	of, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	settings := of.Query()
	settings.Set("search_path", settings.Get("search_path")+",pg_catalog")
	of.RawQuery = settings.Encode()
	return of.String()
}
