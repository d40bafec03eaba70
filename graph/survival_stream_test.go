package graph_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// survivalChange returns a random mutation of the three hosts of a test, or of a
// consumer in the project of the viewers or in another one.
func survivalChange(random *rand.Rand, present map[int]bool) string {
	host, consumer, n := storetest.UUID(8000+random.IntN(3)), 8100+random.IntN(6), 1+random.IntN(4)
	switch {
	case random.IntN(4) == 0:
		return fmt.Sprintf(`setInventory(input: {provider: %q, inventory: {resourceClass: "CUSTOM_LOST", total: %d, allocationRatio: 4}}) { __typename }`, host, n+2)
	case present[consumer]:
		delete(present, consumer)
		return fmt.Sprintf(`deleteAllocations(input: {consumer: %q}) { __typename }`, storetest.UUID(consumer))
	}
	present[consumer] = true
	project := []string{"demo", "vault"}[consumer%2]
	return fmt.Sprintf(`setAllocations(input: {consumers: [{uuid: %q, projectId: %q, userId: "u",
		allocations: [{provider: %q, resources: [{resourceClass: "CUSTOM_LOST", amount: %d}]}]}]}) { __typename }`,
		storetest.UUID(consumer), project, host, n)
}

// TestSurvivalIsFollowed makes random changes. Whenever the answer of survives
// differs for a viewer, the viewer's stream must send it. A hidden consumer must
// not count.
func TestSurvivalIsFollowed(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		executor, random := executorOf(t, openFixture(t, url)), rand.New(rand.NewPCG(4, 8))
		change := func(mutation string) {
			t.Helper()
			ctx := access.WithViewer(t.Context(), viewers["admin"])
			if response := executor.ExecuteWhole(ctx, "mutation { "+mutation+" }"); len(response.Errors) > 0 {
				t.Fatal(response.Errors, mutation)
			}
		}
		change(`createResourceClass(input: {name: "CUSTOM_LOST"}) { __typename }`)
		for i := range 3 {
			change(fmt.Sprintf(`createResourceProvider(input: {uuid: %q, name: "lost %d", inventories: [{resourceClass: "CUSTOM_LOST", total: 4, allocationRatio: 4}]}) { __typename }`,
				storetest.UUID(8000+i), i))
		}
		const answer = ` { unsurvivedCount nodes { root { name } consumers unplacedCount unplaced { consumer { projectId } resources { amount } } } }`
		viewersOf, present := []string{"admin", "member", "foreign"}, map[int]bool{}
		streams, last, sent := map[string]*following{}, map[string]string{}, map[string]int{}
		ask := func(viewer string) string {
			response := executor.ExecuteWhole(access.WithViewer(t.Context(), viewers[viewer]), "{ survives"+answer+" }")
			return strings.TrimSuffix(strings.TrimPrefix(string(response.Data), "{"), "}")
		}
		compare := func() {
			for _, viewer := range viewersOf {
				now := ask(viewer)
				if now == last[viewer] {
					continue
				}
				last[viewer] = now
				sent[viewer]++
				if event := streams[viewer].next(patience.Of(t, 10*time.Second)); !strings.Contains(event, now) {
					t.Fatalf("%s: the event is %s, the query answers %s", viewer, event, now)
				}
				if viewer == "member" && strings.Contains(now, "vault") {
					t.Errorf("a hidden consumer counts: %s", now)
				}
			}
		}
		for _, viewer := range viewersOf {
			streams[viewer] = subscribeAs(t, executor, viewer,
				"subscription { survivalChanged { cursor survives"+answer+" } }")
		}
		for compare(); sent["member"] < 6; compare() {
			change(survivalChange(random, present))
		}
		if sent["admin"] <= sent["member"] || !strings.Contains(last["admin"], "vault") {
			t.Errorf("%v answers, the last of admin is %s", sent, last["admin"])
		}
	})
}
