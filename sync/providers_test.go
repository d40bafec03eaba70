package sync_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/demo/demotest"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/sync"
)

const (
	root  = "11111111-0000-4000-8000-000000000001" // the hypervisor of newFake
	child = "11111111-0000-4000-8000-000000000002"
	other = "11111111-0000-4000-8000-000000000003" // of no hypervisor
)

// provide gives the fake a provider.
func (f *fake) provide(uuid, name, parent string, total int, traits ...string) {
	const list = "/placement/resource_providers"
	one := object{"uuid": uuid, "name": name, "generation": 1, "parent_provider_uuid": nil}
	if before := f.objects[list+"/"+uuid]; before != nil {
		one["generation"] = before["generation"].(int) + 1
	}
	if parent != "" {
		one["parent_provider_uuid"] = parent
	}
	f.lists[list] = append(slices.DeleteFunc(f.lists[list], func(row object) bool { return row["uuid"] == uuid }), one)
	if f.objects == nil {
		f.objects = map[string]object{}
	}
	f.objects[list+"/"+uuid] = one
	f.objects[list+"/"+uuid+"/inventories"] = object{"inventories": object{"CUSTOM_GPU": object{"total": total,
		"reserved": 0, "min_unit": 1, "max_unit": 2, "step_size": 1,
		"allocation_ratio": 16.3}}}
	f.objects[list+"/"+uuid+"/traits"] = object{"traits": append([]string{}, traits...)}
	f.objects[list+"/"+uuid+"/aggregates"] = object{"aggregates": []string{other}}
}

// lose takes a provider out of the list of the fake, and its own page if it is
// deleted.
func (f *fake) lose(uuid string, isDeleted bool) {
	const list = "/placement/resource_providers"
	f.lists[list] = slices.DeleteFunc(f.lists[list], func(row object) bool { return row["uuid"] == uuid })
	if isDeleted {
		delete(f.objects, list+"/"+uuid)
	}
}

// providers returns the providers with inventories of the class CUSTOM_GPU.
func (s *syncing) providers() map[string]string {
	s.t.Helper()
	hosts := map[string]string{}
	origins, err := client.ListOrigins(s.t.Context(), s.server, "physical:host", new(1000), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, node := range origins.Resources.Nodes {
		if node.Origin != nil && node.Provider != nil {
			hosts[node.Provider.Uuid] = " is the host " + node.Origin.ForeignId
		}
	}
	found := map[string]string{}
	for one, err := range client.Providers(s.t.Context(), s.server, nil, nil, new(1000)) {
		if err != nil {
			s.t.Fatal(err)
		}
		for _, has := range one.Inventories {
			if has.ResourceClass == "CUSTOM_GPU" {
				found[one.Uuid] = fmt.Sprint(one.Name, one.Root.Uuid == one.Uuid, has.Total, has.MaxUnit,
					has.AllocationRatio == 16.3, one.Traits, one.Aggregates, hosts[one.Uuid])
			}
		}
	}
	return found
}

// follow makes a pass over the providers, and compares its numbers and the
// providers.
func (s *syncing) follow(when string, counts client.SyncCounts, refused, deleted int,
	want map[string]string) sync.Result {
	s.t.Helper()
	result, err := s.pass("providers")
	if err != nil || result.SyncCounts != counts || result.Refused != refused || result.Deleted != deleted {
		s.t.Errorf("%s: %+v, %v, want %+v, %d, %d", when, result, err, counts, refused, deleted)
	}
	if got := s.providers(); !maps.Equal(got, want) {
		s.t.Errorf("%s: %v, want %v", when, got, want)
	}
	return result
}

// TestProvidersFollowHosts syncs a tree of a host, and a provider of no host.
func TestProvidersFollowHosts(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newSyncing(t, f)
	s.compares = true
	f.provide(child, "child", root, 4, "CUSTOM_FAST", "HW_FROM_THE_FUTURE")
	f.provide(root, "compute", "", 8)
	f.provide(other, "pool", "", 2)
	if _, err := s.pass("hypervisors"); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		root:  "computetrue 8 2 true [] [" + other + "] is the host " + root,
		child: "childfalse 4 2 true [CUSTOM_FAST] [" + other + "]",
		other: "pooltrue 2 2 true [] [" + other + "]",
	}
	own := s.server
	s.compares, s.server = false, failing{own, "CreateResourceProviders"}
	if result, err := s.pass("providers"); err == nil || result.Created != 0 {
		t.Errorf("a request that fails: %+v, %v", result, err)
	}
	s.compares, s.server = true, own
	result := s.follow("first", client.SyncCounts{Created: 3}, 0, 0, want)
	left := []sync.LeftOut{{ID: child, Why: "the server does not know the trait HW_FROM_THE_FUTURE"}}
	if !slices.Equal(result.LeftOut, left) {
		t.Errorf("left out: %v", result.LeftOut)
	}
	s.follow("again", client.SyncCounts{Unchanged: 3}, 0, 0, want)
	f.provide(child, "slow", "", 5)
	f.provide(other, "pool", root, 2)
	want[child], want[other] = "slowtrue 5 2 true [] ["+other+"]", "poolfalse 2 2 true [] ["+other+"]"
	s.follow("changed", client.SyncCounts{Updated: 2, Unchanged: 1}, 0, 0, want)
	f.provide(child, "compute", "", 5)
	f.provide(root, "slow", "", 8)
	want[child], want[root] = "computetrue 5 2 true [] ["+other+"]", "slowtrue 8 2 true [] ["+other+"] is the host "+root
	s.follow("names change places", client.SyncCounts{Updated: 2, Unchanged: 1}, 0, 0, want)
	f.lose(other, true)
	f.provide(first, "pool", root, 3)
	want[other], want[first] = strings.Replace(want[other], "pool", other, 1), "poolfalse 3 2 true [] ["+other+"]"
	s.follow("made again with its name", client.SyncCounts{Created: 1, Unchanged: 2, Absent: 1}, 1, 0, want)
}

