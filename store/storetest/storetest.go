// Package storetest opens temporary stores for the tests of any package: on
// SQLite in the test's folder, on PostgreSQL in a separate database. Databases
// that are not empty are copies of a migrated one. Apart from comparing bulk
// mutations with single ones, it makes no assertions about their contents.
package storetest

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/lib/pq"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

var shared struct {
	once    sync.Once
	cluster *cluster
	err     error
}

// garbagePercent is the program's GC percentage.
const garbagePercent = 400

// Main runs a package's tests, stops the PostgreSQL server that they started, and
// exits. Every package that opens stores calls it from TestMain. Unless GOGC is
// set, it sets the program's GC percentage: with the default, garbage collection
// takes a sixth of the tests' time. Unless TMPDIR is set, it prefers inMemory.
func Main(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	if os.Getenv("TMPDIR") == "" && hasRoom(inMemory) {
		_ = os.Setenv("TMPDIR", inMemory)
	}
	code := m.Run()
	if shared.cluster != nil {
		shared.cluster.end()
	}
	os.Exit(code)
}

// inMemory is Linux' file system in memory. A new database takes an eighth of
// the time there that it takes on a disk.
const inMemory = "/dev/shm"

// hasRoom reports whether the file system of a folder has 4 GiB free and lets
// programs run.
func hasRoom(folder string) bool {
	const noExec = 8 // ST_NOEXEC of statvfs(3)
	var of syscall.Statfs_t
	err := syscall.Statfs(folder, &of)
	return err == nil && uint64(of.Flags)&noExec == 0 && of.Bavail*uint64(of.Bsize) >= 4<<30
}

// Each runs a test on a new store of each database, in parallel. Without
// PostgreSQL on the machine it skips that half, or fails if CI=true.
func Each(t *testing.T, test func(t *testing.T, s *store.Store)) {
	t.Helper()
	EachURL(t, func(t *testing.T, url string) { test(t, Open(t, url)) })
}

// EachURL runs a test with the URL of a new, migrated database of each kind.
func EachURL(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	onBoth(t, SQLite, Postgres, test)
}

// EachEmptyURL runs a test with the URL of a new, empty database of each kind.
func EachEmptyURL(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	onBoth(t, EmptySQLite, EmptyPostgres, test)
}

func onBoth(t *testing.T, sqlite, postgres func(testing.TB) string, test func(t *testing.T, url string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, sqlite(t))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, postgres(t))
	})
}

// Open opens a store and closes it when the test ends.
func Open(t testing.TB, url string) *store.Store {
	t.Helper()
	return openWith(t, store.Options{URL: url})
}

