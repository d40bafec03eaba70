package rest_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/web"
)

// TestAnswersOfDoorsAreBounded reads every list within few bytes, and after that
// without a limit.
func TestAnswersOfDoorsAreBounded(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		if err := s.FillEmpty(storetest.AsAdmin(), randomWorld(rand.New(rand.NewPCG(3, 4)))); err != nil {
			t.Fatal(err)
		}
		const bytes = 600
		narrow, wide := newDoorsWithin(t, s, web.Limits{AnswerBytes: bytes}, true), newDoors(t, s)
		for _, path := range []string{
			"/placement/resource_providers", "/placement/traits", "/placement/resource_classes",
			"/placement/allocation_candidates?resources=VCPU:1",
			"/placement/usages?project_id=red&consumer_type=all",
			"/placement/resource_providers/" + storetest.UUID(200) + "/allocations",
			"/image/v2/metadefs/namespaces", "/image/v2/metadefs/resource_types", "/share/v2/shares?all_tenants=1",
			"/share/v2/snapshots/detail?all_tenants=1",
			"/reservation/v1/os-hosts/properties?all=1&detail=1",
		} {
			all := wide.ask("admin", http.MethodGet, "/openstack"+path, "")
			got := narrow.ask("admin", http.MethodGet, "/openstack"+path, "")
			if len(all.body) <= bytes {
				if got.status != all.status {
					t.Errorf("%s: %d %s, a short answer", path, got.status, got.body)
				}
				continue
			}
			if all.status != http.StatusOK || got.status != http.StatusBadRequest ||
				!strings.Contains(got.body, fmt.Sprintf("exceed %d bytes", bytes)) {
				t.Errorf("%s: %d of %d bytes, within %d bytes %d %s", path, all.status,
					len(all.body), bytes, got.status, got.body)
			}
		}
		if got := narrow.ask("admin", http.MethodGet,
			"/openstack/placement/allocation_candidates?resources=VCPU:1&limit=1", ""); got.status != http.StatusOK {
			t.Errorf("with a limit: %d %s", got.status, got.body)
		}
	})
}

