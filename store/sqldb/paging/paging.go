// Package paging reads pages of tables: ordered by a column, between two
// cursors, and nested lists for many parents in one statement.
package paging

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// SortKey is a column to order a list by. Time columns need their own
// comparison.
type SortKey struct {
	Column string
	IsTime bool
	// Of returns the expression to order by instead of Column; nil means
	// Column.
	Of func(*entsql.Selector) entsql.Querier
	// Tie is the string column that breaks ties; "" means uuid. It must not be
	// the row id, since cursors reveal it.
	Tie string
	// IsPrefix means that Column has the first characters of Tie. The key of a
	// position is then the whole string, without an id.
	IsPrefix bool
}

// expression returns the SQL expression to order by.
func (k SortKey) expression(s *entsql.Selector) entsql.Querier {
	if k.Of != nil {
		return k.Of(s)
	}
	column := s.C(k.Column) // with the table's current alias
	return entsql.ExprFunc(func(b *entsql.Builder) { b.Ident(column) })
}

// TieColumn returns the column that breaks ties.
func (k SortKey) TieColumn() string { return cmp.Or(k.Tie, "uuid") }

// NamedOrders are the orders for a table of named things.
var NamedOrders = map[string]SortKey{
	"NAME":       {Column: "name"},
	"CREATED_AT": {Column: "created_at", IsTime: true},
	"UPDATED_AT": {Column: "updated_at", IsTime: true},
}

// KeyUnder returns the sort key of a named thing under one of NamedOrders.
func KeyUnder(order page.Order, name string, createdAt, updatedAt time.Time) any {
	switch order.Field {
	case "CREATED_AT":
		return createdAt
	case "UPDATED_AT":
		return updatedAt
	}
	return name
}

// Paging reads one page of a table, between the positions after and before. It
// orders by a column that is never null and breaks ties by another.
type Paging struct {
	Key        SortKey
	descending bool
	list       string
	// part is the key column of a nested list; "" for a top-level list.
	part    string
	request page.Request
	after   *page.Position
	before  *page.Position
}

// New parses a page request for a list with the given orders. It reports
// each bad argument as a problem.
func New(list string, keys map[string]SortKey, order page.Order, request page.Request) (Paging, error) {
	p := Paging{Key: keys[order.Field], descending: order.Descending, list: order.Of(list), request: request}
	var problems problem.Problems
	p.after, p.before = request.Positions(p.list, p.isPosition, &problems)
	return p, problems.Err()
}

// isPosition reports whether a position fits the sort key: a time column needs a
// key that is a time, and a prefix column a position without an id.
func (p Paging) isPosition(at page.Position) bool {
	switch {
	case p.Key.IsPrefix:
		return at.ID == ""
	case p.Key.IsTime:
		_, err := time.Parse(time.RFC3339Nano, at.Key)
		return err == nil
	}
	return true
}

// Limit returns the page size plus one. The extra row shows whether more
// follow.
func (p Paging) Limit() int { return p.request.Limit() + 1 }

// Sort orders rows in the direction of the request.
func (p Paging) Sort(s *entsql.Selector) {
	direction := p.Direction()
	if p.isBounded(s) {
		s.OrderBy(direction(s.C(p.part)))
	}
	switch {
	case p.Key.Of == nil:
		s.OrderBy(direction(s.C(p.Key.Column)))
	case p.IsReversed():
		s.OrderExpr(entsql.DescExpr(p.Key.Of(s)))
	default:
		s.OrderExpr(p.Key.Of(s))
	}
	s.OrderBy(direction(s.C(p.Key.TieColumn())))
}

// isBounded reports whether the key column of a nested list starts the order
// and the comparisons of a part.
func (p Paging) isBounded(s *entsql.Selector) bool { return p.part != "" && boundsParts(s) }

// Take keeps the rows of the page and one more, in the request's direction.
func (p Paging) Take(s *entsql.Selector) {
	p.Within(s)
	p.Sort(s)
	s.Limit(p.Limit())
}

// Direction returns the sort direction of the request, entsql.Asc or
// entsql.Desc.
func (p Paging) Direction() func(string) string {
	if p.IsReversed() {
		return entsql.Desc
	}
	return entsql.Asc
}

