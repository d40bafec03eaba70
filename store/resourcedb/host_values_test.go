package resourcedb_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// addRack adds a resource, and with some chance its provider. It adds the values to
// the ones that viewers of projects, and an administrator, must see.
func addRack(t *testing.T, s *store.Store, random *rand.Rand, i int, wantOf map[string]map[int64][]string) {
	t.Helper()
	values, project := []string{"a", "b", "[", "long value"}[:random.IntN(5)], []string{"p", "q"}[random.IntN(2)]
	input := resource.Input{Type: []string{"physical:host", "OS::Nova::Flavor"}[random.IntN(2)], Name: fmt.Sprint(i),
		ProjectID: &project, UUID: new(storetest.UUID(i))}
	if random.IntN(3) == 0 {
		input.Visibility = new(access.Public)
	}
	if len(values) > 0 {
		text, err := json.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		input.Capabilities = append(pairs("rack", string(text)), pairs("serial", "1")...)
	}
	of, err := s.CreateResource(storetest.AsAdmin(), input)
	if err != nil {
		t.Fatal(err)
	}
	if random.IntN(4) == 0 { // it has no provider
		return
	}
	root := placement.NewProvider{Name: fmt.Sprint(i), UUID: new(storetest.UUID(i)), Resource: &of.UUID}
	isChild := random.IntN(4) == 0
	if isChild {
		root.ParentName = new("root")
	}
	if _, _, err := s.CreateResourceProvider(storetest.AsAdmin(), root); err != nil {
		t.Fatal(err)
	}
	for viewer, want := range wantOf {
		if len(values) > 0 && !isChild && (viewer == "" || viewer == project || input.Visibility != nil) {
			want[of.ID] = values
		}
	}
}

// TestHostValuesAreOfVisibleRoots compares the values of racks with the values
// that were written, for viewers who see some of the resources. Administrators and
// services alone see values of a private capability.
func TestHostValuesAreOfVisibleRoots(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s, err := store.Open(t.Context(),
			store.Options{URL: url, Resources: store.ResourceOptions{CapabilityDiscovery: resource.DiscoveryEveryone}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		random, admin := rand.New(rand.NewPCG(7, 41)), storetest.AsAdmin()
		wantOf := map[string]map[int64][]string{"p": {}, "q": {}, "": {}}
		if _, _, err := s.CreateResourceProvider(admin, placement.NewProvider{Name: "root"}); err != nil {
			t.Fatal(err)
		}
		for i := range 40 {
			addRack(t, s, random, i, wantOf)
		}
		for _, ofType := range []string{"physical:host", "OS::Nova::Flavor"} {
			if _, err := s.SetCapabilityVisibility(admin, ofType, "rack", false); err != nil {
				t.Fatal(err)
			}
		}
		for viewer, want := range wantOf {
			ctx := admin
			if viewer != "" {
				ctx = access.WithViewer(context.Background(),
					access.Viewer{UserID: "u", ProjectID: viewer, Roles: []string{access.RoleMember}})
			}
			var problems problem.Problems
			got, err := s.HostValues(ctx, "capability", "rack", &problems)
			if err != nil || len(problems) > 0 {
				t.Fatal(err, problems)
			}
			for _, values := range got {
				slices.Sort(values)
			}
			if !maps.EqualFunc(got, want, func(a, b []string) bool {
				return slices.Equal(a, slices.Sorted(slices.Values(b)))
			}) {
				t.Errorf("%q sees %v, want %v", viewer, got, want)
			}
			if _, err := s.HostValues(ctx, "capability", "serial", &problems); err != nil ||
				(len(problems) == 0) != (viewer == "") {
				t.Errorf("%q and a private capability: %v %v", viewer, problems, err)
			}
		}
	})
}
