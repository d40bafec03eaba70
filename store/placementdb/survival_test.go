package placementdb_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// losses describes all failures of hosts of a filter.
func losses(t *testing.T, s *store.Store, ctx context.Context, filter placement.ProviderFilter) (texts []string, unsurvived int) {
	t.Helper()
	of, unsurvived, err := s.Survival(ctx, nil, filter, placement.FailingTogether{By: placement.FailureOfHost}, page.Request{First: new(1000)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return textsOfLosses(of.Items), unsurvived
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
			claim := placement.ConsumerClaim{UUID: storetest.UUID(100 + n), ProjectID: []string{"p", "q"}[n%2], UserID: "u"}
			for _, host := range random.Perm(6)[:1+random.IntN(2)] {
				amount := int64(1 + random.IntN(7))
				claim.Allocations = append(claim.Allocations, placement.ProviderAllocation{Provider: storetest.UUID(host), Resources: []placement.Amount{{ResourceClass: "VCPU", Amount: amount}}})
			}
			if _, err := s.SetAllocations(storetest.AsAdmin(), placement.Claim{Consumers: []placement.ConsumerClaim{claim}}); err != nil {
				continue // it is full
			}
			for _, of := range claim.Allocations {
				byProject[claim.ProjectID] = append(byProject[claim.ProjectID], &placement.Allocation{Consumer: claim.UUID, Provider: of.Provider, ResourceClass: "VCPU", Used: of.Resources[0].Amount})
			}
		}
		world := worldOf(t, s)
		everyone := slices.Concat(byProject["p"], byProject["q"])
		member := access.WithViewer(context.Background(), access.Viewer{UserID: "u", ProjectID: "p", Roles: []string{access.RoleMember}})
		for _, of := range []struct {
			ctx   context.Context
			known []*placement.Allocation
		}{{storetest.AsAdmin(), everyone}, {member, byProject["p"]}} {
			want, err := world.Failures(placement.FailingTogether{By: placement.FailureOfHost}, world.Filter(placement.ProviderFilter{})).Survive(of.known)
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
