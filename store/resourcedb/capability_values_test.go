package resourcedb_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestAllValuesOfCapabilitiesAreReached pages through the values of several
// capabilities together, in both directions and with every page size, and
// compares them with the sorted values. Some long values share their first 64
// characters.
func TestAllValuesOfCapabilitiesAreReached(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx, random := storetest.AsAdmin(), rand.New(rand.NewPCG(6, 12))
		want := map[int64][]string{}
		for i, count := range []int{120, 7, 1} {
			all := randomValues(random, count+3)
			host, err := s.CreateResource(ctx, resource.Input{Type: "physical:host", Name: fmt.Sprint(i)})
			if err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("c%d", i)
			for part := range slices.Chunk(all, 8) { // a value holds 4096 characters
				text, err := json.Marshal(part)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.SetCapabilities(ctx, host.UUID, pairs(name, string(text)), nil); err != nil {
					t.Fatal(err)
				}
				if host, err = s.CreateResource(ctx,
					resource.Input{Type: "physical:host", Name: fmt.Sprint(i)}); err != nil {
					t.Fatal(err)
				}
			}
			named, err := s.CapabilitiesNamed(ctx, []int64{host.TypeID}, name)
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(all)
			want[named[host.TypeID].Capability.ID] = all
		}
		var ids []int64
		for id := range want {
			ids = append(ids, id)
		}
		for range 40 {
			startsWith := []string{"", "", "a", "long long", strings.Repeat("a", 70), "none"}[random.IntN(6)]
			size, backward := 1+random.IntN(30), random.IntN(2) == 0
			for _, id := range ids {
				wanted := slices.DeleteFunc(slices.Clone(want[id]), func(value string) bool {
					return !strings.HasPrefix(value, startsWith)
				})
				walked := walkValues(t, s, ids, id, startsWith, size, backward)
				if !slices.Equal(walked, wanted) {
					t.Fatalf("values that start with %q by %d, backward %v: got %d\n%q\nwant %d\n%q", startsWith, size,
						backward, len(walked), walked, len(wanted), wanted)
				}
				counts, err := s.CountCapabilityValues(ctx, ids, startsWith)
				if err != nil || counts[id] != len(wanted) {
					t.Fatalf("%d values, want %d, error %v", counts[id], len(wanted), err)
				}
			}
		}
	})
}

// randomValues returns count different values, unsorted.
func randomValues(random *rand.Rand, count int) []string {
	values := map[string]bool{"": true, "é": true, "z": true}
	for len(values) < count {
		values[strings.Repeat([]string{"a", "long ", "ü"}[random.IntN(3)], random.IntN(80))+fmt.Sprint(random.IntN(50))] = true
	}
	return slices.Collect(maps.Keys(values))
}

// walkValues pages through the values of several capabilities and returns the
// values of one.
func walkValues(t *testing.T, s *store.Store, ids []int64, id int64,
	startsWith string, size int, backward bool) []string {
	t.Helper()
	ctx, request := storetest.AsAdmin(), page.Request{First: &size}
	if backward {
		request = page.Request{Last: &size}
	}
	var walked []string
	for n := 0; ; n++ {
		pages, err := s.CapabilityValues(ctx, ids, startsWith, request)
		if err != nil {
			t.Fatal(err)
		}
		behind, err := s.CapabilityValuesBehind(ctx, ids, startsWith, request)
		if err != nil || behind[id] != (n > 0) {
			t.Fatalf("values behind page %d: %v, error %v", n, behind[id], err)
		}
		values := lists.Map(pages[id].Items, func(value *resource.CapabilityValue) string { return value.Value })
		if backward {
			walked = append(values, walked...)
		} else {
			walked = append(walked, values...)
		}
		if !pages[id].HasMore {
			return walked
		}
		if backward {
			request.Before = &pages[id].Cursors[0]
		} else {
			request.After = &pages[id].Cursors[len(values)-1]
		}
	}
}
