package graph_test

import (
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/graph"
)

// TestEverythingInTheSchemaIsDescribed finds types, fields, arguments and
// values of the public language without a full sentence about them.
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

// TestNamesFollowTheConventions: fields in lower camel case, times end in At,
// lists of things that can be many are connections with the Relay arguments.
func TestNamesFollowTheConventions(t *testing.T) {
	t.Parallel()
	for _, definition := range graph.NewExecutor(&graph.Resolver{}, nil).Schema().Types {
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
			if definition.Kind != ast.InputObject && field.Type.Name() == "DateTime" && !strings.HasSuffix(field.Name, "At") {
				t.Errorf("%s.%s is a time and does not end in At", definition.Name, field.Name)
			}
			if strings.HasSuffix(field.Type.Name(), "Connection") {
				for _, argument := range []string{"first", "after"} {
					if field.Arguments.ForName(argument) == nil {
						t.Errorf("%s.%s lacks the argument %s", definition.Name, field.Name, argument)
					}
				}
			}
		}
	}
}
