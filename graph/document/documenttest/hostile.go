// Package documenttest has documents for tests of several packages.
package documenttest

import (
	"fmt"
	"strings"
)

// HostileDocument is a request that is expensive to process, and the code of
// its refusal: "" if it succeeds, "-" for any outcome.
type HostileDocument struct {
	Query     string
	Variables any
	Code      string
}

// HostileDocuments returns documents by description.
func HostileDocuments() map[string]HostileDocument {
	repeat := strings.Repeat
	numbered := func(n int, format string) string {
		var out strings.Builder
		for i := range n {
			fmt.Fprintf(&out, format, i)
		}
		return out.String()
	}
	return map[string]HostileDocument{
		"101 aliases of the root": {"{" + numbered(101, "a%d: __typename ") + "}", nil, "QUERY_TOO_COMPLEX"},
		"500 duplicate fields":    {"{" + repeat("__typename ", 500) + "}", nil, "QUERY_TOO_COMPLEX"},
		"10,000 duplicate fields": {"{" + repeat("__typename ", 10000) + "}", nil, "GRAPHQL_PARSE_FAILED"},
		"10,000 aliases": {"{ viewer {" + numbered(10000, "a%d: userId ") + "} }", nil,
			"GRAPHQL_PARSE_FAILED"},
		"2,900 nested duplicates": {"{ viewer {" + repeat("userId ", 2900) + "} }", nil, "QUERY_TOO_COMPLEX"},
		"5 times 590 duplicates": {"{ viewer {" + repeat("userId projectId isAdmin roles __typename ", 590) + "} }",
			nil, ""},
		"40 times 60 in merged ones": {"{" + repeat("viewer {"+repeat("userId ", 59)+"} ", 45) + "}", nil,
			"QUERY_TOO_COMPLEX"},
		"10 directives":      {"{ __typename " + repeat("@aa", 10) + " }", nil, "QUERY_TOO_COMPLEX"},
		"100,000 directives": {"{ __typename " + repeat("@aa", 100000) + " }", nil, "GRAPHQL_PARSE_FAILED"},
		"16 levels": {"{ namespaces " + repeat("{ nodes { properties { namespace ", 5) + "{ id }" +
			repeat(" } } }", 5) + " }", nil, "QUERY_TOO_COMPLEX"},
		"circular introspection": {"{ __schema { types { fields { type { fields { type { fields { type { fields { type { fields { type { name } } } } } } } } } } } } }", nil, "GRAPHQL_VALIDATION_FAILED"},
		"a fragment cycle": {"{ ...a } fragment a on Query { ...b } fragment b on Query { ...a }", nil,
			"GRAPHQL_VALIDATION_FAILED"},
		"fragment doubling":      {Doubling(28, false), nil, "QUERY_TOO_COMPLEX"},
		"long fragment doubling": {Doubling(200, false), nil, "QUERY_TOO_COMPLEX"},
		"aliased doubling":       {Doubling(60, true), nil, "QUERY_TOO_COMPLEX"},
		"multiplying fragments":  {Multiplied(20, 5, "name"), nil, "QUERY_TOO_COMPLEX"},
		"repeating fragments":    {Multiplied(20, 3, repeat("name description ", 500)), nil, "QUERY_TOO_COMPLEX"},
		"brackets": {"{ namespace(name: " + repeat("[", 1000000) + ") { id } }", nil,
			"GRAPHQL_PARSE_FAILED"},
		"braces": {"{ namespace(name: " + repeat("{a:", 300000) + ") { id } }", nil,
			"GRAPHQL_PARSE_FAILED"},
		"selections": {repeat("{a", 500000), nil, "GRAPHQL_PARSE_FAILED"},
		"types":      {"query($a: " + repeat("[", 1000000), nil, "GRAPHQL_PARSE_FAILED"},
		"a list of 100,000": {"query($ids: [ID!]!) { nodes(ids: $ids) { id } }",
			map[string]any{"ids": make([]int, 100000)}, "BAD_USER_INPUT"},
		"a list of 101 ids": {"query($ids: [ID!]!) { nodes(ids: $ids) { id } }",
			map[string]any{"ids": strings.Split(repeat("x,", 100)+"x", ",")}, "BAD_USER_INPUT"},
		"a literal of 1 MB": {`{ namespace(name: "` + repeat("x", 1000000) + `") { id } }`, nil, "-"},
		"an enum of 1 MB": {`{ namespaces(filter: {visibility: "` + repeat("P", 1000000) +
			`"}) { totalCount } }`, nil, "GRAPHQL_VALIDATION_FAILED"},
		"a name of 1 MB":             {"{ " + repeat("x", 1000000) + " }", nil, "QUERY_TOO_COMPLEX"},
		"an alias of 300 characters": {"{ " + repeat("x", 300) + ": __typename }", nil, "QUERY_TOO_COMPLEX"},
		"a variable's name of 1 MB": {"query($a: NamespaceFilter) { namespaces(filter: $a) { totalCount } }",
			map[string]any{"a": map[string]any{repeat("x", 1000000): 1}}, "GRAPHQL_VALIDATION_FAILED"},
		"a deep and wide variable": {"query($a: NamespaceFilter) { namespaces(filter: $a) { totalCount } }",
			map[string]any{repeat("x", 500000): make([]int, 5000)}, ""},
		"a number of 1 MB": {"query($a: Int) { namespaces(first: $a) { totalCount } }",
			map[string]any{"a": jsonNumber(repeat("9", 1000000))}, "GRAPHQL_VALIDATION_FAILED"},
		"a literal number of 1 MB": {"{ namespaces(first: " + repeat("9", 1000000) + ") { totalCount } }", nil,
			"QUERY_TOO_COMPLEX"},
		"80,000 unused variables": {"query(" + numbered(80000, "$a%d:Int") + ") { __typename }", nil,
			"GRAPHQL_PARSE_FAILED"},
		"700 unused variables": {"query(" + numbered(700, "$a%d:Int") + ") { __typename }", nil,
			"GRAPHQL_VALIDATION_FAILED"},
		"700 unknown fields": {"{ viewer {" + numbered(700, "unknown%d ") + "} }", nil,
			"GRAPHQL_VALIDATION_FAILED"},
		"pages of pages": {"{ resources(first: 16) { nodes { children(first: 16) { nodes { children(first: 1073741824) { nodes { children(first: 1073741824) { nodes { id } } } } } } } } }", nil, "QUERY_TOO_COMPLEX"},
		"a negative price": {`{ f: resources { facets(of: [{by: TAG, first: -1000}]) { values { value } } } }`,
			nil, "BAD_USER_INPUT"},
		"a discount for others": {`{ f: resources { facets(of: [{by: TAG, first: -2147483648}]) { values { value } } } ` + numbered(58, "r%d: resources(first: 1000) { nodes { metadata { key definitions { name } } } } ") + "}", nil, "QUERY_TOO_COMPLEX"},
		"conflicting fields": {"{ " + numbered(59, "namespace(name: \"%d\") { id } ") + "}", nil,
			"GRAPHQL_VALIDATION_FAILED"},
		"1,400 conflicting leaves": {"{ viewer {" + repeat("a: userId a: projectId ", 490) + "} }", nil, "-"},
		"1 MB of comments":         {"{ __typename } #" + repeat("x", 1000000), nil, ""},
		"1 MB of commas":           {"{ __typename " + repeat(",", 1000000) + " }", nil, ""},
	}
}

