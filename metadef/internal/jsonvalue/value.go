// Package jsonvalue parses JSON without losing details: it keeps the spelling
// of numbers and the order of members.
package jsonvalue

import (
	"slices"
	"strconv"
	"strings"

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
