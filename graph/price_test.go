package graph_test

import (
	"fmt"

	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// arguments makes random arguments.
type arguments struct {
	chance *rand.Rand
	schema *ast.Schema
	field  string // of Query
}

// query returns a query of one field with random arguments and a selection.
func (a arguments) query(field *ast.FieldDefinition) string {
	var list []string
	for _, argument := range field.Arguments {
		switch {
		case argument.Name == "after" || argument.Name == "before" || argument.Name == "last":
		case argument.Type.NonNull && argument.DefaultValue == nil || a.chance.IntN(2) == 0:
			list = append(list, argument.Name+": "+a.value(argument.Name, argument.Type, 3))
		}
	}
	switch {
	case field.Name == "resourceProvider":
		list = []string{fmt.Sprintf(`name: "root %d"`, a.chance.IntN(100))}
	case field.Name == "allocationCandidates" && a.chance.IntN(2) == 0:
		list = []string{fmt.Sprintf(`resources: [{resourceClass: "VCPU", amount: 1}, {resourceClass: "MEMORY_MB", amount: 1}], first: %d`, 1+a.chance.IntN(100))}
	}
	query := field.Name
	if len(list) > 0 {
		query += "(" + strings.Join(list, ", ") + ")"
	}
	var fragments []string
	if below := a.schema.Types[field.Type.Name()]; !below.IsLeafType() {
		random := &randomDocument{chance: a.chance, types: a.schema.Types, ids: crowdIDs,
			variants: map[string][]string{}, fragments: map[string][]string{}, polite: true, plain: true}
		query += " " + random.selection(below, "", 3)
		fragments = random.text
	}
	return "{ " + query + " }\n" + strings.Join(fragments, "\n")
}

// String values of arguments, by argument name.
var texts = map[string][]string{
	"namespace.name": {"Many 1", "Many 2", "Open"}, "resourceType.name": {"physical:host", "OS::Nova::Flavor"},
	"name": {"host 1", "root 1", "Many 1", "size", "arch"}, "resourceType": {"physical:host", "OS::Nova::Flavor"},
	"types":         {"physical:host", "OS::Manila::Share"},
	"resourceTypes": {"physical:host", "OS::Nova::Flavor"},
	"key":           {"size", "key1", "key2", "arch", "many1:size"}, "keys": {"size", "key1"},
	"value": {"1", "2", "value 1", "x86"}, "requirement": {"x86", "<in> x8", "<or> x86 <or> v1", ">= 2"},
	"matching":      {`["==", "$arch", "x86"]`, `["or", ["==", "$arch", "x86"], ["==", "$arch", "v1"]]`},
	"resourceClass": {"VCPU", "MEMORY_MB"}, "resourceClasses": {"VCPU", "MEMORY_MB"}, "hasClass": {"VCPU", "MEMORY_MB"},
	"requiredAll": {"HW_CPU_X86_AVX"}, "requiredAny": {"HW_CPU_X86_AVX", "HW_NUMA_ROOT"}, "forbidden": {"HW_NUMA_ROOT"},
	"anyOf": {"HW_CPU_X86_AVX"}, "rootRequired": {"HW_CPU_X86_AVX"}, "rootForbidden": {"HW_NUMA_ROOT"},
	"suffix": {"1", "2"}, "projectId": {"demo", "operations"}, "projectIds": {"demo", "operations"},
	"startsWith": {"s", "v", "nothing"}, "names": {"Many 1", "Many 2"},
	"kind": {"Namespace", "Resource"}, "search": {"size", "many", "nothing"}, "nameContains": {"host", "1", "nothing"},
	"contains": {"1", "value", "nothing"},
}

// value returns a random value of a type for an argument with a name.
func (a arguments) value(name string, of *ast.Type, levels int) string {
	if of.Elem != nil {
		var members []string
		for range 1 + a.chance.IntN(3) {
			members = append(members, a.value(name, of.Elem, levels))
		}
		return "[" + strings.Join(slices.Compact(slices.Sorted(slices.Values(members))), ", ") + "]"
	}
	definition := a.schema.Types[of.Name()]
	if definition.Name == "ResourceProviderOrder" { // the class belongs to some fields
		return []string{`{field: NAME}`, `{field: FREE, resourceClass: "VCPU"}`,
			`{field: SHARE_USED, resourceClass: "MEMORY_MB", direction: DESC}`}[a.chance.IntN(3)]
	}
	switch definition.Kind {
	case ast.Enum:
		return definition.EnumValues[a.chance.IntN(len(definition.EnumValues))].Name
	case ast.InputObject:
		return a.object(definition, levels)
	}
	switch definition.Name {
	case "Int", "Int64":
		return fmt.Sprint(1 + a.chance.IntN(20))
	case "Boolean":
		return fmt.Sprint(a.chance.IntN(2) == 0)
	case "UUID":
		digit := "a"
		if a.field == "consumer" {
			digit = "f"
		}
		return fmt.Sprintf(`"%s-0000-4000-8000-%012d"`, strings.Repeat(digit, 8), a.chance.IntN(150))
	case "ID":
		return fmt.Sprintf("%q", crowdIDs[a.chance.IntN(len(crowdIDs))])
	case "DateTime":
		return `"2026-03-01T09:30:00Z"`
	}
	known, ok := texts[a.field+"."+name]
	if !ok {
		known, ok = texts[name]
	}
	if !ok {
		known = []string{"size", "demo"}
	}
	return fmt.Sprintf("%q", known[a.chance.IntN(len(known))])
}

// object returns a random input object. A oneOf object gets one alternative, a
// leaf at the last level.
func (a arguments) object(definition *ast.Definition, levels int) string {
	fields := slices.DeleteFunc(slices.Clone(definition.Fields), func(field *ast.FieldDefinition) bool {
		return levels <= 0 && field.Type.Name() == definition.Name
	})
	isCondition := strings.HasSuffix(definition.Name, "Condition") && definition.Directives.ForName("oneOf") == nil
	var members []string
	switch {
	case definition.Directives.ForName("oneOf") != nil:
		fields = fields[:copy(fields, fields[a.chance.IntN(len(fields)):][:1])]
	case isCondition: // a name and one operator
		fields = append(fields[:1:1], fields[1+a.chance.IntN(len(fields)-1)])
	}
	for _, field := range fields {
		if field.Type.NonNull && field.DefaultValue == nil || len(fields) < 3 || a.chance.IntN(4) == 0 {
			members = append(members, field.Name+": "+a.value(field.Name, field.Type, levels-1))
		}
	}
	return "{" + strings.Join(members, ", ") + "}"
}

// crowdIDs are ids of nodes of every kind in the crowd.
var crowdIDs = func() []string {
	var ids []string
	for _, kind := range []string{"Namespace", "PropertyDefinition", "ObjectDefinition", "Tag", "ResourceType",
		"Resource", "MetadataItem", "Capability"} {
		for row := range 5 {
			ids = append(ids, nodeID(kind, row+1))
		}
	}
	return append(ids, page.GlobalID(page.KindResourceProvider, provider, ""),
		page.GlobalID(page.KindConsumer, "66666666-6666-4666-8666-666666666666", ""))
}()

// nodeID returns the id of a row of the crowd. The UUIDs of the crowd are
// numbered.
func nodeID(kind string, row int) string {
	switch page.Kind(kind) {
	case page.KindResource:
		return page.GlobalID(page.KindResource, crowdResource(row), "")
	case page.KindMetadataItem:
		return page.GlobalID(page.KindMetadataItem, crowdResource(row/12), fmt.Sprintf("key%d", row%12))
	}
	return page.GlobalID(page.Kind(kind), storetest.RowUUID(row), "")
}

func crowdResource(i int) string { return fmt.Sprintf("aaaaaaaa-0000-4000-8000-%012d", i) }

// shortSearches returns fields that search for different strings of two
// characters.
func shortSearches(count int) (fields string) {
	for i := range count {
		fields += fmt.Sprintf(`a%d: resources(first: 1, filter: {search: "%c1"}) { totalCount } `, i, 'a'+i)
	}
	return fields
}

// TestPricesOfKnownOperations checks the price of operations, in points. A
// viewer can spend a thousand points per second.
func TestPricesOfKnownOperations(t *testing.T) {
	t.Parallel()
	var tests []string
	for i := range 49 {
		tests = append(tests, fmt.Sprintf(`{metadata: {key: "k%d", contains: "nothing"}}`, i))
	}
	anyOf := "resources(first: 1, filter: {where: {any: [" + strings.Join(tests, ", ") + "]}}) { totalCount }"
	many := ""
	for i := range 60 {
		many += fmt.Sprintf("a%d: %s ", i, strings.ReplaceAll(anyOf, "nothing", fmt.Sprint("nothing ", i)))
	}
	const candidates = `allocationCandidates(first: 1000, resources: [{resourceClass: "VCPU", amount: 1}, {resourceClass: "MEMORY_MB", amount: 2}]) {
		pageInfo { hasNextPage endCursor } nodes { allocations { provider { uuid name generation } resources { resourceClass amount } } mappings { suffix providers { uuid } } }
		providerSummaries { provider { uuid generation parent { uuid } root { uuid } } inventories { resourceClass total reserved capacity used allocationRatio } traits } }`
	executor := graph.NewExecutor(&graph.Resolver{}, nil)
	reader := document.NewReader(executor.Schema(), graph.LookUps, document.DefaultLimits())
	for _, of := range []struct {
		name, query string
		most        int64 // points; 0 is refused
	}{
		{"who am I", "{ viewer { userId } }", 1},
		{"a look-up", `{ namespace(name: "x") { name description properties { name title } } }`, 3},
		{"a dashboard", `{ namespaces(first: 20) { nodes { name displayName } totalCount } resourceTypes { nodes { name } }
			resources(first: 20, filter: {types: ["OS::Nova::Server"]}) { totalCount nodes { uuid name type { name } metadata { key value } } } }`, 25},
		{"a search", `{ resources(first: 20, filter: {nameContains: "x"}) { nodes { name } totalCount } }`, 30},
		{"a search for two characters", `{ resources(first: 20, filter: {search: "xy"}) { totalCount } }`, 410},
		{"20 searches for two characters", "{ " + shortSearches(20) + " }", 0},
		{"20 searches for two characters of two bytes",
			"{ " + strings.ReplaceAll(shortSearches(20), "1\"", "\u00e9\"") + " }", 0},
		{"20 searches without three letters in a row",
			"{ " + strings.ReplaceAll(shortSearches(20), "1\"", "-b-c\"") + " }", 0},
		{"a page of candidates", "{ " + candidates + " }", 250},
		{"a page of candidates on hosts", "{ " + strings.Replace(candidates, "first: 1000",
			`first: 1000, hosts: {metadata: [{key: "power", value: "green"}]}`, 1) + " }", 300},
		{"a page of resources", `{ resources(first: 1000) { nodes { uuid name metadata { key value } } } }`, 650},
		{"49 tests of every item", "{ " + anyOf + " }", 0},
		{"60 times 49 tests of every item", "{ " + many + " }", 0},
		{"a trait", `mutation { createTrait(input: {name: "CUSTOM_A"}) { trait { name } } }`, 6},
		{"a file of 900 properties",
			fmt.Sprintf(`mutation { importNamespaces(input: {documents: [%q]}) { reports { outcome } } }`,
				`{"namespace": "a", "properties": {`+strings.Repeat(`"p": {"type": "string"}, `, 900)+`}}`), 250},
		{"9 tests of every item", "{ resources(first: 1, filter: {where: {any: [" +
			strings.Join(tests[:9], ", ") + "]}}) { totalCount } }", 1200},
	} {
		prepared := reader.Prepare(document.Request{Text: of.query})
		switch {
		case of.most == 0 && prepared.Refused == nil || of.most > 0 && prepared.Refused != nil:
			t.Errorf("%s: refused %v, costs %+v", of.name, prepared.Refused, prepared.Operation.Price)
		case of.most > 0:
			points := 1 + prepared.Operation.Price.Cost/1000
			t.Logf("%-24s %4d points: %+v", of.name, points, prepared.Operation.Price)
			if points > of.most {
				t.Errorf("%s costs %d points, want at most %d", of.name, points, of.most)
			}
		}
	}
}

// A what-if may have 1,000 changes of any kind.
func TestEveryWhatIfMayBeAsked(t *testing.T) {
	t.Parallel()
	executor := graph.NewExecutor(&graph.Resolver{}, nil)
	reader := document.NewReader(executor.Schema(), graph.LookUps, document.DefaultLimits())
	const id = "00000000-0000-4000-8000-000000000001"
	for name, change := range map[string]any{
		"addProvider":     map[string]any{"name": "host"},
		"removeProvider":  id,
		"disableProvider": id,
		"setInventories":  map[string]any{"provider": id, "inventories": []any{}},
		"setTraits":       map[string]any{"provider": id, "traits": []any{}},
		"releaseConsumer": id,
		"moveConsumer":    map[string]any{"consumer": id, "allocations": []any{}},
		"place":           []any{map[string]any{"provider": id, "resources": []any{}}},
	} {
		changes := slices.Repeat([]any{map[string]any{name: change}}, placement.MaxWhatIfChanges)
		prepared := reader.Prepare(document.Request{Text: `query($changes: [WhatIfChangeInput!]!) {
			whatIf(changes: $changes) {
			fits(request: {}) { atLeast } allocationCandidates(first: 1) { totalCount } } }`,
			Variables: map[string]any{"changes": changes}})
		if prepared.Refused != nil {
			t.Errorf("%s: %v", name, prepared.Refused)
		}
	}
}

// TestWhatMutationsNeed checks that claims with payloads from memory join a
// transaction and need no separate connection. Other mutations need one.
func TestWhatMutationsNeed(t *testing.T) {
	t.Parallel()
	reader := document.NewReader(graph.NewExecutor(&graph.Resolver{}, nil).Schema(),
		graph.LookUps, document.DefaultLimits())
	claim := func(shown string) string {
		return fmt.Sprintf(`setAllocations(input: {consumers: [{uuid: %q, projectId: "p", userId: "u", allocations: []}]}) { consumers { %s } }`, crowdResource(1), shown)
	}
	release := func(shown string) string {
		return fmt.Sprintf(`deleteAllocations(input: {consumer: %q}) { consumer { %s } }`, crowdResource(1), shown)
	}
	const held = "uuid generation mappings { suffix providers { name } } allocations { used provider { name inventories { used } } consumer { uuid } }"
	const trait = `createTrait(input: {name: "CUSTOM_A"}) { trait { name } }`
	for query, want := range map[string]document.Needs{
		claim("uuid"): document.NeedsTransaction, claim(held): document.NeedsTransaction,
		release(held):                                           document.NeedsTransaction,
		claim(held) + " r: " + release("uuid"):                  document.NeedsTransaction,
		claim("resource { name }"):                              document.NeedsDatabase,
		release("resource { name }"):                            document.NeedsDatabase,
		claim("allocations { provider { resource { name } } }"): document.NeedsDatabase,
		trait: document.NeedsDatabase, claim("uuid") + trait: document.NeedsDatabase,
		trait + claim("uuid"): document.NeedsDatabase,
	} {
		prepared := reader.Prepare(document.Request{Text: "mutation { " + query + " }"})
		if prepared.Refused != nil {
			t.Errorf("%s: %v", query, prepared.Refused)
		} else if got := prepared.Operation.Needs; got != want {
			t.Errorf("needs %v, want %v: %s", got, want, query)
		}
	}
}
