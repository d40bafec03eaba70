package graph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// The fixture is a root with devices, each with an equal amount of both
// classes. Every write claims or releases the same amount of both classes on
// two different devices. So the sums of usage are equal at every instant, and
// every claim increments two generations.
const (
	devices     = 5
	eachHas     = 4
	pageClients = 6

	minPages    = 60 // pages read from each server
	pagesAtOnce = 5
)

func deviceUUID(i int) string { return fmt.Sprintf("d0000000-0000-4000-8000-%012d", i) }

// TestEveryPageOfCandidatesIsOneSnapshot reads pages of candidates, with all
// fields below them, while clients claim, move and release. All of a page must
// be of one instant.
func TestEveryPageOfCandidatesIsOneSnapshot(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		readPagesWhileOthersClaim(t, []*store.Store{storetest.Open(t, url)})
	})
	t.Run("two servers", func(t *testing.T) {
		t.Parallel()
		url := storetest.Postgres(t)
		readPagesWhileOthersClaim(t, []*store.Store{storetest.Open(t, url), storetest.Open(t, url)})
	})
}

func readPagesWhileOthersClaim(t *testing.T, servers []*store.Store) {
	var executors []asker
	for _, s := range servers {
		executors = append(executors, asker{t, executorOf(t, s)})
	}
	createDevices(t, executors)
	done := make(chan struct{})
	var clients sync.WaitGroup
	for client := range pageClients {
		clients.Go(func() {
			claimAndRelease(executors[client%len(executors)], client, done)
		})
	}
	pages, full := 0, map[int]bool{}
	if !patience.Until(t, time.Minute, func() bool {
		for range pagesAtOnce {
			for _, executor := range executors {
				full[checkPage(t, executor)] = true
			}
		}
		pages += pagesAtOnce
		return t.Failed() || pages >= minPages && len(full) >= 3
	}) {
		t.Errorf("%d pages were read, of the sizes %v: too few", pages, full)
	}
	close(done)
	clients.Wait()
}

// createDevices creates the root and its devices, and waits until every server
// has caught up.
func createDevices(t *testing.T, executors []asker) {
	t.Helper()
	executors[0].must(`mutation { createResourceProvider(input: {name: "root", uuid: "d0000000-0000-4000-8000-999999999999"}) { resourceProvider { uuid } } }`, nil)
	for i := range devices {
		executors[0].must(`mutation($u: UUID!, $n: String!, $has: Int!) {
			createResourceProvider(input: {name: $n, uuid: $u, parent: "d0000000-0000-4000-8000-999999999999"}) { resourceProvider { uuid } }
			setInventories(input: {provider: $u, inventories: [{resourceClass: "VCPU", total: $has}, {resourceClass: "MEMORY_MB", total: $has}]}) { resourceProvider { generation } }
		}`, map[string]any{"u": deviceUUID(i), "n": fmt.Sprint("device", i), "has": eachHas})
	}
	for i, executor := range executors {
		if !patience.Until(t, 20*time.Second, func() bool {
			return executor.count(`{ resourceProviders(filter: {resources: [{resourceClass: "VCPU", amount: 1}]}) { totalCount } }`) == devices
		}) {
			t.Fatalf("server %d does not follow", i)
		}
	}
}

// claimAndRelease repeatedly has one consumer claim, move and release, until
// done is closed.
func claimAndRelease(executor asker, client int, done chan struct{}) {
	random := rand.New(rand.NewPCG(uint64(client), 1))
	for round := 0; ; round++ {
		consumer := fmt.Sprintf("c0000000-0000-4000-8000-%06d%06d", client, round)
		held := false
		for turn := range 4 {
			select {
			case <-done:
				return
			default:
			}
			a := random.IntN(devices)
			b := (a + 1 + random.IntN(devices-1)) % devices
			variables := map[string]any{"c": consumer, "a": deviceUUID(a),
				"b": deviceUUID(b), "n": 1 + random.IntN(3), "g": nil}
			if held {
				variables["g"] = turn
			}
			if response := executor.ask(moveQuery, variables); response.Errors != nil {
				break // full
			}
			held = true
		}
		if held {
			executor.ask(`mutation($c: UUID!) { deleteAllocations(input: {consumer: $c}) { consumer { uuid } } }`,
				map[string]any{"c": consumer})
		}
	}
}

// moveQuery sets the allocations of a consumer: the same amount of both
// classes, on two devices.
const moveQuery = `mutation($c: UUID!, $g: Int, $a: UUID!, $b: UUID!, $n: Int!) { setAllocations(input: {consumers: [{uuid: $c, projectId: "p", userId: "u", generation: $g,
	allocations: [{provider: $a, resources: [{resourceClass: "VCPU", amount: $n}]}, {provider: $b, resources: [{resourceClass: "MEMORY_MB", amount: $n}]}]}]}) { consumers { generation } } }`

type (
	pageInventory struct {
		ResourceClass        string
		Capacity, Used, Free int64
	}
	pageProvider struct {
		UUID        string
		Generation  int
		Inventories []pageInventory
	}
	pageCandidate struct {
		Allocations []struct {
			Provider struct {
				pageProvider
				Parent, Root struct {
					Children struct{ Nodes []pageProvider }
				}
			}
		}
		Mappings []struct{ Providers []pageProvider }
	}
	pageOfCandidates struct {
		Nodes      []pageCandidate
		Edges      []struct{ Node pageCandidate }
		TotalCount int
		Explain    struct {
			Steps []struct {
				Constraint string
				Remaining  int
			}
		}
		ProviderSummaries []struct {
			Provider    pageProvider
			Inventories []pageInventory
		}
	}
)

