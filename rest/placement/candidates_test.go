package placement_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestCandidatesAreThoseOfTheSearch compares the candidates of the door with
// placement.Candidates in random worlds.
func TestCandidatesAreThoseOfTheSearch(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		random := rand.New(rand.NewPCG(1, 2))
		fill(t, s, random)
		world, err := s.World(storetest.AsAdmin())
		if err != nil {
			t.Fatal(err)
		}
		c, some := serve(t, s, true), 0
		for range 60 {
			query, request := randomRequest(random)
			wanted, err := placement.Candidates(world, &request, nil, 1000)
			if err != nil {
				t.Fatal(err)
			}
			some += len(wanted.Candidates)
			var got struct {
				Requests []struct {
					Allocations map[string]struct {
						Resources map[string]int64
					}
					Mappings map[string][]string
				} `json:"allocation_requests"`
				Summaries map[string]any `json:"provider_summaries"`
			}
			answer := c.want(39, "GET", "/allocation_candidates?limit=1000&"+query, "", 200, "")
			if err := json.Unmarshal([]byte(answer.body), &got); err != nil {
				t.Fatal(err)
			}
			var shown []placement.Candidate
			for _, one := range got.Requests {
				var candidate placement.Candidate
				for _, uuid := range slices.Sorted(maps.Keys(one.Allocations)) {
					allocation := placement.ProviderAllocation{Provider: uuid}
					for _, class := range slices.Sorted(maps.Keys(one.Allocations[uuid].Resources)) {
						allocation.Resources = append(allocation.Resources,
							placement.Amount{ResourceClass: class, Amount: one.Allocations[uuid].Resources[class]})
					}
					candidate.Allocations = append(candidate.Allocations, allocation)
				}
				for _, suffix := range slices.Sorted(maps.Keys(one.Mappings)) {
					candidate.Mappings = append(candidate.Mappings,
						placement.Mapping{Suffix: suffix, Providers: one.Mappings[suffix]})
				}
				shown = append(shown, candidate)
			}
			for i := range wanted.Candidates {
				wanted.Candidates[i].Root = "" // not shown
			}
			if fmt.Sprint(shown) != fmt.Sprint(wanted.Candidates) {
				t.Fatalf("%s:\n%v\nwant\n%v", query, shown, wanted.Candidates)
			}
			if summaries := placement.ProviderSummaries(world,
				wanted.Candidates); len(got.Summaries) != len(summaries) {
				t.Fatalf("%s: %d summaries, want %d", query, len(got.Summaries), len(summaries))
			}
			old := c.want(11, "GET", "/allocation_candidates?resources=VCPU:1", "", 200, "")
			if !strings.Contains(old.body, `"allocations":[{"resource_provider"`) {
				t.Fatalf("the list form: %s", old.body)
			}
		}
		if some < 100 {
			t.Fatalf("only %d candidates in all", some)
		}
	})
}

// fill creates random trees.
func fill(t *testing.T, s *store.Store, random *rand.Rand) {
	t.Helper()
	var input placement.NewProviders
	input.Atomic = true
	for i := range 30 {
		one := placement.NewProvider{Name: fmt.Sprint("p", i), UUID: new(storetest.UUID(i)),
			Aggregates: []string{storetest.UUID(1000 + random.IntN(3))}}
		if i >= 10 {
			one.Parent = new(storetest.UUID(random.IntN(10)))
		}
		for _, class := range []string{"VCPU", "MEMORY_MB", "DISK_GB"} {
			if random.IntN(3) > 0 {
				one.Inventories = append(one.Inventories,
					placement.Inventory{ResourceClass: class, Total: int32(1 + random.IntN(8)), MinUnit: 1,
						MaxUnit: 8, StepSize: 1, AllocationRatio: 1})
			}
		}
		for _, trait := range traitNames {
			if random.IntN(3) == 0 {
				one.Traits = append(one.Traits, trait)
			}
		}
		input.Items = append(input.Items, one)
	}
	if _, _, err := s.CreateResourceProviders(storetest.AsAdmin(), input); err != nil {
		t.Fatal(err)
	}
}

var traitNames = []string{"HW_CPU_X86_AVX", "HW_CPU_X86_AVX2", "MISC_SHARES_VIA_AGGREGATE"}

// randomRequest returns a request as a query and as the search takes it.
func randomRequest(random *rand.Rand) (string, placement.Request) {
	var request placement.Request
	var query []string
	group := func(suffix string) placement.Group {
		g := placement.Group{Suffix: suffix}
		var amounts []string
		for _, class := range []string{"DISK_GB", "MEMORY_MB", "VCPU"} {
			if random.IntN(2) == 0 || class == "VCPU" && amounts == nil {
				amount := placement.Amount{ResourceClass: class, Amount: int64(1 + random.IntN(3))}
				g.Resources = append(g.Resources, amount)
				amounts = append(amounts, fmt.Sprintf("%s:%d", class, amount.Amount))
			}
		}
		query = append(query, "resources"+suffix+"="+strings.Join(amounts, ","))
		switch random.IntN(5) {
		case 0:
			g.RequiredAll = []string{traitNames[0]}
			query = append(query, "required"+suffix+"="+traitNames[0])
		case 1:
			g.Forbidden = []string{traitNames[1]}
			query = append(query, "required"+suffix+"=!"+traitNames[1])
		case 2:
			g.RequiredAnySets = []placement.TraitSet{{AnyOf: traitNames[:2]}}
			query = append(query, "required"+suffix+"=in:"+strings.Join(traitNames[:2], ","))
		case 3:
			aggregates := []string{storetest.UUID(1000), storetest.UUID(1001)}
			g.MemberOf = []placement.AggregateFilter{{AnyOf: aggregates}, {NoneOf: []string{storetest.UUID(1002)}}}
			query = append(query, "member_of"+suffix+"=in:"+strings.Join(aggregates, ","),
				"member_of"+suffix+"=!"+storetest.UUID(1002))
		}
		return g
	}
	request.Unsuffixed = group("")
	if random.IntN(2) == 0 {
		request.Groups = []placement.Group{group("_A"), group("_B")}
		query = append(query, "group_policy=isolate", "same_subtree=_A,_B")
		request.Policy, request.SameSubtree = placement.GroupPolicyIsolate,
			[]placement.Subtree{{Suffixes: []string{"_A", "_B"}}}
	}
	return strings.Join(query, "&"), request
}