// jsonNumber is a JSON number of any length.
type jsonNumber string

func (n jsonNumber) MarshalJSON() ([]byte, error) { return []byte(n), nil }

// Doubling returns a document in which each of n fragments spreads the next one
// twice, under two aliases or side by side.
func Doubling(n int, aliased bool) string {
	var out strings.Builder
	out.WriteString("query { namespaces(first: 1) { nodes { ...f0 } } }\n")
	for i := range n {
		twice := fmt.Sprintf("...f%d ...f%d", i+1, i+1)
		if aliased {
			twice = fmt.Sprintf("a: resourceTypeAssociations { namespace { ...f%d } } b: resourceTypeAssociations { namespace { ...f%d } }", i+1, i+1)
		}
		fmt.Fprintf(&out, "fragment f%d on Namespace { %s }\n", i, twice)
	}
	fmt.Fprintf(&out, "fragment f%d on Namespace { name }\n", n)
	return out.String()
}

// Multiplied returns a document with a chain of fragments. Each fragment
// spreads the next one under the given number of aliases. The last fragment
// selects fields of a namespace.
func Multiplied(aliases, fragments int, fields string) string {
	var out strings.Builder
	out.WriteString("query { namespace(name: \"x\") { ...f0 } }\n")
	for i := range fragments {
		fmt.Fprintf(&out, "fragment f%d on Namespace {", i)
		for alias := range aliases {
			fmt.Fprintf(&out, " a%d: tag(name: \"x\") { namespace { ...f%d } }", alias, i+1)
		}
		out.WriteString(" }\n")
	}
	fmt.Fprintf(&out, "fragment f%d on Namespace { %s }\n", fragments, fields)
	return out.String()
}
