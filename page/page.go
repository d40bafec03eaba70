// Package page holds orders, cursors, pages of lists, and global ids.
package page

import (
	"encoding/base64"
	"encoding/json"
	"hash/crc32"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cadastre-dev/cadastre/problem"
)

// Sizes of a page, in rows.
const (
	DefaultSize = 50
	MaxSize     = 1000
)

// Request asks for a page of a list like a Relay connection: the first rows
// after a cursor, or the last rows before one. The zero Request asks for the
// first DefaultSize rows.
type Request struct {
	First  *int
	After  *string
	Last   *int
	Before *string
}

// Limit returns the maximum number of rows of the page.
func (r Request) Limit() int {
	switch {
	case r.First != nil:
		return *r.First
	case r.Last != nil:
		return *r.Last
	}
	return DefaultSize
}

// IsEmpty reports whether the request asks for no rows.
func (r Request) IsEmpty() bool { return r.Limit() == 0 }

// One returns the same request for one row.
func (r Request) One() Request {
	one := 1
	if r.Backward() {
		return Request{Last: &one, Before: r.Before, After: r.After}
	}
	return Request{First: &one, Before: r.Before, After: r.After}
}

// Backward reports whether the page comes from the end of the list.
func (r Request) Backward() bool { return r.Last != nil }

// Check adds the problems of the sizes. ParsePosition checks cursors.
func (r Request) Check(problems *problem.Problems) {
	if r.First != nil && r.Last != nil {
		problems.Add("last", "cannot be combined with first")
	}
	for _, of := range []struct {
		field string
		size  *int
	}{{"first", r.First}, {"last", r.Last}} {
		switch {
		case of.size == nil:
		case *of.size < 0:
			problems.Add(of.field, "must not be negative")
		case *of.size > MaxSize:
			problems.Add(of.field, "must be at most %d", MaxSize)
		}
	}
}

// Page is a part of a list in its order.
type Page[T any] struct {
	Items   []T
	Cursors []string // one for each item
	HasMore bool     // there are rows beyond the page in its direction
	// Unread is set if the list was not read, because the page has no rows.
	// Then HasMore is meaningless.
	Unread bool
}

// Of returns a page of other items with the cursors of a page.
func Of[To, From any](current Page[From], items []To) Page[To] {
	return Page[To]{Items: items, Cursors: current.Cursors, HasMore: current.HasMore, Unread: current.Unread}
}

// Order is the order of a list: by a field, ties broken by id.
type Order struct {
	Field      string
	Descending bool
}

// Of returns the name of a list under the order, for its cursors. A list with
// only one order may leave Field empty.
func (o Order) Of(list string) string {
	if o.Field != "" {
		list += " " + o.Field
	}
	if o.Descending {
		list += " descending"
	}
	return list
}

// Position is a position in a list under one order: the key there and, to break
// ties, an id. It does not refer to a row, so it stays valid when the row there
// is deleted.
type Position struct {
	List string // the list and its order
	Key  string
	ID   string
}

type positionText struct {
	List string `json:"l"`
	Key  string `json:"k"`
	ID   string `json:"i"`
	Sum  string `json:"s"`
}

func (p Position) sum() string {
	return strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(p.List+"\x00"+p.Key+"\x00"+p.ID))), 36)
}

// Cursor returns the position as an opaque string.
func (p Position) Cursor() string {
	text, err := json.Marshal(positionText{List: p.List, Key: p.Key, ID: p.ID, Sum: p.sum()})
	if err != nil {
		panic(err) // four strings always have JSON
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// ParsePosition parses a cursor of the list. It returns false if the cursor is
// mangled, has invalid strings, or belongs to another list or order.
func ParsePosition(cursor, list string) (Position, bool) {
	var t positionText
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || json.Unmarshal(text, &t) != nil {
		return Position{}, false
	}
	p := Position{List: t.List, Key: t.Key, ID: t.ID}
	return p, t.Sum == p.sum() && p.List == list && isText(p.Key) && isText(p.ID)
}

// isText reports whether both databases accept a string.
func isText(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

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
