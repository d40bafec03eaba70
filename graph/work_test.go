package graph_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// priced runs operations and compares them with their prices.
type priced struct {
	t        *testing.T
	executor *graph.Executor
	prepare  *graph.Preparer
}

// run runs an operation without errors and returns its data. The operation must
// not run more statements than its price has.
func (p *priced) run(query string) (data map[string]any) {
	p.t.Helper()
	ctx, count := store.CountStatements(access.WithViewer(p.t.Context(), viewers["admin"]))
	prepared := p.prepare.Prepare(ctx, document.Request{Text: query})
	if prepared.Refused != nil {
		p.t.Fatalf("%v: %s", prepared.Refused, query)
	}
	response := p.executor.Run(ctx, prepared.Operation, 0)
	if len(response.Errors) > 0 {
		p.t.Fatalf("%v: %s", response.Errors, query)
	}
	if err := json.Unmarshal(bytes.Join(response.Data, nil), &data); err != nil {
		p.t.Fatal(err)
	}
	if ran, priced := count(), prepared.Operation.Price.Statements; ran > priced {
		p.t.Errorf("%d statements are run, %d are priced: %s", ran, priced, query)
	}
	return data
}

// fields runs each field of the schema, along one path to its type for each
// field that leads to the type. It reads each page in both directions.
func (p *priced) fields() {
	p.t.Helper()
	type way struct{ of, text string }
	schema := p.executor.Schema()
	known := map[string]bool{}
	for ways := []way{{"Query", "{ %s }"}}; len(ways) > 0; ways = ways[1:] {
		at := ways[0]
		for _, field := range schema.Types[at.of].Fields {
			key, below := at.of+"."+field.Name, schema.Types[field.Type.Name()]
			text := field.Name + requiredArguments[key]
			switch {
			case strings.HasPrefix(field.Name, "__"):
			case below.Kind == ast.Interface:
				p.nodes(field.Name)
			case below.IsLeafType():
				p.run(fmt.Sprintf(at.text, text))
			default:
				p.run(fmt.Sprintf(at.text, text+" { __typename }"))
				if strings.HasSuffix(below.Name, "Connection") {
					p.pages(at.text, field, requiredArguments[key])
				}
				if !known[key] && strings.Count(at.text, "{") < 12 {
					known[key] = true
					ways = append(ways, way{below.Name, fmt.Sprintf(at.text, text+" { %s }")})
				}
			}
		}
	}
}

// pages reads pages of a connection in both directions, and whether other pages
// exist before and after each.
func (p *priced) pages(around string, field *ast.FieldDefinition, arguments string) {
	p.t.Helper()
	with := func(more string) string {
		if arguments == "" {
			return field.Name + "(" + more + ")"
		}
		return field.Name + strings.TrimSuffix(arguments, ")") + ", " + more + ")"
	}
	data := p.run(fmt.Sprintf(around, with("first: 2")+" { pageInfo { endCursor } }"))
	cursors := map[string]any{}
	valuesOf(data, "endCursor", cursors)
	for cursor := range cursors {
		for _, side := range []string{"first: 1, after: %q", "last: 1, before: %q", "before: %q", "after: %q"} {
			if strings.Contains(side, "before") && field.Arguments.ForName("before") == nil {
				continue
			}
			page := fmt.Sprintf(around, with(fmt.Sprintf(side, cursor))+" { pageInfo { %s } }")
			p.run(fmt.Sprintf(page, "hasNextPage"))
			p.run(fmt.Sprintf(page, "hasPreviousPage"))
		}
		break
	}
}

// nodes runs a look-up of each kind of node, and of all together.
func (p *priced) nodes(field string) {
	p.t.Helper()
	var all []string
	for _, kind := range p.executor.Schema().PossibleTypes["Node"] {
		uuid, part := storetest.RowUUID(1), ""
		switch page.Kind(kind.Name) {
		case page.KindResourceProvider, page.KindConsumer:
			uuid = provider
		case page.KindResource:
			uuid = publicHost
		case page.KindMetadataItem:
			uuid, part = publicHost, "size"
		}
		id := strconv.Quote(page.GlobalID(page.Kind(kind.Name), uuid, part))
		all = append(all, id,
			strconv.Quote(page.GlobalID(page.KindPropertyDefinition, storetest.RowUUID(1), storetest.RowUUID(1))))
		if field == "node" {
			p.run("{ " + "node(id: " + id + ") { id }" + " }")
			p.run("{ " + "node(id: " + all[1] + ") { id }" + " }")
		}
	}
	if field == "nodes" {
		p.run("{ " + "nodes(ids: [" + strings.Join(all, ",") + "]) { id }" + " }")
	}
}

