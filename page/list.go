package page

import (
	"cmp"
	"slices"

	"github.com/cadastre-dev/cadastre/problem"
)

// OfList returns a page of an in-memory list, in the order of the positions of its
// items: a key under the order and, to break ties, an id. Cursors are bound to
// the list. Problems are what is wrong besides the request: all of it comes
// back at once.
func OfList[T any](list string, order Order, items []T, request Request, problems problem.Problems, position func(T) (key, id string)) (Page[T], error) {
	list = order.Of(list)
	after, before := request.Positions(list, nil, &problems)
	if err := problems.Err(); err != nil {
		return Page[T]{}, err
	}
	compare := func(a, b Position) int {
		c := cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.ID, b.ID))
		if order.Descending {
			return -c
		}
		return c
	}
	type placed struct {
		at   Position
		item T
	}
	var between []placed
	for _, item := range items {
		key, id := position(item)
		at := Position{List: list, Key: key, ID: id}
		if (after == nil || compare(at, *after) > 0) && (before == nil || compare(at, *before) < 0) {
			between = append(between, placed{at, item})
		}
	}
	slices.SortStableFunc(between, func(a, b placed) int { return compare(a.at, b.at) })
	page := Page[T]{HasMore: len(between) > request.Limit()}
	if page.HasMore && request.Backward() {
		between = between[len(between)-request.Limit():]
	} else if page.HasMore {
		between = between[:request.Limit()]
	}
	for _, of := range between {
		page.Items, page.Cursors = append(page.Items, of.item), append(page.Cursors, of.at.Cursor())
	}
	return page, nil
}

// Positions returns where the cursors of a request stand in a list, nil for
// none, and adds what is wrong with the request. Valid reports whether a position
// is one of the list; nil takes all.
func (r Request) Positions(list string, valid func(Position) bool, problems *problem.Problems) (after, before *Position) {
	r.Check(problems)
	read := func(cursor *string, field string) *Position {
		if cursor == nil {
			return nil
		}
		position, ok := ParsePosition(*cursor, list)
		if !ok || valid != nil && !valid(position) {
			problems.Add(field, "is not a cursor of this list under this order")
			return nil
		}
		return &position
	}
	return read(r.After, "after"), read(r.Before, "before")
}
