package model

import (
	"context"

	"github.com/cadastre-dev/cadastre/page"
)

// Connection is a page of a list, with what Relay clients ask of one. Its count
// and the look back are taken from the database only when they are selected.
type Connection[Row any] struct {
	Page     page.Page[*Row]
	Backward bool
	// Beyond tells whether there are rows on the side that the page did not
	// look at; nil when the page starts at that end of the list.
	Beyond func(context.Context) (bool, error)
	Count  func(context.Context) (int, error)
}

// Nodes are the rows of the page.
func (c *Connection[Row]) Nodes() []*Row { return c.Page.Items }

// TotalCount is the length of the whole list.
func (c *Connection[Row]) TotalCount(ctx context.Context) (int, error) { return c.Count(ctx) }

// PageInfo tells where the page stands in the list.
func (c *Connection[Row]) PageInfo() *PageInfo {
	info := &PageInfo{ahead: c.Beyond, behind: c.Beyond}
	if c.Backward {
		info.behind, info.HasPrevious = nil, c.Page.HasMore
	} else {
		info.ahead, info.HasNext = nil, c.Page.HasMore
	}
	if n := len(c.Page.Cursors); n > 0 {
		info.StartCursor, info.EndCursor = &c.Page.Cursors[0], &c.Page.Cursors[n-1]
	}
	return info
}

// PageInfo tells where a page stands in its list.
type PageInfo struct {
	StartCursor, EndCursor *string
	HasNext, HasPrevious   bool
	ahead, behind          func(context.Context) (bool, error)
}

// HasNextPage tells whether rows follow the page.
func (p *PageInfo) HasNextPage(ctx context.Context) (bool, error) {
	if p.ahead != nil {
		return p.ahead(ctx)
	}
	return p.HasNext, nil
}

// HasPreviousPage tells whether rows precede the page.
func (p *PageInfo) HasPreviousPage(ctx context.Context) (bool, error) {
	if p.behind != nil {
		return p.behind(ctx)
	}
	return p.HasPrevious, nil
}

// Edge is a row with its cursor.
type Edge[Row any] struct {
	Cursor string
	Node   *Row
}

// edges are the rows of a connection with their cursors, as the edge type of
// that connection.
func edges[E ~struct{ Edge[Row] }, Row any](c *Connection[Row]) []E {
	out := make([]E, len(c.Page.Items))
	for i, item := range c.Page.Items {
		out[i] = E{Edge[Row]{Cursor: c.Page.Cursors[i], Node: item}}
	}
	return out
}

// NewConnection makes a connection of a page.
func NewConnection[Row any](
	page page.Page[*Row], request page.Request,
	list func(context.Context, page.Request) (page.Page[*Row], error),
	count func(context.Context) (int, error),
) *Connection[Row] {
	c := &Connection[Row]{Page: page, Backward: request.Backward(), Count: count}
	if look, needed := lookBack(request, page.Cursors); needed {
		c.Beyond = func(ctx context.Context) (bool, error) {
			page, err := list(ctx, look)
			return len(page.Items) > 0 || page.HasMore, err
		}
	}
	return c
}

// ConnectList makes a connection of a list that is there as a whole, in the order
// of its places: a key and, to break ties, an id. It registers nothing: whoever
// loaded the rows has, or what they are reached from is.
func ConnectList[Row any](name string, rows []*Row, request page.Request, place func(*Row) (key, id string)) (*Connection[Row], error) {
	list := func(_ context.Context, current page.Request) (page.Page[*Row], error) {
		return page.Of(name, page.Order{}, rows, current, nil, place)
	}
	page, err := list(nil, request)
	if err != nil {
		return nil, err
	}
	return NewConnection(page, request, list, func(context.Context) (int, error) { return len(rows), nil }), nil
}

// lookBack is the page of one row on the side where a page began, and whether
// there can be such a row at all.
func lookBack(request page.Request, cursors []string) (page.Request, bool) {
	one := 1
	switch {
	case request.Backward() && request.Before == nil, !request.Backward() && request.After == nil:
		return page.Request{}, false
	case request.Backward() && len(cursors) > 0:
		return page.Request{First: &one, After: &cursors[len(cursors)-1]}, true
	case request.Backward():
		return page.Request{First: &one, After: request.Before}, true
	case len(cursors) > 0:
		return page.Request{Last: &one, Before: &cursors[0]}, true
	}
	return page.Request{Last: &one, Before: request.After}, true
}

// PageRequest takes the arguments of a connection.
func PageRequest(first *int, after *string, last *int, before *string) page.Request {
	return page.Request{First: first, After: after, Last: last, Before: before}
}
