package graph_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// foreseeing are random changes of a cloud, each as a what-if and as mutations.
type foreseeing struct {
	counting
	random *rand.Rand
	next   int
	hosts  []*foreseenHost
	claims map[string]int // by consumer
	// The changes of this round, and the mutations that make them.
	changes, mutations []string
}

// foreseenHost is a host with one class, and the amounts of its consumers.
type foreseenHost struct {
	uuid            string
	total, reserved int
	holds           map[string]int // by consumer
}

func (h *foreseenHost) free() int {
	free := h.total - h.reserved
	for _, amount := range h.holds {
		free -= amount
	}
	return free
}

func (f *foreseeing) uuid() string {
	f.next++
	return storetest.UUID(f.next)
}

// add records one change in both forms.
func (f *foreseeing) add(change, mutation string) {
	f.changes = append(f.changes, "{"+change+"}")
	f.mutations = append(f.mutations, fmt.Sprintf("m%d: %s { __typename }", len(f.mutations), mutation))
}

// change adds a random change, unless the host that it is for refuses it.
func (f *foreseeing) change() {
	n := f.random.IntN(len(f.hosts) + 1)
	if n == len(f.hosts) {
		f.addHost()
		return
	}
	host := f.hosts[n]
	switch f.random.IntN(8) {
	case 0:
		if len(host.holds) == 0 && len(f.hosts) > 2 {
			f.add(fmt.Sprintf("removeProvider: %q", host.uuid),
				fmt.Sprintf("deleteResourceProvider(input: {provider: %q})", host.uuid))
			f.hosts = slices.Delete(f.hosts, n, n+1)
		}
	case 1:
		f.disable(host)
	case 2:
		f.resize(host)
	case 3:
		traits := []string{`[]`, `["HW_CPU_X86_AVX"]`}[f.random.IntN(2)]
		f.add(fmt.Sprintf("setTraits: {provider: %q, traits: %s}", host.uuid, traits),
			fmt.Sprintf("setProviderTraits(input: {provider: %q, traits: %s})", host.uuid, traits))
	case 4:
		for consumer := range host.holds {
			f.add(fmt.Sprintf("releaseConsumer: %q", consumer),
				fmt.Sprintf("deleteAllocations(input: {consumer: %q})", consumer))
			delete(host.holds, consumer)
			return
		}
	case 5:
		f.move(host, f.hosts[f.random.IntN(len(f.hosts))])
	case 6:
		f.drain(host)
	default:
		f.place(host)
	}
}

func (f *foreseeing) addHost() {
	host := &foreseenHost{uuid: f.uuid(), total: 1 + f.random.IntN(9), holds: map[string]int{}}
	f.hosts = append(f.hosts, host)
	input := fmt.Sprintf(`name: "host %d", uuid: %q, inventories: [{resourceClass: "VCPU", total: %d}]`, f.next,
		host.uuid, host.total)
	f.add("addProvider: {"+input+"}", "createResourceProvider(input: {"+input+"})")
}

func (f *foreseeing) disable(host *foreseenHost) {
	f.add(fmt.Sprintf("disableProvider: %q", host.uuid), host.reserve())
}

// reserve reserves everything of a host, and returns the mutation that does so.
func (h *foreseenHost) reserve() string {
	h.reserved = h.total
	return fmt.Sprintf(`setInventories(input: {provider: %q, inventories: [
		{resourceClass: "VCPU", total: %d, reserved: %[2]d}]})`, h.uuid, h.total)
}

// claim gives a consumer an amount of a host, and returns the allocations and the
// mutation that claims them.
func (f *foreseeing) claim(h *foreseenHost, consumer string, amount int) (allocations, mutation string) {
	h.holds[consumer] = amount
	generation := "null"
	if f.claims[consumer] > 0 {
		generation = fmt.Sprint(f.claims[consumer])
	}
	f.claims[consumer]++
	allocations = fmt.Sprintf(`[{provider: %q, resources: [{resourceClass: "VCPU", amount: %d}]}]`, h.uuid, amount)
	return allocations, fmt.Sprintf(`setAllocations(input: {consumers: [
		{uuid: %q, projectId: "demo", userId: "u", generation: %s, allocations: %s}]})`,
		consumer, generation, allocations)
}

func (f *foreseeing) resize(host *foreseenHost) {
	host.total, host.reserved = 1+f.random.IntN(12), 0
	inventories := fmt.Sprintf(`provider: %q, inventories: [{resourceClass: "VCPU", total: %d}]`, host.uuid, host.total)
	f.add("setInventories: {"+inventories+"}", "setInventories(input: {"+inventories+"})")
}

