package sqldb

import (
	"context"
	"database/sql"
	"errors"

	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql/schema"
)

// What the tests of migrations and transactions reach into.

// Tables is the ent schema as it is meant on a dialect.
func Tables(of string) []*schema.Table { return tables(of) }

// OpenedDatabase is an opened database, under the store.
type OpenedDatabase = *Database

// OpenWithoutMigrating opens a database as it is.
func OpenWithoutMigrating(ctx context.Context, url string) (*Database, func() error, error) {
	db, lock, err := openDatabase(ctx, url)
	if err != nil {
		return nil, nil, err
	}
	return db, (&DB{Pool: db, lock: lock}).Close, nil
}

// Migrate brings the database to a version; version -1 is the newest.
func (d *Database) Migrate(ctx context.Context, version int64) error {
	migrator, err := d.migrator()
	if err != nil {
		return err
	}
	if version < 0 {
		_, err = migrator.Up(ctx)
	} else {
		_, err = migrator.DownTo(ctx, version)
	}
	if d.dialect == dialect.SQLite {
		err = errors.Join(err, migrator.Close())
	}
	return err
}

// SQL is the pool that writes.
func (d *Database) SQL() *sql.DB { return d.writer }
