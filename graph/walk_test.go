package graph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// marker is in every name, key, value and description of the fixture that
// belongs to project vault alone, or to a private capability.
const marker = "marker"

const (
	publicHost  = "11111111-1111-4111-8111-111111111111"
	hiddenShare = "22222222-2222-4222-8222-222222222222"
	provider    = "33333333-3333-4333-8333-333333333333"
	hiddenHost  = "44444444-4444-4444-8444-444444444444"
	hiddenRoot  = "55555555-5555-4555-8555-555555555555"
)

// fixture returns a public and a hidden thing of every kind.
func fixture() store.Content {
	return store.Content{
		Definitions: []string{
			`{"namespace": "Open", "visibility": "public", "owner": "operations",
			  "properties": {"size": {"title": "Size", "type": "integer"}},
			  "objects": [{"name": "Group", "required": ["inner"], "properties": {"inner": {"title": "Inner", "type": "string"}}}],
			  "tags": [{"name": "Top"}, {"name": "Below", "parent": "Top"}],
			  "resource_type_associations": [{"name": "physical:host"}, {"name": "OS::Nova::Flavor", "prefix": "open:"}]}`,
			`{"namespace": "marker", "visibility": "private", "owner": "vault", "description": "marker",
			  "properties": {"marker": {"title": "marker", "type": "string", "description": "marker"}},
			  "objects": [{"name": "marker", "properties": {"marker": {"title": "marker", "type": "string"}}}],
			  "tags": [{"name": "marker"}, {"name": "marker below", "parent": "marker"}],
			  "resource_type_associations": [{"name": "marker::Type"}, {"name": "physical:host", "prefix": "marker:"}]}`,
		},
		Capabilities: []store.CapabilityRecord{
			{ResourceType: "physical:host", Name: "arch"},
			{ResourceType: "physical:host", Name: "marker_capability", Private: true},
		},
		Resources: []store.ResourceRecord{
			{UUID: publicHost, Type: "physical:host", Name: "host", ProjectID: "operations", Visibility: access.Public,
				Metadata: []resource.MetadataItem{{Key: "size", Value: "1", UserModifiable: true}},
				Capabilities: []metadef.KeyValue{{Key: "arch", Value: "x86"},
					{Key: "marker_capability", Value: "marker"}},
				Tags: []string{"top"}},
			{UUID: hiddenHost, Type: "physical:host", Name: "marker host",
				ProjectID: "vault", Visibility: access.Private,
				Capabilities: []metadef.KeyValue{{Key: "marker_capability", Value: "marker"}},
				Tags:         []string{"marker"}},
			{UUID: hiddenShare, Type: "OS::Manila::Share", Name: "marker share", Description: marker,
				ProjectID: "vault", Visibility: access.Private,
				Metadata: []resource.MetadataItem{{Key: "marker", Value: "marker"}, {Key: "size", Value: "marker"}},
				Tags:     []string{"marker"}},
		},
		Providers: []placement.Provider{
			{UUID: provider, Name: "root", Resource: publicHost,
				Inventories: []placement.Inventory{{ResourceClass: "VCPU",
					Total: 8, MinUnit: 1, MaxUnit: 8, StepSize: 1, AllocationRatio: 1, Capacity: 8}}},
			{UUID: hiddenRoot, Name: "linked", Resource: hiddenHost},
		},
		Claims: []placement.Claim{{Consumers: []placement.ConsumerClaim{
			vcpusOf("66666666-6666-4666-8666-666666666666", "demo", "mel", 1),
			vcpusOf(publicHost, "vault", marker, 1), vcpusOf(hiddenShare, "demo", "mel", 1),
		}}},
	}
}

// openFixture opens a store with the fixture.
func openFixture(t *testing.T, url string) *store.Store {
	t.Helper()
	return openFilled(t, store.Options{URL: url}, fixture())
}

// openFilled opens a store with open discovery of capabilities, and fills it.
func openFilled(t *testing.T, options store.Options, content store.Content) *store.Store {
	t.Helper()
	options.Resources.CapabilityDiscovery = resource.DiscoveryEveryone
	s, err := store.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.FillEmpty(access.WithViewer(t.Context(), viewers["admin"]), content); err != nil {
		t.Fatal(err)
	}
	return s
}

