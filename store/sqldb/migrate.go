package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"entgo.io/ent/dialect"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/cadastre-dev/cadastre/internal/pause"
	"github.com/cadastre-dev/cadastre/store/sqldb/textindex"
	"github.com/cadastre-dev/cadastre/text"
)

// migrations holds the versioned SQL of both dialects. Each file has an up and
// a down part.
//
//go:embed migrations
var migrations embed.FS

// migrator returns a goose provider for the migrations of the dialect, and its
// pool. Closing the provider closes the pool. Foreign keys are off on SQLite,
// which requires that for changes to tables that refer to each other. The
// server's file lock keeps other servers out.
func (d *Database) migrator() (*goose.Provider, *sql.DB, error) {
	of, folder, open := goose.DialectSQLite3, "migrations/sqlite", func() (*sql.DB, error) {
		return openSQLitePool(d.file, 1, "foreign_keys(0)")
	}
	if d.dialectName == dialect.Postgres {
		of, folder, open = goose.DialectPostgres, "migrations/postgres", func() (*sql.DB, error) {
			return openUnbounded(d.address)
		}
	}
	pool, err := open()
	if err != nil {
		return nil, nil, err
	}
	files, err := fs.Sub(migrations, folder)
	if err != nil {
		return nil, nil, errors.Join(err, pool.Close())
	}
	migrator, err := goose.NewProvider(of, pool, files, goose.WithTableName("schema_migrations"),
		goose.WithGoMigrations(d.writtenInGo()...))
	if err != nil {
		return nil, nil, errors.Join(err, pool.Close())
	}
	return migrator, pool, nil
}

// migrationLock is the advisory lock of migrations, which earlier releases hold
// for a session.
const migrationLock = lock.DefaultLockID

// lockMigrations waits until no other server migrates the database, and returns
// a function that releases the lock. On PostgreSQL it is an advisory lock, so
// several servers may start concurrently. A transaction holds it, because a
// pooler may give the next statement another session. It asks again and again: a
// statement that waits keeps a snapshot, and the other server's CREATE INDEX
// CONCURRENTLY would wait for that.
func (d *Database) lockMigrations(ctx context.Context, pool *sql.DB) (unlock func() error, err error) {
	if d.dialectName != dialect.Postgres {
		return func() error { return nil }, nil
	}
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	isHeld := false
	_, err = tx.ExecContext(ctx, "SET LOCAL idle_in_transaction_session_timeout = 0")
	for err == nil && !isHeld {
		err = tx.QueryRowContext(ctx, fmt.Sprintf("SELECT pg_try_advisory_xact_lock(%d)", int64(migrationLock))).
			Scan(&isHeld)
		if err == nil && !isHeld && !pause.For(ctx, migrationPause) {
			err = ctx.Err()
		}
	}
	if err != nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	return tx.Rollback, nil
}

// migrationPause is the time between two tries to lock the migrations.
const migrationPause = 50 * time.Millisecond

// openUnbounded opens a PostgreSQL pool without a statement timeout.
func openUnbounded(address string) (*sql.DB, error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	settings := parsed.Query()
	settings.Set(timeoutSetting, "0")
	parsed.RawQuery = settings.Encode()
	return sql.Open("postgres", parsed.String())
}

// migrate applies the missing migrations and creates the missing text indexes.
// It refuses a database that a newer version of the program migrated, and
// leaves it unchanged.
func (d *Database) migrate(ctx context.Context, log *slog.Logger) error {
	migrator, pool, err := d.migrator()
	if err != nil {
		return fmt.Errorf("prepare the migrations: %w", err)
	}
	if err := d.probe(ctx, pool); err != nil {
		return errors.Join(err, migrator.Close())
	}
	unlock, err := d.lockMigrations(ctx, pool)
	if err != nil {
		return fmt.Errorf("wait for the migrations of other servers: %w", errors.Join(err, migrator.Close()))
	}
	version, err := migrator.GetDBVersion(ctx)
	if err == nil {
		err = checkKnown(migrator, version)
	}
	if err == nil {
		_, err = migrator.Up(ctx)
	}
	if err == nil {
		err = textindex.Create(ctx, pool, d.dialectName, log)
	}
	err = errors.Join(err, unlock(), migrator.Close())
	if err != nil {
		return fmt.Errorf("migrate the database: %w", err)
	}
	return nil
}

