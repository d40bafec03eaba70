package catalog

import (
	"cmp"
	"slices"
)

// PageOf takes a page of a list that is there as a whole, in the order of the
// places of its items: a key and, to break ties, an id. Name is what its cursors
// are bound to.
func PageOf[T any](name string, items []T, request PageRequest, place func(T) (key, id string)) (Page[T], error) {
	var problems Problems
	request.Check(&problems)
	after := positionIn(name, request.After, "after", &problems)
	before := positionIn(name, request.Before, "before", &problems)
	if err := problems.Err(); err != nil {
		return Page[T]{}, err
	}
	at := func(item T) Position {
		key, id := place(item)
		return Position{List: name, Key: key, ID: id}
	}
	sorted := slices.SortedStableFunc(slices.Values(items), func(a, b T) int { return at(a).compare(at(b)) })
	sorted = slices.DeleteFunc(sorted, func(item T) bool {
		return after != nil && at(item).compare(*after) <= 0 || before != nil && at(item).compare(*before) >= 0
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

func (p Position) compare(other Position) int {
	return cmp.Or(cmp.Compare(p.Key, other.Key), cmp.Compare(p.ID, other.ID))
}

func positionIn(name string, cursor *string, field string, problems *Problems) *Position {
	if cursor == nil {
		return nil
	}
	position, ok := ParsePosition(*cursor, name)
	if !ok {
		problems.Add(field, "is not a cursor of this list under this order")
		return nil
	}
	return &position
}
