package metadef

import (
	"encoding/json"
	"io"
	"reflect"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// Change is what an input says about one field: the zero Change keeps it, a set
// one replaces it, and a set one whose value is nil clears it. T is a pointer
// or a slice. Creating is a change of nothing.
type Change[T any] struct {
	Set   bool
	Value T
}

// jsonChange is a Change of any type.
type jsonChange interface {
	// json returns the value as JSON, empty where it is nil.
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
	value, _, _ := c.json() // what was read can be written
	value.MarshalGQL(w)
}

// UnmarshalGQL reads a field that the input has, after its type was checked.
func (c *Change[T]) UnmarshalGQL(v any) error {
	var value text.JSON
	if err := value.UnmarshalGQL(withEmptyLists(v)); err != nil {
		return err
	}
	return c.UnmarshalJSON([]byte(value))
}

// withEmptyLists returns the value of a literal with empty lists in place of
// nil ones, which its parser makes of them.
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

// UnmarshalJSON reads a field that the input has. One value stands for a list
// of one, as everywhere in GraphQL.
func (c *Change[T]) UnmarshalJSON(value []byte) error {
	c.Set = true
	isList := reflect.TypeFor[T]().Kind() == reflect.Slice
	if isList && value[0] != '[' && string(value) != "null" {
		value = append(append([]byte{'['}, value...), ']')
	}
	return json.Unmarshal(value, &c.Value)
}

// RenamedAs returns the name that a thing is to have: the new one, or its own
// where the change keeps it.
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
