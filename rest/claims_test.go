package rest_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

const (
	claimedProviders = 4
	claimedCapacity  = 10 // of each
	claimConsumers   = 6
	claimWriters     = 16
	claimRounds      = 25 // of each writer
)

// TestConcurrentClaimsLoseNothing claims with generations from 16 writers,
// through two servers on PostgreSQL. A claim is answered 204 or 409 with a code;
// no provider exceeds its capacity; each consumer has as many generations as
// claims were answered 204; and each is in GraphQL and in the changes when it is
// answered.
func TestConcurrentClaimsLoseNothing(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		first := storetest.Open(t, url)
		second := first // one server alone opens a database of SQLite
		if strings.HasPrefix(url, "postgres") {
			second = storetest.Open(t, url)
		}
		for i := range claimedProviders {
			inventory := placement.Inventory{ResourceClass: "VCPU", Total: claimedCapacity, MinUnit: 1,
				MaxUnit: claimedCapacity, StepSize: 1, AllocationRatio: 1}
			one := placement.NewProvider{Name: fmt.Sprint("p", i), UUID: new(storetest.UUID(i)),
				Inventories: []placement.Inventory{inventory}}
			if _, _, err := first.CreateResourceProviders(storetest.AsAdmin(),
				placement.NewProviders{Items: []placement.NewProvider{one}}); err != nil {
				t.Fatal(err)
			}
		}
		servers := []doors{newDoors(t, first), newDoors(t, second)}
		written, codes := claimConcurrently(t, servers)
		if codes[""] < claimRounds || codes["placement.concurrent_update"] == 0 ||
			codes["placement.undefined_code"] == 0 || len(codes) != 3 {
			t.Errorf("answers by code: %v", codes)
		}
		var held int64
		for i := range claimConsumers {
			consumer := storetest.UUID(100 + i)
			if generation := generationOf(servers[1], consumer); generation != written[consumer] {
				t.Errorf("%s has generation %d after %d claims", consumer, generation, written[consumer])
			}
			held += amountOf(servers[0], consumer)
		}
		// A server shows the claims of the other one after a short delay.
		if !patience.Until(t, 10*time.Second, func() bool { return usedOf(servers[0]) == held }) {
			t.Errorf("providers have %d in use, consumers %d", usedOf(servers[0]), held)
		}
		changes := servers[0].query("admin", `{ changes(first: 1000, filter: {kinds: [CONSUMER]}) { nodes { key } } }`)
		if events := strings.Count(changes, `"key"`); events != codes[""] {
			t.Errorf("%d changes of consumers after %d claims", events, codes[""])
		}
	})
}

// claimConcurrently claims from all writers, through one server after the other.
// It returns the number of stored claims by consumer, and of answers by code.
func claimConcurrently(t *testing.T, servers []doors) (written map[string]int64, codes map[string]int) {
	t.Helper()
	written, codes = map[string]int64{}, map[string]int{}
	var lock sync.Mutex
	var all sync.WaitGroup
	for writer := range claimWriters {
		all.Go(func() {
			random, server := rand.New(rand.NewPCG(1, uint64(writer))), servers[writer%len(servers)]
			for range claimRounds {
				consumer := storetest.UUID(100 + random.IntN(claimConsumers))
				code, generation := claimOnce(server, random, consumer, storetest.UUID(random.IntN(claimedProviders)))
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
	return written, codes
}

// usedOf returns the amount in use on all providers. Each is within its capacity.
func usedOf(server doors) (total int64) {
	server.t.Helper()
	for i := range claimedProviders {
		var shown struct{ Usages map[string]int64 }
		got := server.ask("admin", http.MethodGet,
			"/openstack/placement/resource_providers/"+storetest.UUID(i)+"/usages", "")
		if err := json.Unmarshal([]byte(got.body), &shown); err != nil || shown.Usages["VCPU"] > claimedCapacity {
			server.t.Errorf("%s exceeds its capacity: %s", storetest.UUID(i), got.body)
		}
		total += shown.Usages["VCPU"]
	}
	return total
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
	_ = json.Unmarshal([]byte(server.ask("admin", http.MethodGet,
		"/openstack/placement/allocations/"+consumer, "").body), &shown)
	for _, of := range shown.Allocations {
		sum += of.Resources["VCPU"]
	}
	return sum
}
