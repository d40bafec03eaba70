package graph_test

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/metadef/metadeftest"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// shapes are queries whose number of statements does not depend on the number
// of rows.
var shapes = []struct {
	name       string
	query      func(rows int) string
	few, many  int
	statements int
}{
	{"nodes", pageOf(`{ namespaces(first: %d) { nodes {
		properties { name } objects { name properties { name } } tags { name } resourceTypeAssociations { prefix resourceType { name } }
	} } }`), 5, 50, 7},
	{"edges", pageOf(`{ namespaces(first: %d) { edges { node {
		properties { name } objects { name properties { name } } tags { name } resourceTypeAssociations { prefix resourceType { name } }
	} } } }`), 5, 50, 7},
	{"aliases and fragments", pageOf(`{ a: namespaces(first: %d) { x: edges { y: node { ...all } } z: nodes { ...all p: properties { title } } } }
		fragment all on Namespace { properties { name } o: objects { name q: properties { name } } tags { name } resourceTypeAssociations { prefix resourceType { name } } }`), 5, 50, 9},
	// The selections under several names are read once.
	{"a field under several names", pageOf(`query($n: Int = %d) { a: namespaces(first: $n) { nodes { x: properties { name } y: properties { title } } }
		b: namespaces(first: $n) { nodes { properties { name } tags { name } } } c: namespaces(first: $n) { totalCount } }`), 5, 50, 4},
	// Fields of different types with the same name have different paths.
	{"nodes of two types", nodesOfTwoTypes, 2, 20, 7},
	// Children in memory are loaded for all trees together.
	{"children of providers", pageOf(`{ resourceProviders(first: %d) { nodes { children { totalCount nodes {
		name allocations { totalCount } parent { root { resource { name } allocations { nodes { used } } } } } } } } }`), 2, 24, 2},
}

func pageOf(query string) func(rows int) string {
	return func(rows int) string { return fmt.Sprintf(query, rows) }
}

func nodesOfTwoTypes(rows int) string {
	var ids []string
	for i := range rows {
		ids = append(ids, strconv.Quote(page.GlobalID(page.KindNamespace, storetest.RowUUID(i+1), "")),
			strconv.Quote(page.GlobalID(page.KindObjectDefinition, storetest.RowUUID(i+1), "")))
	}
	return `{ nodes(ids: [` + strings.Join(ids, ",") +
		`]) { ... on Namespace { id p: properties { namespace { name } } } ... on ObjectDefinition { id p: properties { namespace { name } object { name } } } } }`
}

// TestStatementsAreFixedByTheShape runs every shape with few and with many
// rows, idle and with every core busy. The number of SQL statements must match
// shapes.
func TestStatementsAreFixedByTheShape(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := access.WithViewer(context.Background(), viewers["admin"])
		createMany(t, ctx, s)
		storetest.NumberUUIDs(t, s)
		executor := executorOf(t, s)
		check := func(when string) {
			for _, shape := range shapes {
				for _, rows := range []int{shape.few, shape.many} {
					ctx, statements := store.CountStatements(ctx)
					if response := executor.Execute(ctx,
						&graphql.RawParams{Query: shape.query(rows)}); len(response.Errors) > 0 {
						t.Error(response.Errors)
					}
					if got := statements(); got != shape.statements {
						t.Errorf("%s of %d rows, %s: %d statements, want %d",
							shape.name, rows, when, got, shape.statements)
					}
				}
			}
		}
		check("idle")
		defer busy()()
		for range 5 {
			check("busy")
		}
	})
}

