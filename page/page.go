// Package page holds orders, cursors, pages of lists, and global ids.
package page

import (
	"encoding/base64"
	"encoding/json"
	"hash/crc32"
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
