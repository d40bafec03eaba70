package rest_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestConcurrentClaimsLoseNothing claims with generations from 16 writers
// through two servers. A claim is answered 204 or 409 with a code; no provider
// exceeds its capacity; each consumer has as many generations as claims were
// answered 204; and each is in GraphQL and in the changes when it is answered.
func TestConcurrentClaimsLoseNothing(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		const providers, consumers, capacity, writers, rounds = 4, 6, 10, 16, 25
		first, second := storetest.Open(t, url), storetest.Open(t, url)
		for i := range providers {
			inventory := placement.Inventory{ResourceClass: "VCPU", Total: capacity, MinUnit: 1, MaxUnit: capacity, StepSize: 1, AllocationRatio: 1}
			one := placement.NewProvider{Name: fmt.Sprint("p", i), UUID: new(storetest.UUID(i)), Inventories: []placement.Inventory{inventory}}
			if _, _, err := first.CreateResourceProviders(storetest.AsAdmin(), placement.NewProviders{Items: []placement.NewProvider{one}}); err != nil {
				t.Fatal(err)
			}
		}
		servers := []doors{newDoors(t, first), newDoors(t, second)}
		var lock sync.Mutex
		written, codes := map[string]int64{}, map[string]int{}
		var all sync.WaitGroup
		for writer := range writers {
			all.Go(func() {
				random, server := rand.New(rand.NewPCG(1, uint64(writer))), servers[writer%2]
				for range rounds {
					consumer := storetest.UUID(100 + random.IntN(consumers))
					code, generation := claimOnce(server, random, consumer, storetest.UUID(random.IntN(providers)))
					lock.Lock()
					if codes[code]++; code == "" {
						written[consumer]++
					}
					lock.Unlock()
					if code == "" && generationOf(server, consumer) < generation {
						t.Errorf("%s: a claim is not in GraphQL when it is answered", consumer)
					}
				}
			})
		}
		all.Wait()
		if codes[""] < rounds || codes["placement.concurrent_update"] == 0 || codes["placement.undefined_code"] == 0 || len(codes) != 3 {
			t.Errorf("answers by code: %v", codes)
		}
		var total int64
		for i := range providers {
			var shown struct{ Usages map[string]int64 }
			got := servers[0].ask("admin", http.MethodGet, "/openstack/placement/resource_providers/"+storetest.UUID(i)+"/usages", "")
			if err := json.Unmarshal([]byte(got.body), &shown); err != nil || shown.Usages["VCPU"] > capacity {
				t.Errorf("%s exceeds its capacity: %s", storetest.UUID(i), got.body)
			}
			total += shown.Usages["VCPU"]
		}
		var held int64
		for i := range consumers {
			consumer := storetest.UUID(100 + i)
			if generation := generationOf(servers[1], consumer); generation != written[consumer] {
				t.Errorf("%s has generation %d after %d claims", consumer, generation, written[consumer])
			}
			held += amountOf(servers[0], consumer)
		}
		if total != held {
			t.Errorf("providers have %d in use, consumers %d", total, held)
		}
		changes := servers[0].query("admin", `{ changes(first: 1000, filter: {kinds: [CONSUMER]}) { nodes { key } } }`)
		if events := strings.Count(changes, `"key"`); events != codes[""] {
			t.Errorf("%d changes of consumers after %d claims", events, codes[""])
		}
	})
}

// claimOnce replaces the allocations of a consumer in the generation that it
// reads. It returns the code of the refusal, or the new generation.
func claimOnce(server doors, random *rand.Rand, consumer, provider string) (code string, generation int64) {
	var read struct {
		Generation *int64 `json:"consumer_generation"`
	}
	path := "/openstack/placement/allocations/" + consumer
	if err := json.Unmarshal([]byte(server.ask("admin", http.MethodGet, path, "").body), &read); err != nil {
		return err.Error(), 0
	}
	before := "null"
	if read.Generation != nil {
		before, generation = fmt.Sprint(*read.Generation), *read.Generation
	}
	body := fmt.Sprintf(`{"allocations":{%q:{"resources":{"VCPU":%d}}},"project_id":"red","user_id":"mia","consumer_type":"INSTANCE","consumer_generation":%s}`,
		provider, 1+random.IntN(6), before)
	got := server.ask("admin", http.MethodPut, path, body)
	if got.status == http.StatusNoContent {
		return "", generation + 1
	}
	var shown struct{ Errors []struct{ Code string } }
	if err := json.Unmarshal([]byte(got.body), &shown); err != nil || got.status != http.StatusConflict {
		return fmt.Sprint(got.status, got.body), 0
	}
	return shown.Errors[0].Code, 0
}

// generationOf returns the generation of a consumer in GraphQL, 0 without one.
func generationOf(server doors, consumer string) int64 {
	var shown struct {
		Data struct{ Consumer struct{ Generation int64 } }
	}
	_ = json.Unmarshal([]byte(server.query("admin", `{ consumer(uuid: "`+consumer+`") { generation } }`)), &shown)
	return shown.Data.Consumer.Generation
}

// amountOf returns the amount that a consumer uses, through the door.
func amountOf(server doors, consumer string) (sum int64) {
	var shown struct {
		Allocations map[string]struct{ Resources map[string]int64 }
	}
	_ = json.Unmarshal([]byte(server.ask("admin", http.MethodGet, "/openstack/placement/allocations/"+consumer, "").body), &shown)
	for _, of := range shown.Allocations {
		sum += of.Resources["VCPU"]
	}
	return sum
}
