package store

import (
	"slices"
	"strconv"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
)

// sortKey is a column that a list can be ordered by; times need their own
// comparison.
type sortKey struct {
	column string
	isTime bool
}

// namedOrders are those of a table of things with a name.
var namedOrders = map[string]sortKey{
	"NAME":       {column: "name"},
	"CREATED_AT": {column: "created_at", isTime: true},
	"UPDATED_AT": {column: "updated_at", isTime: true},
}

// keyUnder is the key of such a thing under one of namedOrders.
func keyUnder(order page.Order, name string, createdAt, updatedAt time.Time) any {
	switch order.Field {
	case "CREATED_AT":
		return createdAt
	case "UPDATED_AT":
		return updatedAt
	}
	return name
}

// paging takes one page of a table: after and before positions of one order, by
// a column that is never null, ties broken by id.
type paging struct {
	key        sortKey
	descending bool
	list       string
	// part is the column of a nested list's key; empty for a list of its own.
	part    string
	request page.Request
	after   *page.Position
	before  *page.Position
}

// newPaging reads a page request against the orders that a list offers. Every
// bad argument is a problem of its own.
func newPaging(list string, keys map[string]sortKey, order page.Order, request page.Request) (paging, error) {
	p := paging{key: keys[order.Field], descending: order.Descending, list: order.Of(list), request: request}
	var problems problem.Problems
	request.Check(&problems)
	p.after = p.position(request.After, "after", &problems)
	p.before = p.position(request.Before, "before", &problems)
	return p, problems.Err()
}

func (p paging) position(cursor *string, field string, problems *problem.Problems) *page.Position {
	if cursor == nil {
		return nil
	}
	position, ok := page.ParsePosition(*cursor, p.list)
	if ok && p.key.isTime {
		_, err := time.Parse(time.RFC3339Nano, position.Key)
		ok = err == nil
	}
	if _, err := strconv.ParseInt(position.ID, 10, 64); !ok || err != nil {
		problems.Add(field, "is not a cursor of this list under this order")
		return nil
	}
	return &position
}

// limit is one row more than the page has, to know whether there are more.
func (p paging) limit() int { return p.request.Limit() + 1 }

// sort orders rows in the direction in which the page is taken.
func (p paging) sort(s *entsql.Selector) {
	if p.part != "" {
		orderParts(s, p.part, p.direction())
	}
	s.OrderBy(p.direction()(s.C(p.key.column)), p.direction()(s.C("id")))
}

// direction is the one in which the page is taken.
func (p paging) direction() func(string) string {
	if p.descending != p.request.Backward() {
		return entsql.Desc
	}
	return entsql.Asc
}

// within keeps the rows between the positions.
func (p paging) within(s *entsql.Selector) {
	beyond, until := ">", "<"
	if p.descending {
		beyond, until = until, beyond
	}
	if p.after != nil {
		s.Where(p.compare(s, beyond, *p.after))
	}
	if p.before != nil {
		s.Where(p.compare(s, until, *p.before))
	}
}

// compare is a comparison of row values, which an index on (column, id) serves,
// with the part before them where there is one.
func (p paging) compare(s *entsql.Selector, operator string, at page.Position) *entsql.Predicate {
	id, _ := strconv.ParseInt(at.ID, 10, 64)
	var key any = at.Key
	if p.key.isTime {
		key, _ = time.Parse(time.RFC3339Nano, at.Key)
	}
	column, tie := s.C(p.key.column), s.C("id")
	return entsql.P(func(b *entsql.Builder) {
		b.WriteString("(")
		nested := p.part != "" && boundsParts(s)
		if nested {
			b.Ident(s.C(p.part)).Comma()
		}
		b.Ident(column).Comma().Ident(tie).WriteString(") " + operator + " (")
		if nested {
			b.WriteString(partKey(s)).Comma()
		}
		b.Arg(key).Comma().Arg(id).WriteString(")")
	})
}

// newPage makes a newPage of the rows found: cut to its size, in the list's order,
// each with its cursor.
func newPage[Row, Noun any](p paging, rows []Row, noun func(Row) Noun, place func(Row) (key any, id int64)) page.Page[Noun] {
	out := page.Page[Noun]{HasMore: len(rows) >= p.limit()}
	if out.HasMore {
		rows = rows[:p.request.Limit()]
	}
	if p.request.Backward() {
		slices.Reverse(rows)
	}
	out.Items = make([]Noun, len(rows))
	out.Cursors = make([]string, len(rows))
	for i, row := range rows {
		key, id := place(row)
		position := page.Position{List: p.list, ID: strconv.FormatInt(id, 10)}
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