// move moves a consumer to another host, or gives it another amount.
func (f *foreseeing) move(from, to *foreseenHost) {
	for consumer, held := range from.holds {
		delete(from.holds, consumer)
		if to.free() < 1 {
			from.holds[consumer] = held
			return
		}
		allocations, mutation := f.claim(to, consumer, 1+f.random.IntN(min(to.free(), 3)))
		f.add(fmt.Sprintf("moveConsumer: {consumer: %q, allocations: %s}", consumer, allocations), mutation)
		return
	}
}

// drain drains a host of the stored world, and disables it.
func (f *foreseeing) drain(host *foreseenHost) {
	if len(f.changes) > 0 {
		return
	}
	var plan struct {
		DrainPlan struct {
			Moves []struct {
				Consumer    struct{ UUID string }
				Allocations []struct {
					Provider  string
					Resources []struct{ Amount int }
				}
			}
		}
	}
	f.ask("admin", fmt.Sprintf(`{ drainPlan(providers: [%q]) {
		moves { consumer { uuid } allocations { provider resources { amount } } } } }`, host.uuid), &plan)
	change := fmt.Sprintf("drainProviders: [%q]", host.uuid)
	for _, move := range plan.DrainPlan.Moves {
		to := move.Allocations[0]
		delete(host.holds, move.Consumer.UUID)
		at := slices.IndexFunc(f.hosts, func(other *foreseenHost) bool { return other.uuid == to.Provider })
		_, mutation := f.claim(f.hosts[at], move.Consumer.UUID, to.Resources[0].Amount)
		f.add(change, mutation)
	}
	f.add(change, host.reserve())
	f.changes = f.changes[:1] // one change makes all of it
}

func (f *foreseeing) place(host *foreseenHost) {
	if host.free() < 1 {
		return
	}
	allocations, mutation := f.claim(host, f.uuid(), 1+f.random.IntN(min(host.free(), 3)))
	f.add("place: "+allocations, mutation)
}

// answers are fields of Query and of WhatIf.
func (f *foreseeing) answers() string {
	request := fmt.Sprintf(`{resources: [{resourceClass: "VCPU", amount: %d}]}`, 1+f.random.IntN(4))
	return fmt.Sprintf(`fits(request: %[1]s) { atLeast atMost exact limitedBy { kind name providers } }
		capacityFor(requests: [%[1]s,
			{resources: [{resourceClass: "VCPU", amount: 1}], requiredAll: ["HW_CPU_X86_AVX"]}]) {
			exact limitedBy { name providers } }
		fitsTogether(requests: [{request: %[1]s, share: 2}, {request: {resources: [{resourceClass: "VCPU", amount: 1}]}}]) {
			exact each { atLeast atMost } next limitedBy { name providers } }
		survives { unsurvivedCount nodes { root { name } consumers unplacedCount missing { amount } } }
		capacity(groupBy: ROOT) { nodes { root { name } reserved used free } }
		drainPlan(providers: [%[2]q]) { waves unplacedCount }
		rebalancePlan(requests: [{request: %[1]s}], maxMoves: 1) { atLeast }
		allocationCandidates(resources: [{resourceClass: "VCPU", amount: 2}]) {
			totalCount nodes { claim { allocations { provider } } } }`,
		request, f.hosts[f.random.IntN(len(f.hosts))].uuid)
}

// TestAWhatIfThatIsDoneGivesTheSameAnswers asks what random changes would do,
// makes them, and asks again.
func TestAWhatIfThatIsDoneGivesTheSameAnswers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		f := &foreseeing{counting: counting{t, executorOf(t, s)}, random: rand.New(rand.NewPCG(31, 1)),
			claims: map[string]int{}}
		for round := range 30 {
			f.changes, f.mutations = nil, nil
			for range 1 + f.random.IntN(6) {
				f.change()
			}
			answers := f.answers()
			var foreseen struct{ WhatIf json.RawMessage }
			f.ask("admin", fmt.Sprintf("{ whatIf(changes: [%s]) { %s } }", strings.Join(f.changes, ", "), answers),
				&foreseen)
			if len(f.mutations) > 0 {
				f.ask("admin", "mutation { "+strings.Join(f.mutations, "\n")+" }", &struct{}{})
			}
			var now json.RawMessage
			f.ask("admin", "{ "+answers+" }", &now)
			if string(foreseen.WhatIf) != string(now) {
				t.Fatalf("round %d: %s\nforeseen %s\nnow      %s", round, f.changes, foreseen.WhatIf, now)
			}
		}
	})
}

