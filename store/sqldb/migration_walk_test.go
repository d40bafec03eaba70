package sqldb_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"entgo.io/ent/dialect"

	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/metadef/metadeftest"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestMigrationsWalkUpDownAndUpWithRows migrates a filled database down, checks
// that nothing is left, and migrates up again to a working store.
func TestMigrationsWalkUpDownAndUpWithRows(t *testing.T) {
	t.Parallel()
	storetest.EachEmptyURL(t, func(t *testing.T, url string) {
		fill(t, url)
		db, closeDB, err := sqldb.OpenWithoutMigrating(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Migrate(t.Context(), 0); err != nil {
			t.Fatalf("down: %v", err)
		}
		for _, table := range tablesOf(t, db) {
			t.Errorf("the way down leaves the table %s", table)
		}
		if err := db.Migrate(t.Context(), -1); err != nil {
			t.Fatalf("up again: %v", err)
		}
		if left := missing(t, db); left != "" {
			t.Errorf("up again, the tables lack:\n%s", left)
		}
		if err := closeDB(); err != nil {
			t.Fatal(err)
		}
		fill(t, url)
	})
}

// fill opens a store, writes some definitions, and closes it.
func fill(t *testing.T, url string) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.CreateNamespace(storetest.AsAdmin(), metadef.NamespaceInput{
		Name:       "Walked",
		Properties: []metadef.PropertyInput{metadeftest.Property("one", metadef.String)},
		Objects: []metadef.ObjectInput{metadeftest.Object("object",
			metadeftest.Property("two", metadef.Integer))},
		Tags:                     []metadef.TagInput{{Name: "Parent"}, {Name: "Child", Parent: new("parent")}},
		ResourceTypeAssociations: []metadef.DocumentAssociation{{ResourceType: "OS::Nova::Flavor", Prefix: new("p_")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// beforeChanges is the last version without the log of changes, by dialect.
var beforeChanges = map[string]int64{dialect.SQLite: 5, dialect.Postgres: 6}

// TestAnUpgradedDatabaseIsFollowed fills a database, migrates it down to the
// version before the log of changes, and opens it again. New writes must be in
// the log, and on PostgreSQL a second server must receive them.
func TestAnUpgradedDatabaseIsFollowed(t *testing.T) {
	t.Parallel()
	storetest.EachEmptyURL(t, func(t *testing.T, url string) {
		fill(t, url)
		db, closeDB, err := sqldb.OpenWithoutMigrating(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Migrate(t.Context(), beforeChanges[db.Dialect()]); err != nil {
			t.Fatal(err)
		}
		if err := closeDB(); err != nil {
			t.Fatal(err)
		}
		s := storetest.Open(t, url)
		other := s
		if strings.HasPrefix(url, "postgres") {
			other = storetest.Open(t, url)
		}
		storetest.RoomyProvider(t, s, storetest.UUID(1))
		storetest.Within(t, 5*time.Second, "told of the provider", func() bool {
			provider, found := world(t, other).Provider(storetest.UUID(1))
			return found && len(provider.Inventories) == 1
		})
		if noted, _, _ := notedSince(t, s, 0); !noted[[2]string{"ResourceProvider", storetest.UUID(1)}] {
			t.Errorf("the log of changes has only %v", noted)
		}
	})
}

// tablesOf returns the tables of the database without schema_migrations.
func tablesOf(t *testing.T, db sqldb.OpenedDatabase) []string {
	t.Helper()
	query := `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'schema_migrations'`
	if db.Dialect() == dialect.Postgres {
		query = `SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename <> 'schema_migrations'`
	}
	rows, err := db.SQL().QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// TestSeveralServersStartOnOneEmptyPostgres concurrently opens several stores
// on one empty database. All must start.
func TestSeveralServersStartOnOneEmptyPostgres(t *testing.T) {
	t.Parallel()
	url := storetest.EmptyPostgres(t)
	var starting sync.WaitGroup
	for range 4 {
		starting.Go(func() {
			s, err := store.Open(t.Context(), store.Options{URL: url})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := s.ResourceTypeNamed(storetest.AsAdmin(), "physical:host"); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	starting.Wait()
}

func TestOneSQLiteFileServesOneServer(t *testing.T) {
	t.Parallel()
	url := storetest.EmptySQLite(t)
	storetest.Open(t, url)
	if _, err := store.Open(t.Context(), store.Options{URL: url}); err == nil {
		t.Error("a second server opened the file")
	} else {
		t.Log(err)
	}
}

// world returns the in-memory world of a store.
func world(t testing.TB, s *store.Store) *placement.World {
	t.Helper()
	world, err := s.World(storetest.AsAdmin())
	if err != nil {
		t.Fatal(err)
	}
	return world
}
