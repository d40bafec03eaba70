package model

import (
	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/metadef"
)

// ChangeOf returns the change of a field in a patch. An absent field changes
// nothing.
func ChangeOf[T any](field graphql.Omittable[T]) metadef.Change[T] {
	return metadef.Change[T]{Set: field.IsSet(), Value: field.Value()}
}

// Values returns the values that pointers point to, or nil for nil. No pointer
// may be nil.
func Values[T any](pointers []*T) []T {
	if pointers == nil {
		return nil
	}
	values := make([]T, len(pointers))
	for i, pointer := range pointers {
		values[i] = *pointer
	}
	return values
}