// executeWhole runs a valid document of any length.
func executeWhole(t *testing.T, ctx context.Context, executor *graph.Executor, query string) *graphql.Response {
	t.Helper()
	response := executor.ExecuteWhole(ctx, query)
	if response.Data == nil {
		t.Fatalf("%v in %s", response.Errors, query)
	}
	checkMarked(t, executor.Schema(), query, response)
	return response
}

// requiredArguments are arguments for fields that require some.
var requiredArguments = map[string]string{
	"Query.node":                        `(id: "")`,
	"Query.nodes":                       `(ids: [])`,
	"Query.namespace":                   `(name: "Open")`,
	"Query.resourceType":                `(name: "physical:host")`,
	"Query.definitions":                 `(resourceType: "physical:host")`,
	"Query.validateMetadata":            `(resourceType: "physical:host", values: [{key: "marker:marker", value: "x"}, {key: "sise", value: "y"}])`,
	"Query.resource":                    `(uuid: "11111111-1111-4111-8111-111111111111")`,
	"Query.resourceProvider":            `(name: "root")`,
	"Query.allocationCandidates":        `(resources: [{resourceClass: "VCPU", amount: 1}])`,
	"Query.whatIf":                      `(changes: [{addProvider: {name: "added", parentName: "root", inventories: [{resourceClass: "VCPU", total: 4}]}}])`,
	"WhatIf.fits":                       `(request: {resources: [{resourceClass: "VCPU", amount: 1}]})`,
	"WhatIf.capacityFor":                `(requests: [{resources: [{resourceClass: "VCPU", amount: 1}]}])`,
	"WhatIf.fitsTogether":               `(requests: [{request: {resources: [{resourceClass: "VCPU", amount: 1}]}}])`,
	"WhatIf.allocationCandidates":       `(resources: [{resourceClass: "VCPU", amount: 1}])`,
	"WhatIf.drainPlan":                  `(providers: ["33333333-3333-4333-8333-333333333333"])`,
	"WhatIf.rebalancePlan":              `(requests: [{request: {resources: [{resourceClass: "VCPU", amount: 1}]}}])`,
	"Query.placementRequest":            `(resource: "11111111-1111-4111-8111-111111111111")`,
	"Query.fits":                        `(request: {resources: [{resourceClass: "VCPU", amount: 1}]})`,
	"Query.capacityFor":                 `(requests: [{resources: [{resourceClass: "VCPU", amount: 1}]}])`,
	"Query.fitsTogether":                `(requests: [{request: {resources: [{resourceClass: "VCPU", amount: 1}]}}])`,
	"Query.drainPlan":                   `(providers: ["33333333-3333-4333-8333-333333333333"])`,
	"Query.rebalancePlan":               `(requests: [{request: {resources: [{resourceClass: "VCPU", amount: 1}]}}])`,
	"Query.consumer":                    `(uuid: "66666666-6666-4666-8666-666666666666")`,
	"Query.lastRefusal":                 `(consumer: "66666666-6666-4666-8666-666666666666")`,
	"Query.usages":                      `(projectId: "demo")`,
	"Query.limits":                      `(projectId: "demo")`,
	"Query.explainResources":            `(filter: {types: ["physical:host"]})`,
	"Viewer.can":                        `(operation: CREATE_TRAIT)`,
	"Namespace.property":                `(name: "size")`,
	"Namespace.object":                  `(name: "Group")`,
	"Namespace.tag":                     `(name: "TOP")`,
	"ResourceType.capability":           `(name: "arch")`,
	"Resource.metadataItem":             `(key: "size")`,
	"ResourceConnection.metadataFacets": `(keys: ["size"])`,
	"ResourceConnection.facets":         `(of: [{by: TYPE, includeUnused: true}, {by: PROJECT}, {by: TAG, includeUnused: true}, {by: VISIBILITY}, {by: METADATA_KEY}, {by: METADATA_VALUE, key: "size", includeUnused: true}])`,
	"ResourceProvider.inventory":        `(resourceClass: "VCPU")`,
}