// TestAPageOfNoRowsIsNotRead checks that an empty page takes no statement, is
// refused for the same reasons as other pages, and reports on request whether
// the list has rows.
func TestAPageOfNoRowsIsNotRead(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := access.WithViewer(context.Background(), viewers["admin"])
		executor := executorOf(t, s)
		ask := func(query string) (*graphql.Response, int) {
			ctx, statements := store.CountStatements(ctx)
			return executor.Execute(ctx, &graphql.RawParams{Query: query}), statements()
		}
		check := func(rows bool) {
			for _, list := range []string{"namespaces", "resourceTypes", "resources", "traits",
				"resourceClasses", "consumers", "auditEvents"} {
				if response, statements := ask("{ " + list +
					"(first: 0) { nodes { __typename } edges { cursor } } }"); len(response.Errors) > 0 ||
					statements != 0 {
					t.Errorf("%s: %d statements, %v", list, statements, response.Errors)
				}
				if response, _ := ask("{ " + list +
					`(first: 0, after: "of another list") { nodes { __typename } } }`); len(response.Errors) != 1 {
					t.Errorf("%s after a wrong cursor: %s, %v", list, response.Data, response.Errors)
				}
				if list == "traits" || list == "resourceClasses" || list == "resourceTypes" {
					continue // these have standard rows
				}
				response, _ := ask("{ a: " + list + "(first: 0) { pageInfo { hasNextPage hasPreviousPage } } b: " +
					list + "(last: 0) { pageInfo { hasNextPage hasPreviousPage } } }")
				want := fmt.Sprintf(`{"a":{"pageInfo":{"hasNextPage":%t,"hasPreviousPage":false}},"b":{"pageInfo":{"hasNextPage":false,"hasPreviousPage":%t}}}`, rows, rows)
				if string(response.Data) != want || len(response.Errors) > 0 {
					t.Errorf("%s: got %s %v, want %s", list, response.Data, response.Errors, want)
				}
			}
		}
		check(false)
		createMany(t, ctx, s)
		response, _ := ask(`mutation {
			createResource(input: {type: "physical:host", name: "one"}) { __typename }
			setInventories(input: {provider: "aaaaaaaa-0000-4000-8000-000000000001", generation: 0, inventories: [{resourceClass: "VCPU", total: 1}]}) { __typename }
			setAllocations(input: {consumers: [{uuid: "cccccccc-0000-4000-8000-000000000001", projectId: "p", userId: "u",
				allocations: [{provider: "aaaaaaaa-0000-4000-8000-000000000001", resources: [{resourceClass: "VCPU", amount: 1}]}]}]}) { __typename }
		}`)
		if len(response.Errors) > 0 {
			t.Fatal(response.Errors)
		}
		check(true)
	})
}

// createMany creates 50 namespaces and 12 trees of two providers.
func createMany(t *testing.T, ctx context.Context, s *store.Store) {
	t.Helper()
	for i := range 50 {
		if _, err := s.CreateNamespace(ctx, manyNamespaces(i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 12 {
		root, child := fmt.Sprintf("aaaaaaaa-0000-4000-8000-0000000000%02d", i),
			fmt.Sprintf("bbbbbbbb-0000-4000-8000-0000000000%02d", i)
		for _, provider := range []placement.NewProvider{{Name: root, UUID: &root},
			{Name: child, UUID: &child, Parent: &root}} {
			if _, _, err := s.CreateResourceProvider(ctx, provider); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// busy keeps every core at work until stop is called.
func busy() (stop func()) {
	var done atomic.Bool
	var working sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		working.Go(func() {
			for n := 0; !done.Load(); n++ {
				_ = n * n
			}
		})
	}
	return func() {
		done.Store(true)
		working.Wait()
	}
}

func manyNamespaces(i int) metadef.NamespaceInput {
	property := func(name string) metadef.PropertyInput { return metadeftest.Property(name, metadef.String) }
	prefix := fmt.Sprintf("p%d_", i)
	return metadef.NamespaceInput{
		Name:       fmt.Sprintf("Namespace %02d", i),
		Properties: []metadef.PropertyInput{property("one"), property("two")},
		Objects:    []metadef.ObjectInput{metadeftest.Object("object", property("three"), property("four"))},
		Tags:       []metadef.TagInput{{Name: "tag"}, {Name: "other"}},
		ResourceTypeAssociations: []metadef.DocumentAssociation{
			{ResourceType: "OS::Nova::Flavor", Prefix: &prefix}, {ResourceType: "OS::Glance::Image"},
		},
	}
}
