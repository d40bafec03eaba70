package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"

	"github.com/cadastre-dev/cadastre/graph/document/documenttest"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/schema"
)

func TestTheShapeVisitsEachNodeOnce(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"doubling":         documenttest.Doubling(60, false),
		"aliased doubling": documenttest.Doubling(60, true),
		"cycle":            "{ ...a } fragment a on Query { ...b ...b } fragment b on Query { ...a ...a }",
		"own cycle":        "{ ...a } fragment a on Query { viewer { userId } ...a ...a }",
	} {
		document, err := parser.ParseQuery(&ast.Source{Input: text})
		if err != nil {
			t.Fatal(err)
		}
		w := &walker{limits: DefaultLimits(), document: document}
		_ = w.walk(text) // only the visits matter here
		if w.visits > len(text)/3 {
			t.Errorf("%s: %d visits for %d bytes", name, w.visits, len(text))
		}
	}
}

// TestTheWorkOfHostileDocumentsIsBounded checks that the walk visits at most as
// many nodes as a document may have tokens, and that the places and visits of a
// plan are bounded.
func TestTheWorkOfHostileDocumentsIsBounded(t *testing.T) {
	t.Parallel()
	loaded, limits := gqlparser.MustLoadSchema(&ast.Source{Input: schema.SDL()}), DefaultLimits()
	planned := 0
	for name, hostile := range documenttest.HostileDocuments() {
		text := hostile.Query
		if refused := checkNames(text); refused != nil {
			continue // refused by its bytes, each read once
		}
		parsed, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, limits.Tokens)
		if err != nil {
			continue // refused by its tokens
		}
		w := &walker{limits: limits, document: parsed}
		refused := w.walk(text)
		if w.visits > min(len(text), limits.Tokens) {
			t.Errorf("%s: the walk visits %d nodes of %d bytes", name, w.visits, len(text))
		}
		if refused != nil {
			continue
		}
		if errs := validator.ValidateWithRules(loaded, parsed, nil); errs != nil {
			continue
		}
		planned++
		d := &document{schema: loaded, ast: parsed, members: w.noted.members}
		operation := &Operation{Document: parsed, Definition: parsed.Operations[0]}
		p := d.planner(nil, limits.Places)
		if p.root(operation) != nil {
			if p.visits > maxVisits*limits.Places+1 || p.place > limits.Places {
				t.Errorf("%s: refused after %d visits and %d places", name, p.visits, p.place)
			}
			continue
		}
		if p.place != p.plan.Places || p.place > limits.Places || p.visits > 2*len(text) {
			t.Errorf("%s: planned %d of %d places by %d visits of %d bytes", name,
				p.place, p.plan.Places, p.visits, len(text))
		}
		operation.planned = p.plan
		priced := &pricer{works: newWorks(loaded, noNodes), given: map[[2]any]*given{}}
		priced.selection(p.plan.Root, 1, 0)
		if priced.visits != p.plan.Places {
			t.Errorf("%s: the price visits %d of %d places", name, priced.visits, p.plan.Places)
		}
	}
	if planned < 8 {
		t.Errorf("only %d documents are planned", planned)
	}
}

// TestAPlanIsRefusedBeforeItIsMade checks documents with few tokens and
// multiplying fragments or repeated fields. Prepare refuses them without the
// memory and time of their plans. If the refusal needs a partial plan, a second
// request needs no plan at all.
func TestAPlanIsRefusedBeforeItIsMade(t *testing.T) {
	t.Parallel()
	loaded, limits := gqlparser.MustLoadSchema(&ast.Source{Input: schema.SDL()}), DefaultLimits()
	for name, test := range map[string]struct {
		text  string
		valid bool
	}{
		"20 to the power of 5 places": {documenttest.Multiplied(20, 5, "name"), false},
		"repeated at 8,000 places": {documenttest.Multiplied(20, 3, strings.Repeat("name description ", 500)),
			false},
		"doubled by fragments":        {documenttest.Doubling(60, false), false},
		"22 to the power of 3 places": {documenttest.Multiplied(22, 3, "name"), true},
		"repeated for each type": {"{ " + strings.ReplaceAll(aliases(30), "x ", `node(id: "x") { ...f } `) +
			" } fragment f on Node { " + strings.Repeat("id __typename ", 550) + " }", true},
		"of each type of Node": {"{ " + strings.ReplaceAll(aliases(60), "x ", `node(id: "x") { ...f } `) +
			" } fragment f on Node { " + strings.ReplaceAll(aliases(20), "x ", "id ") + " }", true},
	} {
		reader := NewReader(loaded, noNodes, limits)
		prepared := reader.Prepare(Request{Text: test.text})
		if !errors.Is(prepared.Refused, problem.ErrTooComplex) || prepared.Valid != test.valid {
			t.Errorf("%s of %d bytes: valid %v, refused %v", name, len(test.text), prepared.Valid, prepared.Refused)
			continue
		}
		if !test.valid {
			continue
		}
		kept, ok := reader.kept.Get(test.text)
		if !ok || kept.plans.kept[""].refused == nil || prepared.Operation.Plan() != nil {
			t.Errorf("%s: the refusal is not kept", name)
			continue
		}
		p := kept.planner(nil, limits.Places)
		err := p.root(prepared.Operation)
		if !errors.Is(err, errPlaces) || p.place > limits.Places || p.visits > maxVisits*limits.Places+1 {
			t.Errorf("%s: %v after %d places and %d visits", name, err, p.place, p.visits)
		}
	}
}

