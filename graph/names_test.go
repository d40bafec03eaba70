package graph_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// nameOf is the directive of string arguments that name existing things.
const nameOf = "nameOf"

// freeTexts are the string arguments and input fields of reads that need not
// name an existing thing, each with the reason.
var freeTexts = map[string]string{
	"after": "a cursor", "before": "a cursor", "search": "a text", "nameContains": "a text", "startsWith": "a text",
	"contains": "a text", "prefix": "a text",
	"suffix": "made by the request", "suffixes": "made by the request", "key": "a key is free",
	"keys": "keys are free", "definesKey": "a key is free",
	"tag": "tags are free", "TagFilter.name": "tags are free", "value": "a value", "equals": "a value",
	"in": "values", "gte": "a value", "lte": "a value",
	"requirement": "its operands are values", "matching": "names capabilities within a text",
	"target": "targets are free", "propertiesTarget": "targets are free",
	"owner": "a project", "project": "a project", "projectId": "a project", "projectIds": "projects",
	"userId": "a user", "type": "consumer types are free", "consumerType": "consumer types are free",
	"action": "audit events of any time", "RequirementInput.key": "those of other filters are ignored",
	"Query.namespace.name": "a look-up", "Query.resourceType.name": "a look-up",
	"Query.resourceProvider.name": "a look-up", "ResourceProvider.inventory.resourceClass": "a look-up",
	"Namespace.property.name": "a look-up", "Namespace.object.name": "a look-up", "Namespace.tag.name": "a look-up",
	"ResourceType.capability.name":          "a look-up",
	"ResourceFilter.name":                   "names of resources are free",
	"ResourceProviderFilter.name":           "names of providers are free",
	"CapacityHistoryFilter.resourceClasses": "classes of any time",
	"CapacityHistoryFilter.flavors":         "flavors of any time",
	"WhatIfProviderInput.name":              "made by the request",
	"WhatIfProviderInput.parentName":        "names of providers are free",
	"Query.validateMetadata.resourceType":   "NOT_FOUND, as the write",
	"Query.exportNamespaces.names":          "NOT_FOUND: what is asked for, no condition",
}

// isFree reports whether a string of an input type or a field need not name an
// existing thing.
func isFree(in, name string) bool { return freeTexts[name] != "" || freeTexts[in+"."+name] != "" }

// named is a string that is marked as a name, with the field that takes it and
// the path through lists and input objects.
type named struct {
	of       *ast.Definition
	field    *ast.FieldDefinition
	way      []string // the argument, then input fields
	types    []*ast.Type
	nameType string // the type of the named thing
}

func (n named) String() string {
	return n.of.Name + "." + n.field.Name + "(" + strings.Join(n.way, ".") + ")"
}

// eachNamed walks the schema and returns every string below the arguments of
// reads that is marked as a name. A string that is neither marked nor free is
// an error.
func eachNamed(t *testing.T, schema *ast.Schema) (all []named) {
	t.Helper()
	eachArgument(schema, func(at named, in, name string, directives ast.DirectiveList) {
		switch directive := directives.ForName(nameOf); {
		case at.types[len(at.types)-1].Name() != "String":
		case directive != nil:
			at.nameType = directive.Arguments.ForName("type").Value.Raw
			all = append(all, at)
		case !isFree(in, name):
			t.Errorf("%s.%s is a text: mark it with @nameOf, or add it to freeTexts", in, name)
		}
	})
	return all
}

// isEvent reports whether a type is a type of events. Another test compares the
// arguments of events and of Subscription with the fields of Query.
func isEvent(schema *ast.Schema, of *ast.Definition) bool {
	return slices.ContainsFunc(schema.Subscription.Fields, func(field *ast.FieldDefinition) bool {
		return field.Type.Name() == of.Name
	})
}

