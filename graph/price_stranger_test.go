package graph_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestAPriceDoesNotRevealHiddenRows prices operations before and after another
// project creates 1,000 private resources. The viewer must get the same answers
// and the same prices.
func TestAPriceDoesNotRevealHiddenRows(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		if err := s.FillEmpty(access.WithViewer(t.Context(), viewers["admin"]), fixture()); err != nil {
			t.Fatal(err)
		}
		executor := executorOf(t, s)
		before := pricesOf(t, s, strangersQueries)
		for batch := range 10 {
			var items []string
			for i := range 100 {
				items = append(items,
					fmt.Sprintf(`{type: "OS::Manila::Share", name: "hidden %d", metadata: [{key: "size", value: "%d"}, {key: "note", value: "hidden"}], tags: ["hidden"]}`, batch*100+i, i))
			}
			ctx := access.WithViewer(t.Context(), viewers["member"])
			if got := executor.ExecuteWhole(ctx, "mutation { createResources(input: {items: ["+
				strings.Join(items, ", ")+"]}) { results { errors { message } } } }"); len(got.Errors) > 0 {
				t.Fatal(got.Errors)
			}
		}
		after := pricesOf(t, s, strangersQueries)
		for i, query := range strangersQueries {
			if before[i] != after[i] {
				t.Errorf("before %s\nafter %s: %s", before[i], after[i], query)
			}
		}
	})
}

// strangersQueries query resources in all the ways that prices distinguish.
var strangersQueries = []string{
	`{ resources(filter: {search: "hidden"}) { totalCount nodes { name metadata { key } tags } } }`,
	`{ resources(filter: {nameContains: "hidden"}) { totalCount } }`,
	`{ resources(filter: {where: {any: [{metadata: {key: "note", contains: "hid"}}, {metadata: {key: "size", exists: true}}]}}) { totalCount } }`,
	`{ resources(filter: {metadata: [{key: "note", value: "hidden"}], tags: [{name: "hidden"}]}) { totalCount facets(of: [{by: TAG}, {by: TYPE}]) { values { value } } metadataFacets(keys: ["note"]) { key } } }`,
	`{ metadataKeys(search: "note") { totalCount nodes { key } } }`,
	`{ explainResources(filter: {metadata: [{key: "note", value: "hidden"}]}) { considered clauses { passing } } }`,
	`{ resourceType(name: "OS::Manila::Share") { resources { totalCount } } }`,
	`{ allocationCandidates(resources: [{resourceClass: "VCPU", amount: 1}], first: 10, hosts: {metadata: [{key: "note", value: "hidden"}]}) { totalCount } }`,
}

// pricesOf returns the costs and answers of queries as a viewer who sees none
// of the hidden resources.
func pricesOf(t *testing.T, s *store.Store, queries []string) (out []string) {
	t.Helper()
	if s.Postgres() {
		if _, err := s.Pool.ExecContext(t.Context(), "ANALYZE"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.ReadSizes(t.Context()); err != nil {
		t.Fatal(err)
	}
	executor := executorOf(t, s)
	ctx := access.WithViewer(t.Context(), viewers["foreign"])
	for _, query := range queries {
		prepared := executor.Preparer(document.Limits{}).Prepare(ctx, document.Request{Text: query})
		if prepared.Refused != nil {
			t.Fatalf("%v: %s", prepared.Refused, query)
		}
		answer := executor.Run(ctx, prepared.Operation, 0)
		out = append(out,
			fmt.Sprint(prepared.Operation.Price.Cost, " ", string(bytes.Join(answer.Data, nil)), answer.Errors))
	}
	return out
}