func TestTheShapeOfADocumentIsBounded(t *testing.T) {
	t.Parallel()
	deep := func(levels int) string {
		return strings.Repeat("{ a ", levels) + strings.Repeat("}", levels)
	}
	for name, test := range map[string]struct {
		document string
		problem  string
	}{
		"15 levels":                {deep(15), ""},
		"16 levels":                {deep(16), "16 levels"},
		"16 by inline fragments":   {"{ ... on Query " + deep(15) + " a { ... on A " + deep(15) + " } }", "16 levels"},
		"16 by a fragment":         {"{ a { ...f } } fragment f on A " + deep(15), "16 levels"},
		"16 in an unused fragment": {"{ a } fragment f on A " + deep(16), "16 levels"},
		"60 root fields":           {"{" + strings.Repeat("a ", 60) + "}", ""},
		"61 root fields":           {"{" + strings.Repeat("a ", 61) + "}", "61 root fields"},
		"64 by doubling":           {"{ ...a ...a } fragment a on Query { ...b ...b } fragment b on Query { ...c ...c } fragment c on Query { " + strings.Repeat("x ", 8) + " }", "64 root fields"},
		"a great many by doubling": {"{ ...f0 }" + strings.ReplaceAll(documenttest.Doubling(60, false),
			"query { namespaces(first: 1) { nodes { ...f0 } } }", ""), "1073741824 root fields"},
		"500 aliases":       {"{ x { " + aliases(500) + "} }", ""},
		"501 aliases":       {"{ x { " + aliases(501) + "} }", "501 aliases"},
		"5 directives":      {"{ a " + strings.Repeat("@aa ", 5) + "}", ""},
		"6 directives":      {"{ a " + strings.Repeat("@aa ", 6) + "}", "6 directives"},
		"6 on an operation": {"query " + strings.Repeat("@aa ", 6) + "{ a }", "6 directives"},
		"6 on a fragment": {"{ ...f } fragment f on Query " + strings.Repeat("@aa ", 6) + "{ a }",
			"6 directives"},
		"6 on a spread": {"{ ...f " + strings.Repeat("@aa ", 6) + " } fragment f on Query { a }",
			"6 directives"},
		"6 on a variable":           {"query($a: Int " + strings.Repeat("@aa ", 6) + ") { a }", "6 directives"},
		"6 on an inline fragment":   {"{ ... " + strings.Repeat("@aa ", 6) + "{ a } }", "6 directives"},
		"the deepest introspection": {introspection, ""},
	} {
		document, err := parser.ParseQuery(&ast.Source{Input: test.document})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		refused := (&walker{limits: DefaultLimits(), document: document}).walk(test.document)
		switch {
		case refused == nil && test.problem != "":
			t.Errorf("%s is admitted", name)
		case refused != nil && (test.problem == "" || !strings.Contains(refused.Error(), test.problem) ||
			!errors.Is(refused, problem.ErrTooComplex)):
			t.Errorf("%s: %v", name, refused)
		}
	}
}

func aliases(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "a%d: x ", i)
	}
	return out.String()
}

// introspection is as deep as the introspection query of common tools.
const introspection = `query { __schema { types { fields { args { type { ofType { ofType { ofType { ofType { ofType { ofType { ofType { ofType { ofType { kind } } } } } } } } } } } } } } }`

