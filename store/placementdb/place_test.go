package placementdb_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/placementdb"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// placing returns a placing of consumers, each with an amount of VCPU.
func placing(order placement.CandidateOrder, amount int64, consumers ...int) placement.Placing {
	p := placement.Placing{Atomic: true, Request: placement.Request{Order: order,
		Unsuffixed: placement.Group{Resources: []placement.Amount{{ResourceClass: "VCPU", Amount: amount}}}}}
	for _, consumer := range consumers {
		p.Consumers = append(p.Consumers,
			placement.NewConsumer{UUID: storetest.UUID(consumer), ProjectID: "p", UserID: "u"})
	}
	return p
}

// placed describes outcomes: the providers of each consumer by number, or the
// message of its problem.
func placed(outcomes []placementdb.PlacedOutcome) string {
	var told []string
	for _, outcome := range outcomes {
		text := "-"
		if outcome.Row != nil {
			text = ""
			for _, allocation := range outcome.Row.Held {
				text += fmt.Sprintf("%d on %s", allocation.Used, allocation.Provider[:8])
			}
		}
		for _, one := range outcome.Problems {
			text = one.Field + " " + one.Message
		}
		told = append(told, text)
	}
	return strings.Join(told, "; ")
}

func on(amount, provider int) string {
	return fmt.Sprintf("%d on %s", amount, storetest.UUID(provider)[:8])
}

// TestPlaceTakesTheFirstCandidate places one consumer in each order, on the
// provider that the candidates of the same instant list first.
func TestPlaceTakesTheFirstCandidate(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		hotProviders(t, s, 5)
		orders := []placement.CandidateOrder{placement.DepthFirst,
			placement.BreadthFirst, placement.Spread, placement.Pack,
			placement.Random, placement.LeastFragmenting}
		for i := range 24 {
			p := placing(orders[i%len(orders)], int64(1+i%5), 100+i)
			p.Request.Seed = i
			page, err := placement.Candidates(worldOf(t, s), &p.Request, nil, 1)
			if err != nil {
				t.Fatal(err)
			}
			dry, _, err := s.Place(storetest.AsAdmin(), p, true)
			if err != nil {
				t.Fatal(err)
			}
			if found, err := s.ConsumerByUUID(storetest.AsAdmin(), p.Consumers[0].UUID); err == nil && found != nil {
				t.Fatalf("a dry run stored %v", found)
			}
			outcomes, _, err := s.Place(storetest.AsAdmin(), p, false)
			if err != nil {
				t.Fatal(err)
			}
			want := page.Candidates[0].Allocations[0]
			if got := placed(outcomes); got != fmt.Sprintf("%d on %s", want.Resources[0].Amount, want.Provider[:8]) ||
				placed(dry) != got {
				t.Errorf("order %d: %s, want %+v; the dry run says %s", p.Request.Order, got, want, placed(dry))
			}
			if !slices.Equal(outcomes[0].Row.Mappings[0].Providers, page.Candidates[0].Mappings[0].Providers) {
				t.Errorf("mappings %+v", outcomes[0].Row.Mappings)
			}
		}
		sameWorld(t, s)
	})
}

// TestPlaceManyOrNone places several consumers in one request: all or none, or
// as many as fit.
func TestPlaceManyOrNone(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := storetest.AsAdmin()
		hotProviders(t, s, 2) // 20 each
		check := func(p placement.Placing, want string, isFull bool) {
			t.Helper()
			outcomes, full, err := s.Place(ctx, p, false)
			if err != nil || placed(outcomes) != want || (full != nil) != isFull {
				t.Errorf("%s, %v, %v; want %s", placed(outcomes), full != nil, err, want)
			}
		}
		const noRoom = "no provider has room for the request"
		check(placing(placement.Pack, 15, 100, 101, 102), "-; -; input.consumers[2] "+noRoom, true)
		if found, _ := s.ConsumerByUUID(ctx, storetest.UUID(100)); found != nil {
			t.Errorf("an atomic place stored %v", found)
		}
		each := placing(placement.Spread, 12, 100, 101, 102)
		each.Atomic = false
		first, second := 0, 1
		if storetest.UUID(1) < storetest.UUID(0) {
			first, second = 1, 0
		}
		check(each, on(12, first)+"; "+on(12, second)+"; input.consumers[2] "+noRoom, true)
		exists := ".uuid consumer " + storetest.UUID(100) + " has allocations already, its generation is 1"
		again := placing(placement.Spread, 1, 103, 100)
		check(again, "-; input.consumers[1]"+exists, false)
		again.Atomic = false
		check(again, on(1, first)+"; input.consumers[1]"+exists, false)
		last := placing(placement.Pack, 8, 100, 104, 105) // room for one more
		last.Atomic = false
		check(last, "input.consumers[0]"+exists+"; "+on(8, second)+"; input.consumers[2] "+noRoom, true)
		check(last, "input.consumers[0]"+exists+"; input.consumers[1].uuid consumer "+storetest.UUID(104)+
			" has allocations already, its generation is 1; input.consumers[2] "+noRoom, true)
		for _, dryRun := range []bool{false, true} {
			outcomes, full, err := s.Place(ctx, placing(placement.Pack, 8, 100), dryRun)
			if err != nil || placed(outcomes) != "input.consumers[0]"+exists || full != nil {
				t.Errorf("again without room: %s, %v, %v", placed(outcomes), full != nil, err)
			}
		}
		for name, p := range map[string]placement.Placing{
			"input.consumers":                                       placing(placement.Pack, 1),
			"input.consumers[1].uuid":                               placing(placement.Pack, 1, 7, 7),
			"input.request.resources[0].amount":                     placing(placement.Pack, 0, 7),
			"input.request.resources[0].amount, input.consumers[0]": {},
		} {
			if _, _, err := s.Place(ctx, p, false); !isKind(err, problem.ErrInvalidInput) {
				t.Errorf("%s: %v", name, err)
			}
		}
		sameWorld(t, s)
	})
}

