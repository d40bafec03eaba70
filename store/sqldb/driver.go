package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
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

// preparedStatements are the prepared statements of a pool, by SQL text. The
// database parses and plans each once per connection. Every connection keeps
// all of them, so only statements with few variants of their text are prepared.
// Their plans must not depend on parameters, see Unprepared. On SQLite only
// write transactions use them, as reads did not gain from them.
type preparedStatements struct {
	mu   sync.Mutex
	uses map[string]int
	kept map[string]*sql.Stmt
}

func newPreparedStatements() *preparedStatements {
	return &preparedStatements{uses: map[string]int{}, kept: map[string]*sql.Stmt{}}
}

const (
	// maxPrepared bounds the prepared statements of a pool.
	maxPrepared = 256
	// preparedAfter is the number of uses after which a statement is prepared.
	preparedAfter = 3
)

type preparedKey struct{}

// prepared returns a context that prepares queries, unless it comes from
// Unprepared.
func prepared(ctx context.Context) context.Context {
	if _, said := ctx.Value(preparedKey{}).(bool); said {
		return ctx
	}
	return context.WithValue(ctx, preparedKey{}, true)
}

// Unprepared returns a context that prepares no statements. It is for
// statements composed by clients, and for statements where a rare value needs
// another plan than a frequent one.
func Unprepared(ctx context.Context) context.Context {
	return context.WithValue(ctx, preparedKey{}, false)
}

// of returns the prepared statement for a query, or nil to send the query as it
// is.
func (p *preparedStatements) of(ctx context.Context, db *sql.DB, query string) *sql.Stmt {
	if wanted, _ := ctx.Value(preparedKey{}).(bool); !wanted || p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	statement := p.kept[query]
	if statement == nil && len(p.kept) < maxPrepared && (p.uses[query] > 0 || len(p.uses) < 4*maxPrepared) {
		p.uses[query]++
		if p.uses[query] == preparedAfter {
			go p.prepare(db, query)
		}
	}
	return statement
}

// prepare prepares a statement in the background. The request holds a
// connection already, and waiting for a second one could deadlock.
func (p *preparedStatements) prepare(db *sql.DB, query string) {
	ctx, cancel := context.WithTimeout(context.Background(), StatementTimeout)
	defer cancel()
	statement, err := db.PrepareContext(ctx, query)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.uses, query)
	if err == nil { // otherwise the next use of the query reports the error
		p.kept[query] = statement
	}
}

// reads runs queries in a transaction, or on a connection of the pool if tx is
// nil.
type reads struct {
	pool     *sql.DB
	tx       *sql.Tx
	prepared *preparedStatements // of the pool; nil if disabled
}

var _ entsql.ExecQuerier = reads{}

// on returns a runner for queries in tx, or on the pool if tx is nil. tx
// belongs to the pool.
func (d *Database) on(pool *sql.DB, tx *sql.Tx) reads {
	if pool == d.writer {
		return reads{pool, tx, d.prepared}
	}
	return reads{pool, tx, nil}
}

func (r reads) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	statement := r.prepared.of(ctx, r.pool, query)
	switch {
	case statement == nil && r.tx == nil:
		return r.pool.QueryContext(ctx, query, args...)
	case statement == nil:
		return r.tx.QueryContext(ctx, query, args...)
	case r.tx == nil:
		return statement.QueryContext(ctx, args...)
	}
	return r.tx.StmtContext(ctx, statement).QueryContext(ctx, args...)
}

// ExecContext returns an error: reads are read-only.
func (reads) ExecContext(context.Context, string, ...any) (sql.Result, error) {
	return nil, errors.ErrUnsupported
}
