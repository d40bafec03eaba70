package placementdb_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cadastre-dev/cadastre/audit"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestAuditedAllocationsFormAChain changes a few consumers in every way, from
// many clients. Each event finds a state that another one has left, and
// what remains is the consumer as it is. Events of changes at the same time may
// be listed in another order.
func TestAuditedAllocationsFormAChain(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, servers []*store.Store) {
		for _, s := range servers {
			s.AuditAllocations()
		}
		const consumers = 4
		hotProviders(t, servers[0], 3)
		var clients sync.WaitGroup
		for client := range 6 {
			clients.Go(func() {
				random := rand.New(rand.NewPCG(1, uint64(client)))
				for range 50 {
					if err := changeConsumers(t, servers[random.IntN(len(servers))], random,
						random.IntN(changesOfConsumers), consumers); err != nil && !isRefusal(err) {
						t.Error(err)
					}
				}
			})
		}
		clients.Wait()
		random := rand.New(rand.NewPCG(2, 2))
		for range 12 {
			for _, kind := range []int{8, 5, 6, 0, 2, 3, 1, 4} {
				if err := changeConsumers(t, servers[0], random, kind, 1); err != nil && !isRefusal(err) {
					t.Error(err)
				}
			}
		}
		checkChain(t, servers[0], consumers)
	})
}

// TestAReshapeIsAuditedWithWhatItReplaces checks that the event of a provider has
// its inventories before a reshape and after it, and neither without a change.
func TestAReshapeIsAuditedWithWhatItReplaces(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		hotProviders(t, s, 1)
		disk := placement.Inventory{ResourceClass: "DISK_GB", Total: 7, MinUnit: 1, MaxUnit: 7, StepSize: 1,
			AllocationRatio: 1}
		for range 2 {
			reshape := placement.Reshape{Inventories: []placement.ProviderInventories{
				{Provider: storetest.UUID(0), Inventories: []placement.Inventory{disk}}}}
			if _, _, _, err := s.Reshape(storetest.AsAdmin(), reshape); err != nil {
				t.Fatal(err)
			}
		}
		events, err := s.AuditEvents(storetest.AsAdmin(), audit.Filter{Action: new("reshape")},
			page.Request{First: new(2)})
		if err != nil || len(events.Items) != 2 {
			t.Fatal(events, err)
		}
		if same := events.Items[0]; same.Before != nil || same.After != nil {
			t.Errorf("the same inventories again: %v, %v", same.Before, same.After)
		}
		first := events.Items[1]
		if first.Before == nil || !strings.Contains(string(*first.Before), "VCPU") || first.After == nil ||
			!strings.Contains(string(*first.After), "DISK_GB") || strings.Contains(string(*first.After), "VCPU") {
			t.Errorf("other inventories: %v, %v", first.Before, first.After)
		}
	})
}

// checkChain checks that each state of a consumer was left as often as found.
func checkChain(t *testing.T, s *store.Store, consumers int) {
	t.Helper()
	left, shown := leftBy(t, s)
	for consumer := range consumers {
		if is := auditedAs(t, s, consumer); is != "" {
			left[storetest.UUID(consumer)+is]--
		}
	}
	for state, times := range left {
		if times != 0 {
			t.Errorf("%s was left %d times more often than found", state, times)
		}
	}
	for _, action := range []string{"setAllocations", "deleteAllocations", "deleteAllocationsForMany", "place",
		"confirmAllocations", "releaseHold", "applyPlan", "reshape"} {
		if shown[action] == 0 {
			t.Errorf("no event of %s shows a change: %v", action, shown)
		}
	}
}

// isRefusal reports whether a change was refused for the state of its consumers.
func isRefusal(err error) bool {
	return slices.ContainsFunc([]error{problem.ErrNotFound, problem.ErrCapacityExceeded,
		problem.ErrConcurrentUpdate, problem.ErrInvalidInput},
		func(kind error) bool { return errors.Is(err, kind) })
}

// changesOfConsumers is the number of kinds of changeConsumers.
const changesOfConsumers = 9

