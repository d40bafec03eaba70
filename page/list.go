package page

import (
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/problem"
)

// OfList returns a page of an in-memory list, ordered by the positions of its
// items: a key under the order and, to break ties, an id. It computes the ids
// of few items only. Cursors are bound to the list. problems are earlier
// problems of the caller; OfList returns them together with the problems of the
// request.
func OfList[T any](list string, order Order, items []T, request Request, problems problem.Problems,
	key, id func(T) string) (Page[T], error) {
	list = order.Of(list)
	after, before := request.Positions(list, nil, &problems)
	if err := problems.Err(); err != nil {
		return Page[T]{}, err
	}
	sorting := sorting[T]{order.Descending, id}
	most := request.Limit() + 1 // one beyond the page
	var between []placed[T]
	var beyond *placed[T] // the item beyond the page so far, if there is one
	cut := func() {
		slices.SortFunc(between, sorting.compare) // fast for items that are already sorted or reversed
		if between = trimmed(between, most, request.Backward()); len(between) == most {
			last := between[most-1]
			if request.Backward() {
				last = between[0]
			}
			beyond = &last
		}
	}
	for _, item := range items {
		at := placed[T]{key(item), item}
		if after != nil && sorting.from(at, after) <= 0 || before != nil && sorting.from(at, before) >= 0 ||
			beyond != nil && request.Backward() == (sorting.compare(at, *beyond) < 0) {
			continue
		}
		if between = append(between, at); len(between) >= 4*most {
			cut()
		}
	}
	cut()
	page := Page[T]{HasMore: len(between) == most}
	for _, of := range trimmed(between, request.Limit(), request.Backward()) {
		page.Items, page.Cursors = append(page.Items, of.item),
			append(page.Cursors, Position{List: list, Key: of.key, ID: id(of.item)}.Cursor())
	}
	return page, nil
}

// placed is an item of a list with its key.
type placed[T any] struct {
	key  string
	item T
}

// sorting compares the items of a list. It computes ids only for equal keys.
type sorting[T any] struct {
	descending bool
	id         func(T) string
}

func (s sorting[T]) compare(a, b placed[T]) int {
	c := strings.Compare(a.key, b.key)
	if c == 0 {
		c = strings.Compare(s.id(a.item), s.id(b.item))
	}
	return s.directed(c)
}

// from compares an item with a position.
func (s sorting[T]) from(a placed[T], at *Position) int {
	c := strings.Compare(a.key, at.Key)
	if c == 0 {
		c = strings.Compare(s.id(a.item), at.ID)
	}
	return s.directed(c)
}

func (s sorting[T]) directed(c int) int {
	if s.descending {
		return -c
	}
	return c
}

// trimmed returns at most the given number of items: the first ones of a list,
// or the last ones.
func trimmed[T any](list []T, most int, last bool) []T {
	extra := max(0, len(list)-most)
	if last {
		return slices.Delete(list, 0, extra)
	}
	return slices.Delete(list, len(list)-extra, len(list))
}

// OfSorted is OfList for a list that the function from yields in ascending
// order, beginning at a position. For a page from the front in ascending order
// it reads at most request.Limit() + 2 items. Positions must be unique.
func OfSorted[T any](list string, order Order, from func(at Position) iter.Seq[T], request Request,
	problems problem.Problems, key, id func(T) string) (Page[T], error) {
	var items []T
	var refused problem.Problems
	after, _ := request.Positions(order.Of(list), nil, &refused)
	if len(problems)+len(refused) == 0 {
		first, most := Position{}, math.MaxInt
		if !request.Backward() && !order.Descending {
			most = request.Limit() + 2 // the item at the cursor, the page, and one beyond
			if after != nil {
				first = *after
			}
		}
		for item := range from(first) {
			if items = append(items, item); len(items) == most {
				break
			}
		}
	}
	return OfList(list, order, items, request, problems, key, id)
}

// Positions returns the positions of the cursors of a request in a list, nil
// for no cursor, and adds the problems of the request. valid reports whether a
// position belongs to the list; nil accepts all.
func (r Request) Positions(list string, valid func(Position) bool,
	problems *problem.Problems) (after, before *Position) {
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
