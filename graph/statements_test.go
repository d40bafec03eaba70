package graph_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestStatementsAreFixedByTheShape asks the same for 5 and for 50 namespaces,
// through nodes and edges, under aliases and fragments, idle and with every core
// busy: the number of SQL statements is the one stated here.
func TestStatementsAreFixedByTheShape(t *testing.T) {
	t.Parallel()
	shapes := []struct {
		name, query string
		statements  int
	}{
		{"nodes", `{ namespaces(first: %d) { nodes {
			properties { name } objects { name properties { name } } tags { name } resourceTypeAssociations { prefix resourceType { name } }
		} } }`, 7},
		{"edges", `{ namespaces(first: %d) { edges { node {
			properties { name } objects { name properties { name } } tags { name } resourceTypeAssociations { prefix resourceType { name } }
		} } } }`, 7},
		{"aliases and fragments", `{ a: namespaces(first: %d) { x: edges { y: node { ...all } } z: nodes { ...all p: properties { title } } } }
			fragment all on Namespace { properties { name } o: objects { name q: properties { name } } tags { name } resourceTypeAssociations { prefix resourceType { name } } }`, 9},
	}
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := access.WithViewer(context.Background(), viewers["admin"])
		for i := range 50 {
			if _, err := s.CreateNamespace(ctx, manyNamespaces(i)); err != nil {
				t.Fatal(err)
			}
		}
		executor := graph.NewExecutor(&graph.Resolver{Store: s}, slog.New(slog.DiscardHandler))
		statements := func(query string) int {
			ctx, statements := store.CountStatements(ctx)
			if response := executor.Execute(ctx, &graphql.RawParams{Query: query}); len(response.Errors) > 0 {
				t.Error(response.Errors)
			}
			return statements()
		}
		// Fields of different types under one name are different places.
		mixed := func(n int) string {
			var ids []string
			for i := range n {
				ids = append(ids, strconv.Quote(page.NodeID{Kind: page.KindNamespace, Key: strconv.Itoa(i + 1)}.String()),
					strconv.Quote(page.NodeID{Kind: page.KindObjectDefinition, Key: strconv.Itoa(i + 1)}.String()))
			}
			return `{ nodes(ids: [` + strings.Join(ids, ",") + `]) { ... on Namespace { id p: properties { namespace { name } } } ... on ObjectDefinition { id p: properties { namespace { name } object { name } } } } }`
		}
		for i := range 12 {
			for _, parent := range []*string{nil, new(fmt.Sprintf("aaaaaaaa-0000-4000-8000-0000000000%02d", i))} {
				uuid := fmt.Sprintf("aaaaaaaa-0000-4000-8000-0000000000%02d", i)
				if parent != nil {
					uuid = fmt.Sprintf("bbbbbbbb-0000-4000-8000-0000000000%02d", i)
				}
				if _, _, err := s.CreateResourceProvider(ctx, placement.NewProvider{Name: uuid, UUID: &uuid, Parent: parent}); err != nil {
					t.Fatal(err)
				}
			}
		}
		// What is below providers in memory is loaded for all trees at once.
		below := func(n int) string {
			return fmt.Sprintf(`{ resourceProviders(first: %d) { nodes { children { totalCount nodes { name allocations { totalCount } parent { root { resource { name } allocations { nodes { used } } } } } } } } }`, n)
		}
		check := func(when string) {
			for _, n := range []int{2, 24} {
				if got := statements(below(n)); got != 2 {
					t.Errorf("what is below %d providers, %s: %d statements, want 2", n, when, got)
				}
			}
			for _, n := range []int{2, 20} {
				if got := statements(mixed(n)); got != 7 {
					t.Errorf("%d nodes of two types, %s: %d statements, want 7", n, when, got)
				}
			}
			for _, shape := range shapes {
				for _, first := range []int{5, 50} {
					if got := statements(fmt.Sprintf(shape.query, first)); got != shape.statements {
						t.Errorf("%s, first %d, %s: %d statements, want %d", shape.name, first, when, got, shape.statements)
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

// busy keeps every core at work until it is told to stop.
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
	title, prefix := "Title", fmt.Sprintf("p%d_", i)
	property := func(name string) metadef.PropertyInput {
		return metadef.PropertyInput{Name: name, Title: &title, Type: metadef.String}
	}
	return metadef.NamespaceInput{
		Name:       fmt.Sprintf("Namespace %02d", i),
		Properties: []metadef.PropertyInput{property("one"), property("two")},
		Objects:    []metadef.ObjectInput{{Name: "object", Properties: []metadef.PropertyInput{property("three"), property("four")}}},
		Tags:       []metadef.TagInput{{Name: "tag"}, {Name: "other"}},
		ResourceTypeAssociations: []metadef.ResourceTypeAssociationInput{
			{ResourceType: "OS::Nova::Flavor", Prefix: &prefix}, {ResourceType: "OS::Glance::Image"},
		},
	}
}