const pageQuery = `{ allocationCandidates(resources: [{resourceClass: "VCPU", amount: 2}, {resourceClass: "MEMORY_MB", amount: 1}], first: 1000) {
	nodes { allocations { provider { ...all parent { children { nodes { ...all } } } } } mappings { providers { ...all } } }
	totalCount
	explain { considered steps { constraint remaining } }
	providerSummaries { provider { ...all } inventories { resourceClass capacity used free } }
	edges { node { allocations { provider { ...all root { children { nodes { ...all } } } } } } }
} } fragment all on ResourceProvider { uuid generation inventories { resourceClass capacity used free } }`

// checkPage reads one page, checks that it shows one instant, and returns the
// number of candidates.
func checkPage(t *testing.T, executor asker) int {
	var answer struct{ AllocationCandidates pageOfCandidates }
	if err := json.Unmarshal(executor.must(pageQuery, nil).Data, &answer); err != nil {
		t.Fatal(err)
	}
	page := answer.AllocationCandidates
	if len(page.Nodes) == 0 {
		return 0
	}
	roomy := page.checkSums(t)
	if want := roomy["VCPU"] * roomy["MEMORY_MB"]; len(page.Nodes) != want ||
		page.TotalCount != want || len(page.Edges) != want {
		t.Errorf("%d nodes, %d edges, %d counted; the summaries have room for %d", len(page.Nodes),
			len(page.Edges), page.TotalCount, want)
	}
	for _, step := range page.Explain.Steps {
		class, ok := map[string]string{"resources VCPU:2": "VCPU",
			"resources MEMORY_MB:1": "MEMORY_MB"}[step.Constraint]
		if ok && step.Remaining != roomy[class] {
			t.Errorf("explain leaves %d providers of %s, the summaries have %d", step.Remaining, class, roomy[class])
		}
	}
	page.checkStates(t)
	return len(page.Nodes)
}

// checkSums checks the invariant sums in the summaries, which cover the whole
// tree. It returns the number of providers with capacity, by class.
func (page pageOfCandidates) checkSums(t *testing.T) (roomy map[string]int) {
	roomy = map[string]int{}
	used := map[string]int64{}
	generations := 0
	for _, summary := range page.ProviderSummaries {
		generations += summary.Provider.Generation
		for _, i := range summary.Inventories {
			used[i.ResourceClass] += i.Used
			if amount := map[string]int64{"VCPU": 2, "MEMORY_MB": 1}[i.ResourceClass]; i.Free >= amount {
				roomy[i.ResourceClass]++
			}
			if i.Used > i.Capacity || i.Free != i.Capacity-i.Used {
				t.Errorf("%s has %+v", summary.Provider.UUID, i)
			}
		}
	}
	if len(page.ProviderSummaries) != devices+1 || used["VCPU"] != used["MEMORY_MB"] {
		t.Errorf("%d providers are summarised, %d VCPU and %d MEMORY_MB are used: not of one instant",
			len(page.ProviderSummaries), used["VCPU"], used["MEMORY_MB"])
	}
	if (generations-devices)%2 != 0 {
		t.Errorf("the generations add up to %d: half of a claim", generations)
	}
	return roomy
}

// checkStates checks that each provider has the same state everywhere in the
// page.
func (page pageOfCandidates) checkStates(t *testing.T) {
	state := map[string]string{}
	for _, summary := range page.ProviderSummaries {
		summary.Provider.compare(t, state)
		pageProvider{summary.Provider.UUID, summary.Provider.Generation, summary.Inventories}.compare(t, state)
	}
	candidates := slices.Clone(page.Nodes)
	for _, edge := range page.Edges {
		candidates = append(candidates, edge.Node)
	}
	for _, candidate := range candidates {
		for _, allocation := range candidate.Allocations {
			allocation.Provider.compare(t, state)
			for _, child := range slices.Concat(allocation.Provider.Parent.Children.Nodes,
				allocation.Provider.Root.Children.Nodes) {
				child.compare(t, state)
			}
		}
		for _, mapping := range candidate.Mappings {
			for _, provider := range mapping.Providers {
				provider.compare(t, state)
			}
		}
	}
}

// compare checks that a provider has the same state as earlier in the page.
func (p pageProvider) compare(t *testing.T, state map[string]string) {
	text := fmt.Sprint(p.Generation, p.Inventories)
	if before, ok := state[p.UUID]; ok && before != text {
		t.Errorf("%s is %s and %s in one page", p.UUID, before, text)
	}
	state[p.UUID] = text
}

// asker sends operations to an executor as an administrator.
type asker struct {
	t        *testing.T
	executor *graph.Executor
}

func (a asker) ask(query string, variables map[string]any) *graphql.Response {
	for name, value := range variables {
		if n, ok := value.(int); ok {
			variables[name] = json.Number(fmt.Sprint(n)) // as in HTTP requests
		}
	}
	ctx := access.WithViewer(graph.WithRequestID(context.Background(), "request"), viewers["admin"])
	return a.executor.Execute(ctx, &graphql.RawParams{Query: query, Variables: variables})
}

func (a asker) must(query string, variables map[string]any) *graphql.Response {
	a.t.Helper()
	response := a.ask(query, variables)
	if len(response.Errors) > 0 {
		a.t.Fatal(response.Errors)
	}
	return response
}

// count returns the total of a list of providers.
func (a asker) count(query string) int {
	a.t.Helper()
	var answer struct{ ResourceProviders struct{ TotalCount int } }
	if err := json.Unmarshal(a.must(query, nil).Data, &answer); err != nil {
		a.t.Fatal(err)
	}
	return answer.ResourceProviders.TotalCount
}
