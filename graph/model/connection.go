package model

import (
	"context"

	"github.com/cadastre-dev/cadastre/page"
)

// Connection is a page of a list in the form of Relay's specification. It reads
// the count, and whether rows exist beyond the side where the page starts, only
// when they are selected.
type Connection[Row any] struct {
	Page     page.Page[*Row]
	Backward bool
	// More reports whether rows follow a page that was not read, or precede
	// that page if Backward is set. More is nil if Page.HasMore is known.
	More func(context.Context) (bool, error)
	// Beyond reports whether the list has rows beyond the side where the page
	// starts. It is nil if the page starts at an end of the list.
	Beyond func(context.Context) (bool, error)
	// Count returns the length of the whole list.
	Count func(context.Context) (int, error)
}

// Nodes returns the rows of the page.
func (c *Connection[Row]) Nodes() []*Row { return c.Page.Items }

// Edges returns the rows of the page with their cursors.
func (c *Connection[Row]) Edges() []Edge[Row] {
	out := make([]Edge[Row], len(c.Page.Items))
	for i, item := range c.Page.Items {
		out[i] = Edge[Row]{Cursor: c.Page.Cursors[i], Node: item}
	}
	return out
}

// TotalCount returns the length of the whole list.
func (c *Connection[Row]) TotalCount(ctx context.Context) (int, error) { return c.Count(ctx) }

// PageInfo returns the cursors of the page and whether other pages exist.
func (c *Connection[Row]) PageInfo() *PageInfo {
	info := &PageInfo{ahead: c.Beyond, behind: c.Beyond}
	if c.Backward {
		info.behind, info.HasPrevious = c.More, c.Page.HasMore
	} else {
		info.ahead, info.HasNext = c.More, c.Page.HasMore
	}
	if n := len(c.Page.Cursors); n > 0 {
		info.StartCursor, info.EndCursor = &c.Page.Cursors[0], &c.Page.Cursors[n-1]
	}
	return info
}

// PageInfo holds the cursors of a page and whether other pages exist.
type PageInfo struct {
	StartCursor, EndCursor *string
	HasNext, HasPrevious   bool
	ahead, behind          func(context.Context) (bool, error)
}

// HasNextPage reports whether rows follow the page.
func (p *PageInfo) HasNextPage(ctx context.Context) (bool, error) {
	if p.ahead != nil {
		return p.ahead(ctx)
	}
	return p.HasNext, nil
}

// HasPreviousPage reports whether rows precede the page.
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

// NewConnection returns the connection of a page. List returns pages of the
// same list in the same order. Count returns the length of that list.
func NewConnection[Row any](
	current page.Page[*Row], request page.Request,
	list func(context.Context, page.Request) (page.Page[*Row], error),
	count func(context.Context) (int, error),
) *Connection[Row] {
	c := &Connection[Row]{Page: current, Backward: request.Backward(), Count: count}
	has := func(one page.Request) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			rows, err := list(ctx, one)
			return len(rows.Items) > 0 || rows.HasMore, err
		}
	}
	if current.Unread {
		c.More = has(request.One())
	}
	if one, ok := requestBeyond(request, current.Cursors); ok {
		c.Beyond = has(one)
	}
	return c
}

// ConnectList returns the connection of an in-memory list, ordered by a key and,
// to break ties, an id. Name is part of the cursors.
func ConnectList[Row any](name string, rows []*Row, request page.Request,
	key, id func(*Row) string) (*Connection[Row], error) {
	list := func(_ context.Context, request page.Request) (page.Page[*Row], error) {
		return page.OfList(name, page.Order{}, rows, request, nil, key, id)
	}
	current, err := list(nil, request)
	if err != nil {
		return nil, err
	}
	return NewConnection(current, request, list, func(context.Context) (int, error) { return len(rows), nil }), nil
}

// requestBeyond returns a request for one row beyond the side where a page
// starts, and whether such a row can exist.
func requestBeyond(request page.Request, cursors []string) (page.Request, bool) {
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

// PageRequest returns the page request of a connection's arguments.
func PageRequest(first *int, after *string, last *int, before *string) page.Request {
	return page.Request{First: first, After: after, Last: last, Before: before}
}

// Node is a value with a global id.
type Node interface{ NodeID() string }