// TestItemsBeyondAnAnswerAreNotMade asks for 16,384 candidates and for 5,000
// allocations, where an answer can have few. It counts the memory of the process,
// so no other test may run.
func TestItemsBeyondAnAnswerAreNotMade(t *testing.T) {
	s := storetest.Open(t, storetest.SQLite(t))
	stock := func(class string, total int32) []placement.Inventory {
		return []placement.Inventory{{ResourceClass: class, Total: total, MinUnit: 1, MaxUnit: total, StepSize: 1,
			AllocationRatio: 1}}
	}
	pool := storetest.UUID(1)
	items := []placement.NewProvider{{Name: "host"}, {Name: "pool", UUID: &pool, Inventories: stock("DISK_GB", 5000)}}
	for i := range 4 {
		items = append(items, placement.NewProvider{Name: fmt.Sprint("device", i), ParentName: &items[0].Name,
			Inventories: stock("VGPU", 8)})
	}
	_, _, err := s.CreateResourceProviders(storetest.AsAdmin(), placement.NewProviders{Items: items, Atomic: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		var claim placement.Claim
		for k := range 1000 {
			claim.Consumers = append(claim.Consumers, placement.ConsumerClaim{UUID: storetest.UUID(1000*i + k),
				ProjectID: "p", UserID: "u", Allocations: []placement.ProviderAllocation{
					{Provider: pool, Resources: []placement.Amount{{ResourceClass: "DISK_GB", Amount: 1}}}}})
		}
		if _, err := s.SetAllocations(storetest.AsAdmin(), claim); err != nil {
			t.Fatal(err)
		}
	}
	candidates := "allocation_candidates?group_policy=none"
	for i := range 7 {
		candidates += fmt.Sprintf("&resources%d=VGPU:1", i)
	}
	d := newDoorsWithin(t, s, web.Limits{AnswerBytes: 4096}, true)
	for _, path := range []string{candidates, "resource_providers/" + pool + "/allocations"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := d.ask("admin", http.MethodGet, "/openstack/placement/"+path, "")
		runtime.ReadMemStats(&after)
		used := after.TotalAlloc - before.TotalAlloc
		if got.status != http.StatusBadRequest || !strings.Contains(got.body, "exceed 4096 bytes") || used > 4<<20 {
			t.Errorf("%s: %d %s with %d bytes of memory", path, got.status, got.body, used)
		}
	}
}

// reading is a client that calls during with each part that it gets.
type reading struct {
	*httptest.ResponseRecorder
	during func()
}

func (r reading) Write(part []byte) (int, error) {
	r.during()
	return r.ResponseRecorder.Write(part)
}

// TestListsOfDoorsPassTheGates has clients read a long list until one waited for
// its turn. The list counts as unread while a client reads it.
func TestListsOfDoorsPassTheGates(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite(t))
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("CUSTOM_%0200d", i))
	}
	if _, _, err := s.EnsureTraits(storetest.AsAdmin(), names); err != nil {
		t.Fatal(err)
	}
	d := newDoors(t, s)
	metrics := func() string { return d.ask("admin", http.MethodGet, "/metrics", "").body }
	unread := ""
	d.serve(reading{httptest.NewRecorder(), func() {
		for line := range strings.Lines(metrics()) {
			if strings.HasPrefix(line, "cadastre_unread_bytes_in_use ") {
				unread = cmp.Or(unread, line)
			}
		}
	}}, sent{"admin", http.MethodGet, "/openstack/placement/traits", "",
		http.Header{"Openstack-Api-Version": {"placement 1.39"}}})
	list := d.ask("admin", http.MethodGet, "/openstack/placement/traits", "")
	if want := fmt.Sprintf("cadastre_unread_bytes_in_use %d\n", len(list.body)); unread != want {
		t.Errorf("while a client reads: %s, want %s", unread, want)
	}
	if !patience.Until(t, 30*time.Second, func() bool {
		var clients sync.WaitGroup
		for range 50 {
			clients.Go(func() { d.ask("admin", http.MethodGet, "/openstack/placement/traits", "") })
		}
		clients.Wait()
		return strings.Contains(metrics(), "cadastre_readings_waits_total{")
	}) {
		t.Error("no list waits for its turn")
	}
}

// TestPagesOfSharesGoOn reads more shares than a page can have, by offsets.
func TestPagesOfSharesGoOn(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		const shares = 2100
		var content store.Content
		for i := range shares {
			content.Resources = append(content.Resources,
				store.ResourceRecord{UUID: storetest.UUID(i), Type: "OS::Manila::Share", Name: fmt.Sprint("s", i),
					ProjectID: "red", Visibility: "PRIVATE"})
		}
		if err := s.FillEmpty(storetest.AsAdmin(), content); err != nil {
			t.Fatal(err)
		}
		served, seen := newDoors(t, s), map[string]bool{}
		for offset := 0; ; offset += 700 {
			got := served.ask("red", http.MethodGet,
				fmt.Sprintf("/openstack/share/v2/shares?limit=700&offset=%d", offset), "")
			names := valuesIn(got.body, []string{"name"})
			for _, name := range names {
				seen[name] = true
			}
			if want := min(700, shares-offset); got.status != http.StatusOK || len(names) != want {
				t.Fatalf("offset %d: %d, %d shares, want %d", offset, got.status, len(names), want)
			}
			if len(names) == 0 {
				break
			}
		}
		if len(seen) != shares {
			t.Errorf("%d shares, want %d", len(seen), shares)
		}
		if got := served.ask("red", http.MethodGet, "/openstack/share/v2/shares?offset=100001",
			""); got.status != http.StatusBadRequest {
			t.Errorf("a long offset: %d", got.status)
		}
	})
}
