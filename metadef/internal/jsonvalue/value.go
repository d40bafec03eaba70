// Package jsonvalue parses JSON without losing details: it keeps the spelling
// of numbers and the order of members.
package jsonvalue

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/text"
)

// Kind is a kind of JSON value.
type Kind byte

const (
	KindNull Kind = iota + 1
	KindBoolean
	KindNumber
	KindText
	KindList
	KindMap
)

// String returns the kind as messages name it, such as "a list".
func (k Kind) String() string {
	return [...]string{"nothing", "null", "a boolean", "a number", "text", "a list", "a map"}[k]
}

// Value is a JSON value. The zero Value means no value.
type Value struct {
	Kind    Kind
	Raw     text.JSON // without white space
	Text    string    // of KindText, decoded
	List    []Value   // of KindList
	Members []Member  // of KindMap
}

// Member is a member of a map.
type Member struct {
	Key   string
	Value Value
}

// Member returns the value of the member with a key, and false if there is none.
func (v Value) Member(key string) (Value, bool) {
	for _, m := range v.Members {
		if m.Key == key {
			return m.Value, true
		}
	}
	return Value{}, false
}

// Same returns a string that is equal for two values exactly if they are equal
// in JSON: numbers by value, maps regardless of order.
func (v Value) Same() string {
	switch v.Kind {
	case KindNumber:
		return "0" + v.Decimal().String()
	case KindText:
		return strconv.Quote(v.Text)
	case KindList:
		parts := lists.Map(v.List, func(item Value) string { return item.Same() })
		return "[" + strings.Join(parts, ",") + "]"
	case KindMap:
		parts := lists.Map(v.Members, func(m Member) string { return strconv.Quote(m.Key) + ":" + m.Value.Same() })
		slices.Sort(parts)
		return "{" + strings.Join(parts, ",") + "}"
	}
	return string(v.Raw)
}

// Decimal returns the value of a number, without rounding.
func (v Value) Decimal() text.Decimal {
	number, _ := text.ParseDecimal(string(v.Raw))
	return number
}

// Quote returns the JSON of a string, with as few escapes as possible.
func Quote(input string) text.JSON {
	quoted, _ := jsontext.AppendQuote(nil, input) // invalid UTF-8 becomes U+FFFD
	return text.JSON(quoted)
}

// OfText returns the value of a string.
func OfText(input string) Value { return Value{Kind: KindText, Raw: Quote(input), Text: input} }

// Text returns the JSON of a string, "" for nil.
func Text(input *string) text.JSON {
	if input == nil {
		return ""
	}
	return Quote(*input)
}

// Boolean returns the JSON of a boolean, "" for nil.
func Boolean(yes *bool) text.JSON {
	if yes == nil {
		return ""
	}
	return text.JSON(strconv.FormatBool(*yes))
}

// Number returns the JSON of an integer.
func Number(n int) text.JSON { return text.JSON(strconv.Itoa(n)) }

func list(values []text.JSON) text.JSON {
	list := []byte{'['}
	for i, value := range values {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, value...)
	}
	return text.JSON(append(list, ']'))
}

// ListOf returns the JSON of a list of items, each written by write. It returns
// "" for no items.
func ListOf[T any](items []T, write func(T) text.JSON) text.JSON {
	if len(items) == 0 {
		return ""
	}
	values := lists.Map(items, write)
	return list(values)
}

// MemberOf returns a member for Map.
func MemberOf(key string, value text.JSON) Member { return Member{key, Value{Raw: value}} }

// Map returns the JSON of a map.
func Map(members []Member) text.JSON {
	list := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(append(append(list, Quote(m.Key)...), ':'), m.Value.Raw...)
	}
	return text.JSON(append(list, '}'))
}

// MapOf returns the JSON of a map. pairs are keys, each followed by its value.
// It leaves out keys with an empty value.
func MapOf(pairs ...text.JSON) text.JSON {
	members := make([]Member, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			members = append(members, MemberOf(string(pairs[i]), pairs[i+1]))
		}
	}
	return Map(members)
}
