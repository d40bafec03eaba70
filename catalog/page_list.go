package catalog

import (
	"cmp"
	"slices"
)

// PageOf takes a page of a list that is there as a whole, in the order of the
// places of its items: a key under the order and, to break ties, an id. Cursors
// are bound to the list. Problems are what is wrong besides the request: all of it
// comes back at once.
func PageOf[T any](list string, order Order, items []T, request PageRequest, problems Problems, place func(T) (key, id string)) (Page[T], error) {
	list = order.Of(list)
	request.Check(&problems)
	after := positionIn(list, request.After, "after", &problems)
	before := positionIn(list, request.Before, "before", &problems)
	if err := problems.Err(); err != nil {
		return Page[T]{}, err
	}
	at := func(item T) Position {
		key, id := place(item)
		return Position{List: list, Key: key, ID: id}
	}
	compare := func(a, b Position) int {
		c := cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.ID, b.ID))
		if order.Descending {
			return -c
		}
		return c
	}
	sorted := slices.SortedStableFunc(slices.Values(items), func(a, b T) int { return compare(at(a), at(b)) })
	sorted = slices.DeleteFunc(sorted, func(item T) bool {
		return after != nil && compare(at(item), *after) <= 0 || before != nil && compare(at(item), *before) >= 0
	})
	page := Page[T]{Items: sorted, HasMore: len(sorted) > request.Limit()}
	if page.HasMore && request.Backward() {
		page.Items = sorted[len(sorted)-request.Limit():]
	} else if page.HasMore {
		page.Items = sorted[:request.Limit()]
	}
	for _, item := range page.Items {
		page.Cursors = append(page.Cursors, at(item).Cursor())
	}
	return page, nil
}

func positionIn(list string, cursor *string, field string, problems *Problems) *Position {
	if cursor == nil {
		return nil
	}
	position, ok := ParsePosition(*cursor, list)
	if !ok {
		problems.Add(field, "is not a cursor of this list under this order")
		return nil
	}
	return &position
}
