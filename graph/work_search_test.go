package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// manyRowsOf returns sizes of tables as a large installation has them, with the
// indexes of texts or without.
func manyRowsOf(sizes map[string]int64, indexed bool) document.Sizes {
	large := document.Sizes{"resources": 1 << 17, "metadata_items": 1 << 20, "capability_members": 1 << 20, "tags": 1 << 16, "namespaces": 1 << 12, "property_definitions": 1 << 16, "object_definitions": 1 << 14}
	for name, size := range sizes {
		if strings.HasSuffix(name, "_trigrams") && indexed {
			large[name] = size
		}
	}
	return large
}

// TestShortTextsArePricedAsScans prices searches for parts of texts in a large
// installation: two characters look at all rows, three at those that an index
// leaves, where there is one; and what may be frequent is heavy.
func TestShortTextsArePricedAsScans(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		if err := s.ReadSizes(t.Context()); err != nil {
			t.Fatal(err)
		}
		executor := executorOf(t, s)
		operationOf := func(indexed bool, query string) *document.Operation {
			t.Helper()
			sizes := manyRowsOf(s.Sizes(), indexed)
			reader := document.NewReader(executor.Schema(), graph.Works(), func() document.Sizes { return sizes }, document.Limits{})
			prepared := reader.Prepare(document.Request{Text: query})
			if prepared.Refused != nil {
				t.Fatal(prepared.Refused)
			}
			return prepared.Operation
		}
		for _, search := range []struct {
			query string
			rows  int64 // that are looked at without an index
		}{
			{`{ resources(filter: {where: {metadata: {key: "k", contains: %q}}}) { nodes { name } } }`, 1 << 18},
			{`{ resources(filter: {where: {any: [{metadata: {key: "k", contains: %q}}, {metadata: {key: "l", contains: "other"}}]}}) { totalCount } }`, 3 << 18},
			{`{ resources(filter: {search: %q}) { nodes { name } } }`, 1<<20 + 1<<18},
			{`{ resources(filter: {nameContains: %q}) { nodes { name } } }`, 1 << 17},
			{`{ tags(search: %q) { nodes { name } } }`, 1 << 16},
			{`{ namespaces(filter: {search: %q}) { nodes { name } } }`, 1<<17 + 1<<14 + 1<<12},
		} {
			var costs []int64
			for _, of := range []struct {
				part    string
				indexed bool
			}{{"abc", true}, {"ab", true}, {"日本", true}, {"a_b-c", true}, {"", true}, {"abc", false}} {
				price := operationOf(of.indexed, fmt.Sprintf(search.query, of.part)).Price
				costs = append(costs, price.Cost)
				if scans := of.part != "abc" || !of.indexed; scans != (price.Scanned >= search.rows) {
					t.Errorf("%q: %d rows are priced for %s", of.part, price.Scanned, search.query)
				}
			}
			if slices.Min(costs[1:]) <= costs[0] || slices.Max(costs[1:]) != slices.Min(costs[1:]) {
				t.Errorf("costs %d: %s", costs, search.query)
			}
		}
		heavy := operationOf(true, `{ resources(filter: {nameContains: "abc"}, first: 1) { nodes { name } } }`)
		if heavy.Price.Cost > 1<<17 || heavy.Price.Cost+heavy.Price.AtMost < 1<<18 || heavy.Needs != document.NeedsDatabase {
			t.Errorf("a name needs %v: %+v", heavy.Needs, heavy.Price)
		}
		heavy = operationOf(true, `{ resources(filter: {where: {metadata: {key: "k", contains: "abc"}}}) { nodes { name } } }`)
		if heavy.Price.Cost > 300_000 || heavy.Needs != document.NeedsLong {
			t.Errorf("a value needs %v: %+v", heavy.Needs, heavy.Price)
		}
	})
}