// IsReversed reports whether the page is read in descending order.
func (p Paging) IsReversed() bool { return p.descending != p.request.Backward() }

// Within keeps the rows strictly between after and before; nil is no bound.
func (p Paging) Within(s *entsql.Selector) {
	for _, bound := range p.Bounds() {
		s.Where(p.compare(s, bound.Operator, bound.At))
	}
}

// Bound is a condition on rows: they are > or < a position.
type Bound struct {
	Operator string
	At       page.Position
}

// Bounds returns the conditions for the positions of the request.
func (p Paging) Bounds() []Bound {
	beyond, until := ">", "<"
	if p.descending {
		beyond, until = until, beyond
	}
	var bounds []Bound
	if p.after != nil {
		bounds = append(bounds, Bound{beyond, *p.after})
	}
	if p.before != nil {
		bounds = append(bounds, Bound{until, *p.before})
	}
	return bounds
}

// compare returns the comparison of (column, tie) of a row with a position. An
// index on (column, tie) serves it. In the parts of a nested list on PostgreSQL,
// the key column comes first.
func (p Paging) compare(s *entsql.Selector, operator string, at page.Position) *entsql.Predicate {
	var key any = at.Key
	switch {
	case p.Key.IsTime:
		key, _ = time.Parse(time.RFC3339Nano, at.Key)
	case p.Key.IsPrefix:
		key, at.ID = sqldb.PrefixOf(at.Key), at.Key
	}
	column, tie := p.Key.expression(s), s.C(p.Key.TieColumn())
	return entsql.P(func(b *entsql.Builder) {
		b.WriteString("(")
		nested := p.isBounded(s)
		if nested {
			b.Ident(s.C(p.part)).Comma()
		}
		b.Join(column).Comma().Ident(tie).WriteString(") " + operator + " (")
		if nested {
			b.WriteString(partKey(s)).Comma()
		}
		b.Arg(key).Comma().Arg(at.ID).WriteString(")")
	})
}

// NewPage builds a page from the rows found. It cuts them to the page size,
// restores the order of the list, and adds the cursors.
func NewPage[Row, Noun any](p Paging, rows []Row, noun func(Row) Noun,
	place func(Row) (key any, tie string)) page.Page[Noun] {
	out := page.Page[Noun]{HasMore: len(rows) >= p.Limit()}
	if out.HasMore {
		rows = rows[:p.request.Limit()]
	}
	if p.request.Backward() {
		slices.Reverse(rows)
	}
	out.Items = make([]Noun, len(rows))
	out.Cursors = make([]string, len(rows))
	for i, row := range rows {
		key, tie := place(row)
		out.Items[i], out.Cursors[i] = noun(row), CursorAt(p.list, key, tie)
	}
	return out
}

// PageOf returns a page of the rows that meet the conditions, converted to
// domain values. place returns a row's position in the order. A request for an
// empty page needs no statement. err is the error of New, which PageOf returns.
func PageOf[Row, Noun any](
	ctx context.Context, d *sqldb.DB, table sqldb.Table[Row], pages Paging, err error, noun func(*Row) Noun,
	place func(*Row) (key any, tie string),
	conditions ...func(*entsql.Selector),
) (page.Page[Noun], error) {
	if err != nil {
		return page.Page[Noun]{}, err
	}
	if pages.request.IsEmpty() {
		return page.Page[Noun]{Unread: true}, nil
	}
	rows, err := table.All(ctx, d, append(conditions, pages.Take)...)
	if err != nil {
		return page.Page[Noun]{}, fmt.Errorf("list the rows of %s: %w", table.Name, err)
	}
	return NewPage(pages, rows, noun, place), nil
}

// CursorAt returns the cursor of a row in a list under an order, from its key,
// a string or a time, and its value of the column that breaks ties.
func CursorAt(list string, key any, tie string) string {
	position := page.Position{List: list, ID: tie}
	switch key := key.(type) {
	case string:
		position.Key = key
	case time.Time:
		position.Key = key.UTC().Format(time.RFC3339Nano)
	}
	return position.Cursor()
}