// uniqueIndex is a statement of a migration that creates a unique index, or that
// drops a table with its indexes.
var uniqueIndex = regexp.MustCompile("(?m)^(?:CREATE UNIQUE INDEX [\"`](\\w+)[\"`] ON|DROP TABLE) ([\"`]\\w+[\"`]).*;$")

// UniqueIndexes returns the statements that create the unique indexes, by the
// names of the indexes.
func (d *DB) UniqueIndexes() (map[string]string, error) {
	folder, statements := "migrations/sqlite", map[string]string{}
	if d.Postgres() {
		folder = "migrations/postgres"
	}
	files, err := fs.ReadDir(migrations, folder)
	for _, file := range files {
		text, reading := fs.ReadFile(migrations, path.Join(folder, file.Name()))
		up, _, _ := strings.Cut(string(text), "-- +goose Down")
		for _, found := range uniqueIndex.FindAllStringSubmatch(up, -1) {
			if found[1] != "" {
				statements[found[1]] = found[0]
				continue
			}
			maps.DeleteFunc(statements, func(_, created string) bool {
				return strings.Contains(created, " ON "+found[2]+" ")
			})
		}
		err = errors.Join(err, reading)
	}
	return statements, err
}

// checkKnown returns an error if the version of a database is newer than those
// of this program. Every release finds the version in the same way: as the largest
// version_id of schema_migrations. So numbers only grow.
func checkKnown(migrator *goose.Provider, version int64) (err error) {
	known := int64(0)
	for _, source := range migrator.ListSources() {
		known = max(known, source.Version)
	}
	if version > known {
		err = fmt.Errorf("the database is newer than this program: its schema has version %d, the program supports versions up to %d; "+
			"start the program that migrated it, or a newer one", version, known)
	}
	return err
}

// Migration is a change of the schema.
type Migration struct {
	Version int64
	Name    string // of its file
	Applied bool
}

