package placementdb_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/placementdb"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// deletions describes outcomes as placed does.
func deletions(outcomes []store.ConsumerOutcome) string {
	all := make([]placementdb.PlacedOutcome, len(outcomes))
	for i, outcome := range outcomes {
		all[i].RowOutcome = outcome
	}
	return placed(all)
}

// deleteAll deletes the allocations of consumers.
func deleteAll(s *store.Store, atomic, dryRun bool, consumers ...int) ([]store.ConsumerOutcome, error) {
	deletion := placement.Deletion{Atomic: atomic, DryRun: dryRun}
	for _, consumer := range consumers {
		deletion.Consumers = append(deletion.Consumers, storetest.UUID(consumer))
	}
	return s.DeleteAllocationsForMany(storetest.AsAdmin(), deletion)
}

// TestManyAreDeletedOrNone deletes allocations of consumers. One of them has
// none.
func TestManyAreDeletedOrNone(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		hotProviders(t, s, 2)
		if err := setVCPUs(storetest.AsAdmin(), s, vcpus("p", 100, 0, 1), vcpus("q", 101, 1, 2)); err != nil {
			t.Fatal(err)
		}
		exist := func(want ...bool) {
			t.Helper()
			for i, is := range want {
				if (consumerOn(t, s, 100+i) != nil) != is {
					t.Errorf("consumer %d exists: %v", 100+i, !is)
				}
			}
		}
		_, err := deleteAll(s, true, false, 100, 102, 101)
		if problems := problem.InError(err); !errors.Is(err, problem.ErrNotFound) || len(problems) != 1 ||
			problems[0].Field != "input.consumers[1]" {
			t.Errorf("all or none: %v", err)
		}
		exist(true, true)
		outcomes, err := deleteAll(s, false, true, 100, 102)
		if err != nil || outcomes[0].Row == nil || outcomes[1].Row != nil {
			t.Errorf("the dry run: %s, %v", deletions(outcomes), err)
		}
		exist(true, true)
		outcomes, err = deleteAll(s, false, false, 100, 102)
		if err != nil ||
			deletions(outcomes) != on(1, 0)+"; input.consumers[1] consumer "+storetest.UUID(102)+" has no allocations" {
			t.Errorf("each: %s, %v", deletions(outcomes), err)
		}
		exist(false, true)
		if outcomes, err = deleteAll(s, true, false, 101); err != nil || deletions(outcomes) != on(2, 1) {
			t.Errorf("the last one: %s, %v", deletions(outcomes), err)
		}
		exist(false, false)
		isCounted(t, s)
	})
}

// TestRacingDeletions deletes overlapping sets of consumers from many clients,
// while others claim again: each deletion is of all or none.
func TestRacingDeletions(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, servers []*store.Store) {
		hotProviders(t, servers[0], 4)
		var deleted, refused atomic.Int64
		var working sync.WaitGroup
		for client := range 8 {
			working.Go(func() {
				s := servers[client%len(servers)]
				for round := range 10 {
					pair := []int{100 + (client+round)%4, 100 + (client+round+1)%4}
					if client%2 == 0 {
						if err := setVCPUs(storetest.AsAdmin(), s, vcpus("p", pair[0], pair[0]-100, 1),
							vcpus("p", pair[1], pair[1]-100, 1)); err != nil {
							t.Error(err)
						}
						continue
					}
					outcomes, err := deleteAll(s, true, false, pair...)
					switch {
					case err == nil && outcomes[0].Row != nil && outcomes[1].Row != nil:
						deleted.Add(1)
					case errors.Is(err, problem.ErrNotFound):
						refused.Add(1)
					default:
						t.Errorf("%s, %v", deletions(outcomes), err)
					}
				}
			})
		}
		working.Wait()
		isCounted(t, servers[0])
		t.Logf("deleted %d, refused %d", deleted.Load(), refused.Load())
	})
}
