package graph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestAnAnswerDoesNotDependOnHowItIsAskedFor sends random selections twice:
// plainly, and with every field renamed after its type, so that fields of
// different types share names where GraphQL allows it. Then it queries every
// object in the answer by its id, alone and together with all others. The
// answers must be equal, however loads were batched.
func TestAnAnswerDoesNotDependOnHowItIsAskedFor(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := openNow(t, url)
		ctx := access.WithViewer(context.Background(), viewers["admin"])
		if err := s.FillEmpty(ctx, largeFixture()); err != nil {
			t.Fatal(err)
		}
		executor := executorOf(t, s)
		asked := selector{t, executor, ctx}
		types := executor.Schema().Types
		for round := range uint64(25) {
			chance := rand.New(rand.NewPCG(round, 1))
			chosen := pick(chance, types, types["Query"], 5)
			answer := asked.ask(chosen.plain())
			if renamed := asked.ask(chosen.renamed()); !reflect.DeepEqual(chosen.read(answer, false),
				chosen.read(renamed, true)) {
				t.Fatalf("round %d: the answers to these differ:\n%s\n%s", round, chosen.plain(), chosen.renamed())
			}
			met := map[string]string{}
			nodesIn(answer, met)
			asked.again(chance, met)
		}
	})
}

// openNow opens a store whose clock stands still: providers that whatIf adds are
// created now.
func openNow(t *testing.T, url string) *store.Store {
	t.Helper()
	now := time.Now()
	s, err := store.Open(context.Background(), store.Options{URL: url, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// selector sends queries that must succeed.
type selector struct {
	t        *testing.T
	executor *graph.Executor
	ctx      context.Context
}

func (a selector) ask(query string) map[string]any {
	a.t.Helper()
	response := executeWhole(a.t, a.ctx, a.executor, query)
	if len(response.Errors) > 0 {
		a.t.Fatalf("%v: %s", response.Errors, query)
	}
	var data map[string]any
	if err := json.Unmarshal(response.Data, &data); err != nil {
		a.t.Fatal(err)
	}
	return data
}

// again queries objects by their ids, with a random selection for each type:
// all in one query with shared names, and each alone.
func (a selector) again(chance *rand.Rand, met map[string]string) {
	a.t.Helper()
	var ids []string
	chosen := map[string]choice{}
	fragments, types := "", a.executor.Schema().Types
	for id, of := range met {
		if !isNode(a.executor.Schema(), of, "") {
			continue
		}
		ids = append(ids, id)
		if _, ok := chosen[of]; !ok {
			chosen[of] = pick(chance, types, types[of], 3)
			fragments += " ... on " + of + " " + chosen[of].renamed()
		}
	}
	slices.Sort(ids)
	chance.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	ids = ids[:min(len(ids), 40)]
	if len(ids) == 0 {
		return
	}
	quoted, _ := json.Marshal(ids)
	together := a.ask(fmt.Sprintf("{ nodes(ids: %s) { __typename%s } }", quoted, fragments))
	for i, id := range ids {
		of := chosen[met[id]]
		alone := a.ask(fmt.Sprintf("{ node(id: %q) { ... on %s %s } }", id, met[id], of.plain()))
		if got := together["nodes"].([]any)[i]; !reflect.DeepEqual(of.read(got, true), of.read(alone["node"], false)) {
			a.t.Fatalf("%s %s is not the same alone and with others: %s\n%v\n%v", met[id], id, of.plain(),
				of.read(got, true), of.read(alone["node"], false))
		}
	}
}

// choice is a selection of an object, field by field.
type choice []chosenField

type chosenField struct {
	definition *ast.FieldDefinition
	arguments  string
	below      choice // nil for a leaf
}

// pick selects random fields of a type to the given depth, always including the
// id.
func pick(chance *rand.Rand, types map[string]*ast.Definition, of *ast.Definition, levels int) choice {
	out := choice{}
	for _, field := range of.Fields {
		below := types[field.Type.Name()]
		if strings.HasPrefix(field.Name, "__") || below.IsAbstractType() || field.Name != "id" && chance.IntN(3) > 0 {
			continue
		}
		one := chosenField{definition: field, arguments: requiredArguments[of.Name+"."+field.Name]}
		if field.Arguments.ForName("first") != nil && one.arguments == "" && chance.IntN(2) == 0 {
			one.arguments = fmt.Sprintf("(first: %d)", 1+chance.IntN(3))
		}
		if !below.IsLeafType() {
			if levels == 0 {
				continue
			}
			one.below = pick(chance, types, below, levels-1)
		}
		out = append(out, one)
	}
	return out
}

// plain returns a choice with the names of the schema.
func (c choice) plain() string { return c.write(false) }

// renamed returns a choice with every field renamed after its type.
func (c choice) renamed() string { return c.write(true) }

func (c choice) write(renamed bool) string {
	out := []string{"{ __typename"}
	for i, one := range c {
		text := one.definition.Name + one.arguments
		if renamed {
			text = c.alias(i) + ": " + text
		}
		if one.below != nil {
			text += " " + one.below.write(renamed)
		}
		out = append(out, text)
	}
	return strings.Join(append(out, "}"), " ")
}

// alias returns a name for a field made of its type and a number.
func (c choice) alias(i int) string {
	of, number := c[i].definition.Type.String(), 0
	for _, before := range c[:i] {
		if before.definition.Type.String() == of {
			number++
		}
	}
	return strings.NewReplacer("[", "list", "]", "", "!", "_").Replace(of) + fmt.Sprint(number)
}

// read returns an answer to a choice with the names of the schema.
func (c choice) read(value any, renamed bool) any {
	switch value := value.(type) {
	case []any:
		out := make([]any, len(value))
		for i, member := range value {
			out[i] = c.read(member, renamed)
		}
		return out
	case map[string]any:
		out := map[string]any{"__typename": value["__typename"]}
		for i, one := range c {
			name := one.definition.Name
			if renamed {
				name = c.alias(i)
			}
			member, ok := value[name]
			if !ok {
				member = "missing"
			}
			if one.below != nil {
				member = one.below.read(member, renamed)
			}
			out[one.definition.Name] = member
		}
		return out
	}
	return value
}

// nodesIn collects the types of objects with ids in a plain answer.
func nodesIn(value any, met map[string]string) {
	switch value := value.(type) {
	case []any:
		for _, member := range value {
			nodesIn(member, met)
		}
	case map[string]any:
		if id, ok := value["id"].(string); ok {
			met[id] = value["__typename"].(string)
		}
		for _, member := range value {
			nodesIn(member, met)
		}
	}
}

// largeFixture returns the fixture with more things of every kind.
func largeFixture() store.Content {
	world := fixture()
	for i := range 6 {
		world.Definitions = append(world.Definitions, fmt.Sprintf(`{"namespace": "Many %[1]d", "visibility": "public", "owner": "operations",
			"properties": {"size": {"title": "Size", "type": "integer"}, "color %[1]d": {"title": "Color", "type": "string"}},
			"objects": [{"name": "Group", "required": ["inner"], "properties": {"inner": {"title": "Inner", "type": "string"}, "outer %[1]d": {"title": "Outer", "type": "string"}}}],
			"tags": [{"name": "Top"}, {"name": "Below %[1]d", "parent": "Top"}],
			"resource_type_associations": [{"name": "physical:host", "prefix": "many%[1]d:"}, {"name": "OS::Nova::Flavor"}]}`, i))
		host := fmt.Sprintf("aaaaaaaa-0000-4000-8000-00000000000%d", i)
		world.Resources = append(world.Resources,
			store.ResourceRecord{UUID: host, Type: "physical:host", Name: fmt.Sprintf("host %d", i),
				ProjectID: "operations", Visibility: access.Public,
				Metadata: []resource.MetadataItem{{Key: "size", Value: fmt.Sprint(i), UserModifiable: true},
					{Key: "many1:size", Value: "x"}},
				Capabilities: []metadef.KeyValue{{Key: "arch", Value: fmt.Sprintf(`["x86","v%d"]`, i)}},
				Tags:         []string{"top"}},
			store.ResourceRecord{UUID: fmt.Sprintf("bbbbbbbb-0000-4000-8000-00000000000%d", i),
				Type: "OS::Manila::Share", Name: fmt.Sprintf("share %d", i),
				ProjectID: "demo", Visibility: access.Public,
				Metadata: []resource.MetadataItem{{Key: "size", Value: "1"}}})
		root := fmt.Sprintf("cccccccc-0000-4000-8000-00000000000%d", i)
		world.Providers = append(world.Providers,
			placement.Provider{UUID: root, Name: fmt.Sprintf("root %d", i),
				Resource: host, Traits: []string{"HW_CPU_X86_AVX"},
				Aggregates: []string{"dddddddd-0000-4000-8000-000000000000"},
				Inventories: []placement.Inventory{{ResourceClass: "VCPU", Total: 8, MinUnit: 1, MaxUnit: 8,
					StepSize: 1, AllocationRatio: 1, Capacity: 8}}},
			placement.Provider{UUID: fmt.Sprintf("eeeeeeee-0000-4000-8000-00000000000%d", i),
				Name: fmt.Sprintf("child %d", i), Parent: root, Traits: []string{"HW_NUMA_ROOT"},
				Inventories: []placement.Inventory{{ResourceClass: "MEMORY_MB", Total: 64, MinUnit: 1, MaxUnit: 64,
					StepSize: 1, AllocationRatio: 1, Capacity: 64}}})
		world.Claims = append(world.Claims,
			placement.Claim{Consumers: []placement.ConsumerClaim{{UUID: fmt.Sprintf("ffffffff-0000-4000-8000-00000000000%d", i),
				ProjectID: "demo", UserID: "mel", Allocations: []placement.ProviderAllocation{{Provider: root,
					Resources: []placement.Amount{{ResourceClass: "VCPU", Amount: 2}}}}}}})
	}
	return world
}