// selection returns a selection of all fields below a type to the given depth.
func selection(t *testing.T, schema *ast.Schema, of *ast.Definition, levels int) string {
	t.Helper()
	var out []string
	for _, field := range of.Fields {
		name := of.Name + "." + field.Name
		if strings.HasPrefix(field.Name, "__") {
			continue
		}
		arguments, ok := requiredArguments[name]
		for _, argument := range field.Arguments {
			if argument.Type.NonNull && argument.DefaultValue == nil && !ok {
				t.Errorf("%s has a required argument: add it to requiredArguments", name)
			}
		}
		below := schema.Types[field.Type.Name()]
		switch {
		case below.IsLeafType():
			out = append(out, field.Name+arguments)
		case below.Kind == ast.Interface || below.Kind == ast.Union:
		case levels > 0:
			if inner := selection(t, schema, below, levels-1); inner != "" {
				out = append(out, field.Name+arguments+" { "+inner+" }")
			}
		}
	}
	return strings.Join(out, " ")
}

var idInAnswer = regexp.MustCompile(`"id":"([A-Za-z0-9_-]+)"`)

// TestPrivateIsInvisibleByEveryPath queries every field of the schema, from
// every query and every existing id, as viewers of other projects. No answer
// may contain the hidden part of the fixture or an internal error, and no
// marked field may be null without an error.
func TestPrivateIsInvisibleByEveryPath(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		executor := executorOf(t, openFixture(t, url))
		schema := executor.Schema()
		ask := func(viewer, query string) string {
			ctx := access.WithViewer(context.Background(), viewers[viewer])
			return answerText(t, executeWhole(t, ctx, executor, query))
		}
		everything := everyQuery(t, schema)
		ids := visibleToAdmins(t, ask, everything)
		fragments := map[page.Kind]string{}
		for _, implementation := range schema.PossibleTypes["Node"] {
			fragments[page.Kind(implementation.Name)] = fmt.Sprintf("... on %s { %s }", implementation.Name,
				selection(t, schema, implementation, 1))
		}
		for _, viewer := range []string{"foreign", "member", "reader", "nobody"} {
			for name, query := range everything {
				answer := ask(viewer, query)
				if strings.Contains(answer, marker) && !(name == "validateMetadata" && onlyEchoes(answer)) {
					t.Errorf("%s as %s shows what is hidden: %s", name, viewer, around(answer, marker))
				}
				if strings.Contains(answer, `"INTERNAL"`) {
					t.Errorf("%s as %s: %s", name, viewer, around(answer, "INTERNAL"))
				}
			}
			for id := range ids {
				node, _ := page.ParseNodeID(id)
				answer := ask(viewer, fmt.Sprintf(`{ node(id: %q) { __typename %s } }`, id, fragments[node.Kind]))
				if strings.Contains(answer, marker) || strings.Contains(answer, `"INTERNAL"`) {
					t.Errorf("node %s as %s: %s", id, viewer, answer)
				}
			}
		}
	})
}

// everyQuery returns a query for each field of Query, with everything below it.
func everyQuery(t *testing.T, schema *ast.Schema) map[string]string {
	t.Helper()
	everything := map[string]string{}
	for _, field := range schema.Query.Fields {
		below := schema.Types[field.Type.Name()]
		if strings.HasPrefix(field.Name, "__") || below.Kind == ast.Interface {
			continue
		}
		query := field.Name + requiredArguments["Query."+field.Name]
		if !below.IsLeafType() {
			query += " { " + selection(t, schema, below, 3) + " }"
		}
		everything[field.Name] = "{ " + query + " }"
	}
	return everything
}

