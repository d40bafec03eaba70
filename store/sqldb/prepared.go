package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	entsql "entgo.io/ent/dialect/sql"
)

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
