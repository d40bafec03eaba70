package rest

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Text is a JSON value that is written from start to end. It is for answers
// with a thousand objects: as maps, they take four times as long to encode.
type Text []byte

// next writes the comma before a member or an item that is not the first.
func (t *Text) next() {
	if n := len(*t); n > 0 {
		switch (*t)[n-1] {
		case '{', '[', ':':
		default:
			*t = append(*t, ',')
		}
	}
}

// Object writes an object. write writes its members.
func (t *Text) Object(write func()) {
	t.next()
	*t = append(*t, '{')
	write()
	*t = append(*t, '}')
}

// List writes a list. write writes its items.
func (t *Text) List(write func()) {
	t.next()
	*t = append(*t, '[')
	write()
	*t = append(*t, ']')
}

// Key writes the name of the member that the next call writes.
func (t *Text) Key(name string) {
	t.String(name)
	*t = append(*t, ':')
}

// String writes a string.
func (t *Text) String(value string) {
	t.next()
	*t, _ = jsontext.AppendQuote(*t, value) // invalid UTF-8 becomes U+FFFD
}

// Strings writes a list of strings.
func (t *Text) Strings(values []string) {
	t.List(func() {
		for _, value := range values {
			t.String(value)
		}
	})
}

// Integer writes a number.
func (t *Text) Integer(value int64) {
	t.next()
	*t = strconv.AppendInt(*t, value, 10)
}

// StringOrNull writes a string, null for an empty one.
func (t *Text) StringOrNull(value string) {
	if value != "" {
		t.String(value)
		return
	}
	t.next()
	*t = append(*t, "null"...)
}
