package sqldb_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"entgo.io/ent/dialect"

	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/text"
)

// openLogged opens a store and returns its log, too.
func openLogged(t *testing.T, url string) (*store.Store, string) {
	t.Helper()
	var log bytes.Buffer
	s, err := store.Open(context.Background(),
		store.Options{URL: url, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		t.Fatal(err)
	}
	return s, log.String()
}

// indexesOf returns the trigram indexes of a store.
func indexesOf(t *testing.T, s *store.Store) []string {
	t.Helper()
	if err := s.ReadSizes(t.Context()); err != nil {
		t.Fatal(err)
	}
	var indexes []string
	for name := range s.Sizes() {
		if strings.HasSuffix(name, "_trigrams") {
			indexes = append(indexes, name)
		}
	}
	slices.Sort(indexes)
	return indexes
}

// searched checks how many resources a search finds.
func searched(t *testing.T, s *store.Store, search string, want int) {
	t.Helper()
	if n, err := s.CountResources(storetest.AsAdmin(), resource.Filter{Search: &search}); n != want || err != nil {
		t.Errorf("%q: found %d, want %d, %v", search, n, want, err)
	}
}

// asRole returns a URL of an empty database with a role that may not create
// extensions, and a connection with a role that may.
func asRole(t *testing.T) (string, *sql.DB) {
	t.Helper()
	address, err := url.Parse(storetest.PostgresDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	super, role := storetest.Database(t, address.String()), strings.TrimPrefix(address.Path, "/")+"_role"
	run := func(statements ...string) {
		for _, statement := range statements {
			if _, err := super.Exec(statement); err != nil {
				t.Errorf("%s: %v", statement, err)
			}
		}
	}
	var available bool
	if err := super.QueryRow("SELECT EXISTS (SELECT 1 FROM pg_available_extensions WHERE name = 'pg_trgm')").
		Scan(&available); err != nil || !available {
		t.Skip("the server has no pg_trgm", err)
	}
	run("CREATE ROLE "+role, "GRANT ALL ON SCHEMA public TO "+role)
	t.Cleanup(func() { run("DROP OWNED BY "+role, "DROP ROLE "+role) })
	settings := address.Query()
	settings.Set("role", role)
	address.RawQuery = settings.Encode()
	return address.String(), super
}

// TestTheExtensionMayComeLater opens a database with a role that may not create
// the trigram extension. Searches work, and the log explains how to install it.
// Once it is installed, the next start creates the indexes, even if several
// servers start. An interrupted index is recreated.
func TestTheExtensionMayComeLater(t *testing.T) {
	t.Parallel()
	url, super := asRole(t)
	s, log := openLogged(t, url)
	for _, wanted := range []string{"the extension pg_trgm is missing", "permission denied", "CREATE EXTENSION pg_trgm",
		"GRANT CREATE ON DATABASE", "as the owner of the database", "restart a server"} {
		if !strings.Contains(log, wanted) {
			t.Errorf("the log lacks %q: %s", wanted, log)
		}
	}
	if indexes := indexesOf(t, s); len(indexes) > 0 {
		t.Errorf("there are %q", indexes)
	}
	for i := range 30 {
		input := resource.Input{Type: "physical:host", Name: fmt.Sprint("Host ", i),
			Metadata: []metadef.KeyValue{{Key: "k", Value: fmt.Sprint("Größe ", i)}}}
		if _, err := s.CreateResource(storetest.AsAdmin(), input); err != nil {
			t.Fatal(err)
		}
	}
	searched(t, s, "GRÖSSE", 0)
	searched(t, s, "GRÖßE 29", 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{"CREATE EXTENSION pg_trgm",
		"UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'metadata_items_value_trigrams'::regclass"} {
		if _, err := super.Exec(statement); err != nil {
			t.Fatal(err)
		}
		var starting sync.WaitGroup
		for range 3 {
			starting.Go(func() { hasAllIndexes(t, url) })
		}
		starting.Wait()
	}
}

// hasAllIndexes opens a store and checks that all trigram indexes exist.
func hasAllIndexes(t *testing.T, url string) {
	s, log := openLogged(t, url)
	if indexes := indexesOf(t, s); log != "" || len(indexes) != 8 {
		t.Errorf("indexes %q, log %s", indexes, log)
	}
	searched(t, s, "GRÖßE 29", 1)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestTrigramsOfSQLiteAreMadeAnew opens databases without one of the trigram
// tables or triggers. The start must restore all rows.
func TestTrigramsOfSQLiteAreMadeAnew(t *testing.T) {
	t.Parallel()
	url := storetest.EmptySQLite(t)
	s, _ := openLogged(t, url)
	if indexes := indexesOf(t, s); len(indexes) != 8 {
		t.Errorf("there are %q", indexes)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for i, lost := range []string{"DROP TRIGGER metadata_items_value_trigrams_insert",
		"DROP TABLE metadata_items_value_trigrams", "DROP TRIGGER metadata_items_value_trigrams_update"} {
		db := storetest.Database(t, url)
		if _, err := db.Exec(lost); err != nil {
			t.Fatal(err)
		}
		_ = db.Close()
		s, _ := openLogged(t, url)
		input := resource.Input{Type: "physical:host", Name: "host",
			Metadata: []metadef.KeyValue{{Key: "k", Value: "A Value"}}}
		if _, err := s.CreateResource(storetest.AsAdmin(), input); err != nil {
			t.Fatal(err)
		}
		searched(t, s, "a value", i+1)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// beforeTexts is the last version without folded strings, by dialect.
var beforeTexts = map[string]int64{dialect.SQLite: 11, dialect.Postgres: 12}

// TestTextsThatWereThereAreFolded migrates a filled database down to the
// version before folded strings. After it is opened again, searches must find
// the rows.
func TestTextsThatWereThereAreFolded(t *testing.T) {
	t.Parallel()
	storetest.EachEmptyURL(t, func(t *testing.T, url string) {
		s, _ := openLogged(t, url)
		texts := []string{"Größe", "ΣΊΣΥΦΟΣ", "KELVIN", "plain and small", "日本語 Text",
			`Quote " and 'quote' \`, "İstanbul"}
		for i := range 1100 {
			input := resource.Input{Type: "physical:host", Name: fmt.Sprint(i), Description: &texts[i%len(texts)],
				Metadata:     []metadef.KeyValue{{Key: "k", Value: fmt.Sprint(texts[i%len(texts)], " ", i)}},
				Capabilities: []metadef.KeyValue{{Key: "cap", Value: fmt.Sprint(texts[i%len(texts)], " ", i)}}}
			if i < 20 || i > 1090 {
				if _, err := s.CreateResource(storetest.AsAdmin(), input); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, more := range []string{"INSERT INTO metadata_items (resource_id, key, value, value_hash, value_prefix, user_modifiable, created_at, updated_at) SELECT r.id, 'more-' || n.id, 'Many Values', 1, 'Many Values', true, r.created_at, r.updated_at FROM resources r CROSS JOIN traits n"} {
			if err := s.Execute(t.Context(), s.Pool, more); err != nil {
				t.Fatal(err)
			}
		}
		want := foldedColumns(t, s.DB, nil)
		if len(want) < 1100 {
			t.Fatalf("%d rows", len(want))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		db, closeDB, err := sqldb.OpenWithoutMigrating(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(db.Migrate(t.Context(), beforeTexts[db.Dialect()]), closeDB()); err != nil {
			t.Fatal(err)
		}
		s, _ = openLogged(t, url)
		if got := foldedColumns(t, s.DB, want); len(got) != len(want) {
			t.Errorf("%d rows of %d", len(got), len(want))
		}
		searched(t, s, "MANY values", 29)
		searched(t, s, "σίσυφος", 4)
		searched(t, s, "日本語 text", 4)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// foldedColumns returns the folded columns by row, and checks that each one is
// the folded string. With want nil it skips the rows that SQL wrote.
func foldedColumns(t *testing.T, db *sqldb.DB, want map[string]string) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, of := range []string{"metadata_items", "capability_members", "resources"} {
		column := "value"
		if of == "resources" {
			column = "description"
		}
		rows, err := db.ReadAll(t.Context(),
			fmt.Sprintf("SELECT CAST(id AS text), %s, COALESCE(%s_key, ''), CASE WHEN %s_key IS NULL THEN '' ELSE '!' END FROM %s", column, column, column, of))
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			got[of+row[0]] = row[2] + row[3]
			switch folded := text.Fold(row[1]); {
			case of == "metadata_items" && want == nil && row[1] == "Many Values": // written by SQL
			case folded == row[1] && row[3] != "" || folded != row[1] && row[2] != folded:
				t.Errorf("%s: %q is folded to %q", of, row[1], row[2])
			}
		}
	}
	return got
}

// TestManyWritesAreMergedAtOnce checks the automerge setting of each SQLite
// index, in a new database and in an older one.
func TestManyWritesAreMergedAtOnce(t *testing.T) {
	t.Parallel()
	url := storetest.EmptySQLite(t)
	for range 2 {
		s, _ := openLogged(t, url)
		for _, index := range indexesOf(t, s) {
			var merged int
			if err := storetest.Database(t, url).QueryRow("SELECT v FROM " + index + "_config WHERE k = 'automerge'").
				Scan(&merged); err != nil || merged != 16 {
				t.Errorf("%s: %d parts are merged at once, %v", index, merged, err)
			}
			if _, err := storetest.Database(t, url).
				Exec("DELETE FROM " + index + "_config WHERE k = 'automerge'"); err != nil {
				t.Error(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
