package metadef

import (
	"encoding/json"
	"io"
	"reflect"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// Change is an optional field of an input. The zero Change keeps the field. A
// set Change replaces it, or clears it if the value is nil. T is a pointer or a
// slice. A new object is a change of an empty one.
type Change[T any] struct {
	Set   bool
	Value T
}

// jsonChange is a Change of any type.
type jsonChange interface {
	// json returns the value as JSON, "" if it is nil.
	json() (value text.JSON, set bool, err error)
}

func (c Change[T]) json() (value text.JSON, set bool, err error) {
	if err := value.UnmarshalGQL(c.Value); err != nil || value == "null" {
		return "", c.Set, err
	}
	return value, c.Set, nil
}

// MarshalGQL writes the value as JSON.
func (c Change[T]) MarshalGQL(w io.Writer) {
	value, _, _ := c.json() // cannot fail for a value that was read
	value.MarshalGQL(w)
}

// UnmarshalGQL reads a field of the input after its type was checked.
func (c *Change[T]) UnmarshalGQL(v any) error {
	var value text.JSON
	if err := value.UnmarshalGQL(withEmptyLists(v)); err != nil {
		return err
	}
	return c.UnmarshalJSON([]byte(value))
}

// withEmptyLists returns the value of a literal with its nil lists made empty.
// The parser of literals returns nil for an empty list.
func withEmptyLists(v any) any {
	switch v := v.(type) {
	case []any:
		return lists.Map(v, withEmptyLists)
	case map[string]any:
		object := make(map[string]any, len(v))
		for key, value := range v {
			object[key] = withEmptyLists(value)
		}
		return object
	}
	return v
}

// UnmarshalJSON reads a field of the input. As in GraphQL, a single value
// counts as a list of one.
func (c *Change[T]) UnmarshalJSON(value []byte) error {
	c.Set = true
	isList := reflect.TypeFor[T]().Kind() == reflect.Slice
	if isList && value[0] != '[' && string(value) != "null" {
		value = append(append([]byte{'['}, value...), ']')
	}
	return json.Unmarshal(value, &c.Value)
}

// RenamedAs returns the new name of an object, or its current name if the
// change keeps it. It adds a problem for a name that is null or invalid.
func RenamedAs(problems *problem.Problems, field, name string, to Change[*string]) string {
	switch {
	case !to.Set:
		return name
	case to.Value == nil:
		problems.Add(field, "must not be null")
		return name
	}
	text.CheckName(problems, field, *to.Value)
	return *to.Value
}
