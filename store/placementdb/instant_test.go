package placementdb_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestTheWorldOfAnInstantIsTheDatabases compares the world that an operation
// sees with the database at the same instant. Meanwhile several clients create,
// move, change, claim from and delete providers.
func TestTheWorldOfAnInstantIsTheDatabases(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		compareInstants(t, storetest.Open(t, url))
	})
	t.Run("two servers", func(t *testing.T) {
		t.Parallel()
		url := storetest.Postgres(t)
		compareInstants(t, storetest.Open(t, url), storetest.Open(t, url))
	})
	t.Run("a standby", func(t *testing.T) {
		t.Parallel()
		pair := storetest.PostgresPair(t)
		other := storetest.Open(t, pair.Primary)
		s := pair.OpenSpread(t, store.Options{})
		compareInstants(t, s, other)
		storetest.CheckSpread(t, s)
	})
}

const (
	instantProviders = 6
	instantWriters   = 3
	instantsEach     = 150
)

func compareInstants(t *testing.T, servers ...*store.Store) {
	ctx, stop := context.WithCancel(storetest.AsAdmin())
	var writers, readers sync.WaitGroup
	for client := range instantWriters {
		writers.Go(func() {
			chance := rand.New(rand.NewPCG(uint64(client), 7))
			for ctx.Err() == nil {
				if err := writeAtRandom(ctx, servers[client%len(servers)], chance); ctx.Err() == nil &&
					!isRefused(err) {
					t.Errorf("a write: %v", err)
				}
			}
		})
	}
	limit, cancel := context.WithTimeout(storetest.AsAdmin(), patience.Of(t, time.Minute))
	defer cancel()
	for _, s := range servers {
		readers.Go(func() {
			for i := range instantsEach {
				difference, err := s.InstantDifference(limit)
				if err != nil || difference != "" {
					t.Errorf("instant %d: %s %v", i, difference, err)
					return
				}
			}
		})
	}
	readers.Wait()
	stop()
	writers.Wait()
}

// isRefused reports whether a write succeeded or was refused because of other
// writes.
func isRefused(err error) bool {
	refusal := new(problem.Refusal)
	invalid := new(problem.InvalidInput)
	return err == nil || errors.As(err, &refusal) || errors.As(err, &invalid)
}

// writeAtRandom runs one random mutation on one of a few providers.
func writeAtRandom(ctx context.Context, s *store.Store, chance *rand.Rand) error {
	of := func() string { return storetest.UUID(1 + chance.IntN(instantProviders)) }
	trait := fmt.Sprintf("CUSTOM_T%d", chance.IntN(3))
	var err error
	switch uuid := of(); chance.IntN(9) {
	case 0, 1:
		_, _, err = s.CreateResourceProvider(ctx,
			placement.NewProvider{UUID: &uuid, Name: fmt.Sprintf("n%d", chance.IntN(2*instantProviders))})
	case 2:
		_, _, err = s.DeleteResourceProvider(ctx, uuid)
	case 3:
		parent := of()
		_, _, err = s.UpdateResourceProvider(ctx, placement.ProviderPatch{Provider: uuid, Parent: &parent})
	case 4:
		_, err = s.CreateTrait(ctx, trait)
	case 5:
		_, err = s.DeleteTrait(ctx, trait)
	case 6:
		_, _, err = s.SetProviderTraits(ctx, placement.ProviderTraits{Provider: uuid, Traits: []string{trait}})
	case 7:
		_, _, err = s.SetInventory(ctx,
			placement.InventoryChange{Provider: uuid,
				Inventory: placement.Inventory{ResourceClass: "VCPU", Total: int32(1 + chance.IntN(9)), MinUnit: 1,
					MaxUnit: 9, StepSize: 1, AllocationRatio: 1}})
	default:
		_, err = s.SetAllocations(ctx,
			placement.Claim{Consumers: []placement.ConsumerClaim{{UUID: of(), ProjectID: "p", UserID: "u",
				Allocations: []placement.ProviderAllocation{{Provider: uuid,
					Resources: []placement.Amount{{ResourceClass: "VCPU", Amount: 1}}}}}}})
	}
	return err
}