// changeConsumers makes a change of a kind to random consumers.
func changeConsumers(t *testing.T, s *store.Store, random *rand.Rand, kind, consumers int) error {
	ctx, one, other := storetest.AsAdmin(), random.IntN(consumers), random.IntN(consumers)
	provider, amount := random.IntN(3), 1+random.Int64N(2)
	switch kind {
	case 0:
		_, err := s.DeleteAllocations(ctx, storetest.UUID(one))
		return err
	case 1:
		_, err := deleteAll(s, false, random.IntN(4) == 0, one)
		return err
	case 2:
		_, err := hold(s, 3600, one)
		return err
	case 3:
		return confirm(s, one)
	case 4:
		_, deleted := s.DeleteAllocations(ctx, storetest.UUID(one))
		_, held := hold(s, 3600, one)
		endHold(t, s, one)
		return cmp.Or(s.ReleaseEnded(t.Context()), held, deleted)
	case 5:
		move := placement.PlannedMove{Consumer: storetest.UUID(one),
			Allocations: vcpus("", one, provider, amount).Allocations}
		if is := consumerOn(t, s, one); is != nil {
			move.Generation = is.Generation
		}
		_, err := s.ApplyPlan(ctx, placement.PlannedMoves{Moves: []placement.PlannedMove{move}})
		return err
	case 6:
		provider, _ := worldOf(t, s).Provider(storetest.UUID(provider))
		_, _, _, err := s.Reshape(ctx,
			placement.Reshape{Inventories: []placement.ProviderInventories{{Provider: provider.UUID,
				Inventories: provider.Inventories}},
				Consumers: []placement.ConsumerClaim{vcpus("r", one, random.IntN(3), amount)}})
		return err
	case 7:
		if one == other {
			return nil
		}
		return setVCPUs(ctx, s, vcpus("p", one, provider, amount), vcpus("q", other, provider, amount-1))
	}
	return setVCPUs(ctx, s, vcpus("p", one, provider, amount))
}

// expiring is the end of a hold, which endHold changes without an event.
var expiring = regexp.MustCompile(`"expiresAt":"[^"]*"`)

// leftBy returns how many events leave each state of a consumer, less the ones
// that find it, and how many events of an action show a change.
func leftBy(t *testing.T, s *store.Store) (left, shown map[string]int) {
	left, shown = map[string]int{}, map[string]int{}
	request := page.Request{First: new(page.MaxSize)}
	for {
		events, err := s.AuditEvents(storetest.AsAdmin(), audit.Filter{Kind: new(audit.KindConsumer)}, request)
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range events.Items {
			if event.Before != nil {
				left[event.Key+expiring.ReplaceAllString(string(*event.Before), `"expiresAt":"then"`)]--
			}
			if event.After != nil {
				left[event.Key+expiring.ReplaceAllString(string(*event.After), `"expiresAt":"then"`)]++
			}
			if event.Before != nil || event.After != nil {
				shown[event.Action]++
			}
		}
		if !events.HasMore {
			return left, shown
		}
		request.After = &events.Cursors[len(events.Cursors)-1]
	}
}

// auditedAs returns a consumer as the audit log shows it, empty for none.
func auditedAs(t *testing.T, s *store.Store, consumer int) string {
	c := consumerOn(t, s, consumer)
	if c == nil {
		return ""
	}
	held, err := s.AllocationsOfConsumers(storetest.AsAdmin(), []string{c.UUID})
	if err != nil {
		t.Fatal(err)
	}
	type allocation struct {
		Provider      string `json:"provider"`
		ResourceClass string `json:"resourceClass"`
		Used          int64  `json:"used"`
	}
	shown := struct {
		Allocations []allocation `json:"allocations"`
		ExpiresAt   any          `json:"expiresAt"`
		ProjectID   string       `json:"projectId"`
		Type        *string      `json:"type"`
		UserID      string       `json:"userId"`
	}{ProjectID: c.ProjectID, UserID: c.UserID, Type: c.Type}
	for _, held := range held[c.UUID] {
		shown.Allocations = append(shown.Allocations, allocation{held.Provider, held.ResourceClass, held.Used})
	}
	if c.ExpiresAt != nil {
		shown.ExpiresAt = "then"
	}
	text, err := json.Marshal(shown)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