// TestWhatIfsHaveOtherIDs checks that providers and inventories in a what-if do
// not replace the stored ones in a cache, or the ones of another what-if.
func TestWhatIfsHaveOtherIDs(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite(t))
	storetest.RoomyProvider(t, s, storetest.UUID(1))
	c := counting{t, executorOf(t, s)}
	type provider struct {
		ID          string
		Inventories []struct{ ID string }
	}
	type world struct {
		AllocationCandidates struct {
			Nodes []struct{ Allocations []struct{ Provider provider } }
		}
	}
	candidates := `{ allocationCandidates(resources: [{resourceClass: "VCPU", amount: 1}]) {
		nodes { allocations { provider { id inventories { id } } } } } }`
	whatIf := func(total int) string {
		return fmt.Sprintf(`whatIf(changes: [{setInventories: {provider: %q,
			inventories: [{resourceClass: "VCPU", total: %d}]}}]) %s`, storetest.UUID(1), total, candidates)
	}
	var answer struct{ Now, Eight, Nine, Again world }
	c.ask("admin", candidates, &answer.Now)
	c.ask("admin", fmt.Sprintf("{ eight: %s nine: %s again: %s }", whatIf(8), whatIf(9), whatIf(8)), &answer)
	ids := map[string]bool{}
	of := func(w world) provider { return w.AllocationCandidates.Nodes[0].Allocations[0].Provider }
	for _, w := range []world{answer.Now, answer.Eight, answer.Nine, answer.Again} {
		ids[of(w).ID], ids[of(w).Inventories[0].ID] = true, true
	}
	if len(ids) != 6 {
		t.Errorf("%d ids, want 6: %v", len(ids), ids)
	}
	var node struct{ Node *struct{ ID string } }
	if c.ask("admin", fmt.Sprintf("{ node(id: %q) { id } }", of(answer.Eight).ID), &node); node.Node != nil {
		t.Errorf("node finds %s", node.Node.ID)
	}
}

// TestAWhatIfPlansWithItsChanges moves a consumer in a what-if, and drains the
// host that it moves to.
func TestAWhatIfPlansWithItsChanges(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		storetest.RoomyProvider(t, s, storetest.UUID(1))
		storetest.RoomyProvider(t, s, storetest.UUID(2))
		c := counting{t, executorOf(t, s)}
		allocations := func(provider, consumers int) string {
			return fmt.Sprintf(`allocations: [{provider: %q, resources: [{resourceClass: "VCPU", amount: %d}]}]`,
				storetest.UUID(provider), consumers)
		}
		c.ask("admin", fmt.Sprintf(`mutation { setAllocations(input: {consumers: [
			{uuid: %q, projectId: "p", userId: "u", %s}]}) { consumers { uuid } } }`,
			storetest.UUID(9), allocations(1, 1)), &struct{}{})
		var answer json.RawMessage
		c.ask("admin", fmt.Sprintf(`{ whatIf(changes: [{moveConsumer: {consumer: %q, %s}}]) {
			drainPlan(providers: [%q]) { moves {
				consumer { uuid } consumerGeneration from { provider { uuid } } to { provider { uuid } } } }
			diff(groupBy: ROOT) { now { root { uuid } used } then { root { uuid } used } } } }`,
			storetest.UUID(9), allocations(2, 3), storetest.UUID(2)), &answer)
		sum := func(provider, now, then int) string {
			root := fmt.Sprintf(`{"root":{"uuid":%q},"used":`, storetest.UUID(provider))
			return fmt.Sprintf(`{"now":%[1]s%[2]d},"then":%[1]s%[3]d}}`, root, now, then)
		}
		want := fmt.Sprintf(`{"whatIf":{"drainPlan":{"moves":[{"consumer":{"uuid":%q},"consumerGeneration":1,`+
			`"from":[{"provider":{"uuid":%q}}],"to":[{"provider":{"uuid":%q}}]}]},"diff":[%s,%s]}}`,
			storetest.UUID(9), storetest.UUID(2), storetest.UUID(1), sum(2, 0, 3), sum(1, 1, 0))
		if string(answer) != want {
			t.Errorf("got\n%s\nwant\n%s", answer, want)
		}
	})
}
