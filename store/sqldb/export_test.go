package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql/schema"
)

// Internals for the tests of migrations and transactions.

// Tables returns the ent schema for a dialect.
func Tables(of string) []*schema.Table { return tables(of) }

// OpenedDatabase is the opened database below the store.
type OpenedDatabase = *Database

// OpenWithoutMigrating opens a database without migrations.
func OpenWithoutMigrating(ctx context.Context, url string) (*Database, func() error, error) {
	db, lock, err := openDatabase(ctx, Options{URL: url})
	if err != nil {
		return nil, nil, err
	}
	return db, (&DB{Pool: db, lock: lock}).Close, nil
}

// Migrate migrates the database to a version; -1 is the newest.
func (d *Database) Migrate(ctx context.Context, version int64) error {
	migrator, _, err := d.migrator()
	if err != nil {
		return err
	}
	if version < 0 {
		_, err = migrator.Up(ctx)
	} else {
		_, err = migrator.DownTo(ctx, version)
	}
	if d.dialectName == dialect.SQLite {
		err = errors.Join(err, migrator.Close())
	}
	return err
}

// LastInGo returns the version of the last migration written in Go.
func (d *Database) LastInGo() (last int64) {
	for _, migration := range d.writtenInGo() {
		last = max(last, migration.Version)
	}
	return last
}

// Promoted makes the process see that another server was promoted.
func (d *Database) Promoted() {
	d.history.mu.Lock()
	defer d.history.mu.Unlock()
	d.history.seen.run, d.history.seen.timeline = 1, d.history.seen.timeline+1
}

// SQL returns the pool for writes.
func (d *Database) SQL() *sql.DB { return d.writer }

// ReadAll returns the rows of a query, with the columns as strings.
func (s *DB) ReadAll(ctx context.Context, query string) ([][]string, error) {
	rows, err := s.Pool.readers.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var read [][]string
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(sql.NullString)
		}
		if err := rows.Scan(values...); err != nil {
			return nil, err
		}
		texts := make([]string, len(columns))
		for i := range values {
			texts[i] = values[i].(*sql.NullString).String
		}
		read = append(read, texts)
	}
	return read, rows.Err()
}

// TableNames returns the table names of the ent schema.
func (s *DB) TableNames() []string {
	var names []string
	for _, table := range tables(s.Pool.Dialect()) {
		names = append(names, table.Name)
	}
	return names
}

// AgeChanges sets the age of all changes in the log.
func (s *DB) AgeChanges(ctx context.Context, age time.Duration) error {
	return s.Execute(ctx, s.Pool, `UPDATE changes SET created_at = $1`, s.Now().Add(-age))
}
