package document

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

func TestVariablesAreHeldToTheirTypes(t *testing.T) {
	t.Parallel()
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: `
		type Query { x(a: In, b: [Int!], c: Kind, d: One, e: Float, f: ID, g: Boolean, h: Any, s: String, u: UUID, t: DateTime, l: Int64): Int }
		enum Kind { LEFT RIGHT }
		scalar Any
		scalar UUID
		scalar DateTime
		scalar Int64
		input In { name: String! size: Int = 3 more: [In!] }
		input One @oneOf { left: String right: Int }
	`})
	for name, test := range map[string]struct {
		variable, given string
		want            string // the coerced value as JSON, or the fields refused
	}{
		"object":                 {"$v: In", `{"name": "n", "size": 2}`, `{"name":"n","size":2}`},
		"object without default": {"$v: In", `{"name": "n"}`, `{"name":"n"}`},
		"object with null":       {"$v: In", `{"name": "n", "size": null}`, `{"name":"n","size":null}`},
		"missing and unknown": {"$v: In", `{"nam": "n", "more": [{"name": 5}]}`,
			"refused v v.name(In.name) v.more[0].name(In.name)"},
		"number for a list":    {"$v: In", `{"name": "n", "more": [1]}`, "refused v.more[0](In.more)"},
		"list for an object":   {"$v: In", `[]`, "refused v"},
		"list":                 {"$v: [Int!]", `[1, 2.0, 3e0]`, `[1,2,3]`},
		"one for a list":       {"$v: [Int!]", `1`, `[1]`},
		"null in a list":       {"$v: [Int!]", `[1, null]`, "refused v[1]"},
		"texts for numbers":    {"$v: [Int!]", `["1", 2, "3"]`, "refused v[0] v[2]"},
		"too large":            {"$v: Int", `2147483648`, "refused v"},
		"smallest":             {"$v: Int", `-2147483648`, `-2147483648`},
		"far too large":        {"$v: Int", `1e400`, "refused v"},
		"fraction":             {"$v: Int", `1.5`, "refused v"},
		"enum":                 {"$v: Kind", `"LEFT"`, `"LEFT"`},
		"enum in lower case":   {"$v: Kind", `"left"`, "refused v"},
		"number for an enum":   {"$v: Kind", `1`, "refused v"},
		"one of":               {"$v: One", `{"left": "x"}`, `{"left":"x"}`},
		"two of":               {"$v: One", `{"left": "x", "right": 1}`, "refused v"},
		"two of, one null":     {"$v: One", `{"left": "x", "right": null}`, "refused v"},
		"none of":              {"$v: One", `{}`, "refused v"},
		"null of":              {"$v: One", `{"left": null}`, "refused v.left(One.left)"},
		"float":                {"$v: Float", `1`, `1`},
		"text for a float":     {"$v: Float", `"1.5"`, "refused v"},
		"infinite float":       {"$v: Float", `1e999`, "refused v"},
		"id":                   {"$v: ID", `"x"`, `"x"`},
		"number as id":         {"$v: ID", `4`, `4`},
		"fraction as id":       {"$v: ID", `4.5`, "refused v"},
		"boolean":              {"$v: Boolean", `true`, `true`},
		"number for a boolean": {"$v: Boolean", `1`, "refused v"},
		"number for a text":    {"$v: String", `5`, "refused v"},
		"any":                  {"$v: Any", `{"x": [1.10, "y"]}`, `{"x":[1.10,"y"]}`},
		"uuids":                {"$v: [UUID!]", `["6F1C0A4E2B7D4E5F8A9B0C1D2E3F4A5B", "x", 3]`, "refused v[1] v[2]"},
		"time":                 {"$v: DateTime", `"2026-03-01T09:30:00+02:00"`, `"2026-03-01T09:30:00+02:00"`},
		"no time":              {"$v: DateTime", `"yesterday"`, "refused v"},
		"long":                 {"$v: Int64", `9223372036854775807`, `9223372036854775807`},
		"too long":             {"$v: Int64", `9223372036854775808`, "refused v"},
		"default":              {"$v: Int = 7", ``, `7`},
		"required":             {"$v: Int!", ``, "refused v"},
		"null for required":    {"$v: Int!", `null`, "refused v"},
		"null":                 {"$v: Int", `null`, `null`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parsed, err := parser.ParseQuery(&ast.Source{Input: "query(" + test.variable + ") { __typename }"})
			if err != nil {
				t.Fatal(err)
			}
			variables := map[string]any{}
			if test.given != "" {
				decoder := json.NewDecoder(strings.NewReader(test.given))
				decoder.UseNumber()
				var value any
				if err := decoder.Decode(&value); err != nil {
					t.Fatal(err)
				}
				variables["v"] = value
			}
			coerced, refused := (&document{schema: schema, ast: parsed}).coerce(parsed.Operations[0], variables)
			got := "refused"
			for _, err := range refused {
				got += " " + err.Extensions["field"].(string)
				if coordinate, ok := err.Extensions["coordinate"].(string); ok {
					got += "(" + coordinate + ")"
				}
			}
			if refused == nil {
				text, err := json.Marshal(coerced["v"])
				if err != nil {
					t.Fatal(err)
				}
				got = string(text)
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
