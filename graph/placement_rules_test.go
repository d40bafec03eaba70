package graph_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// A rule is one mutation on a provider A, its child B, a root C, and consumers
// c0 to c3, with the expected code and the expected generations of A, B and C.
// The steps of a table build on each other.
type rule struct {
	what        string
	mutation    string // A, B, C and c0 to c3 are placeholders for UUIDs
	code        string // "" for success
	generations string // of A, B and C; "" if unchanged
}

func vcpu(provider string, amount int) string {
	return fmt.Sprintf(`{provider: "%s", resources: [{resourceClass: "VCPU", amount: %d}]}`, provider, amount)
}

// claimed returns a consumer of a claim; generation "" sends none.
func claimed(consumer, generation string, allocations ...string) string {
	if generation != "" {
		generation = "generation: " + generation + ", "
	}
	return fmt.Sprintf(`{uuid: "%s", projectId: "p", userId: "u", %sallocations: [%s]}`, consumer,
		generation, strings.Join(allocations, ", "))
}

func claim(consumers ...string) string {
	return `setAllocations(input: {consumers: [` + strings.Join(consumers, ", ") + `]}) { consumers { uuid } }`
}

func change(mutation, input string) string {
	return mutation + `(input: {provider: "A", ` + input + `}) { resourceProvider { uuid } }`
}

const threeProviders = `a: createResourceProvider(input: {name: "A", uuid: "A"}) { resourceProvider { uuid } }
	b: createResourceProvider(input: {name: "B", uuid: "B", parent: "A"}) { resourceProvider { uuid } }
	c: createResourceProvider(input: {name: "C", uuid: "C"}) { resourceProvider { uuid } }`

// TestGenerationsFollowTheTable runs every operation in the table of
// docs/placement.md.
func TestGenerationsFollowTheTable(t *testing.T) {
	t.Parallel()
	inventory := `{resourceClass: "VCPU", total: 10}`
	aggregate := `"a0000000-0000-4000-8000-000000000001"`
	follow(t, []rule{
		{"create", threeProviders, "", "0 0 0"},
		{"rename", change("updateResourceProvider", `newName: "A2"`), "", "0 0 0"},
		{"move below another",
			`updateResourceProvider(input: {provider: "A", parent: "C"}) { resourceProvider { uuid } }`, "", "0 0 0"},
		{"make a root", change("updateResourceProvider", `parent: null`), "", "0 0 0"},
		{"set one inventory", change("setInventory", `generation: 0, inventory: `+inventory), "", "1 0 0"},
		{"set it again", change("setInventory", `generation: 1, inventory: `+inventory), "", "2 0 0"},
		{"a stale generation", change("setInventory", `generation: 1, inventory: `+inventory), "CONCURRENT_UPDATE", ""},
		{"a generation to come", change("setInventories", `generation: 3, inventories: []`), "CONCURRENT_UPDATE", ""},
		{"set all", change("setInventories", `generation: 2, inventories: [`+inventory+`]`), "", "3 0 0"},
		{"set all again", change("setInventories", `generation: 3, inventories: [`+inventory+`]`), "", "4 0 0"},
		{"delete one", change("deleteInventory", `resourceClass: "VCPU"`), "", "5 0 0"},
		{"delete all where there are none", change("setInventories", `inventories: []`), "", "6 0 0"},
		{"set traits", change("setProviderTraits", `generation: 6, traits: ["HW_CPU_X86_AVX"]`), "", "7 0 0"},
		{"set the same, twice named",
			change("setProviderTraits", `generation: 7, traits: ["HW_CPU_X86_AVX", "HW_CPU_X86_AVX"]`), "", "7 0 0"},
		{"traits with a stale generation", change("setProviderTraits", `generation: 6, traits: []`),
			"CONCURRENT_UPDATE", ""},
		{"set aggregates", change("setProviderAggregates", `generation: 7, aggregates: [`+aggregate+`]`), "", "8 0 0"},
		{"set the same", change("setProviderAggregates", `generation: 8, aggregates: [`+aggregate+`]`), "", "9 0 0"},

		{"stock A", change("setInventories", `inventories: [`+inventory+`]`), "", "10 0 0"},
		{"stock C", `setInventories(input: {provider: "C", inventories: [` + inventory +
			`]}) { resourceProvider { uuid } }`, "", "10 0 1"},
		{"claim", claim(claimed("c0", "", vcpu("A", 1))), "", "11 0 1"},
		{"claim the same", claim(claimed("c0", "1", vcpu("A", 1))), "", "12 0 1"},
		{"a stale consumer", claim(claimed("c0", "1", vcpu("A", 1))), "CONCURRENT_UPDATE", ""},
		{"no generation for a consumer with allocations",
			claim(claimed("c0", "", vcpu("A", 1))), "CONCURRENT_UPDATE", ""},
		{"a refused claim", claim(claimed("c0", "2", vcpu("A", 1), vcpu("C", 11))), "CAPACITY_EXCEEDED", ""},
		{"leave A for C", claim(claimed("c0", "2", vcpu("C", 1))), "", "12 0 2"},
		{"two consumers on one provider", claim(claimed("c1", "", vcpu("A", 1)), claimed("c2", "", vcpu("A", 1))), "",
			"13 0 2"},
		{"clear", claim(claimed("c0", "3")), "", "13 0 3"},
		{"claim after clearing", claim(claimed("c0", "", vcpu("C", 1))), "", "13 0 4"},
		{"delete allocations", `deleteAllocations(input: {consumer: "c0"}) { consumer { uuid } }`, "", "13 0 4"},
		{"claim after deleting", claim(claimed("c0", "", vcpu("C", 1))), "", "13 0 5"},

		{"reshape to the child", `reshape(input: {inventories: [{provider: "A", generation: 13, inventories: [{resourceClass: "DISK_GB", total: 1}]},
			{provider: "B", generation: 0, inventories: [` + inventory + `]}], consumers: [` +
			claimed("c1", "1", vcpu("B", 1)) + `, ` + claimed("c2", "1", vcpu("B", 1)) +
			`]}) { consumers { uuid } }`, "", "15 3 5"},
		{"reshape back, the child emptied and cleared", `reshape(input: {inventories: [{provider: "A", generation: 15, inventories: [` + inventory + `]},
			{provider: "B", generation: 3, inventories: []}], consumers: [` + claimed("c1", "2") + `, ` +
			claimed("c2", "2", vcpu("A", 1)) + `]}) { consumers { uuid } }`, "", "18 5 5"},
		{"reshape what is empty to be empty",
			`reshape(input: {inventories: [{provider: "B", generation: 5, inventories: []}]}) { consumers { uuid } }`,
			"", "18 6 5"},
		{"a stale reshape",
			`reshape(input: {inventories: [{provider: "B", generation: 5, inventories: []}]}) { consumers { uuid } }`,
			"CONCURRENT_UPDATE", ""},
		{"a reshape that leaves what is used",
			`reshape(input: {inventories: [{provider: "A", inventories: []}]}) { consumers { uuid } }`, "IN_USE", ""},
	})
}

