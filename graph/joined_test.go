package graph_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestOneUUIDIsOneThing queries random resources and consumers with the same
// UUIDs as every viewer. Each must show the other as a look-up by UUID does,
// and providers and their resources must refer to each other.
func TestOneUUIDIsOneThing(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		random := rand.New(rand.NewPCG(31, 37))
		s := openFilled(t, store.Options{URL: url}, joinedContent(random))
		executor := executorOf(t, s)
		seen := map[string]int{}
		for viewer := range viewers {
			ask := func(query string) map[string]any {
				response := executor.Execute(access.WithViewer(t.Context(), viewers[viewer]),
					&graphql.RawParams{Query: query})
				var data map[string]any
				if err := json.Unmarshal(response.Data, &data); err != nil {
					t.Fatal(err)
				}
				return data
			}
			for i := range joinedThings {
				found := ask(fmt.Sprintf(`fragment R on Resource { uuid name consumer { ...C } allocations { ...A } provider { uuid name resource { uuid } } }
					fragment C on Consumer { uuid projectId generation allocations { ...A } }
					fragment A on Allocation { used resourceClass provider { uuid } consumer { uuid resource { uuid } } }
					{ resource(uuid: %[1]q) { ...R } consumer(uuid: %[1]q) { ...C resource { ...R } } }`,
					joinedUUID(i)))
				resource, _ := found["resource"].(map[string]any)
				consumer, _ := found["consumer"].(map[string]any)
				if consumer != nil {
					if !reflect.DeepEqual(consumer["resource"], found["resource"]) {
						t.Errorf("%s: the resource of consumer %d is %v, a look-up answers %v", viewer, i,
							consumer["resource"], found["resource"])
					}
					delete(consumer, "resource")
				}
				if resource == nil {
					seen["no resource"]++
					continue
				}
				var used any = []any{}
				if consumer != nil {
					used = consumer["allocations"]
				}
				if !reflect.DeepEqual(resource["consumer"], found["consumer"]) ||
					!reflect.DeepEqual(resource["allocations"], used) {
					t.Errorf("%s: resource %d as a consumer is %v with %v, a look-up answers %v", viewer,
						i, resource["consumer"], resource["allocations"], found["consumer"])
				}
				if provider, _ := resource["provider"].(map[string]any); provider != nil {
					if back, _ := provider["resource"].(map[string]any); back["uuid"] != joinedUUID(i) {
						t.Errorf("%s: the provider of resource %d leads to %v", viewer, i, back)
					}
					seen["provider"]++
				}
				seen[fmt.Sprint("a resource, a consumer: ", consumer != nil)]++
			}
		}
		if len(seen) < 4 {
			t.Errorf("not every case came up: %v", seen)
		}
	})
}

// joinedThings is the number of UUIDs in the test.
const joinedThings = 40

func joinedUUID(i int) string { return fmt.Sprintf("aaaaaaaa-0000-4000-8000-%012d", i) }

// joinedContent returns resources, consumers and providers of several projects,
// some of them with the same UUIDs.
func joinedContent(random *rand.Rand) store.Content {
	content := fixture()
	var claims []placement.ConsumerClaim
	for i := range joinedThings {
		project := []string{"demo", "elsewhere", "vault"}[random.IntN(3)]
		if random.IntN(3) > 0 {
			visibility := []access.Visibility{access.Public, access.Private}[random.IntN(2)]
			content.Resources = append(content.Resources,
				store.ResourceRecord{UUID: joinedUUID(i), Type: "OS::Nova::Instance",
					Name: fmt.Sprint("server ", i), ProjectID: project, Visibility: visibility})
			if random.IntN(4) == 0 {
				content.Providers = append(content.Providers,
					placement.Provider{UUID: joinedUUID(i), Name: fmt.Sprint("of ", i), Resource: joinedUUID(i)})
			}
		}
		if random.IntN(3) > 0 {
			if random.IntN(4) == 0 {
				project = "vault"
			}
			claims = append(claims, vcpusOf(joinedUUID(i), project, "mel", 1))
		}
	}
	content.Providers[0].Inventories[0].Total, content.Providers[0].Inventories[0].Capacity = 1000, 1000
	content.Claims = []placement.Claim{{Consumers: claims}}
	return content
}
