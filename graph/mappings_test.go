package graph_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// keptMappings returns the mappings of a consumer in an answer, printed like
// the mappings of a claim.
func keptMappings(consumer any) string {
	kept := []any{}
	for _, one := range consumer.(map[string]any)["mappings"].([]any) {
		mapping := one.(map[string]any)
		var providers []any
		for _, provider := range mapping["providers"].([]any) {
			providers = append(providers, provider.(map[string]any)["uuid"])
		}
		kept = append(kept, map[string]any{"suffix": mapping["suffix"], "providers": providers})
	}
	return fmt.Sprint(kept)
}

// mappingClient makes random claims and remembers the expected mappings.
type mappingClient struct {
	t        *testing.T
	chance   *rand.Rand
	executor *graph.Executor
	exist    map[string]bool                // providers
	kept     map[string]map[string][]string // by consumer and suffix; nil for a missing consumer
}

const mappingConsumers, mappingProviders = 4, 6

func mappingUUID(kind string, i int) string { return fmt.Sprintf("%s-0000-4000-8000-%012d", kind, i) }

func (c *mappingClient) ask(query string) map[string]any {
	c.t.Helper()
	response := c.executor.Execute(access.WithViewer(c.t.Context(), viewers["admin"]), &graphql.RawParams{Query: query})
	if len(response.Errors) > 0 {
		c.t.Fatalf("%s: %v", query, response.Errors)
	}
	var data map[string]any
	if err := json.Unmarshal(response.Data, &data); err != nil {
		c.t.Fatal(err)
	}
	return data
}

// someMappings returns mappings to claim, in any order and with duplicates, and
// the expected result. The string is "" for none.
func (c *mappingClient) someMappings() (text string, kept map[string][]string) {
	kept = map[string][]string{}
	if c.chance.IntN(3) == 0 {
		return []string{"", ", mappings: null"}[c.chance.IntN(2)], kept
	}
	var list []string
	for _, suffix := range c.chance.Perm(5)[:1+c.chance.IntN(4)] {
		name := []string{"", "_A", "1", "2", "_NUMA-0"}[suffix]
		all := slices.Sorted(maps.Keys(c.exist))
		for range 1 + c.chance.IntN(4) {
			kept[name] = append(kept[name], all[c.chance.IntN(len(all))])
		}
		list = append(list, fmt.Sprintf("{suffix: %q, providers: %s}", name, quoted(kept[name])))
	}
	return ", mappings: [" + strings.Join(list, ", ") + "]", kept
}

// claims returns claims of some consumers, and records the expected mappings.
func (c *mappingClient) claims(generations map[string]any) (list []string) {
	for _, i := range c.chance.Perm(mappingConsumers)[:1+c.chance.IntN(3)] {
		uuid := mappingUUID("cccccccc", i)
		mappings, kept := c.someMappings()
		allocations := fmt.Sprintf(`{provider: %q, resources: [{resourceClass: "VCPU", amount: 1}]}`,
			mappingUUID("aaaaaaaa", c.chance.IntN(2)))
		if c.chance.IntN(6) == 0 {
			allocations, kept = "", nil
		}
		generation, _ := json.Marshal(generations[uuid])
		list = append(list,
			fmt.Sprintf(`{uuid: %q, projectId: "demo", userId: "mel", generation: %s, allocations: [%s]%s}`,
				uuid, generation, allocations, mappings))
		c.kept[uuid] = kept
	}
	return list
}

// wanted returns the expected mappings of a consumer in printed form.
func (c *mappingClient) wanted(of map[string][]string) string {
	out := []any{}
	for _, suffix := range slices.Sorted(maps.Keys(of)) {
		var providers []any
		for _, uuid := range slices.Compact(slices.Sorted(slices.Values(of[suffix]))) {
			if c.exist[uuid] {
				providers = append(providers, uuid)
			}
		}
		out = append(out, map[string]any{"suffix": suffix, "providers": providers})
	}
	return fmt.Sprint(out)
}

// step makes one write, and compares its payload with the expected mappings.
func (c *mappingClient) step(generations map[string]any) {
	const show = `{ uuid mappings { suffix providers { uuid } } }`
	payload := []any{}
	switch chosen := c.chance.IntN(10); {
	case chosen < 6:
		payload = c.ask(`mutation { done: setAllocations(input: {consumers: [` +
			strings.Join(c.claims(generations), ", ") + `]}) { consumers ` + show +
			` } }`)["done"].(map[string]any)["consumers"].([]any)
	case chosen < 8:
		payload = c.ask(fmt.Sprintf(`mutation { done: reshape(input: {inventories: [{provider: %q, inventories: [{resourceClass: "VCPU", total: %d}]}], consumers: [%s]}) { consumers %s } }`,
			mappingUUID("aaaaaaaa", 0), 64+c.chance.IntN(8), strings.Join(c.claims(generations), ", "),
			show))["done"].(map[string]any)["consumers"].([]any)
	case chosen < 9:
		uuid := mappingUUID("cccccccc", c.chance.IntN(mappingConsumers))
		if c.kept[uuid] == nil {
			return
		}
		gone := c.ask(fmt.Sprintf(`mutation { done: deleteAllocations(input: {consumer: %q}) { consumer %s } }`, uuid,
			show))["done"].(map[string]any)["consumer"]
		if was := keptMappings(gone); was != c.wanted(c.kept[uuid]) {
			c.t.Errorf("deleted with %s, want %s", was, c.wanted(c.kept[uuid]))
		}
		c.kept[uuid] = nil
	default:
		uuid := mappingUUID("aaaaaaaa", 2+c.chance.IntN(mappingProviders-2))
		if c.exist[uuid] {
			c.ask(fmt.Sprintf(`mutation { deleteResourceProvider(input: {provider: %q}) { resourceProvider { uuid } } }`, uuid))
		} else {
			c.ask(fmt.Sprintf(`mutation { createResourceProvider(input: {uuid: %q, name: %[1]q}) { resourceProvider { uuid } } }`, uuid))
		}
		if c.exist[uuid] = !c.exist[uuid]; !c.exist[uuid] {
			delete(c.exist, uuid)
		}
	}
	for _, consumer := range payload {
		uuid := consumer.(map[string]any)["uuid"].(string)
		if shown := keptMappings(consumer); shown != c.wanted(c.kept[uuid]) {
			c.t.Errorf("the payload has %s, want %s", shown, c.wanted(c.kept[uuid]))
		}
	}
}

