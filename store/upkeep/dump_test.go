package upkeep_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/ent/migrate"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/store/upkeep"
)

func TestEveryTableIsDumpedAfterThoseItRefersTo(t *testing.T) {
	order := sqldb.TableNames()
	for _, table := range migrate.Tables {
		at := slices.Index(order, table.Name)
		if at < 0 {
			t.Errorf("the dump lacks %s", table.Name)
		}
		for _, key := range table.ForeignKeys {
			to := key.RefTable.Name
			if isTree := slices.Contains(upkeep.Trees(), to); to == table.Name && !isTree ||
				to != table.Name && slices.Index(order, to) > at {
				t.Errorf("the dump has %s before %s", table.Name, to)
			}
		}
	}
	if len(order) != len(migrate.Tables) {
		t.Errorf("the dump has %d tables, want %d", len(order), len(migrate.Tables))
	}
}

func dumped(t *testing.T, url string) (string, upkeep.Result) {
	t.Helper()
	var text bytes.Buffer
	result, err := upkeep.Dump(t.Context(), url, "a test", &text)
	if err != nil {
		t.Fatal(err)
	}
	return text.String(), result
}

// stored returns the stored columns of every table as SQLite writes them.
func stored(t *testing.T, db *sql.DB) (lines []string) {
	for _, table := range migrate.Tables {
		var columns []string
		for _, column := range table.Columns {
			if column.Name != "transaction" {
				columns = append(columns, `quote("`+column.Name+`")`)
			}
		}
		lines = append(lines,
			storetest.Rows(t, db, "SELECT '"+table.Name+"', "+strings.Join(columns, ", ")+" FROM "+table.Name)...)
	}
	return lines
}

// Writers run during the dump, so that it proves to be one snapshot: the other
// database has every sum.
func TestADumpMovesEverythingBetweenTheDatabases(t *testing.T) {
	for _, way := range []struct {
		name     string
		from, to func(testing.TB) string
	}{
		{"sqlite to postgres", storetest.SQLite, storetest.EmptyPostgres},
		{"postgres to sqlite", storetest.Postgres, storetest.EmptySQLite},
		{"sqlite to sqlite", storetest.SQLite, storetest.EmptySQLite},
		{"postgres to postgres", storetest.Postgres, storetest.EmptyPostgres},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			from, to := way.from(t), way.to(t)
			s := filled(t, from)
			var all sync.WaitGroup
			for i := range 4 {
				all.Go(func() {
					for w := newWriting(s, uint64(i+1)); w.number < (i+1)*100_000+60; {
						w.do()
					}
				})
			}
			text, result := dumped(t, from)
			all.Wait()
			restored, err := upkeep.Restore(t.Context(), to, strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			again, _ := dumped(t, to)
			if restored != result || withoutHead(again) != withoutHead(text) {
				t.Fatalf("restored %v of %v\n%s\nwant %s", restored, result,
					again[strings.LastIndex(again, `{"rows"`):], text[strings.LastIndex(text, `{"rows"`):])
			}
			if found, err := upkeep.Check(t.Context(), to, ignore); err != nil || found.Findings > 0 {
				t.Errorf("found %+v, %v", found, err)
			}
			worksOn(t, to)
		})
	}
}