// TestDefectsOfWritesAreNotRepeated checks the parts of the Placement
// reference's defects D6 to D9 that concern writes. Scenarios of candidates
// check the other defects.
func TestDefectsOfWritesAreNotRepeated(t *testing.T) {
	t.Parallel()
	stock := change("setInventories", `inventories: [{resourceClass: "VCPU", total: 2}]`)
	follow(t, []rule{
		{"create", threeProviders, "", ""},
		{"stock", stock, "", "1 0 0"},
		{"D6: a claim on an unknown provider", claim(claimed("c0", "", vcpu("A", 1), vcpu("c3", 1))), "BAD_USER_INPUT",
			"1 0 0"},
		{"D6: leaves no consumer, so the next one still sends no generation",
			claim(claimed("c0", "", vcpu("A", 1))), "", "2 0 0"},
		{"D6: a claim beyond capacity", claim(claimed("c1", "", vcpu("A", 2))), "CAPACITY_EXCEEDED", ""},
		{"D6: leaves none either", claim(claimed("c1", "", vcpu("A", 1))), "", "3 0 0"},
		{"D7: clearing an unknown consumer", claim(claimed("c2", "")), "", "3 0 0"},
		{"make room", `deleteAllocations(input: {consumer: "c1"}) { consumer { uuid } }`, "", ""},
		{"D7: leaves none", claim(claimed("c2", "", vcpu("A", 1))), "", "4 0 0"},
		{"D8: an argument given twice", `createTrait(input: {name: "CUSTOM_A", name: "CUSTOM_B"}) { trait { name } }`,
			"GRAPHQL_VALIDATION_FAILED", ""},
		{"D9: deleting an inventory in use", change("deleteInventory", `resourceClass: "VCPU"`), "IN_USE", ""},
		{"D9: a reshape to less than is kept back",
			`reshape(input: {inventories: [{provider: "B", inventories: [{resourceClass: "VCPU", total: 3, reserved: 9}]}]}) { consumers { uuid } }`, "BAD_USER_INPUT", "4 0 0"},
		{"an empty list of mappings",
			claim(strings.Replace(claimed("c3", "", vcpu("A", 1)), "allocations", "mappings: [], allocations", 1)),
			"BAD_USER_INPUT", ""},
	})
}

func follow(t *testing.T, rules []rule) {
	uuids := strings.NewReplacer(`"A"`, `"f0000000-0000-4000-8000-00000000000a"`, `"B"`,
		`"f0000000-0000-4000-8000-00000000000b"`,
		`"C"`, `"f0000000-0000-4000-8000-00000000000c"`, `"c0"`, `"c0000000-0000-4000-8000-000000000000"`, `"c1"`,
		`"c0000000-0000-4000-8000-000000000001"`,
		`"c2"`, `"c0000000-0000-4000-8000-000000000002"`, `"c3"`, `"c0000000-0000-4000-8000-000000000003"`)
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		admin := asker{t, executorOf(t, s)}
		before := "0 0 0"
		for _, r := range rules {
			code := ""
			if response := admin.ask("mutation { "+uuids.Replace(r.mutation)+" }", nil); len(response.Errors) > 0 {
				code = fmt.Sprint(response.Errors[0].Extensions["code"])
			}
			if code != r.code {
				t.Errorf("%s: got %q, want %q", r.what, code, r.code)
			}
			want := r.generations
			if want == "" {
				want = before
			}
			if before = admin.generations(uuids); before != want {
				t.Errorf("%s: the generations of A, B and C are %s, want %s", r.what, before, want)
			}
		}
	})
}

// generations returns the generations of A, B and C.
func (a asker) generations(uuids *strings.Replacer) string {
	a.t.Helper()
	var answer struct{ A, B, C struct{ Generation int } }
	query := uuids.Replace(`{ a: resourceProvider(uuid: "A") { generation } b: resourceProvider(uuid: "B") { generation } c: resourceProvider(uuid: "C") { generation } }`)
	if err := json.Unmarshal(a.must(query, nil).Data, &answer); err != nil {
		a.t.Fatal(err)
	}
	return fmt.Sprint(answer.A.Generation, answer.B.Generation, answer.C.Generation)
}
