package store

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

// Database is an opened database, under the store.
type Database = *database

// OpenWithoutMigrating opens a database as it is.
func OpenWithoutMigrating(ctx context.Context, url string) (*database, func() error, error) {
	db, lock, err := openDatabase(ctx, url)
	if err != nil {
		return nil, nil, err
	}
	return db, (&DB{db: db, lock: lock}).close, nil
}

// Migrate brings the database to a version; version -1 is the newest.
func (d *database) Migrate(ctx context.Context, version int64) error {
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
func (d *database) SQL() *sql.DB { return d.writer }

// PanicInAWrite panics within a transaction, and recovers.
func (s *Store) PanicInAWrite(ctx context.Context) {
	defer func() { _ = recover() }()
	_ = s.Write(ctx, "createNamespace", func(*Tx) error { panic("in the midst of a write") })
}
