package demo_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/Khan/genqlient/graphql"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/demo/demotest"
)

// TestCountsOfFlavorsFitAReadersBudget counts the candidates of 16 flavors, as
// a page of flavors does. A reader has 1,000 points a second, each for 1,000 of
// the cost. Twenty such pages a second must fit.
func TestCountsOfFlavorsFitAReadersBudget(t *testing.T) {
	t.Parallel()
	const pages, budget, flavors = 20, 1_000_000, 16
	reader := client.New(demotest.Serve(t), client.WithToken(demo.ReaderToken))
	var found struct {
		Resources struct {
			Nodes []struct {
				Name                 string
				AllocationCandidates *struct{ TotalCount int }
			}
		}
	}
	answer := graphql.Response{Data: &found}
	err := reader.MakeRequest(t.Context(), &graphql.Request{OpName: "Flavors", Query: `query Flavors {
		resources(filter: { types: ["OS::Nova::Flavor"] }, first: ` + strconv.Itoa(flavors) + `) { nodes { name allocationCandidates(first: 0) { totalCount } } }
	}`}, &answer)
	if err != nil {
		t.Fatal(err)
	}
	counted := 0
	for _, of := range found.Resources.Nodes {
		if of.AllocationCandidates != nil && of.AllocationCandidates.TotalCount > 0 {
			counted++
		}
	}
	if counted == 0 || counted < len(found.Resources.Nodes) {
		t.Errorf("%d of %d flavors have candidates", counted, len(found.Resources.Nodes))
	}
	text, err := json.Marshal(answer.Extensions["cost"])
	var cost struct{ Requested int }
	if err != nil || json.Unmarshal(text, &cost) != nil || cost.Requested < flavors || pages*cost.Requested > budget {
		t.Errorf("the page costs %s, at most %d fit", text, budget/pages)
	}
}
