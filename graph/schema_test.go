package graph_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/graph"
)

// TestEverythingInTheSchemaIsDescribed finds types, fields, arguments and enum
// values without a description in full sentences.
func TestEverythingInTheSchemaIsDescribed(t *testing.T) {
	t.Parallel()
	described := func(what, description string) {
		if !strings.HasSuffix(strings.TrimSpace(description), ".") {
			t.Errorf("%s is not described in full sentences: %q", what, description)
		}
	}
	for _, definition := range graph.NewExecutor(&graph.Resolver{}, nil).Schema().Types {
		if definition.BuiltIn || strings.HasPrefix(definition.Name, "__") {
			continue
		}
		described(definition.Name, definition.Description)
		for _, field := range definition.Fields {
			if strings.HasPrefix(field.Name, "__") {
				continue
			}
			described(definition.Name+"."+field.Name, field.Description)
			for _, argument := range field.Arguments {
				described(definition.Name+"."+field.Name+"("+argument.Name+")", argument.Description)
			}
		}
		for _, value := range definition.EnumValues {
			described(definition.Name+"."+value.Name, value.Description)
		}
	}
}

// TestNamesFollowTheConventions checks that fields are in lower camel case,
// that times end in At, and that lists of many things are connections with the
// Relay arguments.
func TestNamesFollowTheConventions(t *testing.T) {
	t.Parallel()
	schema := graph.NewExecutor(&graph.Resolver{}, nil).Schema()
	for _, definition := range schema.Types {
		if definition.BuiltIn || strings.HasPrefix(definition.Name, "__") {
			continue
		}
		for _, field := range definition.Fields {
			if strings.HasPrefix(field.Name, "__") {
				continue
			}
			if strings.Contains(field.Name, "_") || field.Name[0] < 'a' || field.Name[0] > 'z' {
				t.Errorf("%s.%s is not in lower camel case", definition.Name, field.Name)
			}
			if definition.Kind != ast.InputObject && field.Type.Name() == "DateTime" &&
				!strings.HasSuffix(field.Name, "At") {
				t.Errorf("%s.%s is a time and does not end in At", definition.Name, field.Name)
			}
			if strings.HasSuffix(field.Type.Name(), "Connection") {
				arguments := pageArguments(schema, definition, field)
				for _, argument := range []string{"first", "after"} {
					if !slices.Contains(arguments, argument) {
						t.Errorf("%s.%s lacks the argument %s", definition.Name, field.Name, argument)
					}
				}
			}
		}
	}
}

// pageArguments returns the names of the arguments of a connection. For a
// connection in a payload, they are in the mutation's input that has the name
// of the field.
func pageArguments(schema *ast.Schema, of *ast.Definition, field *ast.FieldDefinition) (names []string) {
	for _, argument := range field.Arguments {
		names = append(names, argument.Name)
	}
	for _, mutation := range schema.Mutation.Fields {
		if input := mutation.Arguments.ForName(field.Name); mutation.Type.Name() == of.Name && input != nil {
			for _, member := range schema.Types[input.Type.Name()].Fields {
				names = append(names, member.Name)
			}
		}
	}
	return names
}
