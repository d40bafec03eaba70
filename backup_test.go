package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/store/upkeep"
)

// backup copies a database while a server writes to it, as docs/operations.md
// describes. copy returns the URL of the copy.
type backup struct {
	url  string
	copy func() (url string)
}

// TestBackupsAreRestored backs up the database of a demo as docs/operations.md
// describes, while clients write, and serves the copy. The copy has everything
// that was acknowledged before the backup began. It never has a write without
// the writes before it. Where nothing was written, it answers like the
// original.
func TestBackupsAreRestored(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(*testing.T) backup{"sqlite": backupOfSQLite, "postgres": backupOfPostgres,
		"sqlite to postgres": moveTo(storetest.EmptySQLite, storetest.PostgresDatabase),
		"postgres to sqlite": moveTo(storetest.PostgresDatabase, storetest.EmptySQLite)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := of(t)
			server, _ := boot(t, "--demo", "--database", database.url)
			before := pairs(t, server.address, 0, 5)
			while, stop := writing(server.address)
			<-while
			busy := database.copy()
			stop()
			quiet := database.copy()
			restored, _ := boot(t, "--demo", "--database", busy)
			names := traits(t, restored.address)
			for _, trait := range before {
				if !names[trait] {
					t.Errorf("the copy lacks %s, which was acknowledged before it was made", trait)
				}
			}
			for name := range names {
				if one, ok := strings.CutSuffix(name, "_A"); ok && !names[one+"_B"] {
					t.Errorf("the copy has %s without what was written before it", name)
				}
			}
			again, _ := boot(t, "--demo", "--database", quiet)
			for _, question := range []string{
				`{ resources(first: 1000) { totalCount nodes { uuid name revision tags metadata { key value userModifiable } capabilities { name value } } } }`,
				`{ namespaces(first: 1000) { totalCount nodes { name revision properties { name title type enum } tags { name } } } }`,
				`{ resourceProviders(first: 1000) { totalCount nodes { uuid generation traits inventories { resourceClass used capacity } } } }`,
				`{ consumers(first: 1000) { totalCount nodes { uuid generation allocations { resourceClass used } } } }`,
				`{ auditEvents(first: 100) { totalCount nodes { createdAt action key before after } } }`,
			} {
				want, got := answerOf(t, server.address, question), answerOf(t, again.address, question)
				if want != got || strings.Contains(want, `"errors"`) || len(want) < 200 {
					t.Errorf("the copy answers otherwise to %s\ngot  %.500s\nwant %.500s", question, got, want)
				}
			}
		})
	}
}

// backupOfSQLite copies a file with the sqlite3 program.
func backupOfSQLite(t *testing.T) backup {
	program, err := exec.LookPath("sqlite3")
	if err != nil {
		t.Skip("needs sqlite3")
	}
	folder, copies := t.TempDir(), 0
	file := filepath.Join(folder, "cadastre.db")
	return backup{"sqlite://" + file, func() string {
		copies++
		to := filepath.Join(folder, fmt.Sprintf("backup-%d.db", copies))
		if out, err := exec.CommandContext(t.Context(), program, file, ".backup "+to).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return "sqlite://" + to
	}}
}

// backupOfPostgres dumps a database and restores it into an empty one.
func backupOfPostgres(t *testing.T) backup {
	url := storetest.PostgresDatabase(t)
	dump, restore := postgresProgram(t, "pg_dump"), postgresProgram(t, "pg_restore")
	skipIfOlder(t, dump, url)
	copies := 0
	return backup{url, func() string {
		copies++
		file := filepath.Join(t.TempDir(), "backup.dump")
		if out, err := exec.CommandContext(t.Context(), dump, "-F", "c", "-f", file, url).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		to := storetest.PostgresDatabase(t)
		if out, err := exec.CommandContext(t.Context(), restore, "-O", "-e", "-d", to, file).
			CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return to
	}}
}

