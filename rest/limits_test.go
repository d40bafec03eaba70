package rest_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

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
