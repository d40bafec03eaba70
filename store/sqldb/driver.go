package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync/atomic"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/ent"
)

// Database is the dialect.Driver of ent. Reads outside a transaction go to the
// Reading of their context, to searches (Searching) or to readers; everything
// else goes to writer. On PostgreSQL readers and writer are the same pool. It
// counts statements in total and for a Measure.
type Database struct {
	statements  atomic.Int64
	requestID   func(context.Context) string // nil in tests of migrations
	dialectName string
	path        string // of the SQLite file
	file        *sqliteFile
	opened      *sql.Conn // keeps a connection to a SQLite file open, and with it the WAL; nil before Start
	address     string    // of the PostgreSQL database, with the session's settings
	// listenAddress is the address for notifications.
	listenAddress string
	places        Places
	writer        *sql.DB
	readers       *sql.DB
	searches      *sql.DB             // for reads under Searching
	followers     *sql.DB             // for followers of the log of changes; on SQLite readers
	prepared      *preparedStatements // of writer; nil if disabled
	history       *history            // of PostgreSQL
	standbys      standbys
}

var _ dialect.Driver = (*Database)(nil)

// Dialect returns the name of the dialect, for ent.
func (d *Database) Dialect() string { return d.dialectName }

// Close closes every connection.
func (d *Database) Close() error {
	if d.opened != nil {
		_ = d.opened.Close() // returns it to its pool
	}
	if d.writer == d.readers {
		return errors.Join(closed(d.writer), closed(d.searches), closed(d.followers), d.standbys.close())
	}
	return errors.Join(ended(d.readers), ended(d.writer))
}

// ended closes a pool and waits until its connections have ended, at most 5
// seconds. database/sql rolls a canceled transaction back after its caller has
// returned. Only a writer that ends last moves SQLite's log into the file.
func ended(pool *sql.DB) error {
	err := pool.Close()
	for i := 0; i < 1000 && pool.Stats().OpenConnections > 0; i++ {
		time.Sleep(5 * time.Millisecond)
	}
	return err
}

// closed closes a pool. It ignores errors of connections that were already
// lost, where the driver could not close its statements.
func closed(pool *sql.DB) error {
	if err := pool.Close(); !isUnreachable(err) {
		return err
	}
	return nil
}

type searchingKey struct{}

// Searching returns a context for slow reads outside of transactions. They use
// a separate pool, so that cheap statements do not wait for them.
func Searching(ctx context.Context) context.Context {
	return context.WithValue(ctx, searchingKey{}, true)
}

// readersFor returns the pool for the reads of a context.
func (d *Database) readersFor(ctx context.Context) *sql.DB {
	if searching, _ := ctx.Value(searchingKey{}).(bool); searching {
		return d.searches
	}
	return d.readers
}

// FollowerPool returns the pool for followers of the log of changes. On
// PostgreSQL requests do not use it.
func (d *Database) FollowerPool() *sql.DB { return d.followers }

// Query runs a read of ent.
func (d *Database) Query(ctx context.Context, query string, args, v any) (err error) {
	ctx, query, end := d.begin(ctx, query, args)
	defer func() { end(err) }()
	on, err := d.reader(ctx)
	if err != nil {
		return err
	}
	err = entsql.Conn{ExecQuerier: on}.Query(ctx, query, args, v)
	countRowsOf(ctx, v)
	return Refused(err)
}

// Exec runs a write of ent.
func (d *Database) Exec(ctx context.Context, query string, args, v any) error {
	ctx, query, end := d.begin(ctx, query, args)
	err := entsql.Conn{ExecQuerier: d.writer}.Exec(ctx, query, args, v)
	end(err)
	return Refused(err)
}

// QueryContext runs a handwritten query.
func (d *Database) QueryContext(ctx context.Context, query string, args ...any) (rows *sql.Rows, err error) {
	ctx, query, end := d.begin(ctx, query, args)
	defer func() { end(err) }()
	on, err := d.reader(ctx)
	if err != nil {
		return nil, err
	}
	rows, err = on.QueryContext(ctx, query, args...)
	return rows, Refused(err)
}

// ExecContext runs a handwritten statement.
func (d *Database) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	ctx, query, end := d.begin(ctx, query, args)
	result, err := d.writer.ExecContext(ctx, query, args...)
	end(err)
	return result, Refused(err)
}

// Tx begins a transaction for ent.
func (d *Database) Tx(ctx context.Context) (dialect.Tx, error) { return d.BeginTx(ctx, nil) }

// BeginTx begins a transaction for ent; nil options are the defaults.
func (d *Database) BeginTx(ctx context.Context, options *sql.TxOptions) (dialect.Tx, error) {
	tx, err := d.writer.BeginTx(ctx, options)
	if err != nil {
		return nil, refusedToBegin(err)
	}
	return &transaction{Tx: tx, of: d, pool: d.writer}, nil
}

// transaction is a dialect.Tx that counts its statements.
type transaction struct {
	*sql.Tx
	of *Database
	// pool is the pool of the connection, nil to disable prepared statements.
	pool *sql.DB
	// followed is the run that the standby of the transaction follows, nil on the
	// primary.
	followed *followed
}

var _ driver.Tx = (*transaction)(nil)

func (t *transaction) Query(ctx context.Context, query string, args, v any) error {
	ctx, query, end := t.of.begin(ctx, query, args)
	err := entsql.Conn{ExecQuerier: t.Tx}.Query(ctx, query, args, v)
	end(err)
	countRowsOf(ctx, v)
	return Refused(err)
}

func (t *transaction) Exec(ctx context.Context, query string, args, v any) error {
	ctx, query, end := t.of.begin(ctx, query, args)
	err := entsql.Conn{ExecQuerier: t.Tx}.Exec(ctx, query, args, v)
	end(err)
	return Refused(err)
}

func (t *transaction) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	ctx, query, end := t.of.begin(ctx, query, args)
	rows, err := t.of.on(t.pool, t.Tx).QueryContext(ctx, query, args...)
	end(err)
	return rows, Refused(err)
}

func (t *transaction) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	ctx, query, end := t.of.begin(ctx, query, args)
	result, err := t.Tx.ExecContext(ctx, query, args...)
	end(err)
	return result, Refused(err)
}

// onTransaction is a dialect.Driver on a transaction. Its owner begins and ends
// the transaction.
type onTransaction struct{ *transaction }

var _ dialect.Driver = onTransaction{}

// Tx returns an error: transactions do not nest.
func (onTransaction) Tx(context.Context) (dialect.Tx, error) {
	return nil, errors.New("the connection is already in a transaction")
}

// Close does nothing.
func (onTransaction) Close() error { return nil }

// Dialect returns the name of the dialect, for ent.
func (t onTransaction) Dialect() string { return t.of.dialectName }

// ClientOn returns a client of ent whose statements run in a transaction of a
// Reading, ReadAt or Load. For any other Conn it returns d.Ent.
func (d *DB) ClientOn(on Conn) *ent.Client {
	if tx, ok := on.(*transaction); ok {
		return ent.NewClient(ent.Driver(onTransaction{tx}))
	}
	return d.Ent
}
