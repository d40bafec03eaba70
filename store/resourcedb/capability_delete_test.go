package resourcedb_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/cadastre-dev/cadastre/audit"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/text"
)

// hostsWith creates hosts, gives most of them a capability, and returns their
// uuids and values.
func hostsWith(t *testing.T, s *store.Store, count int, capability string) (uuids []string, values map[string]string) {
	t.Helper()
	values = map[string]string{}
	for i := range count {
		input := resource.Input{Type: "physical:host", Name: fmt.Sprint("h", i), UUID: new(storetest.UUID(i)),
			Capabilities: []metadef.KeyValue{{Key: "kept", Value: "k"}}}
		if i%4 != 0 {
			values[*input.UUID] = fmt.Sprint("v", i%7)
			input.Capabilities = append(input.Capabilities,
				metadef.KeyValue{Key: capability, Value: values[*input.UUID]})
		}
		if _, err := s.CreateResource(storetest.AsAdmin(), input); err != nil {
			t.Fatal(err)
		}
		uuids = append(uuids, *input.UUID)
	}
	return uuids, values
}

// TestDeletingACapabilityInUse deletes a capability in use. Without force, the
// store refuses. With force, it removes every value, changes only the resources
// that had one, and returns the removed values.
func TestDeletingACapabilityInUse(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := storetest.AsAdmin()
		uuids, values := hostsWith(t, s, 40, "gone")
		before := revisionsOf(t, s, uuids)
		needsForce(t, s)
		if after := revisionsOf(t, s, uuids); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("a refusal moved revisions: %v, %v", before, after)
		}
		deletion, err := s.DeleteCapability(ctx, "physical:host", "gone", true)
		if err != nil {
			t.Fatal(err)
		}
		if deletion.RemovedCount != len(values) || len(deletion.Removed) != len(values) ||
			deletion.Capability.Name != "gone" {
			t.Errorf("%d values are removed: %+v", len(values), deletion)
		}
		found, err := s.ResourcesByUUID(ctx, uuids)
		if err != nil {
			t.Fatal(err)
		}
		removed := map[int64]string{}
		for _, one := range deletion.Removed {
			removed[one.ResourceID] = one.Value
		}
		for uuid, r := range found {
			want := before[uuid]
			if value, had := values[uuid]; had {
				want++
				if removed[r.ID] != value {
					t.Errorf("%s lost %q, the payload says %q", uuid, value, removed[r.ID])
				}
				tellsOfRemoval(t, s, r, value)
			}
			if r.Revision != want {
				t.Errorf("%s is at revision %d, not %d", uuid, r.Revision, want)
			}
		}
		if _, err := s.DeleteCapability(ctx, "physical:host", "gone", true); !errors.Is(err, problem.ErrNotFound) {
			t.Errorf("again: %v", err)
		}
	})
}

// needsForce checks that the store does not delete the capability without
// force.
func needsForce(t *testing.T, s *store.Store) {
	t.Helper()
	_, err := s.DeleteCapability(storetest.AsAdmin(), "physical:host", "gone", false)
	if refusal := new(problem.Refusal); !errors.Is(err, problem.ErrInUse) ||
		!errors.As(err, &refusal) || refusal.Field != "input.name" {
		t.Fatalf("without force: %v", err)
	}
}

// tellsOfRemoval checks that a resource and its last event show the lost value.
func tellsOfRemoval(t *testing.T, s *store.Store, r *resource.Resource, value string) {
	t.Helper()
	if r.UpdatedAt.Equal(r.CreatedAt) {
		t.Errorf("%s was updated at %v", r.UUID, r.UpdatedAt)
	}
	if told := lastEvent(t, s, r.UUID); !strings.Contains(told,
		fmt.Sprintf(`"capabilities":[{"key":"gone","value":%q}]`, value)) {
		t.Errorf("the audit log tells of %s: %s", r.UUID, told)
	}
}

// TestCapabilitiesAreDeletedWhileTheyAreSet sets capabilities of hosts and
// deletes them by force, concurrently. Each change of a resource must increment
// its revision once and leave one event that shows it.
func TestCapabilitiesAreDeletedWhileTheyAreSet(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := storetest.AsAdmin()
		uuids, _ := hostsWith(t, s, 12, "gone")
		var working sync.WaitGroup
		for worker := range 4 {
			working.Go(func() {
				random := rand.New(rand.NewPCG(uint64(worker), 41))
				for range 25 {
					var err error
					if worker == 0 {
						_, err = s.DeleteCapability(ctx, "physical:host", "gone", true)
					} else {
						_, err = s.SetCapabilities(ctx, uuids[random.IntN(12)],
							[]metadef.KeyValue{{Key: "gone", Value: fmt.Sprint(random.IntN(3))}}, nil)
					}
					if err != nil && !errors.Is(err, problem.ErrNotFound) {
						t.Errorf("worker %d: %v", worker, err)
					}
				}
			})
		}
		working.Wait()
		for uuid, revision := range revisionsOf(t, s, uuids) {
			changes := 0
			for _, event := range eventsOf(t, s, uuid) {
				if event.Before != nil {
					changes++
				}
			}
			if revision != changes+1 {
				t.Errorf("%s is at revision %d after %d changes", uuid, revision, changes)
			}
		}
	})
}

func revisionsOf(t *testing.T, s *store.Store, uuids []string) map[string]int {
	t.Helper()
	found, err := s.ResourcesByUUID(storetest.AsAdmin(), uuids)
	if err != nil || len(found) != len(uuids) {
		t.Fatalf("%d of %d resources, %v", len(found), len(uuids), err)
	}
	revisions := map[string]int{}
	for uuid, r := range found {
		revisions[uuid] = r.Revision
	}
	return revisions
}

func eventsOf(t *testing.T, s *store.Store, uuid string) []*audit.Event {
	t.Helper()
	events, err := s.AuditEvents(storetest.AsAdmin(), audit.Filter{Kind: new(audit.KindResource), Key: &uuid},
		page.Request{First: new(page.MaxSize)})
	if err != nil {
		t.Fatal(err)
	}
	return events.Items
}

// lastEvent returns the fields that the newest event of a resource shows.
func lastEvent(t *testing.T, s *store.Store, uuid string) string {
	t.Helper()
	var before text.JSON
	for _, event := range eventsOf(t, s, uuid) {
		if event.Action == "deleteCapability" {
			before = *event.Before
		}
	}
	return string(before)
}