// moveTo dumps a database and restores it into one of another kind.
func moveTo(from, to func(testing.TB) string) func(*testing.T) backup {
	return func(t *testing.T) backup {
		url := from(t)
		return backup{url, func() string {
			into := to(t)
			var dump, report bytes.Buffer
			if err := run(t.Context(), []string{"dump", "--database", url}, &dump, &report); err != nil {
				t.Fatal(err)
			}
			if _, err := upkeep.Restore(t.Context(), into, &dump); err != nil {
				t.Fatal(err)
			}
			for _, one := range []string{url, into} {
				if err := run(t.Context(), []string{"doctor", "--database", one}, &report, &report); err != nil {
					t.Errorf("%v\n%s", err, report.String())
				}
			}
			return into
		}}
	}
}

func postgresProgram(t *testing.T, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err != nil || len(found) == 0 {
		t.Skipf("needs %s", name)
	}
	return found[len(found)-1]
}

// skipIfOlder skips a test if a program is older than the server at a URL:
// pg_dump refuses a newer server.
func skipIfOlder(t *testing.T, program, url string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	var own, server int
	if _, err := fmt.Sscanf(string(out), "pg_dump (PostgreSQL) %d", &own); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	if err := storetest.Database(t, url).QueryRow("SELECT current_setting('server_version_num')::int / 10000").
		Scan(&server); err != nil {
		t.Fatal(err)
	}
	if own < server {
		t.Skipf("needs the pg_dump of PostgreSQL %d or newer, not %d", server, own)
	}
}

// pairs creates pairs of traits and returns their names.
func pairs(t *testing.T, address string, from, to int) (names []string) {
	t.Helper()
	for i := from; i < to; i++ {
		if err := createPair(t.Context(), address, i); err != nil {
			t.Fatal(err)
		}
		names = append(names, fmt.Sprintf("CUSTOM_PAIR_%d_A", i), fmt.Sprintf("CUSTOM_PAIR_%d_B", i))
	}
	return names
}

// createPair creates a trait that ends in _B, and then one that ends in _A.
func createPair(ctx context.Context, address string, i int) error {
	query := fmt.Sprintf(`mutation { b: createTrait(input: {name: "CUSTOM_PAIR_%d_B"}) { trait { name } } a: createTrait(input: {name: "CUSTOM_PAIR_%d_A"}) { trait { name } } }`, i, i)
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/graphql", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Auth-Token", "demo-admin")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	var got struct{ Errors []any }
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil {
		return err
	}
	if len(got.Errors) > 0 {
		return fmt.Errorf("%v", got.Errors)
	}
	return nil
}

// writing creates pairs until the caller calls stop. It closes the channel when
// the first pair exists.
func writing(address string) (begun <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	first, done := make(chan struct{}), make(chan struct{})
	begin := sync.OnceFunc(func() { close(first) })
	go func() {
		defer close(done)
		defer begin()
		for i := 1000; ctx.Err() == nil && i < 3000; i++ {
			if createPair(context.WithoutCancel(ctx), address, i) != nil {
				return
			}
			begin()
		}
	}()
	return first, func() {
		cancel()
		<-done
	}
}

// traits returns the names of all custom traits.
func traits(t *testing.T, address string) map[string]bool {
	t.Helper()
	names, after := map[string]bool{}, "null"
	for {
		var got struct {
			Data struct {
				Traits struct {
					Nodes    []struct{ Name string }
					PageInfo struct {
						HasNextPage bool
						EndCursor   string
					}
				}
			}
		}
		text := answerOf(t, address, `{ traits(first: 1000, after: `+after+
			`) { nodes { name } pageInfo { hasNextPage endCursor } } }`)
		if err := json.Unmarshal([]byte(`{"data":`+text+`}`), &got); err != nil {
			t.Fatal(err)
		}
		for _, trait := range got.Data.Traits.Nodes {
			names[trait.Name] = true
		}
		if !got.Data.Traits.PageInfo.HasNextPage {
			return names
		}
		after = fmt.Sprintf("%q", got.Data.Traits.PageInfo.EndCursor)
	}
}

// answerOf returns the data of an answer, or the whole answer if it has errors.
func answerOf(t *testing.T, address, query string) string {
	t.Helper()
	text := (&asker{t, address, ""}).send(query)
	var got struct{ Data, Errors json.RawMessage }
	if err := json.Unmarshal([]byte(text), &got); err != nil || got.Errors != nil {
		return text
	}
	return string(got.Data)
}
