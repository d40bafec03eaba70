package sqldb

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/internal/tracing"
)

// measured counts the statements and rows of a context, without transaction
// control.
type measured struct {
	statements, rows atomic.Int64
	each             func(query string, args any)

	mu   sync.Mutex
	ways []string

	limit atomic.Pointer[rowLimit] // nil is no limit
}

// rowLimit calls stop, perhaps several times, beyond a number of rows.
type rowLimit struct {
	most int64
	stop func()
}

// add counts returned rows.
func (m *measured) add(rows int64) {
	counted := m.rows.Add(rows)
	if limit := m.limit.Load(); limit != nil && counted > limit.most {
		limit.stop()
	}
}

type measuredKey struct{}

func measuredOf(ctx context.Context) *measured {
	m, _ := ctx.Value(measuredKey{}).(*measured)
	return m
}

// Measure returns a context that counts statements and returned rows, without
// transaction control, and a function that returns both counts since this call.
func Measure(ctx context.Context) (context.Context, func() (statements, rows int64)) {
	m := measuredOf(ctx)
	if m == nil {
		m = &measured{}
		ctx = context.WithValue(ctx, measuredKey{}, m)
	}
	statements, rows := m.statements.Load(), m.rows.Load()
	return ctx, func() (int64, int64) { return m.statements.Load() - statements, m.rows.Load() - rows }
}

// maxWays bounds the recorded decisions of one operation.
const maxWays = 20

// Decided records how a query is answered, for the log of slow operations. It
// drops duplicates, and everything beyond maxWays.
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

// Decisions returns the decisions recorded under a context.
func Decisions(ctx context.Context) []string {
	m := measuredOf(ctx)
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.ways)
}

// StopBeyond makes the measuring context call stop, perhaps several times, when
// its statements have returned more than the given number of rows from now on.
// Use it with a context of Measure.
func StopBeyond(ctx context.Context, rows int64, stop func()) {
	if m := measuredOf(ctx); m != nil {
		m.limit.Store(&rowLimit{m.rows.Load() + rows, stop})
	}
}

// EachStatement returns a context that passes each statement with its arguments
// to a function. Calls may be concurrent. A Measure of ctx does not count them.
func EachStatement(ctx context.Context, each func(query string, args any)) context.Context {
	return context.WithValue(ctx, measuredKey{}, &measured{each: each})
}

// Uncounted returns a context whose statements are not counted. It is for
// transaction control, such as a lock that only one of the databases needs.
func Uncounted(ctx context.Context) context.Context {
	return context.WithValue(ctx, measuredKey{}, (*measured)(nil))
}

// Statements returns the number of statements for requests so far, without
// transaction control.
func (d *DB) Statements() int64 { return d.Pool.statements.Load() }

// begin counts a statement and begins its span. On PostgreSQL the statement of
// a trace has the span in a comment. As its text is unique, it is not prepared.
func (d *Database) begin(ctx context.Context, query string, args any) (context.Context, string, func(error)) {
	d.count(ctx, query, args)
	ctx, end := tracing.Statement(ctx, databaseSystems[d.dialectName], query)
	if parent := tracing.Parent(ctx); parent != "" && d.dialectName == dialect.Postgres {
		return Unprepared(ctx), query + " /*traceparent='" + parent + "'*/", end
	}
	return ctx, query, end
}

// databaseSystems are OpenTelemetry's names of the databases.
var databaseSystems = map[string]string{dialect.SQLite: "sqlite", dialect.Postgres: "postgresql"}

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

func countRow(ctx context.Context) {
	if m := measuredOf(ctx); m != nil {
		m.add(1)
	}
}

// countRowsOf makes ent's rows count as they are read.
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