// eachArgument visits every scalar below the arguments of reads, with its field
// or input type and its name there.
func eachArgument(schema *ast.Schema, visit func(at named, in, name string, directives ast.DirectiveList)) {
	var walk func(at named, in, name string, of *ast.Type, directives ast.DirectiveList, seen []string)
	walk = func(at named, in, name string, of *ast.Type, directives ast.DirectiveList, seen []string) {
		at.way, at.types = append(slices.Clone(at.way), name), append(slices.Clone(at.types), of)
		definition := schema.Types[of.Name()]
		if definition.Kind != ast.InputObject {
			visit(at, in, name, directives)
			return
		}
		for _, field := range definition.Fields {
			if !slices.Contains(seen, definition.Name) {
				walk(at, definition.Name, field.Name, field.Type, field.Directives,
					append(slices.Clone(seen), definition.Name))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Types)) {
		definition := schema.Types[name]
		if definition.Kind != ast.Object || name == "Mutation" || name == "Subscription" ||
			isEvent(schema, definition) || strings.HasPrefix(name, "__") {
			continue
		}
		for _, field := range definition.Fields {
			for _, argument := range field.Arguments {
				if !strings.HasPrefix(field.Name, "__") {
					walk(named{of: definition, field: field}, name+"."+field.Name, argument.Name,
						argument.Type, argument.Directives, nil)
				}
			}
		}
	}
}

// literal returns the value of the argument that contains the scalar with a
// literal, and the path of the scalar below the argument.
func (n named) literal(schema *ast.Schema, level int, text string) (literal, path string) {
	of := n.types[level]
	switch definition := schema.Types[of.Name()]; {
	case level == len(n.way)-1:
		literal = text
	default:
		below, rest := n.literal(schema, level+1, text)
		members := []string{n.way[level+1] + ": " + below}
		for _, field := range definition.Fields {
			if field.Name != n.way[level+1] && field.Type.NonNull && field.DefaultValue == nil {
				members = append(members, field.Name+": "+minimalValue(schema, field.Type))
			}
		}
		if definition.Name == "ResourceProviderOrder" {
			members = []string{`field: FREE, resourceClass: ` + below}
		}
		if definition.Name == "PlacementRequestInput" && n.way[level+1] != "resources" {
			members = append(members, `resources: [{resourceClass: "VCPU", amount: 1}]`)
		}
		if definition.Name == "CapabilityCondition" {
			members = append(members, "exists: true")
		}
		literal, path = "{"+strings.Join(members, ", ")+"}", "."+n.way[level+1]+rest
	}
	if of.Elem != nil {
		return "[" + literal + "]", "[0]" + path
	}
	return literal, path
}

// routes are selections that lead from Query to the types with arguments.
func routes() map[string]string {
	return map[string]string{
		"Query": "%s", "Namespace": "namespaces { nodes { %s } }",
		"ResourceType": `resourceType(name: "physical:host") { %s }`,
		"Resource":     "resources { nodes { %s } }", "ResourceConnection": "resources { %s }",
		"Capability":       `resourceType(name: "physical:host") { capabilities { %s } }`,
		"ResourceProvider": `resourceProvider(name: "root") { %s }`, "Viewer": "viewer { %s }",
		"MetadataProblemConnection": "metadataProblems { %s }", "WhatIf": "whatIf(changes: []) { %s }",
	}
}

// query returns a query with a value for the name, and the path of the name.
func (n named) query(t *testing.T, schema *ast.Schema, text string) (query, path string) {
	t.Helper()
	return n.queryOf(t, schema, fmt.Sprintf("%q", text))
}

// queryOf returns a query with a literal for the scalar, and the path of the
// scalar.
func (n named) queryOf(t *testing.T, schema *ast.Schema, text string) (query, path string) {
	t.Helper()
	literal, below := n.literal(schema, 0, text)
	arguments := []string{n.way[0] + ": " + literal}
	for _, argument := range n.field.Arguments {
		if argument.Name != n.way[0] && argument.Type.NonNull && argument.DefaultValue == nil {
			arguments = append(arguments, argument.Name+": "+minimalValue(schema, argument.Type))
		}
	}
	if n.field.Name == "allocationCandidates" && n.way[0] != "resources" {
		arguments = append(arguments, `resources: [{resourceClass: "VCPU", amount: 1}]`)
	}
	if n.field.Name == "survives" && n.way[0] == "capability" {
		arguments = append(arguments, "by: CAPABILITY")
	}
	asked := n.field.Name + "(" + strings.Join(arguments, ", ") + ")"
	switch below := schema.Types[n.field.Type.Name()]; {
	case below.IsLeafType():
	case below.Fields.ForName("totalCount") != nil:
		asked += " { totalCount pageInfo { hasNextPage } nodes { __typename } }"
	default:
		asked += " { __typename }"
	}
	route, ok := routes()[n.of.Name]
	if !ok {
		t.Fatalf("there is no route to %s", n.of.Name)
	}
	return "{ " + fmt.Sprintf(route, asked) + " }", n.way[0] + below
}

// samples has, for each type of named thing, a name that every viewer sees, a
// misspelling of it, and a name that only an administrator sees.
func samples() map[string]struct{ known, misspelt, hidden string } {
	return map[string]struct{ known, misspelt, hidden string }{
		"ResourceType":  {"physical:host", "phisycal:host", "marker::Type"},
		"Namespace":     {"Open", "Opne", marker},
		"Capability":    {"arch", "acrh", "marker_capability"},
		"Trait":         {"HW_CPU_X86_AVX", "HW_CPU_X68_AVX", ""},
		"ResourceClass": {"VCPU", "VCPPU", ""},
	}
}

// refusals returns the codes, fields and messages of errors.
func refusals(response *graphql.Response) (all []string) {
	for _, err := range response.Errors {
		all = append(all, fmt.Sprint(err.Extensions["code"], " ", err.Extensions["field"], " ", err.Message))
	}
	return all
}

// TestNamesThatAreUnknownAreRefused queries with every string that is marked as
// a name. A known name must be accepted. A misspelling must be refused at its
// path, with a suggestion. A name that the viewer may not see must have the
// answer, statements and price of a missing name.
func TestNamesThatAreUnknownAreRefused(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := openFixture(t, url)
		executor := executorOf(t, s)
		schema := executor.Schema()
		ask := func(viewer, query string) (*graphql.Response, string) {
			ctx, statements := store.CountStatements(access.WithViewer(t.Context(), viewers[viewer]))
			response := executor.Execute(ctx, &graphql.RawParams{Query: query})
			return response, fmt.Sprint(statements(), " statements, price ", priceFor(t, executor, query))
		}
		all := eachNamed(t, schema)
		if len(all) < 50 {
			t.Errorf("found %d names", len(all))
		}
		for _, one := range all {
			sample := samples()[one.nameType]
			known, path := one.query(t, schema, sample.known)
			if response, _ := ask("member", known); slices.ContainsFunc(refusals(response), func(text string) bool {
				return strings.Contains(text, "unknown")
			}) {
				t.Errorf("%v: %v: %s", one, refusals(response), known)
			}
			misspelt, _ := one.query(t, schema, sample.misspelt)
			response, _ := ask("member", misspelt)
			end := fmt.Sprintf("%q; did you mean %q?", sample.misspelt, sample.known)
			found := refusals(response)
			if len(found) == 0 || !strings.HasPrefix(found[0], "BAD_USER_INPUT "+path+" ") ||
				!strings.HasSuffix(found[0], end) {
				t.Errorf("%v: %q is not at %s with %q: %s", one, found, path, end, misspelt)
			}
			if sample.hidden == "" {
				continue
			}
			absent := strings.ReplaceAll(sample.hidden, marker, "absent")
			hidden, _ := one.query(t, schema, sample.hidden)
			missing, _ := one.query(t, schema, absent)
			first, firstTook := ask("member", hidden)
			second, secondTook := ask("member", missing)
			if got, want := answerText(t, first),
				strings.ReplaceAll(answerText(t, second), absent, sample.hidden); got != want ||
				firstTook != secondTook {
				t.Errorf("%v: hidden takes %s, absent %s:\n%s\n%s", one, firstTook, secondTook, got, want)
			}
			if found := refusals(first); len(found) == 0 || !strings.HasPrefix(found[0], "BAD_USER_INPUT "+path+" ") {
				t.Errorf("%v: %q is not at %s: %s", one, found, path, hidden)
			}
			if response, _ := ask("admin", hidden); slices.ContainsFunc(refusals(response), func(text string) bool {
				return strings.Contains(text, "unknown")
			}) {
				t.Errorf("%v: an administrator sees %q: %v", one, sample.hidden, refusals(response))
			}
		}
	})
}