func TestTheCostIsEstimatedAndDoesNotOverflow(t *testing.T) {
	t.Parallel()
	limits := DefaultLimits()
	limits.Depth, limits.Cost = 0, 0
	reader := NewReader(gqlparser.MustLoadSchema(&ast.Source{Input: schema.SDL()}), noNodes, limits)
	for name, test := range map[string]struct {
		document  string
		variables map[string]any
		want      int64
	}{
		"a leaf":           {"{ __typename }", nil, 1},
		"an object":        {"{ viewer { userId roles } }", nil, 3},
		"the usual page":   {"{ namespaces { nodes { name } } }", nil, 1 + 50*2},
		"a page":           {"{ namespaces(first: 10) { nodes { name } } }", nil, 1 + 10*2},
		"from the end":     {"{ namespaces(last: 10) { nodes { name } } }", nil, 1 + 10*2},
		"edges and counts": {"{ namespaces(first: 10) { totalCount pageInfo { endCursor } edges { cursor node { name } } } }", nil, 1 + 3 + 10*4},
		"by a variable": {"query($n: Int) { namespaces(first: $n) { nodes { name } } }",
			map[string]any{"n": json.Number("20")}, 1 + 20*2},
		"by null": {"query($n: Int) { namespaces(first: $n) { nodes { name } } }",
			map[string]any{"n": nil}, 1 + 50*2},
		"an empty page":   {"{ namespaces(first: 0) { nodes { name } totalCount } }", nil, 1 + 1 + 2},
		"a negative page": {"{ namespaces(first: -1) { nodes { name } totalCount } }", nil, 1 + 1 + 2},
		"a huge page":     {"{ namespaces(first: 1073741824) { nodes { name } } }", nil, 1 + 1000*2},
		"a list":          {"{ namespace(name: \"x\") { properties { name } } }", nil, 1 + 1 + 10},
		"named rows":      {"{ nodes(ids: [\"a\", \"b\", \"c\"]) { id } }", nil, 1 + 3 + 3},
		"rows by a variable": {"query($ids: [ID!]!) { nodes(ids: $ids) { id } }",
			map[string]any{"ids": []any{"a", "b"}}, 1 + 2 + 2},
		"a fragment on a page": {"{ a: namespaces(first: 2) { ...p } b: namespaces(first: 30) { ...p } } fragment p on NamespaceConnection { totalCount nodes { name } }",
			nil, 1 + 1 + 2*2 + 1 + 1 + 30*2},
		"a fragment twice is counted once": {"{ namespaces(first: 2) { ...p ...p } } fragment p on NamespaceConnection { nodes { name } }", nil, 1 + 2*2},
		"what is skipped costs nothing":    {"query($no: Boolean!) { namespaces(first: 2) { nodes { name } totalCount @include(if: $no) } tags @skip(if: true) { totalCount } }", map[string]any{"no": false}, 1 + 2*2},
		"one type of several":              {"{ nodes(ids: [\"a\", \"b\"]) { id ... on Tag { name } ... on Namespace { name owner } } }", nil, 1 + 2 + 2*3},
		"inline on a page":                 {"{ namespaces(first: 2) { ... { nodes { name } } } }", nil, 1 + 2*2},
		"beyond any number": {"{ resources(first: 1000) { " +
			strings.Repeat("nodes { children(first: 1000) { ", 6) + "nodes { id } " +
			strings.Repeat("} } ", 6) + "} }", nil, maxCost},
	} {
		prepared := reader.Prepare(Request{Text: test.document, Variables: test.variables})
		if prepared.Refused != nil {
			t.Fatalf("%s: %v", name, prepared.Refused)
		}
		if got := prepared.Operation.Price.Fields; got != test.want {
			t.Errorf("%s costs %d, want %d", name, got, test.want)
		}
	}
}

func TestNamesAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 300)
	for document, refused := range map[string]bool{
		"{ " + long + " }":                                        true,
		"{ " + strings.Repeat("a", 255) + " }":                    false,
		"{ " + strings.Repeat("a ", 300) + " }":                   false,
		`{ x(a: "` + long + `") }`:                                false,
		`{ x(a: "\"` + long + `") }`:                              false,
		`{ x(a: """` + long + ` \""" ` + long + ` " """) }`:       false,
		"{ x # " + long + "\n }":                                  false,
		"{ x # \"\n" + long + " }":                                true,
		`{ x(a: "` + long + `") ` + long + ` }`:                   true,
		`{ x(a: """` + long + `""") ` + long + ` }`:               true,
		`{ x(a: "unfinished ` + long + "\n" + long:                true,
		`{ x(a: """unfinished ` + long + "\n" + long:              false,
		`{ x(` + long + `: 1) }`:                                  true,
		`query($` + long + `: Int) { x }`:                         true,
		`{ x(a: 1` + strings.Repeat("0", 300) + `) }`:             true,
		`{ x(a: "` + strings.Repeat(`\\`, 5) + `") ` + long + `}`: true,
		`"""`: false, `"`: false, `"\`: false, ``: false, `#`: false,
	} {
		if err := checkNames(document); (err != nil) != refused {
			t.Errorf("%.60s...: %v", document, err)
		}
	}
}

func noNodes([]any) (int, bool) { return 0, false }
