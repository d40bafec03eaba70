package paging

import (
	"context"
	"fmt"
	"slices"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/lib/pq"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// firstOfEach keeps the first rows of each key, at most limit. So one statement
// reads a nested list for all its parents. If an index has the key column and
// the order, the database reads at most limit rows per parent. The conditions
// include the list's conditions and its order.
func firstOfEach(table, column string, keys []int64, limit int,
	conditions ...func(*entsql.Selector)) func(*entsql.Selector) {
	return func(s *entsql.Selector) {
		build := entsql.Dialect(s.Dialect())
		first := build.Select().From(build.Table(table))
		first.Select(first.C("id")).Where(hasPartKey(first, column))
		for _, condition := range conditions {
			condition(first)
		}
		first.Limit(limit)
		s.Where(entsql.P(func(b *entsql.Builder) {
			b.Ident(s.C("id")).WriteString(" IN (SELECT of_each.id FROM ")
			if s.Dialect() == dialect.Postgres {
				b.WriteString("unnest(").Arg(pq.Array(keys)).
					WriteString("::bigint[]) AS parts (key) CROSS JOIN LATERAL (").
					Join(first).WriteString(") AS of_each)")
				return
			}
			b.WriteString("json_each(").Arg(sqldb.JSONOf(keys)).WriteString(") AS parts CROSS JOIN ").Ident(table).
				WriteString(" AS of_each ON of_each.id IN (").Join(first).WriteString("))")
		}))
	}
}

// boundsParts reports whether the key column must be compared with >= and <=
// instead of =. PostgreSQL drops a column with = from the sort order. It may
// then scan an index on the rest of the order through the rows of all keys.
func boundsParts(s *entsql.Selector) bool { return s.Dialect() == dialect.Postgres }

// partKey returns the SQL expression for the key of the current part, which has
// the rows of one parent.
func partKey(s *entsql.Selector) string {
	if s.Dialect() == dialect.Postgres {
		return "parts.key"
	}
	return "parts.value"
}

// hasPartKey returns the condition for the rows of the current part.
func hasPartKey(s *entsql.Selector, column string) *entsql.Predicate {
	return entsql.P(func(b *entsql.Builder) {
		if boundsParts(s) {
			b.Ident(s.C(column)).WriteString(" >= " + partKey(s) + " AND ").
				Ident(s.C(column)).WriteString(" <= " + partKey(s))
			return
		}
		b.Ident(s.C(column)).WriteString(" = " + partKey(s))
	})
}

// OfEach keeps the rows of one page for each key, and one more row of each key
// if there is one.
func (p Paging) OfEach(table, column string, keys []int64,
	conditions ...func(*entsql.Selector)) func(*entsql.Selector) {
	p.part = column
	first := firstOfEach(table, column, keys, p.Limit(), append(conditions, p.Within, p.Sort)...)
	return func(s *entsql.Selector) {
		first(s)
		p.Sort(s)
	}
}

// BehindEach keeps, for each key, one row before the start of its page, if
// there is one.
func (p Paging) BehindEach(table, column string, keys []int64,
	conditions ...func(*entsql.Selector)) func(*entsql.Selector) {
	p.part = column
	return firstOfEach(table, column, keys, 1, append(conditions, p.Behind, p.Sort)...)
}

// Behind keeps the rows before the start of a page: the row at the cursor and
// the rows behind it, which the page excludes. Without a cursor it keeps no rows.
func (p Paging) Behind(s *entsql.Selector) {
	until, beyond := "<=", ">="
	if p.descending {
		until, beyond = beyond, until
	}
	switch {
	case p.request.Backward() && p.before != nil:
		s.Where(p.compare(s, beyond, *p.before))
	case !p.request.Backward() && p.after != nil:
		s.Where(p.compare(s, until, *p.after))
	default:
		s.Where(entsql.False())
	}
}

// PagesOf builds a page for each key from the rows that OfEach kept.
func PagesOf[Row, Noun any](p Paging, keys []int64, rows []Row, partition func(Row) int64, noun func(Row) Noun,
	place func(Row) (key any, tie string)) map[int64]page.Page[Noun] {
	parts := lists.Group(rows, func(row Row) (int64, Row) { return partition(row), row })
	return lists.Index(keys, func(key int64) (int64, page.Page[Noun]) {
		return key, NewPage(p, parts[key], noun, place)
	})
}

// Among keeps the rows with one of the values in a column. All values are one
// parameter, so the statement has the same text for any number of values.
func Among[V int64 | string](column string, values []V) func(*entsql.Selector) {
	return func(s *entsql.Selector) { s.Where(IsAmong(s, s.C(column), values)) }
}

// IsAmong is Among as a predicate on a qualified column.
func IsAmong[V int64 | string](s *entsql.Selector, column string, values []V) *entsql.Predicate {
	return entsql.P(func(b *entsql.Builder) {
		b.Ident(column)
		if s.Dialect() == dialect.Postgres {
			b.WriteString(" = ANY(").Arg(pq.Array(values)).WriteString(")")
			return
		}
		b.WriteString(" IN (SELECT value FROM json_each(").Arg(sqldb.JSONOf(values)).WriteString("))")
	})
}

// ByID converts rows to domain values and indexes them by id. It wraps err, the
// error of reading the rows.
func ByID[Row, Noun any, ID comparable](rows []Row, err error, what string, noun func(Row) Noun,
	id func(Row) ID) (map[ID]Noun, error) {
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", what, err)
	}
	return lists.Index(rows, func(row Row) (ID, Noun) { return id(row), noun(row) }), nil
}

// ByParent converts rows to domain values and groups them by the id of their
// parent, in their order. It wraps err, the error of reading the rows.
func ByParent[Row, Noun any](rows []Row, err error, what string, noun func(Row) Noun,
	parent func(Row) int64) (map[int64][]Noun, error) {
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", what, err)
	}
	return lists.Group(rows, func(row Row) (int64, Noun) { return parent(row), noun(row) }), nil
}

// RowsAtOnce bounds the rows of one INSERT with a parameter for each column.
const RowsAtOnce = 1000

// InsertAll inserts rows, at most RowsAtOnce per statement.
func InsertAll[Create any, Bulk interface{ Exec(context.Context) error }](ctx context.Context,
	rows []Create, bulk func(...Create) Bulk) error {
	for chunk := range slices.Chunk(rows, RowsAtOnce) {
		if err := bulk(chunk...).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}
