package placementdb_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// losses describes all failures of hosts of a filter, read in pages of two.
func losses(t *testing.T, s *store.Store, ctx context.Context,
	filter placement.ProviderFilter) (texts []string, unsurvived int) {
	t.Helper()
	for request := (page.Request{First: new(2)}); ; {
		of, all, err := s.Survival(ctx, nil, filter, placement.FailingTogether{By: placement.FailureOfHost},
			request, nil)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, textsOfLosses(of.Items)...)
		if !of.HasMore {
			return texts, all
		}
		request.After = &of.Cursors[len(of.Cursors)-1]
	}
}

func textsOfLosses(failures []*placement.Failure) (texts []string) {
	for _, failure := range failures {
		text := fmt.Sprint(failure.Name(), " ", failure.Consumers)
		for _, one := range failure.Unplaced {
			text += fmt.Sprint(" ", one.Consumer, one.Resources)
		}
		texts = append(texts, text)
	}
	return texts
}

// TestSurvivalReadsTheAllocations compares the failures of all hosts, and of
// each host alone, with the failures by the known allocations. A member counts
// the consumers of its project only.
func TestSurvivalReadsTheAllocations(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		random := rand.New(rand.NewPCG(31, 4))
		hotProviders(t, s, 6)
		byProject := map[string][]*placement.Allocation{}
		for n := range 60 {
			claim := placement.ConsumerClaim{UUID: storetest.UUID(100 + n),
				ProjectID: []string{"p", "q"}[n%2], UserID: "u"}
			for _, host := range random.Perm(6)[:1+random.IntN(2)] {
				amount := int64(1 + random.IntN(7))
				claim.Allocations = append(claim.Allocations,
					placement.ProviderAllocation{Provider: storetest.UUID(host),
						Resources: []placement.Amount{{ResourceClass: "VCPU", Amount: amount}}})
			}
			if _, err := s.SetAllocations(storetest.AsAdmin(),
				placement.Claim{Consumers: []placement.ConsumerClaim{claim}}); err != nil {
				continue // it is full
			}
			for _, of := range claim.Allocations {
				byProject[claim.ProjectID] = append(byProject[claim.ProjectID],
					&placement.Allocation{Consumer: claim.UUID, Provider: of.Provider,
						ResourceClass: "VCPU", Used: of.Resources[0].Amount})
			}
		}
		world := worldOf(t, s)
		everyone := slices.Concat(byProject["p"], byProject["q"])
		member := access.WithViewer(context.Background(),
			access.Viewer{UserID: "u", ProjectID: "p", Roles: []string{access.RoleMember}})
		for _, of := range []struct {
			ctx   context.Context
			known []*placement.Allocation
		}{{storetest.AsAdmin(), everyone}, {member, byProject["p"]}} {
			want, err := world.Failures(placement.FailingTogether{By: placement.FailureOfHost},
				world.Filter(placement.ProviderFilter{})).Survive(of.known)
			if err != nil {
				t.Fatal(err)
			}
			got, unsurvived := losses(t, s, of.ctx, placement.ProviderFilter{})
			if !slices.Equal(got, textsOfLosses(want)) {
				t.Errorf("got %v\nwant %v", got, textsOfLosses(want))
			}
			for _, failure := range want {
				alone, ofAlone := losses(t, s, of.ctx, placement.ProviderFilter{UUIDs: []string{failure.Root.UUID}})
				if !slices.Equal(alone, textsOfLosses([]*placement.Failure{failure})) {
					t.Errorf("%v alone, in the list %v", alone, textsOfLosses([]*placement.Failure{failure}))
				}
				unsurvived -= ofAlone
			}
			if unsurvived != 0 {
				t.Errorf("%d failures more are not survived", unsurvived)
			}
		}
	})
}

// TestKeptSurvivalFollowsClaims claims, releases and changes hosts at random, on one
// server or on two in turn. After each step the failures that a server keeps must be
// the ones of the known allocations.
func TestKeptSurvivalFollowsClaims(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		servers := []*store.Store{storetest.Open(t, url)}
		if servers[0].Postgres() {
			servers = append(servers, storetest.Open(t, url))
		}
		random, unplaced := rand.New(rand.NewPCG(7, 4)), 0
		hotProviders(t, servers[0], 8)
		held, generations := map[string][]*placement.Allocation{}, map[string]*int64{}
		for range 120 {
			changeHot(t, servers[random.IntN(len(servers))], random, held, generations)
			reader := servers[random.IntN(len(servers))]
			ctx, reading := reader.WithReading(storetest.AsAdmin(), store.AtOnce)
			world, err := reader.World(ctx)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := losses(t, reader, ctx, placement.ProviderFilter{})
			reading.End()
			want, err := world.Failures(placement.FailingTogether{By: placement.FailureOfHost},
				slices.Collect(world.Providers())).
				Survive(slices.Concat(slices.Collect(maps.Values(held))...))
			if err != nil || !slices.Equal(got, textsOfLosses(want)) {
				t.Fatalf("got %v\nwant %v, %v", got, textsOfLosses(want), err)
			}
			for _, failure := range want {
				unplaced += len(failure.Unplaced)
			}
		}
		if unplaced == 0 {
			t.Error("all consumers always fit")
		}
	})
}

// changeHot makes a random change of a hot provider or of one of 24 consumers, and
// records what consumers hold.
func changeHot(t *testing.T, s *store.Store, random *rand.Rand,
	held map[string][]*placement.Allocation, generations map[string]*int64) {
	t.Helper()
	if random.IntN(20) == 0 {
		total := int32(hotCapacity + random.IntN(4))
		_, _, err := s.SetInventory(storetest.AsAdmin(),
			placement.InventoryChange{Provider: storetest.UUID(random.IntN(8)),
				Inventory: placement.Inventory{ResourceClass: "VCPU", Total: total, MinUnit: 1,
					MaxUnit: total, StepSize: 1, AllocationRatio: 1}})
		if err != nil {
			t.Fatal(err)
		}
	}
	consumer := storetest.UUID(100 + random.IntN(24))
	claim := placement.ConsumerClaim{UUID: consumer, ProjectID: "p", UserID: "u", Generation: generations[consumer]}
	var next []*placement.Allocation
	for _, host := range random.Perm(8)[:random.IntN(4)] {
		a := &placement.Allocation{Consumer: consumer, Provider: storetest.UUID(host),
			ResourceClass: "VCPU", Used: int64(1 + random.IntN(9))}
		next = append(next, a)
		claim.Allocations = append(claim.Allocations,
			placement.ProviderAllocation{Provider: a.Provider,
				Resources: []placement.Amount{{ResourceClass: "VCPU", Amount: a.Used}}})
	}
	consumers, err := s.SetAllocations(storetest.AsAdmin(),
		placement.Claim{Consumers: []placement.ConsumerClaim{claim}})
	if err != nil {
		return // it is full
	}
	held[consumer], generations[consumer] = next, nil
	if len(next) > 0 {
		generations[consumer] = &consumers[0].Generation
	}
}