// priceFor returns the price of a query.
func priceFor(t *testing.T, executor *graph.Executor, query string) int64 {
	t.Helper()
	prepared := executor.Preparer(document.DefaultLimits()).Prepare(t.Context(), document.Request{Text: query})
	if prepared.Refused != nil {
		t.Fatalf("%v: %s", prepared.Refused, query)
	}
	return prepared.Operation.Price.Cost
}

// TestNamesAreLookedUpOnce queries several lists with names. One statement must
// look up all names, and one answer must have all problems.
func TestNamesAreLookedUpOnce(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := openFixture(t, url)
		executor := executorOf(t, s)
		ask := func(query string) ([]string, int) {
			ctx, statements := store.CountStatements(access.WithViewer(t.Context(), viewers["member"]))
			return refusals(executor.Execute(ctx, &graphql.RawParams{Query: query})), statements()
		}
		for query, want := range map[string]int{
			`{ resources(filter: {types: ["physical:host"]}) { nodes { uuid } totalCount metadataFacets(keys: ["size"]) { key } facets(of: [{by: TAG}]) { hasMore } } }`:              1 + 4,
			`{ resourceTypes { nodes { resources(filter: {types: ["physical:host"]}) { totalCount nodes { uuid children(filter: {types: ["physical:host"]}) { totalCount } } } } } }`: 1 + 5,
			`{ namespaces { nodes { properties(resourceType: "physical:host") { name } objects(resourceType: "physical:host") { name } } } }`:                                         1 + 4,
			`{ resources(filter: {types: ["physical:hos", "marker::Type"]}) { totalCount } }`:                                                                                         2,
		} {
			if _, took := ask(query); took != want {
				t.Errorf("took %d statements, want %d: %s", took, want, query)
			}
		}
		found, _ := ask(fmt.Sprintf(`{ resources(filter: {types: ["nothing"], search: %q}) { totalCount } }`,
			strings.Repeat("x", 201)))
		if len(found) != 2 {
			t.Errorf("%q do not tell of both", found)
		}
	})
}
