package web_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/web"
)

// TestOddArgumentsNeverBreakAField queries every field of Query and Mutation
// many times, over the demo cloud. The arguments have the right type and odd
// values. No answer has a code outside the closed set, INTERNAL included.
func TestOddArgumentsNeverBreakAField(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *web.Options) {
		o.Limits = web.DefaultLimits()
		o.Limits.PrincipalPoints, o.Limits.AddressPoints = 0, 0
	})
	if err := demo.Fill(context.Background(), s.store); err != nil {
		t.Fatal(err)
	}
	schema := graph.NewExecutor(&graph.Resolver{Store: storetest.Open(t, storetest.SQLite(t))}, slog.Default()).Schema()
	odd := &oddness{schema: schema, random: rand.New(rand.NewPCG(1, 2))}
	for _, root := range []*ast.Definition{schema.Query, schema.Mutation} {
		for _, field := range root.Fields {
			if strings.HasPrefix(field.Name, "__") {
				continue
			}
			for range 25 {
				document := map[bool]string{true: "mutation", false: "query"}[root == schema.Mutation] + " { " +
					odd.field(field) + " }"
				got := s.query(document)
				if got.status != 200 {
					t.Fatalf("%s: %d %.300s", document, got.status, got.body)
				}
				for _, code := range got.codes() {
					if !closedSet[code] {
						t.Fatalf("%s\n%.600s\n%s", document, got.body, causes(s.log.String()))
					}
				}
			}
		}
	}
}

// causes returns the lines of a log about internal errors.
func causes(log string) string {
	var out []string
	for line := range strings.Lines(log) {
		if strings.Contains(line, `"level":"ERROR"`) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

// oddness writes fields with odd arguments.
type oddness struct {
	schema *ast.Schema
	random *rand.Rand
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// field returns a field with odd arguments and all scalar fields below it.
func (o *oddness) field(field *ast.FieldDefinition) string {
	var arguments []string
	for _, argument := range field.Arguments {
		if argument.Type.NonNull || o.random.IntN(3) == 0 {
			arguments = append(arguments, argument.Name+": "+o.value(argument.Type, 0))
		}
	}
	out := field.Name
	if len(arguments) > 0 {
		out += "(" + strings.Join(arguments, ", ") + ")"
	}
	return out + o.selection(field.Type.Name(), 2)
}

func (o *oddness) selection(name string, depth int) string {
	definition := o.schema.Types[name]
	if definition.Kind == ast.Scalar || definition.Kind == ast.Enum {
		return ""
	}
	out := []string{"__typename"}
	for _, field := range definition.Fields {
		needs := false
		for _, argument := range field.Arguments {
			needs = needs || argument.Type.NonNull && argument.DefaultValue == nil
		}
		below := o.schema.Types[field.Type.Name()]
		simple := below.Kind == ast.Scalar || below.Kind == ast.Enum
		if !needs && (simple || depth > 0) && !strings.HasPrefix(field.Name, "__") {
			out = append(out, field.Name+o.selection(field.Type.Name(), depth-1))
		}
	}
	return " { " + strings.Join(out, " ") + " }"
}

func (o *oddness) value(typ *ast.Type, depth int) string {
	if !typ.NonNull && o.random.IntN(6) == 0 {
		return "null"
	}
	if typ.Elem != nil {
		var members []string
		for range pick(o.random, 0, 1, 1, 2, 3) {
			members = append(members, o.value(typ.Elem, depth+1))
		}
		return "[" + strings.Join(members, ", ") + "]"
	}
	definition := o.schema.Types[typ.NamedType]
	switch definition.Kind {
	case ast.Enum:
		return pick(o.random, definition.EnumValues...).Name
	case ast.InputObject:
		return o.object(definition, depth)
	}
	return o.scalar(definition.Name)
}

func (o *oddness) object(definition *ast.Definition, depth int) string {
	var members []string
	add := func(field *ast.FieldDefinition) {
		members = append(members, field.Name+": "+o.value(field.Type, depth+1))
	}
	if definition.Directives.ForName("oneOf") != nil {
		field := pick(o.random, definition.Fields...)
		required := *field.Type
		required.NonNull = true
		if depth > 5 && required.Elem != nil {
			return "{" + field.Name + ": []}"
		}
		return "{" + field.Name + ": " + o.value(&required, depth+1) + "}"
	}
	for _, field := range definition.Fields {
		if field.Type.NonNull && field.DefaultValue == nil || o.random.IntN(2+depth) == 0 {
			add(field)
		}
	}
	return "{" + strings.Join(members, ", ") + "}"
}

func (o *oddness) scalar(name string) string {
	r := o.random
	switch name {
	case "Int":
		return pick(r, "0", "1", "2", "50", "-1", "1000", "1001", "2147483647", "-2147483648")
	case "Int64":
		return pick(r, "0", "1", "9223372036854775807", "-9223372036854775808")
	case "Float":
		return pick(r, "0", "1", "-1.5", "1e308", "-1e308", "1e-320", "0.1", "16")
	case "Boolean":
		return pick(r, "true", "false")
	case "UUID":
		return pick(r, `"00000000-0000-0000-0000-000000000000"`, `"ffffffff-ffff-ffff-ffff-ffffffffffff"`,
			fmt.Sprintf(`"%08x-0000-4000-8000-%012x"`, r.Uint32N(4), r.Uint32N(4)),
			`"b0a69947-57ba-5a27-9f52-ff4b7de986ec"`)
	case "JSON":
		return pick(r, "1", "1e400", `"x"`, "[1, [2, {a: null}]]", "{a: 1}", "true", "null", `"\u00e9"`, "-0")
	case "DateTime":
		return pick(r, `"2026-01-01T00:00:00Z"`, `"0001-01-01T00:00:00Z"`,
			`"9999-12-31T23:59:59.999999999+14:00"`, `"yesterday"`)
	case "ID":
		return pick(r, `""`, `"x"`, `"MTox"`, `"!!!"`, "0", `"`+strings.Repeat("A", 300)+`"`)
	}
	return pick(r, `""`, `" "`, `"x"`, `"VCPU"`, `"CUSTOM_X"`, `"OS::Nova::Flavor"`, `"physical:host"`, `"demo"`, `"%"`,
		`"_\\"`, `"a' OR 1=1 --"`, `"\u00e9\u0301"`,
		`"\uffff"`, `"`+strings.Repeat("long", 100)+`"`, `"[\"and\", [\">=\", \"$memory_mb\", \"1\"]]"`,
		`"{\"namespace\": \"n\", \"properties\": {}}"`,
		`"<in> a <or> b"`, `">= 1e400"`, `"s== x"`, `"["`, `"\t\n"`, `"\u202e"`,
		`"x,y"`, `"*"`, `"NaN"`, `"\ud83d\ude00"`)
}
