package graph_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// The size of the database for BenchmarkWeights.
const (
	manyResources = 5000
	manyItems     = 20
	manyProviders = 1000
)

// BenchmarkWeights measures the weights of a price: the time of a field, a
// statement, a returned row, a visited row, a test of a string, and a byte of a
// string.
func BenchmarkWeights(b *testing.B) {
	for name, url := range map[string]func(testing.TB) string{"sqlite": storetest.SQLite,
		"postgres": storetest.Postgres} {
		b.Run(name, func(b *testing.B) {
			s := storetest.Open(b, url(b))
			ctx := access.WithViewer(context.Background(), viewers["admin"])
			if err := s.FillEmpty(ctx, manyRows()); err != nil {
				b.Fatal(err)
			}
			log := slog.New(slog.NewTextHandler(io.Discard, nil))
			executor := graph.NewExecutor(&graph.Resolver{Store: s}, log)
			w := weights{b, executor, executor.Preparer(document.Limits{}), ctx}
			for range b.N {
				w.measure()
			}
		})
	}
}

func manyRows() store.Content {
	world := fixture()
	for i := range manyResources {
		one := store.ResourceRecord{UUID: fmt.Sprintf("aaaaaaaa-0000-4000-8000-%012d", i),
			Type: "physical:host", Name: fmt.Sprintf("host %d", i),
			ProjectID: "operations", Visibility: access.Public}
		for k := range manyItems {
			one.Metadata = append(one.Metadata,
				resource.MetadataItem{Key: fmt.Sprintf("key%d", k), Value: fmt.Sprintf("value %d of %d", k, i)})
		}
		if i < 20 {
			one.Description = strings.Repeat("text ", 4000)
		}
		world.Resources = append(world.Resources, one)
	}
	for i := range manyProviders {
		world.Providers = append(world.Providers,
			placement.Provider{UUID: fmt.Sprintf("cccccccc-0000-4000-8000-%012d", i),
				Name: fmt.Sprintf("provider %d", i),
				Inventories: []placement.Inventory{{ResourceClass: "VCPU", Total: 8, MinUnit: 1, MaxUnit: 8,
					StepSize: 1, AllocationRatio: 1, Capacity: 8}}})
	}
	return world
}

type weights struct {
	b        *testing.B
	executor *graph.Executor
	prepare  *graph.Preparer
	ctx      context.Context
}

// of returns the shortest time of several runs of an operation.
func (w weights) of(query string) time.Duration {
	w.b.Helper()
	best := time.Hour
	for began, round := time.Now(), 0; round < 2 || round < 15 && time.Since(began) < time.Second; round++ {
		started := time.Now()
		prepared := w.prepare.Prepare(w.ctx, document.Request{Text: query})
		if prepared.Refused != nil {
			w.b.Fatal(prepared.Refused)
		}
		answer := w.executor.Run(w.ctx, prepared.Operation, 0)
		best = min(best, time.Since(started))
		if len(answer.Errors) > 0 {
			w.b.Fatal(answer.Errors)
		}
		w.executor.Release(answer.Data...)
	}
	return best
}

func (w weights) report(what string, more, less time.Duration, units int) {
	w.b.ReportMetric(float64(more-less)/float64(units), "ns/"+what)
}

func (w weights) measure() {
	providers := func(fields string) string {
		return "{ resourceProviders(first: 1000) { nodes { " + fields + " } } }"
	}
	w.report("field", w.of(providers("a: name b: uuid c: generation d: name e: uuid f: generation")),
		w.of(providers("a: name")), 5*1000)
	w.report("statement", w.of(`{ viewer { userId } namespace(name: "Open") { name } }`), w.of("{ viewer { userId } }"),
		1)
	w.report("returned", w.of("{ resources(first: 1000) { nodes { name } } }"),
		w.of("{ resources(first: 1) { nodes { name } } }"), 999)
	w.report("item", w.of(`{ resources(first: 500) { nodes { metadata { key } } } }`),
		w.of(`{ resources(first: 500) { nodes { name } } }`), 500*manyItems)
	w.report("counted", w.of("{ resources { totalCount } }"),
		w.of("{ resources(first: 1) { nodes { name } } }"), manyResources)
	w.report("name", w.of(`{ resources(filter: {nameContains: "nothing"}) { totalCount } }`),
		w.of("{ resources(first: 1) { nodes { name } } }"), 2*manyResources)
	contains := func(n int) string {
		var tests []string
		for i := range n {
			tests = append(tests, fmt.Sprintf(`{metadata: {key: "key%d", contains: "nothing %d"}}`, i%manyItems, i))
		}
		return "{ resources(first: 1, filter: {where: {any: [" + strings.Join(tests, ", ") + "]}}) { totalCount } }"
	}
	w.report("test", w.of(contains(49)), w.of(contains(9)), 2*40*manyResources*manyItems)
	w.report("contains49", w.of(contains(49)), 0, 1)
	w.report("contains1", w.of(contains(1)), 0, 1)
	w.report("byte", w.of("{ resources(first: 20) { nodes { description } } }"),
		w.of("{ resources(first: 20) { nodes { name } } }"), 20*20_000)
	w.report("key", w.of("{ metadataKeys { nodes { key } } }"), w.of("{ viewer { userId } }"), manyResources*manyItems)
	w.report("facet", w.of(`{ resources(first: 1) { metadataFacets(keys: ["key1"]) { key } } }`),
		w.of("{ viewer { userId } }"), manyResources)
	w.report("candidate",
		w.of(`{ allocationCandidates(first: 1000, resources: [{resourceClass: "VCPU", amount: 1}]) { nodes { allocations { provider { uuid name } resources { resourceClass amount } } mappings { suffix providers { uuid } } } } }`), 0, 1000)
	w.report("provider",
		w.of(`{ resourceProviders(first: 1, filter: {requiredAll: ["HW_CPU_X86_AVX"]}) { totalCount } }`),
		w.of("{ viewer { userId } }"), manyProviders)
}

// BenchmarkPrices prepares operations from cached documents.
func BenchmarkPrices(b *testing.B) {
	executor := graph.NewExecutor(&graph.Resolver{}, nil)
	for _, of := range []struct{ name, query string }{
		{"viewer", "{ viewer { userId } }"},
		{"dashboard", `{ namespaces(first: 20) { nodes { name displayName } totalCount } resourceTypes { nodes { name } }
			resources(first: 20, filter: {types: ["OS::Nova::Server"]}) { totalCount nodes { uuid name type { name } metadata { key value } } } }`},
		{"conditions",
			`{ resources(filter: {where: {any: [{metadata: {key: "a", contains: "x"}}, {all: [{metadata: {key: "b", equals: "y"}}, {not: {capability: {name: "c", exists: true}}}]}]}}) { totalCount nodes { name } } }`},
	} {
		b.Run(of.name, func(b *testing.B) {
			b.ReportAllocs()
			reader := document.NewReader(executor.Schema(), graph.LookUps, document.DefaultLimits())
			for b.Loop() {
				if prepared := reader.Prepare(document.Request{Text: of.query}); prepared.Refused != nil {
					b.Fatal(prepared.Refused)
				}
			}
		})
	}
}
