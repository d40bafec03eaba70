package graph_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/store/storetest"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// drySelections select the contents of payloads, by the name of their field.
var drySelections = map[string]string{
	"resourceProvider": `{ uuid name generation traits aggregates parent { name } root { name } treeCapacity { resourceClass total used }
		inventories { resourceClass total used capacity } }`,
	"descendants": "{ uuid }",
	"results":     "{ errors { code message } }",
	"consumers":   "{ uuid generation expiresAt allocations { used resourceClass } }",
	"consumer":    "{ uuid generation allocations { used resourceClass } }",
	"limits":      "{ resourceClass limit used }",
	"traits":      "{ name custom }", "trait": "{ name custom }", "resourceClass": "{ name custom }",
	"created": "", "changed": "", "unchanged": "", "overused": "",
	"refusals": "{ resourceProvider { name } errors { field message } }",
}

// dryPayload selects the contents of the payload of a mutation.
func dryPayload(schema *ast.Schema, mutation string) string {
	var fields []string
	for _, field := range schema.Types[schema.Mutation.Fields.ForName(mutation).Type.Name()].Fields {
		selection, ok := drySelections[field.Name]
		if row := schema.Types[field.Type.Name()]; field.Name == "results" &&
			row.Fields.ForName("resourceProvider") != nil {
			selection = "{ resourceProvider " + drySelections["resourceProvider"] + " errors { code message } }"
		}
		if ok {
			fields = append(fields, field.Name+" "+selection)
		}
	}
	return strings.Join(fields, " ")
}

// withoutDryRun are the mutations of placement without a dry run: a bulk
// mutation has it.
var withoutDryRun = map[string]bool{"createResourceProvider": true, "setInventories": true}

// TestDryRunsOfPlacementStoreNothing sends every mutation of placement as a dry
// run first. A dry run leaves every table and the world as they are, and
// answers as the mutation does.
func TestDryRunsOfPlacementStoreNothing(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := storetest.Open(t, url)
		executor, db := executorOf(t, s), storetest.Database(t, url)
		schema := executor.Schema()
		ask := func(query string) string {
			ctx := access.WithViewer(t.Context(), viewers["admin"])
			return answerText(t, executor.Execute(ctx, &graphql.RawParams{Query: query}))
		}
		state := func() string {
			return ask(`{ traits { nodes { name } } resourceClasses { nodes { name } } consumers { nodes { uuid generation } }
				resourceProviders { nodes { uuid name generation traits aggregates inventories { total reserved used } } } }`)
		}
		ask(`mutation { createTrait(input: {name: "CUSTOM_U"}) { __typename } }`)
		dry := 0
		for _, m := range auditedMutations {
			input := schema.Types[strings.ToUpper(m.field[:1])+m.field[1:]+"Input"]
			permission, _ := access.PermissionOf(m.field)
			of := permission.Rule
			if of != access.RulePlacementWrite && of != access.RuleLimitsWrite ||
				input.Fields.ForName("dryRun") == nil {
				if of == access.RulePlacementWrite && !withoutDryRun[m.field] {
					t.Errorf("%s has no dry run", m.field)
				}
				ask(m.query(m.accepted))
				continue
			}
			dry++
			m.payload = dryPayload(schema, m.field)
			tables, world := contentOf(t, db, url), state()
			for _, input := range []string{m.refused, m.accepted} {
				tried := ask(m.query(input + ", dryRun: true"))
				if now := contentOf(t, db, url); !maps.Equal(now, tables) || state() != world {
					t.Errorf("%s: a dry run stores something: %s", m.field, tried)
				}
				if made := ask(m.query(input)); tried != made {
					t.Errorf("%s: a dry run answers %s, not %s", m.field, tried, made)
				}
			}
		}
		if dry < 15 {
			t.Errorf("%d dry runs", dry)
		}
	})
}
