package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync/atomic"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
)

// Database is the dialect.Driver under ent: statements outside a transaction
// that only read go to the Reading of their context or to readers, everything
// else to writer. On PostgreSQL both are one pool. It counts statements for
// whoever asked (CountStatements), and all that requests send.
type Database struct {
	statements  atomic.Int64
	requestID   func(context.Context) string // nil in tests of migrations
	dialectName string
	path        string // of the SQLite file
	address     string // of the PostgreSQL database, with the session's settings
	writer      *sql.DB
	readers     *sql.DB
	prepared    *preparedStatements // nil on SQLite, and where none are wanted
}

var _ dialect.Driver = (*Database)(nil)

// Dialect returns the name of the dialect, for ent.
func (d *Database) Dialect() string { return d.dialectName }

// Close closes every connection.
func (d *Database) Close() error {
	if d.writer == d.readers {
		return d.writer.Close()
	}
	return errors.Join(d.readers.Close(), d.writer.Close())
}

// Query serves the reads of ent.
func (d *Database) Query(ctx context.Context, query string, args, v any) error {
	d.count(ctx)
	on, err := d.reader(ctx)
	if err != nil {
		return err
	}
	return refused(entsql.Conn{ExecQuerier: on}.Query(ctx, query, args, v))
}

// Exec serves the writes of ent.
func (d *Database) Exec(ctx context.Context, query string, args, v any) error {
	d.count(ctx)
	return refused(entsql.Conn{ExecQuerier: d.writer}.Exec(ctx, query, args, v))
}

// QueryContext serves statements written by hand.
func (d *Database) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	d.count(ctx)
	on, err := d.reader(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := on.QueryContext(ctx, query, args...)
	return rows, refused(err)
}

// ExecContext serves statements written by hand.
func (d *Database) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	d.count(ctx)
	result, err := d.writer.ExecContext(ctx, query, args...)
	return result, refused(err)
}

// Tx begins a transaction of ent.
func (d *Database) Tx(ctx context.Context) (dialect.Tx, error) {
	tx, err := d.writer.BeginTx(ctx, nil)
	if err != nil {
		return nil, refused(err)
	}
	return &transaction{Tx: tx, of: d}, nil
}

// transaction is a dialect.Tx that counts its statements.
type transaction struct {
	*sql.Tx
	of *Database
}

var _ driver.Tx = (*transaction)(nil)

func (t *transaction) Query(ctx context.Context, query string, args, v any) error {
	t.of.count(ctx)
	return refused(entsql.Conn{ExecQuerier: t.Tx}.Query(ctx, query, args, v))
}

func (t *transaction) Exec(ctx context.Context, query string, args, v any) error {
	t.of.count(ctx)
	return refused(entsql.Conn{ExecQuerier: t.Tx}.Exec(ctx, query, args, v))
}

func (t *transaction) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	t.of.count(ctx)
	rows, err := t.Tx.QueryContext(ctx, query, args...)
	return rows, refused(err)
}

func (t *transaction) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	t.of.count(ctx)
	result, err := t.Tx.ExecContext(ctx, query, args...)
	return result, refused(err)
}

type statementsKey struct{}

// CountStatements returns a context under which the store counts the SQL
// statements it sends, transaction control excluded, and the count so far.
func CountStatements(ctx context.Context) (context.Context, func() int) {
	var n atomic.Int64
	return context.WithValue(ctx, statementsKey{}, &n), func() int { return int(n.Load()) }
}

// Uncounted is for statements that control the transaction, as a lock does that
// one of the databases does not need.
func Uncounted(ctx context.Context) context.Context {
	return context.WithValue(ctx, statementsKey{}, (*atomic.Int64)(nil))
}

// Statements returns how many SQL statements were sent for requests so far,
// transaction control excluded.
func (d *DB) Statements() int64 { return d.Pool.statements.Load() }

func (d *Database) count(ctx context.Context) {
	n, ok := ctx.Value(statementsKey{}).(*atomic.Int64)
	if ok && n == nil {
		return
	}
	if ok {
		n.Add(1)
	}
	if d.requestID != nil && d.requestID(ctx) != "" {
		d.statements.Add(1)
	}
}