// valuesOf collects the string values of a field in an answer.
func valuesOf(value any, name string, found map[string]any) {
	switch value := value.(type) {
	case []any:
		for _, member := range value {
			valuesOf(member, name, found)
		}
	case map[string]any:
		if text, ok := value[name].(string); ok {
			found[text] = true
		}
		for _, member := range value {
			valuesOf(member, name, found)
		}
	}
}

// more are fields with arguments that make them run more statements.
var more = map[string][]string{
	"Query.resources": {
		`resources(filter: {requirements: [{key: "arch", requirement: "x86"}]}) { totalCount }`,
		`resources(filter: {matching: "[\"==\", \"$arch\", \"x86\"]"}) { totalCount }`,
		`resources(filter: {where: {any: [{metadata: {key: "size", exists: true}}, {not: {capability: {name: "arch", exists: true}}}]}}) { metadataFacets(keys: ["size"]) { key } }`,
	},
	"Query.explainResources": {`explainResources(filter: {requirements: [{key: "arch", requirement: "x86"}]}) { considered }`},
	"Namespace.properties":   {`namespaces { nodes { properties(resourceType: "physical:host") { name } } }`},
	"Namespace.object":       {`namespaces { nodes { object(name: "Group", resourceType: "physical:host") { name } } }`},
}

// TestOperationsRunNoMoreStatementsThanArePriced runs every field of every type
// that Query leads to, and random documents. No operation may run more
// statements than its price has, because the price decides whether it needs a
// transaction.
func TestOperationsRunNoMoreStatementsThanArePriced(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		if err := s.FillEmpty(access.WithViewer(t.Context(), viewers["admin"]), largeFixture()); err != nil {
			t.Fatal(err)
		}
		executor := executorOf(t, s)
		storetest.NumberUUIDs(t, s)
		askAs(t, executor, viewers["admin"],
			`mutation { shareNamespace(input: {namespace: "Open", projectId: "demo", role: READER}) { __typename } }`)
		p := &priced{t: t, executor: executor, prepare: executor.Preparer(document.Limits{})}
		p.fields()
		for _, fields := range more {
			for _, field := range fields {
				p.run("{ " + field + " }")
			}
		}
		p.documents(idsOfEverything(t, executor))
	})
}

// TestEveryFieldIsReadAtTheInstantOfItsOperation runs each field of Query
// together with a field that takes one statement. If the schema does not say
// that a field reads the store, the price has one statement and the operation
// runs without a transaction. The executor then logs that it read at several
// instants, and the log of executorOf fails the test. The test above compares
// the fields below Query with their prices.
func TestEveryFieldIsReadAtTheInstantOfItsOperation(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		if err := s.FillEmpty(access.WithViewer(t.Context(), viewers["admin"]), largeFixture()); err != nil {
			t.Fatal(err)
		}
		executor := executorOf(t, s)
		storetest.NumberUUIDs(t, s)
		p := &priced{t: t, executor: executor, prepare: executor.Preparer(document.Limits{})}
		for _, field := range executor.Schema().Query.Fields {
			text := field.Name + requiredArguments["Query."+field.Name]
			switch below := executor.Schema().Types[field.Type.Name()]; {
			case strings.HasPrefix(field.Name, "__") || below.Kind == ast.Interface: // fields covers nodes
				continue
			case !below.IsLeafType():
				text += " { __typename }"
			}
			p.run("{ beside: resourceTypes(first: 1) { nodes { name } } " + text + " }")
			p.run("{ " + text + " beside: resourceTypes(first: 1) { nodes { name } } }")
		}
	})
}

