package resourcedb_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestConcurrentMovesMakeNoCircle moves resources of one tree below each other
// concurrently.
func TestConcurrentMovesMakeNoCircle(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := storetest.AsAdmin()
		var uuids []string
		for i := range 8 {
			r, err := s.CreateResource(ctx, resource.Input{Type: "physical:host", Name: fmt.Sprint("r", i)})
			if err != nil {
				t.Fatal(err)
			}
			uuids = append(uuids, r.UUID)
		}
		var moving sync.WaitGroup
		for mover := range 8 {
			moving.Go(func() {
				random := rand.New(rand.NewPCG(uint64(mover), 5))
				for range 20 {
					of, below := uuids[random.IntN(8)], uuids[random.IntN(8)]
					_, err := s.UpdateResource(ctx,
						resource.Patch{UUID: of, Parent: metadef.Change[*string]{Set: true, Value: &below}})
					if err != nil && !errors.Is(err, problem.ErrInvalidInput) {
						t.Errorf("move: %v", err)
					}
				}
			})
		}
		moving.Wait()
		page, err := s.Resources(ctx, resource.Filter{}, page.Order{Field: "NAME"}, page.Request{})
		if err != nil {
			t.Fatal(err)
		}
		parent := map[int64]int64{}
		for _, r := range page.Items {
			parent[r.ID] = r.ParentID
		}
		for id := range parent {
			steps := 0
			for at := id; at != 0; at = parent[at] {
				if steps++; steps > len(parent) {
					t.Fatalf("the resource %d is above itself", id)
				}
			}
		}
	})
}

// TestDeletingRefusesWhatIsInUse also checks that deleting a resource deletes
// everything that belongs to it and updates the counts of its capabilities.
func TestDeletingRefusesWhatIsInUse(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := storetest.AsAdmin()
		host, err := s.CreateResource(ctx, resource.Input{
			Type: "physical:host", Name: "host", Metadata: pairs("a", "1"),
			Capabilities: pairs("arch", "x86_64"), Tags: []string{"t"},
		})
		if err != nil {
			t.Fatal(err)
		}
		child, err := s.CreateResource(ctx, resource.Input{Type: "physical:host", Name: "child", Parent: &host.UUID})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.DeleteResource(ctx, host.UUID, nil); !errors.Is(err, problem.ErrInUse) {
			t.Errorf("a parent: %v", err)
		}
		for _, uuid := range []string{child.UUID, host.UUID} {
			if _, err := s.DeleteResource(ctx, uuid, nil); err != nil {
				t.Error(err)
			}
		}
		left, err := s.Capabilities(ctx, []int64{host.TypeID}, true)
		if err != nil || len(left[host.TypeID]) > 0 {
			t.Errorf("capabilities are left: %v, error %v", left, err)
		}
	})
}

// TestExplicitRegistration checks that the store refuses unregistered names.
func TestExplicitRegistration(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s, err := store.Open(t.Context(), store.Options{
			URL: url, Resources: store.ResourceOptions{CapabilityRegistration: resource.RegisterExplicitly,
				CapabilityDefaultVisibility: access.Public},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		ctx := storetest.AsAdmin()
		input := resource.Input{Type: "physical:host", Name: "host", Capabilities: pairs("arch", "x86_64")}
		if _, err := s.CreateResource(ctx, input); !errors.Is(err, problem.ErrInvalidInput) {
			t.Errorf("a name that is not registered: %v", err)
		}
		made, err := s.CreateCapability(ctx, "physical:host", "arch", nil)
		if err != nil || made.Private {
			t.Fatalf("%v, error %v", made, err)
		}
		host, err := s.CreateResource(ctx, input)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.SetCapabilities(ctx, host.UUID, pairs("gpu", "1"),
			nil); !errors.Is(err, problem.ErrInvalidInput) {
			t.Errorf("a name that is not registered: %v", err)
		}
	})
}

// TestCountsFollowConcurrentWrites has many hosts change the same capability
// concurrently. The stored counts must equal the real ones.
func TestCountsFollowConcurrentWrites(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := storetest.AsAdmin()
		values := []string{"x86_64", "aarch64", `["x86_64", "aarch64"]`, `["riscv64"]`}
		want := map[string]int{}
		var mu sync.Mutex
		var writing sync.WaitGroup
		var typeID int64
		for writer := range 8 {
			writing.Go(func() {
				random := rand.New(rand.NewPCG(uint64(writer), 9))
				host, err := s.CreateResource(ctx, resource.Input{Type: "physical:host", Name: fmt.Sprint(writer)})
				if err != nil {
					t.Error(err)
					return
				}
				last := ""
				for range 20 {
					last = values[random.IntN(len(values))]
					if _, err := s.SetCapabilities(ctx, host.UUID, pairs("arch", last), nil); err != nil {
						t.Error(err)
					}
				}
				members, _ := resource.CapabilityMembers(last)
				mu.Lock()
				defer mu.Unlock()
				typeID = host.TypeID
				for _, member := range members {
					want[member]++
				}
			})
		}
		writing.Wait()
		named, err := s.CapabilitiesNamed(ctx, []int64{typeID}, "arch")
		if err != nil {
			t.Fatal(err)
		}
		id := named[typeID].Capability.ID
		counted, err := s.CapabilityValues(ctx, []int64{id}, "", page.Request{})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, value := range counted[id].Items {
			got[value.Value] = value.ResourceCount
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("the counts are %v, want %v", got, want)
		}
	})
}
