package sqldb

import (
	"context"
	"database/sql"
	"sync"

	entsql "entgo.io/ent/dialect/sql"
)

// preparedStatements are the statements of PostgreSQL that are kept prepared, by
// their text: the database parses and plans them once for each connection. Only
// statements are prepared whose texts are few, since every connection keeps
// them, and whose plan does not depend on their parameters; see Prepared.
type preparedStatements struct {
	mu   sync.Mutex
	uses map[string]int
	kept map[string]*sql.Stmt
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

// reads sends statements that read, on a connection of the pool or, unless it is
// nil, in a transaction.
type reads struct {
	of *Database
	tx *sql.Tx
}

var _ entsql.ExecQuerier = reads{}

func (r reads) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	var statement *sql.Stmt
	pool := r.of.readersFor(ctx)
	if pool == r.of.readers {
		statement = r.of.prepared.of(ctx, pool, query)
	}
	switch {
	case statement == nil && r.tx == nil:
		return pool.QueryContext(ctx, query, args...)
	case statement == nil:
		return r.tx.QueryContext(ctx, query, args...)
	case r.tx == nil:
		return statement.QueryContext(ctx, args...)
	}
	return r.tx.StmtContext(ctx, statement).QueryContext(ctx, args...)
}

// ExecContext is not for what reads.
func (r reads) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return r.of.writer.ExecContext(ctx, query, args...)
}
