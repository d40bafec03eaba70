package sqldb

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
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

// migrator walks the migrations of the database's dialect; it is to be closed.
// On PostgreSQL it holds an advisory lock meanwhile, so that several servers may
// start at once. A SQLite file is locked by its server; its foreign keys are off
// meanwhile, as SQLite wants it for changes of tables that refer to each other.
func (d *Database) migrator() (*goose.Provider, error) {
	if d.dialectName == dialect.Postgres {
		locker, err := lock.NewPostgresSessionLocker()
		if err != nil {
			return nil, err
		}
		pool, err := openUnbounded(d.address)
		if err != nil {
			return nil, err
		}
		return newMigrator(goose.DialectPostgres, pool, "migrations/postgres", goose.WithSessionLocker(locker))
	}
	pool, err := openSQLitePool(d.path, 1, "foreign_keys(0)")
	if err != nil {
		return nil, err
	}
	return newMigrator(goose.DialectSQLite3, pool, "migrations/sqlite")
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

func newMigrator(of goose.Dialect, pool *sql.DB, folder string, options ...goose.ProviderOption) (*goose.Provider, error) {
	files, err := fs.Sub(migrations, folder)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(of, pool, files, append(options, goose.WithTableName("schema_migrations"))...)
}

// migrate brings the database to the newest migration. It refuses a database
// that a newer program has migrated, and leaves it as it is.
func (d *Database) migrate(ctx context.Context) error {
	migrator, err := d.migrator()
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	err = checkNotNewer(ctx, migrator)
	if err == nil {
		_, err = migrator.Up(ctx)
	}
	if err == nil { // a newer program may have migrated it meanwhile
		err = checkNotNewer(ctx, migrator)
	}
	err = errors.Join(err, migrator.Close())
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
