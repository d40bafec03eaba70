package sqldb_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	atlas "ariga.io/atlas/sql/migrate"
	"ariga.io/atlas/sql/sqltool"
	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/schema"

	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// With -write NAME the test writes the difference between the migrations and
// the ent schema as the next migration of both dialects (`make migration
// NAME=...`).
var write = flag.String("write", "", "write the next migration under this name")

func TestMain(m *testing.M) { storetest.Main(m) }

func TestWriteMigration(t *testing.T) {
	if *write == "" {
		t.Skip("writes a migration only with -write NAME")
	}
	for folder, url := range map[string]string{
		"migrations/sqlite":   storetest.EmptySQLite(t),
		"migrations/postgres": storetest.PostgresDatabase(t),
	} {
		db, closeDB, err := sqldb.OpenWithoutMigrating(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = closeDB() }()
		files, err := sqltool.NewGooseDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		sum, err := files.Checksum()
		if err != nil {
			t.Fatal(err)
		}
		if err := atlas.WriteSumFile(files, sum); err != nil {
			t.Fatal(err)
		}
		migrate, err := schema.NewMigrate(entsql.OpenDB(db.Dialect(), db.SQL()), schema.WithDir(files),
			schema.WithFormatter(sqltool.GooseFormatter), schema.WithDialect(db.Dialect()),
			schema.WithMigrationMode(schema.ModeReplay), schema.WithDropColumn(true), schema.WithDropIndex(true),
			schema.WithIndent("  "))
		if err != nil {
			t.Fatal(err)
		}
		if err := migrate.NamedDiff(t.Context(), *write, sqldb.Tables(db.Dialect())...); err != nil {
			t.Fatal(err)
		}
		numberMigrations(t, folder, db)
	}
}

// numberMigrations renames the new file from a timestamp to the next number.
// Migrations in Go have numbers, too.
func numberMigrations(t *testing.T, folder string, db sqldb.OpenedDatabase) {
	t.Helper()
	files, err := filepath.Glob(folder + "/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	next := db.LastInGo() + 1
	for _, file := range files {
		number, name, _ := strings.Cut(filepath.Base(file), "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if len(number) == 5 {
			next = max(next, version+1)
		} else if err := os.Rename(file, fmt.Sprintf("%s/%05d_%s", folder, next, name)); err != nil {
			t.Fatal(err)
		}
	}
	_ = os.Remove(folder + "/atlas.sum")
}

// TestMigrationsEndAtTheEntSchema also checks that no other tables exist and
// that every string column on PostgreSQL compares by code point.
func TestMigrationsEndAtTheEntSchema(t *testing.T) {
	t.Parallel()
	storetest.EachEmptyURL(t, func(t *testing.T, url string) {
		db, closeDB, err := sqldb.OpenWithoutMigrating(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = closeDB() }()
		if err := db.Migrate(t.Context(), -1); err != nil {
			t.Fatal(err)
		}
		if left := missing(t, db); left != "" {
			t.Errorf("the migrations lack:\n%s", left)
		}
		var tables []string
		for _, table := range sqldb.Tables(db.Dialect()) {
			tables = append(tables, table.Name)
		}
		for _, table := range tablesOf(t, db) {
			if !slices.Contains(tables, table) {
				t.Errorf("the migrations leave the table %s", table)
			}
		}
		if db.Dialect() != dialect.Postgres {
			return
		}
		rows, err := db.SQL().Query(`SELECT table_name || '.' || column_name FROM information_schema.columns
			WHERE table_schema = current_schema() AND data_type IN ('text', 'character varying')
			AND collation_name IS DISTINCT FROM 'C' AND table_name <> 'schema_migrations'`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var column string
			if err := rows.Scan(&column); err != nil {
				t.Fatal(err)
			}
			t.Errorf("%s does not compare by code point", column)
		}
	})
}

// missing returns the SQL that would migrate the database to the ent schema.
func missing(t *testing.T, db interface {
	dialect.Driver
}) string {
	t.Helper()
	var out bytes.Buffer
	driver := schema.NewWriteDriver(db.Dialect(), &out)
	driver.Driver = db
	migrate, err := schema.NewMigrate(driver, schema.WithDropColumn(true), schema.WithDropIndex(true))
	if err != nil {
		t.Fatal(err)
	}
	if err := migrate.Create(context.Background(), sqldb.Tables(db.Dialect())...); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, line := range strings.Split(out.String(), "\n") {
		switch strings.TrimSuffix(strings.TrimSpace(line), ";") {
		case "", "BEGIN", "COMMIT":
		default:
			left = append(left, line)
		}
	}
	return strings.Join(left, "\n")
}
