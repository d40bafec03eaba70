package sqldb

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"

	"entgo.io/ent/dialect"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// migrations holds the versioned SQL of both dialects, each file with a way up
// and a way down.
//
//go:embed migrations
var migrations embed.FS

// migrator walks the migrations of the database's dialect; it is to be closed,
// which closes its pool. A SQLite file is locked by its server; its foreign keys
// are off meanwhile, as SQLite wants it for changes of tables that refer to each
// other.
func (d *Database) migrator() (*goose.Provider, *sql.DB, error) {
	of, folder, open := goose.DialectSQLite3, "migrations/sqlite", func() (*sql.DB, error) { return openSQLitePool(d.file, 1, "foreign_keys(0)") }
	if d.dialectName == dialect.Postgres {
		of, folder, open = goose.DialectPostgres, "migrations/postgres", func() (*sql.DB, error) { return openUnbounded(d.address) }
	}
	pool, err := open()
	if err != nil {
		return nil, nil, err
	}
	files, err := fs.Sub(migrations, folder)
	if err != nil {
		return nil, nil, errors.Join(err, pool.Close())
	}
	migrator, err := goose.NewProvider(of, pool, files, goose.WithTableName("schema_migrations"), goose.WithGoMigrations(d.writtenInGo()...))
	if err != nil {
		return nil, nil, errors.Join(err, pool.Close())
	}
	return migrator, pool, nil
}

// lockSeconds is how long a server waits for the migrations of another.
const lockSeconds = 30 * 60

// lockMigrations waits until no other server migrates the database, and returns
// what lets the next one. On PostgreSQL that is an advisory lock, so that several
// servers may start at once.
func (d *Database) lockMigrations(ctx context.Context, pool *sql.DB) (unlock func() error, err error) {
	if d.dialectName != dialect.Postgres {
		return func() error { return nil }, nil
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, lockSeconds))
	if err != nil {
		return nil, err
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if err := locker.SessionLock(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return func() error {
		return errors.Join(locker.SessionUnlock(context.WithoutCancel(ctx), conn), conn.Close())
	}, nil
}

// openUnbounded opens a PostgreSQL database for what may take its time.
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

// migrate brings the database to the newest migration and makes the indexes of
// texts that it lacks. It refuses a database that a newer program has migrated,
// and leaves it as it is.
func (d *Database) migrate(ctx context.Context, log *slog.Logger) error {
	migrator, pool, err := d.migrator()
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	unlock, err := d.lockMigrations(ctx, pool)
	if err != nil {
		return fmt.Errorf("wait for the migrations of other servers: %w", errors.Join(err, migrator.Close()))
	}
	err = checkNotNewer(ctx, migrator)
	if err == nil {
		_, err = migrator.Up(ctx)
	}
	if err == nil {
		err = d.makeTextIndexes(ctx, pool, log)
	}
	err = errors.Join(err, unlock(), migrator.Close())
	if err != nil {
		return fmt.Errorf("migrate the database: %w", err)
	}
	return nil
}

// checkNotNewer returns an error for a database with a migration beyond those
// that this program knows.
func checkNotNewer(ctx context.Context, migrator *goose.Provider) error {
	known := int64(0)
	for _, source := range migrator.ListSources() {
		known = max(known, source.Version)
	}
	version, err := migrator.GetDBVersion(ctx)
	if err == nil && version > known {
		err = fmt.Errorf("the database is newer than this program: its schema has version %d, and the program knows those up to %d; "+
			"start the program that migrated it, or a newer one", version, known)
	}
	return err
}
