package graph_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// withoutTypes removes __typename, which clients add, from a value.
func withoutTypes(value any) any {
	switch value := value.(type) {
	case map[string]any:
		delete(value, "__typename")
		for _, member := range value {
			withoutTypes(member)
		}
	case []any:
		for _, member := range value {
			withoutTypes(member)
		}
	}
	return value
}

// TestEveryCandidateIsAClaim sends the claims of candidates back unchanged,
// without __typename, and reads the consumer's allocations and mappings. Then
// it claims the same again without mappings, which clears them.
func TestEveryCandidateIsAClaim(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := access.WithViewer(t.Context(), viewers["admin"])
		if err := s.FillEmpty(ctx, linkedTrees(rand.New(rand.NewPCG(18, 1)), 10)); err != nil {
			t.Fatal(err)
		}
		executor := executorOf(t, s)
		execute := func(query string, variables map[string]any) map[string]any {
			t.Helper()
			response := executor.Execute(ctx, &graphql.RawParams{Query: query, Variables: variables})
			if len(response.Errors) > 0 {
				t.Fatalf("%s: %v", query, response.Errors)
			}
			var data map[string]any
			numbers := json.NewDecoder(bytes.NewReader(response.Data))
			numbers.UseNumber()
			if err := numbers.Decode(&data); err != nil {
				t.Fatal(err)
			}
			return data
		}
		data := execute(`{ allocationCandidates(first: 20, resources: [{resourceClass: "VCPU", amount: 1}], groups: [{suffix: "_A", resources: [{resourceClass: "VCPU", amount: 2}]}]) { nodes { __typename
			allocations { provider { uuid } resources { resourceClass amount } } mappings { suffix providers { uuid } }
			claim { __typename allocations { __typename provider resources { __typename resourceClass amount } } mappings { __typename suffix providers } } } } }`, nil)
		nodes := data["allocationCandidates"].(map[string]any)["nodes"].([]any)
		if len(nodes) < 10 {
			t.Fatalf("%d candidates", len(nodes))
		}
		for i, node := range nodes {
			consumer := withoutTypes(node.(map[string]any)["claim"]).(map[string]any)
			wanted, mappings := fmt.Sprint(consumer["allocations"]), fmt.Sprint(consumer["mappings"])
			consumer["uuid"], consumer["projectId"], consumer["userId"] = fmt.Sprintf("bbbbbbbb-0000-4000-8000-%012d",
				i), "demo", "mel"
			execute(`mutation($input: SetAllocationsInput!) { setAllocations(input: $input) { consumers { uuid } } }`,
				map[string]any{"input": map[string]any{"consumers": []any{consumer}}})
			read := execute(fmt.Sprintf(`{ consumer(uuid: %q) { generation allocations { provider { uuid } resourceClass used } mappings { suffix providers { uuid } } } }`, consumer["uuid"]), nil)
			if kept := keptMappings(read["consumer"]); kept != mappings {
				t.Errorf("candidate %d: claimed with %s, the consumer has %s", i, mappings, kept)
			}
			type amount = map[string]any
			has := map[string][]any{}
			var order []string
			for _, one := range read["consumer"].(map[string]any)["allocations"].([]any) {
				of := one.(map[string]any)
				uuid := of["provider"].(map[string]any)["uuid"].(string)
				if has[uuid] == nil {
					order = append(order, uuid)
				}
				has[uuid] = append(has[uuid], amount{"resourceClass": of["resourceClass"], "amount": of["used"]})
			}
			var got []any
			for _, uuid := range order {
				got = append(got, amount{"provider": uuid, "resources": has[uuid]})
			}
			if fmt.Sprint(got) != wanted {
				t.Errorf("candidate %d: claimed %s, the consumer has %v", i, wanted, got)
			}
			delete(consumer, "mappings")
			consumer["generation"] = read["consumer"].(map[string]any)["generation"]
			execute(`mutation($input: SetAllocationsInput!) { setAllocations(input: $input) { consumers { uuid } } }`,
				map[string]any{"input": map[string]any{"consumers": []any{consumer}}})
			if kept := keptMappings(execute(fmt.Sprintf(`{ consumer(uuid: %q) { mappings { suffix providers { uuid } } } }`, consumer["uuid"]), nil)["consumer"]); kept != "[]" {
				t.Errorf("candidate %d: claimed without mappings, the consumer has %s", i, kept)
			}
			execute(fmt.Sprintf(`mutation { deleteAllocations(input: {consumer: %q}) { consumer { uuid } } }`,
				consumer["uuid"]), nil)
		}
	})
}