// Others create and drop sequences in other schemas of the database.
func TestADumpReadsItsOwnSchemaAlone(t *testing.T) {
	t.Parallel()
	url := storetest.Postgres(t)
	filled(t, url)
	db := storetest.Database(t, url)
	var done atomic.Bool
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			name := fmt.Sprintf("passing_%d", i)
			create := "CREATE SCHEMA " + name + strings.Repeat(" CREATE TABLE %s (id bigserial)", 20)
			for !done.Load() {
				names := make([]any, 20)
				for n := range names {
					names[n] = fmt.Sprintf("t%d", n)
				}
				for _, statement := range []string{fmt.Sprintf(create, names...), "DROP SCHEMA " + name + " CASCADE"} {
					if _, err := db.ExecContext(t.Context(), statement); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	for range 40 {
		if _, err := upkeep.Dump(t.Context(), url, "a test", io.Discard); err != nil {
			t.Error(err)
			break
		}
	}
	done.Store(true)
	all.Wait()
}

func ignore(upkeep.Finding) error { return nil }

func withoutHead(dump string) string { return dump[strings.Index(dump, "\n"):] }

// worksOn opens a restored database, and finds that it can be written and that
// its feed continues after the changes of the other database.
func worksOn(t *testing.T, url string) {
	s := storetest.Open(t, url)
	last, err := s.Latest(storetest.AsAdmin(), change.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateTrait(storetest.AsAdmin(), "CUSTOM_AFTER_THE_MOVE"); err != nil {
		t.Fatal(err)
	}
	changes, _, err := s.Changes(storetest.AsAdmin(), change.Filter{}, last, 10)
	if err != nil || len(changes) != 1 || changes[0].Key != "CUSTOM_AFTER_THE_MOVE" {
		t.Errorf("changes after the move: %+v, %v", changes, err)
	}
}

func TestARestoredSQLiteFileHasTheSameBytes(t *testing.T) {
	t.Parallel()
	from, to := storetest.SQLite(t), storetest.EmptySQLite(t)
	s := filled(t, from)
	for w := newWriting(s, 7); w.number < 700_200; {
		w.do()
	}
	text, _ := dumped(t, from)
	if _, err := upkeep.Restore(t.Context(), to, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	if got, want := stored(t, storetest.Database(t, to)),
		stored(t, storetest.Database(t, from)); !slices.Equal(got, want) {
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Fatalf("a row is %s\nwant %s", got[i], want[i])
			}
		}
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
}

func TestARestoreRefusesWhatIsNoWholeDump(t *testing.T) {
	storetest.EachEmptyURL(t, func(t *testing.T, url string) {
		from := storetest.SQLite(t)
		filled(t, from)
		text, _ := dumped(t, from)
		lines := strings.SplitAfter(text, "\n")
		of := func(lines ...string) string { return strings.Join(lines, "") }
		for name, wrong := range map[string]string{
			"empty": "", "no dump": "{}\n", "another format": strings.Replace(text, `"format":1`, `"format":2`, 1),
			"cut":                        of(lines[:len(lines)/2]...),
			"two dumps":                  text + text,
			"a row is lost":              of(append(slices.Clone(lines[:20]), lines[21:]...)...),
			"changed":                    strings.Replace(text, "VCPU", "VCPX", 1),
			"a table of another version": strings.Replace(text, `"allocation_ratio",`, "", 1),
		} {
			if _, err := upkeep.Restore(t.Context(), url, strings.NewReader(wrong)); err == nil {
				t.Errorf("%s: was restored", name)
			}
			for _, table := range migrate.Tables {
				if rows := storetest.Rows(t, storetest.Database(t, url),
					"SELECT id FROM "+table.Name+" LIMIT 1"); len(rows) > 0 {
					t.Fatalf("%s: %s has rows", name, table.Name)
				}
			}
		}
		if _, err := upkeep.Restore(t.Context(), url, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		if _, err := storetest.Database(t, url).
			Exec("DELETE FROM schema_migrations WHERE version_id > 1"); err != nil {
			t.Fatal(err)
		}
		if _, err := upkeep.Restore(t.Context(), url, strings.NewReader(text)); err == nil ||
			!strings.Contains(err.Error(), "not empty") {
			t.Errorf("a second restore, into a database that looks older: %v", err)
		}
	})
}

// The ids of the feed must not begin again, even if all its rows were pruned.
func TestARestoreKeepsTheHighestIDs(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := filled(t, url)
		if err := s.Execute(t.Context(), s.Pool, "DELETE FROM changes"); err != nil {
			t.Fatal(err)
		}
		before, _ := dumped(t, url)
		for _, to := range []string{storetest.EmptySQLite(t), storetest.EmptyPostgres(t)} {
			if _, err := upkeep.Restore(t.Context(), to, strings.NewReader(before)); err != nil {
				t.Fatal(err)
			}
			other, err := store.Open(t.Context(), store.Options{URL: to})
			if err != nil {
				t.Fatal(err)
			}
			for _, on := range []*store.Store{s, other} {
				if _, err := on.CreateTrait(storetest.AsAdmin(), fmt.Sprintf("CUSTOM_%d", len(to))); err != nil {
					t.Fatal(err)
				}
			}
			highest := func(url string) string {
				return storetest.Rows(t, storetest.Database(t, url), "SELECT max(id) FROM changes")[0]
			}
			if err := other.Close(); err != nil {
				t.Fatal(err)
			}
			if got := highest(to); got < "1000" && len(got) <= len(highest(url))-1 {
				t.Errorf("the next change has the id %s, on the other database %s", got, highest(url))
			}
		}
	})
}

// TestADumpHasTheRowsOfCycles dumps a resource that is its own parent.
func TestADumpHasTheRowsOfCycles(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		filled(t, url)
		_, want := dumped(t, url)
		if _, err := storetest.Database(t, url).Exec("UPDATE resources SET parent_id = id " +
			"WHERE id = (SELECT MIN(parent_id) FROM resources)"); err != nil {
			t.Fatal(err)
		}
		if _, got := dumped(t, url); got.Rows != want.Rows {
			t.Errorf("the dump has %d rows of %d", got.Rows, want.Rows)
		}
	})
}
