package sqldb_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// faulty is a store with a temporary fault of its database.
type faulty struct {
	t *testing.T
	*store.Store
	made int
}

// write creates a namespace of about the given size.
func (f *faulty) write(bytes int) error {
	f.made++
	_, err := f.CreateNamespace(storetest.AsAdmin(),
		metadef.NamespaceInput{Name: fmt.Sprint("N", f.made), Tags: tagsOf(bytes / 160)})
	return err
}

func tagsOf(count int) (tags []metadef.TagInput) {
	for i := range min(count, 900) {
		tags = append(tags, metadef.TagInput{Name: fmt.Sprintf("%080d", i)})
	}
	return tags
}

func (f *faulty) read() error {
	_, err := f.Namespaces(storetest.AsAdmin(), metadef.NamespaceFilter{},
		page.Order{Field: "NAME"}, page.Request{First: new(1)})
	return err
}

const vanished = "the database file was removed or replaced"

// has checks that the database has a fault until mend runs. Writes are refused
// with a time for the retry, Ready returns the fault, and reads continue.
func (f *faulty) has(fault string, mend func()) {
	f.t.Helper()
	var refused error
	if !patience.Until(f.t, 10*time.Second, func() bool { refused = f.write(150_000); return refused != nil }) {
		f.t.Fatalf("%s: writes go on", fault)
	}
	refusal := new(problem.Refusal)
	if !errors.As(refused, &refusal) || !errors.Is(refused, problem.ErrUnavailable) || refusal.RetryAfter == 0 ||
		refusal.Message != fault+", try again" {
		f.t.Errorf("%s: a write is refused with %v", fault, refused)
	}
	if err := f.Ready(context.Background()); !errors.As(err, &refusal) || refusal.Message != fault+", try again" {
		f.t.Errorf("%s: ready says %v", fault, err)
	}
	// Only connections that are open already can read a removed file.
	if err := f.read(); err != nil && fault != vanished {
		f.t.Errorf("%s: a read fails with %v", fault, err)
	}
	mend()
	if !patience.Until(f.t, 10*time.Second, func() bool { return f.Ready(context.Background()) == nil }) {
		f.t.Errorf("%s: after it was mended ready says %v", fault, f.Ready(context.Background()))
	}
	// The repair may cut connections, and the next write may get one of those
	// from the pool.
	var err error
	patience.Until(f.t, 10*time.Second, func() bool {
		err = f.write(150_000)
		return !errors.Is(err, problem.ErrUnavailable)
	})
	if err != nil {
		f.t.Errorf("%s: after it was mended: %v", fault, err)
	}
}

// TestADatabaseWithoutRoom limits the size of a SQLite database.
func TestADatabaseWithoutRoom(t *testing.T) {
	t.Parallel()
	f := &faulty{t: t, Store: storetest.Open(t, storetest.SQLite(t))}
	limit := func(pages string) {
		if _, err := f.Pool.SQL().Exec(`PRAGMA max_page_count = ` + pages); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		limit("1") // the current size
		f.has("the database has no space left", func() { limit("1000000") })
	}
}

// TestAFullDisk fills the disk of a SQLite database.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=16m"); err != nil {
		t.Skip("no file system can be mounted: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(folder, 0) })
	f := &faulty{t: t, Store: storetest.Open(t, "sqlite://"+filepath.Join(folder, "cadastre.db"))}
	rest := filepath.Join(folder, "rest")
	for range 3 {
		if err := os.WriteFile(rest, make([]byte, 64<<20), 0o600); err == nil {
			t.Fatal("there is room")
		}
		f.has("the database has no space left", func() { _ = os.Remove(rest) })
	}
}

// TestAFileThatVanishes removes or replaces the files of a SQLite database
// under the server. The server must not write into the lost file.
func TestAFileThatVanishes(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{"", "-wal"} {
		for _, replaced := range []bool{false, true} {
			address := storetest.SQLite(t)
			file := strings.TrimPrefix(address, "sqlite://") + suffix
			f := &faulty{t: t, Store: storetest.Open(t, address)}
			if err := f.write(1000); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(file, file+".away"); err != nil {
				t.Fatal(err)
			}
			if replaced {
				text, err := os.ReadFile(file + ".away")
				if err := errors.Join(err, os.WriteFile(file, text, 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			f.has(vanished, func() {
				if err := os.Rename(file+".away", file); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// migrated creates the tables of a database.
func migrated(t *testing.T, url string) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{URL: url})
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// appRole creates a role that does not own the tables. It returns a URL with
// the role, its name, and a function that runs statements as the owner.
func appRole(t *testing.T, owner string) (address, role string, change func(statement string)) {
	t.Helper()
	at, err := url.Parse(owner)
	if err != nil {
		t.Fatal(err)
	}
	schema := at.Query().Get("search_path")
	role = "app_" + schema
	db := storetest.Database(t, owner)
	change = func(statement string) {
		t.Helper()
		if _, err := db.Exec(strings.NewReplacer("$ROLE", role, "$SCHEMA", schema).Replace(statement)); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	change(`CREATE USER $ROLE`)
	t.Cleanup(func() { change(`DROP OWNED BY $ROLE`); change(`DROP USER $ROLE`) })
	at.User = url.User(role)
	return at.String(), role, change
}

// grants are the privileges that a role needs if it does not own the tables.
const grants = `GRANT USAGE ON SCHEMA $SCHEMA TO $ROLE; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA $SCHEMA TO $ROLE`

// TestARoleWithoutPrivileges starts with a role that lacks privileges. The
// error names them and the GRANT statements. Later the owner revokes one.
func TestARoleWithoutPrivileges(t *testing.T) {
	t.Parallel()
	owner := storetest.EmptyPostgres(t)
	migrated(t, owner)
	address, role, change := appRole(t, owner)
	change(grants)
	change(`REVOKE DELETE ON audit_events, changes FROM $ROLE; REVOKE INSERT, UPDATE ON traits FROM $ROLE`)
	_, err := store.Open(t.Context(), store.Options{URL: address})
	want := fmt.Sprintf("the database role %[1]s lacks privileges: INSERT on traits; UPDATE on traits; DELETE on audit_events, changes. "+
		"The owner of the tables grants them: GRANT INSERT ON traits TO %[1]s; GRANT UPDATE ON traits TO %[1]s; GRANT DELETE ON audit_events, changes TO %[1]s;", role)
	if err == nil || err.Error() != want {
		t.Fatalf("started with %v, want %s", err, want)
	}
	_, given, _ := strings.Cut(want, "grants them: ")
	change(given)
	s, err := store.Open(t.Context(), store.Options{URL: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	f := &faulty{t: t, Store: s}
	change(`REVOKE INSERT ON namespaces FROM $ROLE`)
	f.has("the server lacks privileges in the database", func() { change(`GRANT INSERT ON namespaces TO $ROLE`) })
}

// TestAReadOnlyDatabase makes PostgreSQL refuse writes, as a standby does.
func TestAReadOnlyDatabase(t *testing.T) {
	t.Parallel()
	owner := storetest.EmptyPostgres(t)
	migrated(t, owner)
	address, _, change := appRole(t, owner)
	change(grants)
	s, err := store.Open(t.Context(), store.Options{URL: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	f := &faulty{t: t, Store: s}
	begin := func(setting string) {
		change(`ALTER USER $ROLE SET default_transaction_read_only = ` + setting)
		change(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '$ROLE'`)
	}
	begin("on")
	patience.Until(t, 10*time.Second, func() bool { return f.read() == nil })
	f.has("the database is read-only", func() { begin("off") })
}
