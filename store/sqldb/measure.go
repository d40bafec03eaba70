package sqldb

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	entsql "entgo.io/ent/dialect/sql"
)

// measured is what the statements of a context did, transaction control
// excluded.
type measured struct {
	statements, rows atomic.Int64
	each             func(query string, args any)

	mu   sync.Mutex
	ways []string
	most int64  // rows, beyond which stop is called; 0 is no limit
	stop func() // may be called several times
}

// add counts rows that a statement returned.
func (m *measured) add(rows int64) {
	if m.rows.Add(rows) > m.most && m.most > 0 {
		m.stop()
	}
}

type measuredKey struct{}

func measuredOf(ctx context.Context) *measured {
	m, _ := ctx.Value(measuredKey{}).(*measured)
	return m
}

// Measure returns a context under which statements and the rows that they return
// are counted, transaction control excluded, and both counts so far.
func Measure(ctx context.Context) (context.Context, func() (statements, rows int64)) {
	m := measuredOf(ctx)
	if m == nil {
		m = &measured{}
		ctx = context.WithValue(ctx, measuredKey{}, m)
	}
	statements, rows := m.statements.Load(), m.rows.Load()
	return ctx, func() (int64, int64) { return m.statements.Load() - statements, m.rows.Load() - rows }
}

// maxWays bounds the remembered decisions of one operation.
const maxWays = 20

// Decided remembers how a question is answered, for the log of slow operations.
// Equal decisions count once.
func Decided(ctx context.Context, way string) {
	m := measuredOf(ctx)
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.ways) < maxWays && !slices.Contains(m.ways, way) {
		m.ways = append(m.ways, way)
	}
}

// Decisions returns what Decided remembers under a context.
func Decisions(ctx context.Context) []string {
	m := measuredOf(ctx)
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.ways)
}

// StopBeyond has a function called when the statements under a context of Measure
// have returned more than so many rows in all.
func StopBeyond(ctx context.Context, rows int64, stop func()) {
	if m := measuredOf(ctx); m != nil {
		m.most, m.stop = rows, stop
	}
}

// EachStatement returns a context under which each statement is passed to a
// function, which may be called concurrently, with its arguments.
func EachStatement(ctx context.Context, each func(query string, args any)) context.Context {
	return context.WithValue(ctx, measuredKey{}, &measured{each: each})
}

// Uncounted is for statements that control the transaction, as a lock does that
// one of the databases does not need.
func Uncounted(ctx context.Context) context.Context {
	return context.WithValue(ctx, measuredKey{}, (*measured)(nil))
}

// Statements returns how many SQL statements were sent for requests so far,
// transaction control excluded.
func (d *DB) Statements() int64 { return d.Pool.statements.Load() }

func (d *Database) count(ctx context.Context, query string, args any) {
	m, ok := ctx.Value(measuredKey{}).(*measured)
	if ok && m == nil {
		return
	}
	if ok {
		m.statements.Add(1)
		if m.each != nil {
			m.each(query, args)
		}
	}
	if d.requestID != nil && d.requestID(ctx) != "" {
		d.statements.Add(1)
	}
}

// CountRow counts a row that a statement returned.
func CountRow(ctx context.Context) {
	if m := measuredOf(ctx); m != nil {
		m.add(1)
	}
}

// countRowsOf has the rows of ent counted as they are read.
func countRowsOf(ctx context.Context, v any) {
	rows, ok := v.(*entsql.Rows)
	if m := measuredOf(ctx); ok && m != nil && rows.ColumnScanner != nil {
		rows.ColumnScanner = countedRows{rows.ColumnScanner, m}
	}
}

type countedRows struct {
	entsql.ColumnScanner
	in *measured
}

func (r countedRows) Next() bool {
	next := r.ColumnScanner.Next()
	if next {
		r.in.add(1)
	}
	return next
}
