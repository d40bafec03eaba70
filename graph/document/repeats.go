package document

import (
	"cmp"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// markRepeats finds fields of a query that select the same field of the same
// objects with the same arguments, under different names. It gives them the
// place of the first one, so that the field is resolved once.
func (s *Selection) markRepeats() {
	aliased := slices.ContainsFunc(s.Fields, func(f *Field) bool { return f.AST.Alias != f.AST.Name })
	var firsts map[string]*Field
	if aliased {
		firsts = make(map[string]*Field, len(s.Fields))
	}
	for _, field := range s.Fields {
		if aliased && field.Number != TypeName {
			call := callOf(field.AST)
			if first := firsts[call]; first != nil {
				field.Repeats, first.Repeated, field.Place = true, true, first.Place
			} else {
				firsts[call] = field
			}
		}
		if field.Below != nil {
			field.Below.markRepeats()
		}
		for _, selection := range field.Types {
			selection.markRepeats()
		}
	}
}

// callOf returns the name of a field with its arguments, sorted by name.
// Literals and variables appear as they are written.
func callOf(field *ast.Field) string {
	if len(field.Arguments) == 0 {
		return field.Name
	}
	arguments := slices.SortedFunc(slices.Values(field.Arguments), func(a, b *ast.Argument) int {
		return cmp.Compare(a.Name, b.Name)
	})
	var call strings.Builder
	call.WriteString(field.Name)
	for _, argument := range arguments {
		call.WriteByte(' ')
		call.WriteString(argument.Name)
		call.WriteByte(':')
		call.WriteString(argument.Value.String())
	}
	return call.String()
}