// TestPlaceIsRepeatedByKey repeats a request with the same key after the cloud
// is full: it has the same answer.
func TestPlaceIsRepeatedByKey(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		hotProviders(t, s, 1)
		once := func() context.Context {
			ctx, done, err := s.MakeOnce(asOperator("ann"), "key", "fingerprint")
			if err != nil {
				t.Fatal(err)
			}
			done()
			return ctx
		}
		p := placing(placement.Pack, hotCapacity, 100)
		p.Request.Preferences = []placement.Preference{{Aggregate: storetest.UUID(9), Weight: 1}}
		p.Request.Unsuffixed.FirstOf = make([]placement.Alternative, 2)
		first, _, err := s.Place(once(), p, false)
		if err != nil || first[0].Row == nil {
			t.Fatal(placed(first), err)
		}
		second, _, err := s.Place(once(), p, false)
		if err != nil || placed(second) != placed(first) {
			t.Errorf("%s, %v; want %s", placed(second), err, placed(first))
		}
		for _, one := range [][]placementdb.PlacedOutcome{first, second} {
			if !slices.Equal(one[0].Holds, []bool{false}) ||
				!slices.Equal(one[0].Alternatives, []placement.GroupAlternative{{}}) {
				t.Errorf("preferences %v, alternatives %v", one[0].Holds, one[0].Alternatives)
			}
		}
	})
}

// TestRacingPlacesFillTheCloud places from many clients on two servers, where
// all strategies prefer the same hosts: no client sees a conflict, every host is
// full at the end, and only the places for which there is no room are refused.
func TestRacingPlacesFillTheCloud(t *testing.T) {
	t.Parallel()
	url := storetest.Postgres(t)
	servers := []*store.Store{storetest.Open(t, url), storetest.Open(t, url)}
	const hosts, clients, amount = 40, 24, 5
	const rooms = hosts * hotCapacity / amount
	hotProviders(t, servers[0], hosts)
	orders := []placement.CandidateOrder{placement.Pack, placement.Pack, placement.DepthFirst,
		placement.Spread, placement.LeastFragmenting}
	var group sync.WaitGroup
	var mu sync.Mutex
	done, without := 0, 0
	for client := range clients {
		group.Go(func() {
			for i := range rooms/clients + 2 {
				s := servers[(client+i)%2]
				outcomes, full, err := s.Place(storetest.AsAdmin(),
					placing(orders[(client+i)%len(orders)], amount, 1000+100*client+i), false)
				if err != nil {
					t.Errorf("client %d: %v", client, err)
					return
				}
				mu.Lock()
				if outcomes[0].Row != nil {
					done++
				} else if without++; full == nil {
					t.Errorf("unplaced without a reason: %s", placed(outcomes))
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if done != rooms || without != clients*(rooms/clients+2)-rooms {
		t.Errorf("%d placed and %d not, want %d placed", done, without, rooms)
	}
	isCounted(t, servers[0])
	for _, s := range servers {
		storetest.Within(t, 10*time.Second, "full hosts", func() bool {
			for provider := range worldOf(t, s).Providers() {
				if provider.Inventories[0].Free() != 0 {
					return false
				}
			}
			return true
		})
	}
	t.Logf("chosen again: %d and %d times", servers[0].ChosenAgain(), servers[1].ChosenAgain())
}

// TestPlaceOfAnAbortedTransaction lets the database abort many transactions of
// claims, so that they run again. A place for all or none with a consumer that
// has allocations already must place none, also if it shares the transaction
// with others.
func TestPlaceOfAnAbortedTransaction(t *testing.T) {
	t.Parallel()
	url := storetest.Postgres(t)
	s := storetest.Open(t, url)
	hotProviders(t, s, 40)
	if _, _, err := s.Place(storetest.AsAdmin(), placing(placement.Spread, 1, 1), false); err != nil {
		t.Fatal(err)
	}
	abort(t, url)
	var group sync.WaitGroup
	for client := range 12 {
		group.Go(func() {
			for i := range 15 {
				number := 1000 + 100*client + i
				p := placing(placement.Spread, 1, number)
				if client%2 == 0 {
					p = placing(placement.Spread, 1, number, 1)
				}
				outcomes, _, err := s.Place(storetest.AsAdmin(), p, false)
				if err != nil {
					t.Errorf("client %d: %v", client, err)
					return
				}
				if isPlaced := outcomes[0].Row != nil; isPlaced != (len(outcomes) == 1) ||
					len(outcomes) > 1 && (outcomes[1].Row != nil || outcomes[1].Problems == nil) {
					t.Errorf("client %d: %s", client, placed(outcomes))
				}
			}
		})
	}
	group.Wait()
	isCounted(t, s)
}

// abort makes every third insert of consumers fail, as if the database aborted
// the transaction in favor of another one.
func abort(t *testing.T, url string) {
	t.Helper()
	db, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `CREATE SEQUENCE test_aborts;
CREATE FUNCTION test_abort () RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	IF nextval('test_aborts') % 3 = 1 THEN RAISE EXCEPTION 'aborted' USING ERRCODE = '40001'; END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER test_abort BEFORE INSERT ON consumers FOR EACH STATEMENT EXECUTE FUNCTION test_abort ();`); err != nil {
		t.Fatal(err)
	}
}
