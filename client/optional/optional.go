// Package optional has the type of input fields that can be absent, null or a
// value. An update keeps a field that is absent and clears one that is null.
package optional

import (
	"bytes"
	"encoding/json"
)

// Of is a field that can be absent, null or a value. The zero value is absent. Of
// is a map because encoding/json omits an empty map where the tag says omitempty.
type Of[T any] map[bool]T

// Value returns a field with a value.
func Value[T any](value T) Of[T] { return Of[T]{true: value} }

// From returns a field with the value that a pointer points to, absent for nil.
func From[T any](value *T) Of[T] {
	if value == nil {
		return nil
	}
	return Value(*value)
}

// List returns a field with a list, absent for nil. An empty list is a value.
func List[T any](list []T) Of[[]T] {
	if list == nil {
		return nil
	}
	return Value(list)
}

// Null returns a field that is null.
func Null[T any]() Of[T] {
	var none T
	return Of[T]{false: none}
}

// Get returns the value and whether there is one.
func (o Of[T]) Get() (T, bool) {
	value, ok := o[true]
	return value, ok
}

// IsNull reports whether the field is null.
func (o Of[T]) IsNull() bool {
	_, null := o[false]
	return null && len(o) == 1
}

// MarshalJSON encodes the value, or null.
func (o Of[T]) MarshalJSON() ([]byte, error) {
	value, ok := o.Get()
	if !ok {
		return []byte("null"), nil
	}
	return json.Marshal(value)
}

// UnmarshalJSON decodes a value, or null. An object with a field that T does not
// have is an error.
func (o *Of[T]) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*o = Null[T]()
		return nil
	}
	var value T
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&value); err != nil {
		return err
	}
	*o = Value(value)
	return nil
}
