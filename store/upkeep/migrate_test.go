package upkeep_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/store/upkeep"
)

func TestMigrationsAreApplied(t *testing.T) {
	storetest.EachEmptyURL(t, func(t *testing.T, url string) {
		for _, apply := range []bool{true, false} {
			all, err := upkeep.Migrations(t.Context(), url, apply)
			if err != nil || len(all) < 15 ||
				slices.ContainsFunc(all, func(one sqldb.Migration) bool { return !one.Applied || one.Name == "." }) {
				t.Fatalf("%+v, %v", all, err)
			}
		}
		if _, err := storetest.Database(t, url).
			Exec("INSERT INTO schema_migrations (version_id, is_applied) VALUES (1000, true)"); err != nil {
			t.Fatal(err)
		}
		if _, err := upkeep.Migrations(t.Context(), url, false); err == nil ||
			!strings.Contains(err.Error(), "newer than this program") {
			t.Errorf("a newer database: %v", err)
		}
	})
}

func TestAnEmptyDatabaseHasNoMigration(t *testing.T) {
	url := storetest.EmptyPostgres(t)
	all, err := upkeep.Migrations(t.Context(), url, false)
	if err != nil || len(all) < 15 || slices.ContainsFunc(all, func(one sqldb.Migration) bool { return one.Applied }) {
		t.Errorf("%+v, %v", all, err)
	}
	if tables := storetest.Rows(t, storetest.Database(t, url),
		"SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"); len(tables) > 0 {
		t.Errorf("to show created %v", tables)
	}
}
