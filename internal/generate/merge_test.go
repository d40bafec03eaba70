package main

import (
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"
)

// TestMerge merges sources. Fields of extensions move to the extended
// definition, with their descriptions and arguments, whichever source has it.
func TestMerge(t *testing.T) {
	t.Parallel()
	const common = "\"The whole.\"\nschema {\n  query: Query\n  mutation: Mutation\n}\n\ntype Query {\n  a: Int\n}\n\n\"Writes.\"\ntype Mutation\n"
	const other = "extend type Query {\n  \"\"\"\n  B.\n  \"\"\"\n  b(\n    \"C.\"\n    c: Int = 1\n  ): Int\n}\n\n\"A thing.\"\ntype T {\n  t: Int\n}\n\nextend type Mutation {\n  m: T\n}\n\nextend type T {\n  u: Int\n}\n"
	got, err := merge([]*ast.Source{{Name: "schema/a.graphql", Input: other}, {Name: firstSource, Input: common}})
	if err != nil {
		t.Fatal(err)
	}
	const want = "\n\"The whole.\"\nschema {\n  query: Query\n  mutation: Mutation\n}\n\ntype Query {\n  a: Int\n  \"\"\"\n  B.\n  \"\"\"\n  b(\n    \"C.\"\n    c: Int = 1\n  ): Int\n}\n\n" +
		"\"Writes.\"\ntype Mutation {\n  m: T\n}\n\n\"A thing.\"\ntype T {\n  t: Int\n  u: Int\n}\n"
	if _, below, _ := strings.Cut(got, "\n"); below != want {
		t.Errorf("got\n%s\nwant\n%s", below, want)
	}
	for what, source := range map[string]string{
		"an extension of nothing":            "extend type Absent {\n  a: Int\n}\n",
		"an extension that adds a directive": "extend type Query @deprecated\n",
		"an interface that is added":         "interface I {\n  a: Int\n}\n\nextend type Query implements I {\n  b: Int\n}\n",
	} {
		if got, err := merge([]*ast.Source{{Name: firstSource, Input: common},
			{Name: "schema/b.graphql", Input: source}}); err == nil {
			t.Errorf("%s is merged to\n%s", what, got)
		}
	}
}