// visibleToAdmins sends queries as an administrator and returns all ids in the
// answers. It checks that enough answers show the hidden part of the fixture.
func visibleToAdmins(t *testing.T, ask func(viewer, query string) string,
	everything map[string]string) map[string]bool {
	t.Helper()
	ids, shown := map[string]bool{}, 0
	for name, query := range everything {
		answer := ask("admin", query)
		if strings.Contains(answer, marker) {
			shown++
		}
		if strings.Contains(answer, `"errors"`) && strings.Contains(answer, `"INTERNAL"`) {
			t.Errorf("%s as admin: %s", name, answer)
		}
		for _, found := range idInAnswer.FindAllStringSubmatch(answer, -1) {
			ids[found[1]] = true
		}
	}
	if len(ids) < 40 || shown < 8 {
		t.Fatalf("found %d ids, and %d queries that show an administrator what is hidden: too few", len(ids), shown)
	}
	return ids
}

// onlyEchoes reports whether the marker is in an answer only because the query
// contained it.
func onlyEchoes(answer string) bool {
	return strings.Count(answer, marker) == 2*strings.Count(answer, `"marker:marker"`)
}

func around(text, part string) string {
	at := strings.Index(text, part)
	return text[max(0, at-200):min(len(text), at+100)]
}

func answerText(t *testing.T, response *graphql.Response) string {
	t.Helper()
	text, err := json.Marshal(response)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestRolesMayDoWhatTheTableSays queries every field of Query and Mutation in
// every role. The answer must be FORBIDDEN exactly if the table says so.
func TestRolesMayDoWhatTheTableSays(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := storetest.Open(t, url)
		executor := executorOf(t, s)
		schema := executor.Schema()
		for _, field := range slices.Concat(schema.Query.Fields, schema.Mutation.Fields) {
			if strings.HasPrefix(field.Name, "__") {
				continue
			}
			permission, _ := access.PermissionOf(field.Name)
			for name, viewer := range viewers {
				ctx := access.WithViewer(context.Background(), viewer)
				_, refused := viewer.Authorize(field.Name)
				response := executor.Execute(ctx, &graphql.RawParams{Query: sample(schema, field)})
				checkMarked(t, schema, sample(schema, field), response)
				var codes []string
				for _, err := range response.Errors {
					codes = append(codes, fmt.Sprint(err.Extensions["code"]))
				}
				forbidden := slices.Contains(codes, "FORBIDDEN")
				if permission.AfterVisibility {
					forbidden = forbidden && viewer.May(permission.Rule)
				}
				if forbidden != (refused != nil) || slices.Contains(codes, "INTERNAL") {
					t.Errorf("%s as %s: %v, the table says refused %v\n%s", field.Name, name,
						codes, refused, sample(schema, field))
				}
			}
		}
	})
}

// sample returns an operation of a field with only the required arguments and
// selections.
func sample(schema *ast.Schema, field *ast.FieldDefinition) string {
	var arguments []string
	for _, argument := range field.Arguments {
		if argument.Type.NonNull && argument.DefaultValue == nil {
			arguments = append(arguments, argument.Name+": "+minimalValue(schema, argument.Type))
		}
	}
	query := field.Name
	if len(arguments) > 0 {
		query += "(" + strings.Join(arguments, ", ") + ")"
	}
	if !schema.Types[field.Type.Name()].IsLeafType() {
		query += " { __typename }"
	}
	if schema.Mutation.Fields.ForName(field.Name) != nil {
		return "mutation { " + query + " }"
	}
	return "{ " + query + " }"
}

// minimalValue returns a minimal literal of a type.
func minimalValue(schema *ast.Schema, of *ast.Type) string {
	if of.Elem != nil {
		return "[]"
	}
	switch definition := schema.Types[of.Name()]; {
	case definition.Kind == ast.Enum:
		return definition.EnumValues[0].Name
	case definition.Kind == ast.InputObject:
		var fields []string
		for _, field := range definition.Fields {
			if field.Type.NonNull && field.DefaultValue == nil {
				fields = append(fields, field.Name+": "+minimalValue(schema, field.Type))
			}
		}
		return "{" + strings.Join(fields, ", ") + "}"
	}
	switch of.Name() {
	case "UUID":
		return `"77777777-7777-4777-8777-777777777777"`
	case "Int", "Int64":
		return "1"
	case "Float":
		return "1.0"
	case "Boolean":
		return "false"
	}
	return `"sample"`
}
