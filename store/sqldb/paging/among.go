package paging

import (
	"context"
	"fmt"
	"slices"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/lib/pq"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

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