// documents runs random documents. Shared loads can only reduce the number of
// statements.
func (p *priced) documents(ids []string) {
	p.t.Helper()
	total, allowed := 0, 0
	for round := range uint64(300) {
		chance := rand.New(rand.NewPCG(round, 7))
		random := &randomDocument{chance: chance, types: p.executor.Schema().Types, ids: ids,
			variants: map[string][]string{}, fragments: map[string][]string{}, polite: chance.IntN(3) > 0}
		query, variables := random.write(5)
		ctx, count := store.CountStatements(access.WithViewer(p.t.Context(), viewers["admin"]))
		prepared := p.prepare.Prepare(ctx, document.Request{Text: query, Variables: variables})
		if prepared.Refused != nil {
			p.t.Fatalf("%v: %s", prepared.Refused, query)
		}
		p.executor.Run(ctx, prepared.Operation, 0)
		ran, priced := count(), prepared.Operation.Price.Statements
		if ran > priced {
			p.t.Errorf("round %d: %d statements are run, %d are priced: %s %v", round, ran, priced, query, variables)
		}
		total, allowed = total+ran, allowed+priced
	}
	p.t.Logf("%d statements were run, %d were priced", total, allowed)
}

// ofWorld are the types of objects that hold their world.
var ofWorld = []string{"ResourceProvider", "ResourceProviderConnection",
	"ResourceProviderEdge", "AllocationCandidateConnection",
	"AllocationCandidateEdge", "AllocationCandidate", "CandidateAllocation", "GroupMapping", "CapacityConnection",
	"CapacityEdge", "Capacity", "ProviderSummary", "CandidateExplanation", "NearMiss", "WhatIf",
	"CapacityDifference",
	"FailureConnection", "FailureEdge", "Failure", "DrainPlan", "DrainMove", "RebalancePlan", "RebalanceMove"}

// readOfWorld are fields that read their values from the world, on types that
// do not hold it.
var readOfWorld = []string{"Query.changes", "Query.placementRequest", "Query.fits", "Query.capacityFor",
	"Query.fitsTogether", "Resource.fits", "Trait.viewerCanDelete", "ResourceClass.viewerCanDelete",
	"Query.definitions", "Query.validateMetadata", "Query.metadataProblems", "Resource.metadataReport"}

// TestTheWorldIsPricedWhereItIsEntered checks which fields have a price for the
// resident world: the fields that lead from a type without a world to a type
// with it, and readOfWorld.
func TestTheWorldIsPricedWhereItIsEntered(t *testing.T) {
	t.Parallel()
	isOf := map[string]bool{}
	for _, name := range ofWorld {
		isOf[name] = true
	}
	executor := graph.NewExecutor(&graph.Resolver{}, nil)
	schema := executor.Schema()
	for _, of := range schema.Types {
		// a payload and its results have the world after their commit
		if of.Kind != ast.Object || strings.HasSuffix(of.Name, "Payload") || strings.HasSuffix(of.Name, "Result") ||
			of.Name == "InventoryRefusal" || strings.HasPrefix(of.Name, "__") {
			continue
		}
		for _, field := range of.Fields {
			name := of.Name + "." + field.Name
			enters := isOf[field.Type.Name()] && !isOf[of.Name] || slices.Contains(readOfWorld, name)
			work, says := field.Directives.ForName("work"), false
			if work != nil {
				says = work.Arguments.ForName("world") != nil
			}
			if enters != says {
				t.Errorf("%s enters the world: %v, the schema says %v", name, enters, says)
			}
		}
	}
}

// TestANodeOfTheWorldIsPriced checks that a look-up reads the resident world if
// one of the ids is an id of a provider.
func TestANodeOfTheWorldIsPriced(t *testing.T) {
	t.Parallel()
	executor := graph.NewExecutor(&graph.Resolver{}, nil)
	id := func(kind page.Kind) string { return page.GlobalID(kind, provider, "") }
	for query, want := range map[string]bool{
		fmt.Sprintf("{ node(id: %q) { id } }", id(page.KindResourceProvider)):                                true,
		fmt.Sprintf("{ nodes(ids: %q) { id } }", id(page.KindResourceProvider)):                              true,
		fmt.Sprintf("{ nodes(ids: [%q, %q]) { id } }", id(page.KindConsumer), id(page.KindResourceProvider)): true,
		fmt.Sprintf("{ node(id: %q) { ... on Consumer { allocations { used } } } }", id(page.KindConsumer)):  false,
	} {
		prepared := executor.Preparer(document.Limits{}).Prepare(t.Context(), document.Request{Text: query})
		if prepared.Refused != nil || prepared.Operation.Price.World != want {
			t.Errorf("%s: %+v %v", query, prepared.Operation, prepared.Refused)
		}
	}
}
