package document

import (
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
		s := &shape{limits: DefaultLimits(), document: document}
		_ = s.check() // its work counts, not what it finds
		if s.visits > len(text)/3 {
			t.Errorf("%s: %d visits for %d bytes", name, s.visits, len(text))
		}
	}
}

// TestTheWorkOfHostileDocumentsIsBounded holds that the nodes that are visited
// to check the shape and to estimate the cost of a document are no more than
// its tokens may be.
func TestTheWorkOfHostileDocumentsIsBounded(t *testing.T) {
	t.Parallel()
	loaded, limits := gqlparser.MustLoadSchema(&ast.Source{Input: schema.SDL()}), DefaultLimits()
	for name, hostile := range documenttest.HostileDocuments() {
		text := hostile.Query
		if refused := checkNames(text); refused != nil {
			continue // by its bytes, each read once
		}
		document, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, limits.Tokens)
		if err != nil {
			continue // by its tokens
		}
		s := &shape{limits: limits, document: document}
		refused := s.check()
		if s.visits > min(len(text), limits.Tokens) {
			t.Errorf("%s: the shape visits %d nodes of %d bytes", name, s.visits, len(text))
		}
		if refused != nil {
			continue
		}
		if errs := validator.ValidateWithRules(loaded, document, nil); errs != nil {
			continue
		}
		c := &cost{document: document}
		c.operation(document.Operations[0])
		if c.visits > min(len(text), limits.Tokens) {
			t.Errorf("%s: the estimate visits %d nodes of %d bytes", name, c.visits, len(text))
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
		"15 levels":                 {deep(15), ""},
		"16 levels":                 {deep(16), "16 levels"},
		"16 by inline fragments":    {"{ ... on Query " + deep(15) + " a { ... on A " + deep(15) + " } }", "16 levels"},
		"16 by a fragment":          {"{ a { ...f } } fragment f on A " + deep(15), "16 levels"},
		"16 in an unused fragment":  {"{ a } fragment f on A " + deep(16), "16 levels"},
		"60 root fields":            {"{" + strings.Repeat("a ", 60) + "}", ""},
		"61 root fields":            {"{" + strings.Repeat("a ", 61) + "}", "61 root fields"},
		"64 by doubling":            {"{ ...a ...a } fragment a on Query { ...b ...b } fragment b on Query { ...c ...c } fragment c on Query { " + strings.Repeat("x ", 8) + " }", "64 root fields"},
		"a great many by doubling":  {"{ ...f0 }" + strings.ReplaceAll(documenttest.Doubling(60, false), "query { namespaces(first: 1) { nodes { ...f0 } } }", ""), "1073741824 root fields"},
		"500 aliases":               {"{ x { " + aliases(500) + "} }", ""},
		"501 aliases":               {"{ x { " + aliases(501) + "} }", "501 aliases"},
		"5 directives":              {"{ a " + strings.Repeat("@aa ", 5) + "}", ""},
		"6 directives":              {"{ a " + strings.Repeat("@aa ", 6) + "}", "6 directives"},
		"6 on an operation":         {"query " + strings.Repeat("@aa ", 6) + "{ a }", "6 directives"},
		"6 on a fragment":           {"{ ...f } fragment f on Query " + strings.Repeat("@aa ", 6) + "{ a }", "6 directives"},
		"6 on a spread":             {"{ ...f " + strings.Repeat("@aa ", 6) + " } fragment f on Query { a }", "6 directives"},
		"6 on a variable":           {"query($a: Int " + strings.Repeat("@aa ", 6) + ") { a }", "6 directives"},
		"6 on an inline fragment":   {"{ ... " + strings.Repeat("@aa ", 6) + "{ a } }", "6 directives"},
		"the deepest introspection": {introspection, ""},
	} {
		document, err := parser.ParseQuery(&ast.Source{Input: test.document})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		refused := checkShape(document, DefaultLimits())
		switch {
		case refused == nil && test.problem != "":
			t.Errorf("%s is admitted", name)
		case refused != nil && (test.problem == "" || !strings.Contains(refused.Error(), test.problem) || !errors.Is(refused, problem.ErrTooComplex)):
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

// introspection is as deep as the query that tools send.
const introspection = `query { __schema { types { fields { args { type { ofType { ofType { ofType { ofType { ofType { ofType { ofType { ofType { ofType { kind } } } } } } } } } } } } } } }`

func TestTheCostIsEstimatedAndDoesNotOverflow(t *testing.T) {
	t.Parallel()
	sources := []*ast.Source{{Input: schema.SDL()}}
	loaded := gqlparser.MustLoadSchema(sources...)
	for name, test := range map[string]struct {
		document  string
		variables map[string]any
		want      int64
	}{
		"a leaf":             {"{ __typename }", nil, 1},
		"an object":          {"{ viewer { userId roles } }", nil, 3},
		"the usual page":     {"{ namespaces { nodes { name } } }", nil, 1 + 50*2},
		"a page":             {"{ namespaces(first: 10) { nodes { name } } }", nil, 1 + 10*2},
		"from the end":       {"{ namespaces(last: 10) { nodes { name } } }", nil, 1 + 10*2},
		"edges and counts":   {"{ namespaces(first: 10) { totalCount pageInfo { endCursor } edges { cursor node { name } } } }", nil, 1 + 3 + 10*4},
		"by a variable":      {"query($n: Int) { namespaces(first: $n) { nodes { name } } }", map[string]any{"n": int64(20)}, 1 + 20*2},
		"by null":            {"query($n: Int) { namespaces(first: $n) { nodes { name } } }", map[string]any{"n": nil}, 1 + 50*2},
		"an empty page":      {"{ namespaces(first: 0) { nodes { name } totalCount } }", nil, 2},
		"a negative page":    {"{ namespaces(first: -1) { nodes { name } totalCount } }", nil, 2},
		"a huge page":        {"{ namespaces(first: 1073741824) { nodes { name } } }", nil, 1 + 1000*2},
		"a list":             {"{ namespace(name: \"x\") { properties { name } } }", nil, 1 + 1 + 10},
		"named rows":         {"{ nodes(ids: [\"a\", \"b\", \"c\"]) { id } }", nil, 1 + 3 + 3},
		"rows by a variable": {"query($ids: [ID!]!) { nodes(ids: $ids) { id } }", map[string]any{"ids": []any{"a", "b"}}, 1 + 2 + 2},
		"a fragment on a page": {"{ a: namespaces(first: 2) { ...p } b: namespaces(first: 30) { ...p } } fragment p on NamespaceConnection { totalCount nodes { name } }",
			nil, 1 + 1 + 2*2 + 1 + 1 + 30*2},
		"a fragment twice is counted twice": {"{ namespaces(first: 2) { ...p ...p } } fragment p on NamespaceConnection { nodes { name } }", nil, 1 + 2*2*2},
		"inline on a page":                  {"{ namespaces(first: 2) { ... { nodes { name } } } }", nil, 1 + 2*2},
		"beyond any number":                 {documenttest.Doubling(60, true), nil, maxCost},
	} {
		document, errs := gqlparser.LoadQueryWithRules(loaded, test.document, nil)
		if errs != nil {
			t.Fatalf("%s: %v", name, errs)
		}
		c := &cost{document: document, variables: test.variables}
		if got := c.operation(document.Operations[0]); got != test.want {
			t.Errorf("%s costs %d, want %d", name, got, test.want)
		}
		if c.visits > len(test.document)/3 {
			t.Errorf("%s: %d visits for %d bytes", name, c.visits, len(test.document))
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
