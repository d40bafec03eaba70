package sqldb

import (
	"cmp"
	"slices"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
)

// SortKey is a column that a list can be ordered by; times need their own
// comparison.
type SortKey struct {
	Column string
	IsTime bool
	// Of returns what to order by in place of a column; nil is the column.
	Of func(*entsql.Selector) entsql.Querier
	// Tie is the column of texts that breaks ties; empty is the uuid. It is never
	// the id of a row, which a cursor would tell.
	Tie string
}

// expression returns what to order by.
func (k SortKey) expression(s *entsql.Selector) entsql.Querier {
	if k.Of != nil {
		return k.Of(s)
	}
	column := s.C(k.Column) // with the name that the table has now
	return entsql.ExprFunc(func(b *entsql.Builder) { b.Ident(column) })
}

// TieColumn returns the column that breaks ties.
func (k SortKey) TieColumn() string { return cmp.Or(k.Tie, "uuid") }

// NamedOrders are those of a table of things with a name.
var NamedOrders = map[string]SortKey{
	"NAME":       {Column: "name"},
	"CREATED_AT": {Column: "created_at", IsTime: true},
	"UPDATED_AT": {Column: "updated_at", IsTime: true},
}

// KeyUnder returns the key of such a thing under one of namedOrders.
func KeyUnder(order page.Order, name string, createdAt, updatedAt time.Time) any {
	switch order.Field {
	case "CREATED_AT":
		return createdAt
	case "UPDATED_AT":
		return updatedAt
	}
	return name
}

// Paging takes one page of a table: after and before positions of one order, by
// a column that is never null, ties broken by another.
type Paging struct {
	Key        SortKey
	descending bool
	list       string
	// part is the column of a nested list's key; empty for a list of its own.
	part    string
	request page.Request
	after   *page.Position
	before  *page.Position
}

// NewPaging reads a page request against the orders that a list offers. Every
// bad argument is a problem of its own.
func NewPaging(list string, keys map[string]SortKey, order page.Order, request page.Request) (Paging, error) {
	p := Paging{Key: keys[order.Field], descending: order.Descending, list: order.Of(list), request: request}
	var problems problem.Problems
	p.after, p.before = request.Positions(p.list, p.isPosition, &problems)
	return p, problems.Err()
}

// isPosition reports whether the key of a position is of the type that the column
// has.
func (p Paging) isPosition(at page.Position) bool {
	if !p.Key.IsTime {
		return true
	}
	_, err := time.Parse(time.RFC3339Nano, at.Key)
	return err == nil
}

// Limit returns one row more than the page has, to know whether there are more.
func (p Paging) Limit() int { return p.request.Limit() + 1 }

// Sort orders rows in the direction in which the page is taken.
func (p Paging) Sort(s *entsql.Selector) {
	if p.part != "" {
		OrderParts(s, p.part, p.Direction())
	}
	direction := p.Direction()
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

// Take keeps the rows of the page, in the direction in which it is taken.
func (p Paging) Take(s *entsql.Selector) {
	p.Within(s)
	p.Sort(s)
	s.Limit(p.Limit())
}

// Direction returns the one in which the page is taken.
func (p Paging) Direction() func(string) string {
	if p.IsReversed() {
		return entsql.Desc
	}
	return entsql.Asc
}

// IsReversed reports whether the page is taken against the order of its column.
func (p Paging) IsReversed() bool { return p.descending != p.request.Backward() }

// Within keeps the rows between the positions.
func (p Paging) Within(s *entsql.Selector) {
	for _, bound := range p.Bounds() {
		s.Where(p.compare(s, bound.Operator, bound.At))
	}
}

// Bound is a position that the rows of a page are beyond: > or < it.
type Bound struct {
	Operator string
	At       page.Position
}

// Bounds returns what the positions of the request bound.
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

// compare returns a comparison of row values, which an index on (column, tie)
// serves, with the part before them where there is one.
func (p Paging) compare(s *entsql.Selector, operator string, at page.Position) *entsql.Predicate {
	var key any = at.Key
	if p.Key.IsTime {
		key, _ = time.Parse(time.RFC3339Nano, at.Key)
	}
	column, tie := p.Key.expression(s), s.C(p.Key.TieColumn())
	return entsql.P(func(b *entsql.Builder) {
		b.WriteString("(")
		nested := p.part != "" && boundsParts(s)
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

// NewPage makes a NewPage of the rows found: cut to its size, in the list's order,
// each with its cursor.
func NewPage[Row, Noun any](p Paging, rows []Row, noun func(Row) Noun, place func(Row) (key any, tie string)) page.Page[Noun] {
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
		position := page.Position{List: p.list, ID: tie}
		switch key := key.(type) {
		case string:
			position.Key = key
		case time.Time:
			position.Key = key.UTC().Format(time.RFC3339Nano)
		}
		out.Items[i], out.Cursors[i] = noun(row), position.Cursor()
	}
	return out
}