// TestARegionKeepsItsProviders syncs two regions that name the same services, on
// both databases. The region that was read first keeps the provider of a host until
// the host is absent there.
func TestARegionKeepsItsProviders(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		f := newFake()
		f.isTwin = true
		f.provide(root, "compute", "", 8)
		address := demotest.ServeStore(t, demotest.Open(t, url))
		one := &syncing{t: t, cloud: f.start(t), server: client.New(address, client.WithToken(demo.AdminToken)),
			ctx: t.Context(), compares: true}
		two := &syncing{t: t, cloud: one.cloud.In("two"), server: one.server, ctx: t.Context(), compares: true}
		hosts := func(of ...*syncing) {
			t.Helper()
			for _, s := range of {
				if _, err := s.pass("hypervisors"); err != nil {
					t.Fatal(err)
				}
			}
		}
		hosts(one, two)
		want := map[string]string{root: "computetrue 8 2 true [] [" + other + "] is the host " + root}
		hostOf := func() string {
			t.Helper()
			for node, err := range client.ResourcesOfOrigins(t.Context(), one.server, "physical:host", new(1000)) {
				if err != nil {
					t.Fatal(err)
				}
				if node.Provider != nil && node.Provider.Uuid == root {
					return node.Origin.Region
				}
			}
			return ""
		}
		one.follow("first", client.SyncCounts{Created: 1}, 0, 0, want)
		for range 2 {
			result := two.follow("the other region", client.SyncCounts{Unchanged: 1}, 0, 0, want)
			if len(result.LeftOut) != 1 || result.LeftOut[0].ID != root || hostOf() != "one" {
				t.Errorf("the other region: %+v, linked to the host of the region %s", result, hostOf())
			}
			one.follow("again", client.SyncCounts{Unchanged: 1}, 0, 0, want)
		}
		all := f.lists[hypervisors]
		f.lists[hypervisors] = []object{}
		hosts(one)
		f.lists[hypervisors] = all
		hosts(two)
		result := two.follow("absent in the first region", client.SyncCounts{Updated: 1}, 0, 0, want)
		if len(result.LeftOut) != 0 || hostOf() != "two" {
			t.Errorf("absent in the first region: %+v, linked to the host of the region %s", result, hostOf())
		}
		hosts(one)
		one.follow("back in the first region", client.SyncCounts{Unchanged: 1}, 0, 0, want)
	})
}

// TestAProviderThatAPersonLinkedStays has a host that a person links to another
// provider, which Placement does not have.
func TestAProviderThatAPersonLinkedStays(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newSyncing(t, f)
	s.compares, s.allow = true, true
	s.mustPass("hypervisors")
	s.person(fmt.Sprintf(`createResourceProvider(input: {name: "mine", uuid: %q, resource: %q,
		inventories: [{resourceClass: "VCPU", total: 1}]})`, child, root))
	f.provide(root, "compute", "", 8)
	s.follow("linked by a person", client.SyncCounts{Created: 1}, 0, 0,
		map[string]string{root: "computetrue 8 2 true [] [" + other + "]"})
	s.follow("again", client.SyncCounts{Unchanged: 1}, 0, 0,
		map[string]string{root: "computetrue 8 2 true [] [" + other + "]"})
}

// TestAbsentProvidersAreDeletedWithProof has providers that are deleted, in use,
// missing in the list, and of no host.
func TestAbsentProvidersAreDeletedWithProof(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newSyncing(t, f)
	s.compares = true
	f.provide(root, "compute", "", 8)
	f.provide(child, "child", root, 4)
	f.provide(other, "pool", "", 2)
	if _, err := s.pass("hypervisors"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.pass("providers"); err != nil {
		t.Fatal(err)
	}
	all := s.providers()
	s.allow = true
	f.lose(child, false)
	s.follow("a list without a provider", client.SyncCounts{Unchanged: 2, Absent: 1}, 0, 0, all)
	s.allow = false
	f.lose(child, true)
	s.follow("beyond the limit", client.SyncCounts{Unchanged: 2, Absent: 1}, 1, 0, all)
	s.keeps("providers", 1)
	s.allow = true
	f.lose(root, true)
	f.lose(other, true)
	f.provide("11111111-0000-4000-8000-000000000009", "another", "", 1)
	uses := []*client.ResourceAmountInput{{ResourceClass: "CUSTOM_GPU", Amount: 1}}
	claim := &client.ConsumerAllocationsInput{Uuid: root, ProjectId: "p", UserId: "u",
		Allocations: []*client.ProviderAllocationInput{{Provider: child, Resources: uses}}}
	if _, err := client.SetAllocations(t.Context(), s.server,
		&client.SetAllocationsInput{Consumers: []*client.ConsumerAllocationsInput{claim}}); err != nil {
		t.Fatal(err)
	}
	all["11111111-0000-4000-8000-000000000009"] = "anothertrue 1 2 true [] [" + other + "]"
	s.follow("in use", client.SyncCounts{Created: 1, Absent: 2}, 2, 0, all)
	s.keeps("providers", 0)
	if _, err := client.DeleteAllocations(t.Context(), s.server,
		&client.DeleteAllocationsInput{Consumer: root}); err != nil {
		t.Fatal(err)
	}
	delete(all, root)
	delete(all, child)
	s.follow("unused", client.SyncCounts{Unchanged: 1, Absent: 2}, 0, 2, all)
}