func openWith(t testing.TB, options store.Options) *store.Store {
	t.Helper()
	s, err := store.Open(context.Background(), options)
	if err != nil {
		t.Fatalf("open the store: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	return s
}

// SQLite returns the URL of a migrated database file in the test's folder.
func SQLite(t testing.TB) string {
	t.Helper()
	file, err := migratedSQLite()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cadastre.db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	return "sqlite://" + path
}

// EmptySQLite returns the URL of a database file in the test's folder that does
// not exist yet.
func EmptySQLite(t testing.TB) string {
	t.Helper()
	return "sqlite://" + filepath.Join(t.TempDir(), "cadastre.db")
}

// Postgres returns the URL of a migrated database. It is dropped when the test
// ends.
func Postgres(t testing.TB) string {
	t.Helper()
	of := sharedCluster(t)
	like, err := of.likeMigrated()
	if err != nil {
		t.Fatal(err)
	}
	return withDatabase(of.url, temporary(t, of, "DATABASE", like, "WITH (FORCE)"))
}

// EmptyPostgres returns the URL of an empty schema. It is dropped when the test
// ends.
func EmptyPostgres(t testing.TB) string {
	t.Helper()
	of := sharedCluster(t)
	return withSearchPath(of.url, temporary(t, of, "SCHEMA", "", "CASCADE"))
}

// PostgresDatabase returns the URL of an empty database. It is dropped when the
// test ends. It is slower than EmptyPostgres, for tests that need a separate
// database.
func PostgresDatabase(t testing.TB) string {
	t.Helper()
	of := sharedCluster(t)
	return withDatabase(of.url, temporary(t, of, "DATABASE", "", "WITH (FORCE)"))
}

// CrashingPostgres returns the URL of an empty database on a separate server,
// and a function that crashes and restarts that server.
func CrashingPostgres(t testing.TB) (url string, crash func()) {
	t.Helper()
	own := ownCluster(t)
	return own.url, func() {
		if err := own.crash(); err != nil {
			t.Error(err)
		}
	}
}

// HangingPostgres returns the URL of an empty database on a separate server,
// and functions that suspend and resume that server.
func HangingPostgres(t testing.TB) (url string, hang, goOn func()) {
	t.Helper()
	own := ownCluster(t)
	send := func(s syscall.Signal) func() {
		return func() {
			if err := signalAll(own.data, s); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(func() { _ = signalAll(own.data, syscall.SIGCONT) }) // before the server is stopped
	return own.url, send(syscall.SIGSTOP), send(syscall.SIGCONT)
}

// ownCluster starts a server that is stopped when the test ends.
func ownCluster(t testing.TB) *cluster {
	t.Helper()
	own := unstarted(t)
	own.start(t)
	return own
}

// unstarted returns a cluster with new data and no server yet, for one test.
func unstarted(t testing.TB) *cluster {
	t.Helper()
	if os.Getenv("CADASTRE_TEST_POSTGRES") != "" {
		t.Skip("CADASTRE_TEST_POSTGRES names a server that the tests did not start")
	}
	own, err := newCluster()
	if errors.Is(err, errNoPostgres) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return own
}

// start runs a server on the data until the test ends.
func (c *cluster) start(t testing.TB) {
	t.Helper()
	if err := c.serve(t); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.stop)
}

// sharedCluster returns the server shared by the tests of this process.
func sharedCluster(t testing.TB) *cluster {
	t.Helper()
	shared.once.Do(func() { shared.cluster, shared.err = startCluster(t) })
	if errors.Is(shared.err, errNoPostgres) && os.Getenv("CI") != "true" {
		t.Skip(shared.err)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster
}

// temporary creates a schema or database, returns its name, and drops it when
// the test ends.
func temporary(t testing.TB, of *cluster, what, like, dropping string) string {
	t.Helper()
	name := randomName("test_")
	if err := of.run(fmt.Sprintf("CREATE %s %s %s", what, name, like)); err != nil {
		t.Fatalf("create a %s for the test: %v", what, err)
	}
	t.Cleanup(func() {
		if err := of.run(fmt.Sprintf("DROP %s %s %s", what, name, dropping)); err != nil {
			t.Errorf("drop the %s of the test: %v", what, err)
		}
	})
	return name
}

func randomName(prefix string) string { return prefix + strings.ToLower(rand.Text()) }

// AsAdmin returns the context of an administrator's request.
func AsAdmin() context.Context {
	return access.WithViewer(context.Background(),
		access.Viewer{UserID: "ada", ProjectID: "operations", Roles: []string{access.RoleAdmin}})
}

// Database opens the database of a URL directly, without a store, and closes it
// when the test ends.
func Database(t testing.TB, url string) *sql.DB {
	t.Helper()
	driver, source := "postgres", url
	if path, ok := strings.CutPrefix(url, "sqlite://"); ok {
		driver, source = "sqlite", path+"?_pragma=busy_timeout(60000)" // its store writes, too
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// UUID returns the n-th uuid of a sequence that is not sorted.
func UUID(n int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(n)*2654435761, n) }

// RowUUID returns the uuid that NumberUUIDs sets for a row id.
func RowUUID(row int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", row) }

// NumberUUIDs replaces random uuids of definitions, capabilities and audit events
// with ones made from the row ids, for tests that compare stores or look rows up
// by number.
func NumberUUIDs(t testing.TB, s *store.Store) {
	t.Helper()
	number := "lpad(CAST(id AS text), 12, '0')"
	if !s.Postgres() {
		number = "printf('%012d', id)"
	}
	for _, table := range []string{"namespaces", "property_definitions", "object_definitions", "tags", "resource_types",
		"resource_type_associations", "capabilities", "audit_events"} {
		err := s.Execute(t.Context(), s.Pool, `UPDATE `+table+` SET uuid = '00000000-0000-4000-8000-' || `+number)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.ReloadDefinitions(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// RoomyProvider creates a provider with ample capacity.
func RoomyProvider(t testing.TB, s *store.Store, uuid string) {
	t.Helper()
	if _, _, err := s.CreateResourceProvider(AsAdmin(), placement.NewProvider{Name: uuid, UUID: &uuid}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.SetInventory(AsAdmin(), placement.InventoryChange{Provider: uuid, Inventory: placement.Inventory{
		ResourceClass: "VCPU", Total: 1_000_000, MinUnit: 1, MaxUnit: 10,
		StepSize: 1, AllocationRatio: 1}}); err != nil {
		t.Fatal(err)
	}
}

// Within waits until a condition holds. If it does not hold after limit times
// CADASTRE_TEST_PATIENCE, the test fails.
func Within(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	if !patience.Until(t, limit, holds) {
		t.Fatalf("after %s: not %s", patience.Of(t, limit), what)
	}
}

// EachPair runs a test with the URLs of two SQLite databases, and of two
// PostgreSQL databases.
func EachPair(t *testing.T, test func(t *testing.T, one, other string)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, SQLite(t), SQLite(t))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, Postgres(t), Postgres(t))
	})
}

// Rows returns the rows of a query as sorted lines.
func Rows(t testing.TB, db *sql.DB, query string) (lines []string) {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	for err == nil && rows.Next() {
		values, into := make([]string, len(columns)), []any{}
		for i := range values {
			into = append(into, &values[i])
		}
		err = rows.Scan(into...)
		lines = append(lines, strings.Join(values, " | "))
	}
	if err = cmp.Or(err, rows.Err()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return lines
}

// AuditedRows and ChangedRows query the audit log and the change log, without
// times and names of mutations.
const (
	AuditedRows = `SELECT user_id, project_id, kind, key, COALESCE(CAST(before AS text), ''), COALESCE(CAST(after AS text), '') FROM audit_events`
	ChangedRows = `SELECT kind, key, COALESCE(audience, ''), COALESCE(what, ''), COALESCE(CAST(named AS text), '') FROM changes WHERE kind <> 'Pruned'`
)

// OneByOne runs a separate mutation for each row. It returns the problems of
// each, with the paths that they would have in a bulk mutation.
func OneByOne[Row any](rows []Row, change func(Row) error) []problem.Problems {
	refused := make([]problem.Problems, len(rows))
	for i, row := range rows {
		for _, wrong := range problem.InError(change(row)) {
			wrong.Field = sqldb.RowPath(i) + strings.TrimPrefix(wrong.Field, "input")
			refused[i] = append(refused[i], wrong)
		}
	}
	return refused
}

// Together runs a bulk mutation for rows, and fails if its problems differ from
// the refusals of the single mutations. If an atomic mutation is refused,
// contents must stay the same. Then Together runs the mutation again without
// atomic, to write the valid rows as the single mutations did.
func Together[Thing any](t *testing.T, atomic bool, refused []problem.Problems, contents func() string,
	change func(atomic bool) ([]sqldb.RowOutcome[Thing], error)) {
	t.Helper()
	before := contents()
	outcomes, err := change(atomic)
	told, ok := problem.Of(err)
	if !ok || err != nil && !atomic {
		t.Fatal(err)
	}
	if atomic && !slices.Equal(told, slices.Concat(refused...)) {
		t.Fatalf("refused as a whole by %v, one by one by %v", told, refused)
	}
	if len(told) > 0 {
		if contents() != before {
			t.Fatal("what was refused as a whole left something")
		}
		if outcomes, err = change(false); err != nil {
			t.Fatal(err)
		}
	}
	if len(outcomes) != len(refused) {
		t.Fatalf("%d outcomes of %d rows", len(outcomes), len(refused))
	}
	for i, outcome := range outcomes {
		if !slices.Equal(outcome.Problems, refused[i]) || (outcome.Row == nil) != (len(refused[i]) > 0) {
			t.Fatalf("row %d: %v, one by one %v", i, outcome.Problems, refused[i])
		}
	}
}