// Migrations returns the migrations of this program, in their order, and whether
// the database has them. It changes nothing, and refuses a newer database.
func (d *DB) Migrations(ctx context.Context) (all []Migration, err error) {
	migrator, _, err := d.Pool.migrator()
	if err != nil {
		return nil, fmt.Errorf("prepare the migrations: %w", err)
	}
	defer func() { err = errors.Join(err, migrator.Close()) }()
	applied := map[int64]bool{}
	statement := `SELECT COUNT(*) FROM sqlite_master WHERE name = 'schema_migrations'`
	if d.Postgres() {
		statement = `SELECT COUNT(to_regclass('schema_migrations'))`
	}
	tables, err := Column[int](ctx, d, d.Pool, statement)
	if err == nil && tables[0] > 0 {
		var versions []int64
		versions, err = Column[int64](ctx, d, d.Pool, `SELECT version_id FROM schema_migrations WHERE is_applied`)
		for _, version := range versions {
			applied[version] = true
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the version of the database: %w", err)
	}
	if err := checkKnown(migrator, slices.Max(append(slices.Collect(maps.Keys(applied)), 0))); err != nil {
		return nil, err
	}
	for _, source := range migrator.ListSources() {
		// a migration written in Go has no path
		file := cmp.Or(source.Path, fmt.Sprintf("%05d_fold_texts.go", source.Version))
		all = append(all, Migration{source.Version, path.Base(file), applied[source.Version]})
	}
	return all, nil
}

// foldTextsAt returns the version of the migration that folds the strings of
// existing rows. SQL cannot do that.
func (d *Database) foldTextsAt() int64 {
	if d.dialectName == dialect.Postgres {
		return 14
	}
	return 13
}

func (d *Database) writtenInGo() []*goose.Migration {
	return []*goose.Migration{goose.NewGoMigration(d.foldTextsAt(), &goose.GoFunc{RunTx: d.foldTexts}, nil)}
}

// rowsFolded is the batch size for folding: descriptions are long.
const rowsFolded = 500

// foldTexts fills the columns for folded strings where folding changes the
// string.
func (d *Database) foldTexts(ctx context.Context, tx *sql.Tx) error {
	for _, of := range [][3]string{
		{"metadata_items", "value", "value_key"}, {"capability_members", "value", "value_key"},
		{"resources", "description", "description_key"},
	} {
		for last, more := int64(0), true; more; {
			var err error
			if last, more, err = d.foldRows(ctx, tx, of, last); err != nil {
				return fmt.Errorf("fold the strings of %s: %w", of[0], err)
			}
		}
	}
	return nil
}

// foldRows folds one batch of rows after an id. It returns the last id and
// whether more rows may follow.
func (d *Database) foldRows(ctx context.Context, tx *sql.Tx, of [3]string,
	after int64) (last int64, more bool, err error) {
	table, plain, key := of[0], of[1], of[2]
	rows, err := tx.QueryContext(ctx,
		fmt.Sprintf("SELECT id, COALESCE(%s, '') FROM %s WHERE id > $1 ORDER BY id LIMIT %d", plain, table, rowsFolded),
		after)
	if err != nil {
		return 0, false, err
	}
	defer rows.Close()
	count, folded := 0, [][]any{}
	for ; rows.Next(); count++ {
		var value string
		if err := rows.Scan(&last, &value); err != nil {
			return 0, false, err
		}
		if key := FoldedOrNil(value); key != nil {
			folded = append(folded, []any{last, *key})
		}
	}
	if err := rows.Err(); err != nil || len(folded) == 0 {
		return last, count == rowsFolded, err
	}
	those := "SELECT (value ->> 0)::bigint AS id, value ->> 1 AS folded FROM jsonb_array_elements($1::jsonb)"
	if d.dialectName != dialect.Postgres {
		those = "SELECT value ->> 0 AS id, value ->> 1 AS folded FROM json_each($1)"
	}
	_, err = tx.ExecContext(ctx,
		fmt.Sprintf("UPDATE %s SET %s = those.folded FROM (%s) AS those WHERE those.id = %s.id",
			table, key, those, table), JSONOf(folded))
	return last, count == rowsFolded, err
}

// FoldedOrNil returns the folded string, or nil if folding changes nothing.
func FoldedOrNil(value string) *string {
	if folded := text.Fold(value); folded != value {
		return &folded
	}
	return nil
}

// errUnfit means that a database does not keep the order of transactions that
// claims, the feed and the copies in memory rely on.
var errUnfit = errors.New("the database is not suitable for Cadastre")

// probe finds out with two connections whether a PostgreSQL database excludes
// holders of an advisory lock, shows them, and numbers transactions so that
// snapshots can be compared. Engines that only speak its protocol may not.
func (d *Database) probe(ctx context.Context, pool *sql.DB) (err error) {
	if d.dialectName != dialect.Postgres {
		return nil
	}
	var connections [2]*sql.Tx
	for i := range connections {
		if connections[i], err = pool.BeginTx(ctx, nil); err != nil {
			return fmt.Errorf("probe the database: %w", err)
		}
		defer func() { err = errors.Join(err, connections[i].Rollback()) }()
	}
	one, other := connections[0], connections[1]
	lock := 1<<30 + rand.Int32N(1<<30) // of this probe alone
	var began, began2 int64
	var isGiven, isShown, isOver bool
	err = one.QueryRowContext(ctx,
		`SELECT pg_current_xact_id()::text::bigint FROM (SELECT pg_advisory_xact_lock($1::bigint)) AS held`, lock).
		Scan(&began)
	if err == nil {
		err = other.QueryRowContext(ctx, `SELECT pg_try_advisory_xact_lock($1::bigint), EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = $1::bigint::oid AND granted),
			pg_visible_in_snapshot($2::text::xid8, pg_current_snapshot()), pg_current_xact_id()::text::bigint`, lock,
			fmt.Sprint(began)).Scan(&isGiven, &isShown, &isOver, &began2)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w: it lacks a function of PostgreSQL: %w", errUnfit, err)
	case isGiven:
		return fmt.Errorf("%w: it grants one advisory lock to two connections", errUnfit)
	case !isShown:
		return fmt.Errorf("%w: pg_locks does not show a lock that is held", errUnfit)
	case isOver || began2 <= began:
		return fmt.Errorf("%w: its snapshots do not show which transactions run", errUnfit)
	}
	return nil
}
