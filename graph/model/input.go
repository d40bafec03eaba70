package model

import (
	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/metadef"
)

// ChangeOf is what a patch says about a field: nothing where it is absent.
func ChangeOf[T any](field graphql.Omittable[T]) metadef.Change[T] {
	return metadef.Change[T]{Set: field.IsSet(), Value: field.Value()}
}

// Values is the values of a list of pointers, as inputs come in.
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
