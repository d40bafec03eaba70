// Package optional has the types of fields of an input that can be absent, null
// or a value: absent leaves what is, null takes it away.
package optional

import "encoding/json"

// Of is a field that can be absent, null or a value. The zero Of is absent. It is
// a map because encoding/json leaves an empty one out of an object whose field says
// omitempty.
type Of[T any] map[bool]T

// String is a text.
type String = Of[string]

// Strings is a list of texts.
type Strings = Of[[]string]

// Int is a whole number.
type Int = Of[int]

// Float is a number.
type Float = Of[float64]

// Bool is true or false.
type Bool = Of[bool]

// JSON is any value of JSON.
type JSON = Of[json.RawMessage]

// JSONs is a list of values of JSON.
type JSONs = Of[[]json.RawMessage]

// Value returns a field with a value.
func Value[T any](value T) Of[T] { return Of[T]{true: value} }

// Null returns a field that is null.
func Null[T any]() Of[T] {
	var none T
	return Of[T]{false: none}
}

// Get returns the value, and whether there is one.
func (o Of[T]) Get() (T, bool) {
	value, ok := o[true]
	return value, ok
}

// IsNull reports whether the field is null, rather than absent or a value.
func (o Of[T]) IsNull() bool {
	_, null := o[false]
	return null && len(o) == 1
}

// MarshalJSON returns the value, or null.
func (o Of[T]) MarshalJSON() ([]byte, error) {
	if value, ok := o.Get(); ok {
		return json.Marshal(value)
	}
	return []byte("null"), nil
}

// UnmarshalJSON reads a value, or null.
func (o *Of[T]) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*o = Null[T]()
		return nil
	}
	var value T
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	*o = Value(value)
	return nil
}