// TestMappingsAreThoseOfTheLastClaim makes random claims, with every mutation
// that can, while providers are created and deleted. It compares the mappings
// of all consumers, along several paths, with the expected ones.
func TestMappingsAreThoseOfTheLastClaim(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		content := store.Content{}
		c := &mappingClient{t: t, chance: rand.New(rand.NewPCG(18, 3)), executor: executorOf(t, s),
			exist: map[string]bool{}, kept: map[string]map[string][]string{}}
		for i := range mappingProviders {
			uuid := mappingUUID("aaaaaaaa", i)
			one := placement.Provider{UUID: uuid, Name: uuid}
			if i < 2 {
				one.Inventories = []placement.Inventory{{ResourceClass: "VCPU", Total: 64, MinUnit: 1, MaxUnit: 64,
					StepSize: 1, AllocationRatio: 1, Capacity: 64}}
			}
			content.Providers = append(content.Providers, one)
			c.exist[uuid] = true
		}
		if err := s.FillEmpty(access.WithViewer(t.Context(), viewers["admin"]), content); err != nil {
			t.Fatal(err)
		}
		const show = `{ uuid generation mappings { suffix providers { uuid } } }`
		for i := range 80 {
			found := c.ask(`{ consumers { nodes ` + show +
				` } resourceProviders { nodes { allocations { nodes { consumer ` + show + ` } } } } }`)
			generations := map[string]any{}
			for _, node := range found["consumers"].(map[string]any)["nodes"].([]any) {
				consumer := node.(map[string]any)
				uuid := consumer["uuid"].(string)
				generations[uuid] = consumer["generation"]
				if shown := keptMappings(consumer); c.kept[uuid] == nil || shown != c.wanted(c.kept[uuid]) {
					t.Fatalf("step %d: %s has %s, want %s", i, uuid, shown, c.wanted(c.kept[uuid]))
				}
			}
			for _, node := range found["resourceProviders"].(map[string]any)["nodes"].([]any) {
				for _, allocation := range node.(map[string]any)["allocations"].(map[string]any)["nodes"].([]any) {
					consumer := allocation.(map[string]any)["consumer"].(map[string]any)
					if shown := keptMappings(consumer); shown != c.wanted(c.kept[consumer["uuid"].(string)]) {
						t.Fatalf("step %d: below an allocation, %s has %s", i, consumer["uuid"], shown)
					}
				}
			}
			if kept := len(slices.DeleteFunc(slices.Collect(maps.Values(c.kept)), func(of map[string][]string) bool {
				return of == nil
			})); kept != len(generations) {
				t.Fatalf("step %d: %d consumers, want %d", i, len(generations), kept)
			}
			c.step(generations)
		}
	})
}

// TestMappingsNameWhatExists sends claims with invalid mappings. Each is
// refused at its field and leaves the mappings unchanged.
func TestMappingsNameWhatExists(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := openFixture(t, url)
		executor := executorOf(t, s)
		many := make([]string, placement.MaxMappedProviders/2)
		for i := range many {
			many[i] = mappingUUID("aaaaaaaa", i)
		}
		for name, one := range map[string]struct{ mappings, field, message string }{
			"an unknown provider": {fmt.Sprintf(`[{suffix: "", providers: [%q, %q]}]`, provider, noUUID),
				"input.consumers[0].mappings[0].providers[1]",
				"input.consumers[0].mappings[0].providers[1]: resource provider " + noUUID + " does not exist"},
			"too many providers": {fmt.Sprintf(`[{suffix: "", providers: %s}, {suffix: "_A", providers: %[1]s}, {suffix: "_B", providers: [%q]}]`, quoted(many), provider),
				"input.consumers[0].mappings",
				"input.consumers[0].mappings: has 1001 providers, at most 1000 are allowed"},
		} {
			response := executor.Execute(access.WithViewer(t.Context(), viewers["admin"]), &graphql.RawParams{Query: fmt.Sprintf(`mutation { setAllocations(input: {consumers: [
				{uuid: "66666666-6666-4666-8666-666666666666", projectId: "demo", userId: "mel", generation: 1, allocations: [{provider: %q, resources: [{resourceClass: "VCPU", amount: 1}]}], mappings: %s}]}) { consumers { uuid } } }`, provider, one.mappings)})
			if len(response.Errors) != 1 || response.Errors[0].Extensions["field"] != one.field ||
				response.Errors[0].Message != one.message {
				t.Errorf("%s: %v", name, response.Errors)
			}
		}
		read := executor.Execute(access.WithViewer(t.Context(), viewers["admin"]),
			&graphql.RawParams{Query: `{ consumer(uuid: "66666666-6666-4666-8666-666666666666") { generation mappings { suffix providers { name } } } }`})
		if want := `{"consumer":{"generation":1,"mappings":[{"suffix":"","providers":[{"name":"root"}]},{"suffix":"_demo","providers":[{"name":"linked"}]}]}}`; string(read.Data) != want {
			t.Errorf("%s, want %s", read.Data, want)
		}
	})
}
