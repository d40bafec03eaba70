package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	entsql "entgo.io/ent/dialect/sql"
)

// preparedStatements are the statements of a pool that are kept prepared, by their
// text: the database parses and plans them once for each connection. Only statements
// are prepared whose texts are few, since every connection keeps them, and whose plan
// does not depend on their parameters; see Prepared. On SQLite they are those of
// transactions that write: what reads gained nothing by them.
type preparedStatements struct {
	mu   sync.Mutex
	uses map[string]int
	kept map[string]*sql.Stmt
}

// newPreparedStatements returns none yet.
func newPreparedStatements() *preparedStatements {
	return &preparedStatements{uses: map[string]int{}, kept: map[string]*sql.Stmt{}}
}

const (
	// maxPrepared bounds the statements that are kept.
	maxPrepared = 256
	// preparedAfter is how often a text is sent before it is prepared.
	preparedAfter = 3
)

type preparedKey struct{}

// Prepared returns a context under which statements that read are prepared, or
// not where a caller said so before.
func Prepared(ctx context.Context) context.Context {
	if _, said := ctx.Value(preparedKey{}).(bool); said {
		return ctx
	}
	return context.WithValue(ctx, preparedKey{}, true)
}

// Unprepared returns a context under which no statement is prepared: for those
// that clients compose, and those for which a rare value wants another plan than a
// frequent one.
func Unprepared(ctx context.Context) context.Context {
	return context.WithValue(ctx, preparedKey{}, false)
}

// of returns the prepared statement of a text, nil where it is to be sent as it
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

// prepare prepares a statement. It does so beside the request, which has a
// connection already: whoever waits for a second one can wait for ever.
func (p *preparedStatements) prepare(db *sql.DB, query string) {
	ctx, cancel := context.WithTimeout(context.Background(), StatementTimeout)
	defer cancel()
	statement, err := db.PrepareContext(ctx, query)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.uses, query)
	if err == nil { // else whoever sends the text is told why
		p.kept[query] = statement
	}
}

// reads sends statements that read, on a connection of a pool or, unless it is nil, in
// a transaction.
type reads struct {
	pool     *sql.DB
	tx       *sql.Tx
	prepared *preparedStatements // of the pool; nil where it keeps none
}

var _ entsql.ExecQuerier = reads{}

// on returns what sends statements on a connection of a pool or, unless it is nil, in
// a transaction, which is of that pool.
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

// ExecContext is not for what reads.
func (reads) ExecContext(context.Context, string, ...any) (sql.Result, error) {
	return nil, errors.ErrUnsupported
}
