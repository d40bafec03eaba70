package placementdb_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/cadastre-dev/cadastre/internal/soak"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// limitVCPUs is setLimits, which must succeed.
func limitVCPUs(t *testing.T, s *store.Store, project string, all, traited int64) {
	t.Helper()
	if _, err := setLimits(s, project, all, traited); err != nil {
		t.Fatal(err)
	}
}

// placingOfMany returns a placing of up to six of twelve consumers of three
// projects.
func placingOfMany(d *rand.Rand) placement.Placing {
	p := placing([]placement.CandidateOrder{placement.DepthFirst, placement.Pack, placement.Spread}[d.IntN(3)],
		1+d.Int64N(20))
	p.Atomic = false
	for _, consumer := range d.Perm(12)[:1+d.IntN(6)] {
		p.Consumers = append(p.Consumers, placement.NewConsumer{UUID: storetest.UUID(100 + consumer),
			ProjectID: []string{"p", "q", "r"}[d.IntN(3)], UserID: "u"})
	}
	if d.IntN(3) == 0 {
		p.Policy = &placement.Policy{Hosts: placement.DistinctHosts}
		for i := range p.Consumers {
			p.Policy.Consumers = append(p.Policy.Consumers, p.Consumers[i].UUID)
		}
	}
	return p
}

// TestManyArePlacedAsOneAfterTheOther places consumers in one call, and the same
// ones in a call each on another database. Some exceed a limit or exist. Both
// must have the same outcomes, so a refused consumer takes no room from others.
func TestManyArePlacedAsOneAfterTheOther(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, together *store.Store) {
		apart := storetest.Open(t, storetest.SQLite(t))
		const hosts = 4
		for _, s := range []*store.Store{together, apart} {
			hotProviders(t, s, hosts)
			giveTrait(t, s, 0)
			giveTrait(t, s, 2)
			limitVCPUs(t, s, "p", 30, -1)
			limitVCPUs(t, s, "q", -1, 8)
		}
		d := rand.New(rand.NewPCG(soak.Seed(t), 21))
		kinds := map[string]int{}
		for range soak.Rounds(120) {
			p := placingOfMany(d)
			var want []string
			for i := range p.Consumers {
				one := p
				one.Consumers = p.Consumers[i : i+1]
				outcomes, _, err := apart.Place(storetest.AsAdmin(), one, false)
				if err != nil {
					t.Fatal(err)
				}
				for _, problem := range outcomes[0].Problems {
					kinds[problem.Kind.Error()]++
				}
				want = append(want,
					strings.Replace(placed(outcomes), "consumers[0]", fmt.Sprintf("consumers[%d]", i), 1))
			}
			outcomes, _, err := together.Place(storetest.AsAdmin(), p, false)
			if err != nil || placed(outcomes) != strings.Join(want, "; ") {
				t.Fatalf("together: %s, %v\napart: %s\n%+v", placed(outcomes), err, strings.Join(want, "; "), p)
			}
			for consumer := range 12 {
				for _, s := range []*store.Store{together, apart} {
					_, err := s.DeleteAllocations(storetest.AsAdmin(), storetest.UUID(100+consumer))
					if err != nil && !errors.Is(err, problem.ErrNotFound) {
						t.Fatal(err)
					}
				}
				if d.IntN(4) == 0 {
					break
				}
			}
		}
		if len(kinds) != 3 {
			t.Errorf("the refusals are %v, want three kinds", kinds)
		}
	})
}

// TestTheFirstRefusedConsumerIsNamed refuses an atomic place for a limit, though
// a later consumer has no room.
func TestTheFirstRefusedConsumerIsNamed(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		hotProviders(t, s, 1)
		limitVCPUs(t, s, "p", 1, -1)
		p := placing(placement.DepthFirst, hotCapacity, 100, 101, 102)
		p.Consumers[1].ProjectID, p.Consumers[2].ProjectID = "q", "q"
		outcomes, _, err := s.Place(storetest.AsAdmin(), p, false)
		if err != nil || len(outcomes[0].Problems) != 1 ||
			!errors.Is(outcomes[0].Problems[0].Kind, problem.ErrQuotaExceeded) {
			t.Errorf("%+v, %v", outcomes, err)
		}
	})
}

// TestPlacesThatFailTakeNoRoom places a consumer on the only host, while others
// are refused by a limit, or because they exist. It must always be placed.
func TestPlacesThatFailTakeNoRoom(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, servers []*store.Store) {
		s := servers[0]
		hotProviders(t, s, 1)
		showAll(t, servers)
		limitVCPUs(t, s, "hopeless", 0, -1)
		if err := setVCPUs(storetest.AsAdmin(), s, vcpus("q", 99, 0, 1)); err != nil {
			t.Fatal(err)
		}
		for round := range soak.Rounds(90) {
			var working sync.WaitGroup
			for i := range 8 {
				p := placing(placement.Pack, hotCapacity-1, 100)
				switch {
				case i > 0 && round%2 == 0:
					p.Consumers[0].UUID, p.Consumers[0].ProjectID = storetest.UUID(200+i), "hopeless"
				case i > 0:
					p.Consumers[0].UUID = storetest.UUID(99)
				}
				working.Go(func() {
					outcomes, _, err := servers[i%len(servers)].Place(storetest.AsAdmin(), p, false)
					if err != nil {
						t.Error(err)
					} else if isPlaced := outcomes[0].Row != nil; isPlaced != (i == 0) {
						t.Errorf("round %d, place %d: %s", round, i, placed(outcomes))
					}
				})
			}
			working.Wait()
			if _, err := s.DeleteAllocations(storetest.AsAdmin(), storetest.UUID(100)); err != nil {
				t.Fatal(err)
			}
		}
	})
}
