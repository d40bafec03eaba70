package placementdb_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/audit"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// hold places consumers for a number of seconds, each with one VCPU.
func hold(s *store.Store, seconds int, consumers ...int) ([]store.PlacedOutcome, error) {
	p := placing(placement.Spread, 1, consumers...)
	p.HoldFor = &seconds
	outcomes, _, err := s.Place(storetest.AsAdmin(), p, false)
	return outcomes, err
}

func confirm(s *store.Store, consumers ...int) error {
	var c placement.Confirmation
	for _, consumer := range consumers {
		c.Consumers = append(c.Consumers, storetest.UUID(consumer))
	}
	_, err := s.ConfirmAllocations(storetest.AsAdmin(), c)
	return err
}

// endHold moves the end of a consumer's hold into the past. It reports false
// for a consumer that is not held.
func endHold(t testing.TB, s *store.Store, consumer int) bool {
	t.Helper()
	done, err := s.Pool.ExecContext(t.Context(), map[bool]string{
		true:  `UPDATE consumers SET expires_at = '2001-01-01 00:00:00+00:00' WHERE expires_at IS NOT NULL AND uuid = $1`,
		false: `UPDATE consumers SET expires_at = '2001-01-01 00:00:00+00:00' WHERE expires_at IS NOT NULL AND uuid = ?1`}[s.Postgres()], storetest.UUID(consumer))
	if err != nil {
		t.Error(err)
		return false
	}
	rows, err := done.RowsAffected()
	return err == nil && rows == 1
}

// consumerOn returns a consumer, or nil if it has no allocations.
func consumerOn(t testing.TB, s *store.Store, consumer int) *placement.Consumer {
	t.Helper()
	found, err := s.ConsumersByUUID(storetest.AsAdmin(), []string{storetest.UUID(consumer)})
	if err != nil {
		t.Error(err)
	}
	return found[storetest.UUID(consumer)]
}

// releases counts the audit events of releases, by consumer.
func releases(t testing.TB, s *store.Store) map[string]int {
	t.Helper()
	counts, first, after := map[string]int{}, page.MaxSize, (*string)(nil)
	for {
		events, err := s.AuditEvents(storetest.AsAdmin(), audit.Filter{Action: new("releaseHold")},
			page.Request{First: &first, After: after})
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range events.Items {
			if counts[event.Key]++; event.UserID != "" || event.Kind != audit.Kind("Consumer") {
				t.Fatalf("the event of a release is %+v", event)
			}
		}
		if !events.HasMore {
			return counts
		}
		after = &events.Cursors[len(events.Cursors)-1]
	}
}

// TestAHoldEnds holds two consumers and confirms one. The server releases the
// other without a request.
func TestAHoldEnds(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		hotProviders(t, s, 1)
		if _, err := hold(s, placement.MaxHold, 100); err != nil {
			t.Fatal(err)
		}
		outcomes, err := hold(s, 1, 101)
		if err != nil {
			t.Fatal(err)
		}
		if outcomes[0].Row.ExpiresAt == nil {
			t.Fatal("the hold has no end")
		}
		if err := confirm(s, 100); err != nil {
			t.Fatal(err)
		}
		before, _ := worldOf(t, s).Provider(storetest.UUID(0))
		awaitRelease(t, s, 101)
		if kept := consumerOn(t, s, 100); kept == nil || kept.ExpiresAt != nil || kept.Generation != 1 {
			t.Errorf("the confirmed consumer is %+v", kept)
		}
		provider, _ := worldOf(t, s).Provider(storetest.UUID(0))
		if provider.Generation != before.Generation || provider.Inventories[0].Used != 1 {
			t.Errorf("after the release the provider has generation %d and uses %d",
				provider.Generation, provider.Inventories[0].Used)
		}
		if err := confirm(s, 100, 101); !errors.Is(err, problem.ErrNotFound) {
			t.Errorf("a released hold was confirmed: %v", err)
		}
		if got := releases(t, s); got[storetest.UUID(101)] != 1 || len(got) != 1 {
			t.Errorf("the releases are %v", got)
		}
	})
}

// awaitRelease waits until a consumer is gone, and the world shows it.
func awaitRelease(t *testing.T, s *store.Store, consumer int) {
	t.Helper()
	storetest.Within(t, 30*time.Second, "released", func() bool { return consumerOn(t, s, consumer) == nil })
	if err := s.ShowWorld(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
}

// TestAHoldEndsByTheClockOfTheDatabase holds a consumer on a server whose clock
// is a year slow. The answer has the stored end of the hold.
func TestAHoldEndsByTheClockOfTheDatabase(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s, err := store.Open(t.Context(),
			store.Options{URL: url, Now: func() time.Time { return time.Now().AddDate(-1, 0, 0) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		hotProviders(t, s, 1)
		outcomes, err := hold(s, placement.MaxHold, 100)
		if err != nil {
			t.Fatal(err)
		}
		answered, stored := outcomes[0].Row.ExpiresAt, consumerOn(t, s, 100).ExpiresAt
		if stored == nil || !stored.Equal(*answered) || stored.Before(time.Now()) {
			t.Errorf("the hold ends at %v, stored as %v", answered, stored)
		}
	})
}

// TestTheEndedHoldIsNotConfirmed ends holds before the server has released
// them. A confirmation of all is refused and names each.
func TestTheEndedHoldIsNotConfirmed(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		hotProviders(t, s, 1)
		if _, err := hold(s, placement.MaxHold, 100, 101); err != nil {
			t.Fatal(err)
		}
		if !endHold(t, s, 101) {
			t.Fatal("the consumer is not held")
		}
		err := confirm(s, 100, 101, 102)
		if problems := problem.InError(err); len(problems) != 2 || problems[0].Field != "input.consumers[1]" ||
			problems[1].Field != "input.consumers[2]" {
			t.Errorf("the refusal is %v", err)
		}
		if kept := consumerOn(t, s, 100); kept == nil || kept.ExpiresAt == nil {
			t.Errorf("a refused confirmation left %+v", kept)
		}
	})
}

// TestADryRunAndAClaimOfAHold makes a dry run with a hold, which stores nothing,
// and claims for a held consumer, which confirms it.
func TestADryRunAndAClaimOfAHold(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		hotProviders(t, s, 1)
		dry := placing(placement.Spread, 1, 100)
		dry.HoldFor = new(60)
		outcomes, _, err := s.Place(storetest.AsAdmin(), dry, true)
		if err != nil || outcomes[0].Row.ExpiresAt == nil || consumerOn(t, s, 100) != nil {
			t.Fatalf("the dry run: %+v, %v", outcomes, err)
		}
		if _, err := hold(s, placement.MaxHold, 100); err != nil {
			t.Fatal(err)
		}
		claimed, err := claimHeld(s, 100, 1)
		if err != nil || claimed.ExpiresAt != nil {
			t.Fatalf("the claim: %+v, %v", claimed, err)
		}
		if endHold(t, s, 100) {
			t.Error("the claim kept the hold")
		}
	})
}

// TestAHoldAndItsConfirmationAreRepeatedByKey repeats both requests with their
// keys after the consumer is gone: they have the same answers.
func TestAHoldAndItsConfirmationAreRepeatedByKey(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		hotProviders(t, s, 1)
		once := func(key string) context.Context {
			ctx, done, err := s.MakeOnce(asOperator("ann"), key, "fingerprint")
			if err != nil {
				t.Fatal(err)
			}
			done()
			return ctx
		}
		requests := func() (ends time.Time, confirmed string) {
			p := placing(placement.Pack, 1, 100)
			p.HoldFor = new(placement.MaxHold)
			outcomes, _, err := s.Place(once("hold"), p, false)
			if err != nil || outcomes[0].Row == nil || outcomes[0].Row.ExpiresAt == nil {
				t.Fatal(placed(outcomes), err)
			}
			consumers, err := s.ConfirmAllocations(once("confirm"),
				placement.Confirmation{Consumers: []string{storetest.UUID(100)}})
			if err != nil || consumers[0].ExpiresAt != nil {
				t.Fatal(consumers, err)
			}
			return *outcomes[0].Row.ExpiresAt, fmt.Sprint(consumers[0].UUID,
				consumers[0].Generation, len(consumers[0].Held))
		}
		ends, confirmed := requests()
		if _, err := s.DeleteAllocations(storetest.AsAdmin(), storetest.UUID(100)); err != nil {
			t.Fatal(err)
		}
		if again, same := requests(); !again.Equal(ends) || same != confirmed {
			t.Errorf("the repeated answers are %v and %s, want %v and %s", again, same, ends, confirmed)
		}
	})
}

// claimHeld replaces the allocations of a consumer by one VCPU.
func claimHeld(s *store.Store, consumer int, generation int64) (*placement.Consumer, error) {
	consumers, err := s.SetAllocations(storetest.AsAdmin(),
		placement.Claim{Consumers: []placement.ConsumerClaim{{UUID: storetest.UUID(consumer),
			ProjectID: "p", UserID: "u", Generation: &generation, Allocations: []placement.ProviderAllocation{{
				Provider: storetest.UUID(0), Resources: []placement.Amount{{ResourceClass: "VCPU", Amount: 1}}}}}}})
	if err != nil {
		return nil, err
	}
	return consumers[0], nil
}

// TestAnotherServerReleases closes the server that made the hold. The one that
// runs, or the one that opens the file next, releases it.
func TestAnotherServerReleases(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		first, err := store.Open(t.Context(), store.Options{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		hotProviders(t, first, 1)
		second := first
		if first.Postgres() {
			second = storetest.Open(t, url)
		}
		if _, err := hold(first, 1, 100); err != nil {
			t.Error(err)
		}
		if _, err := hold(first, placement.MaxHold, 101); err != nil {
			t.Error(err)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		if second == first {
			second = storetest.Open(t, url)
		}
		awaitRelease(t, second, 100)
		if consumerOn(t, second, 101) == nil {
			t.Error("a hold was released before its end")
		}
	})
}

// TestAnotherServerKnowsTheHold holds a consumer on a server that does not
// release. The other one has looked before, and releases it.
func TestAnotherServerKnowsTheHold(t *testing.T) {
	t.Parallel()
	url := storetest.Postgres(t)
	maker, other := storetest.Open(t, url), storetest.Open(t, url)
	maker.StopReleasing()
	hotProviders(t, maker, 1)
	if err := other.ReleaseEnded(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := hold(maker, 1, 100); err != nil {
		t.Fatal(err)
	}
	awaitRelease(t, other, 100)
}

// onServers runs a test on one store of each database, and on two of one
// PostgreSQL database.
func onServers(t *testing.T, test func(t *testing.T, servers []*store.Store)) {
	storetest.Each(t, func(t *testing.T, s *store.Store) { test(t, []*store.Store{s}) })
	t.Run("two servers", func(t *testing.T) {
		t.Parallel()
		url := storetest.Postgres(t)
		test(t, []*store.Store{storetest.Open(t, url), storetest.Open(t, url)})
	})
}

// TestAConfirmationOrARelease confirms holds of one second around their end. An
// acknowledged one is never released, and all others are.
func TestAConfirmationOrARelease(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, servers []*store.Store) {
		hotProviders(t, servers[0], 5)
		const consumers = 60
		var confirmed sync.Map
		var clients sync.WaitGroup
		for consumer := range consumers {
			clients.Go(func() {
				s := servers[consumer%len(servers)]
				if _, err := hold(s, 1, consumer); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Duration(700+rand.IntN(600)) * time.Millisecond)
				switch err := confirm(servers[rand.IntN(len(servers))], consumer); {
				case err == nil:
					confirmed.Store(consumer, true)
				case !errors.Is(err, problem.ErrNotFound):
					t.Error(err)
				}
			})
		}
		clients.Wait()
		awaitNoHold(t, servers[0])
		released := releases(t, servers[0])
		for consumer := range consumers {
			_, isConfirmed := confirmed.Load(consumer)
			if exists := consumerOn(t, servers[0], consumer) != nil; exists != isConfirmed ||
				released[storetest.UUID(consumer)] != map[bool]int{false: 1}[isConfirmed] {
				t.Errorf("consumer %d: confirmed %v, exists %v, released %d times", consumer, isConfirmed,
					exists, released[storetest.UUID(consumer)])
			}
		}
		checkUse(t, servers)
	})
}

// awaitNoHold waits until no consumer is held.
func awaitNoHold(t *testing.T, s *store.Store) {
	t.Helper()
	storetest.Within(t, 60*time.Second, "without holds", func() bool {
		held, err := s.CountConsumers(storetest.AsAdmin(), placement.ConsumerFilter{Held: new(true)})
		return err == nil && held == 0
	})
}

// checkUse checks that the use of inventories is the sum of their allocations,
// within the capacity, and that the worlds show it.
func checkUse(t *testing.T, servers []*store.Store) {
	t.Helper()
	if wrong, err := servers[0].Misused(t.Context()); err != nil || wrong > 0 {
		t.Errorf("%d inventories have a wrong use: %v", wrong, err)
	}
	for _, s := range servers {
		if err := s.ShowWorld(t.Context(), nil); err != nil {
			t.Error(err)
		}
		if difference, err := s.WorldDifference(t.Context()); err != nil || difference != "" {
			t.Errorf("the world differs: %s, %v", difference, err)
		}
		for provider := range worldOf(t, s).Providers() {
			if inventory := provider.Inventories[0]; inventory.Used > hotCapacity {
				t.Errorf("%s uses %d of %d", provider.Name, inventory.Used, hotCapacity)
			}
		}
	}
}

// holdState is a consumer in the model of TestHoldsOfManyClients.
type holdState string

const (
	isGone      holdState = "gone"
	isHeld      holdState = "held"
	isEnded     holdState = "ended" // its hold has ended, and the server may have released it
	isConfirmed holdState = "confirmed"
)

// holdClient is a client with consumers that only it writes. Its model knows
// the possible states of each.
type holdClient struct {
	t          *testing.T
	random     *rand.Rand
	servers    []*store.Store
	states     map[int]holdState
	generation map[int]int64
	released   map[int]int // how often the server must have released a consumer
}

func (c *holdClient) server() *store.Store { return c.servers[c.random.IntN(len(c.servers))] }

// step makes one operation and compares its outcome with the model.
func (c *holdClient) step(consumer int) {
	was := c.states[consumer]
	switch c.random.IntN(6) {
	case 0:
		outcomes, err := hold(c.server(), placement.MaxHold, consumer)
		c.placed(consumer, outcomes, err)
	case 1:
		ok := c.check(confirm(c.server(), consumer), problem.ErrNotFound)
		c.expect(consumer, "confirm", ok == (was == isHeld || was == isConfirmed))
		if ok {
			c.states[consumer] = isConfirmed
		}
	case 2:
		_, err := claimHeld(c.server(), consumer, c.generation[consumer])
		if errors.Is(err, problem.ErrCapacityExceeded) {
			c.expect(consumer, "claim without room", was != isGone)
			return
		}
		c.replaced(consumer, "claim", c.check(err, problem.ErrConcurrentUpdate), isConfirmed)
	case 3:
		_, err := c.server().DeleteAllocations(storetest.AsAdmin(), storetest.UUID(consumer))
		c.replaced(consumer, "delete", c.check(err, problem.ErrNotFound), isGone)
	case 4:
		if ok := endHold(c.t, c.server(), consumer); was == isHeld || ok {
			c.expect(consumer, "end", ok && (was == isHeld || was == isEnded))
			c.states[consumer] = isEnded
		}
	default:
		if err := c.server().ReleaseEnded(c.t.Context()); err != nil {
			c.t.Error(err)
		}
		if c.states[consumer] == isEnded {
			c.expect(consumer, "release", consumerOn(c.t, c.server(), consumer) == nil)
			c.states[consumer] = isGone
			c.released[consumer]++
		}
	}
}

// placed updates the model after a place: only a consumer without allocations
// is placed.
func (c *holdClient) placed(consumer int, outcomes []store.PlacedOutcome, err error) {
	was := c.states[consumer]
	if !c.check(err, problem.ErrUnavailable) {
		return
	}
	if outcomes[0].Row == nil {
		isTaken := errors.Is(outcomes[0].Problems[0].Kind, problem.ErrConcurrentUpdate)
		c.expect(consumer, "place", !isTaken || was != isGone)
		return
	}
	c.expect(consumer, "place", was == isGone || was == isEnded)
	if was == isEnded {
		c.released[consumer]++
	}
	c.states[consumer], c.generation[consumer] = isHeld, 1
}

// replaced updates the model after an operation that succeeds if the consumer
// exists.
func (c *holdClient) replaced(consumer int, operation string, ok bool, next holdState) {
	was := c.states[consumer]
	switch {
	case ok:
		c.expect(consumer, operation, was != isGone)
		c.states[consumer] = next
		c.generation[consumer]++
	case was == isEnded:
		c.states[consumer] = isGone
		c.released[consumer]++
	default:
		c.expect(consumer, operation, was == isGone)
	}
}

// check reports success. An error other than the refusal fails the test.
func (c *holdClient) check(err, refusal error) bool {
	if err != nil && !errors.Is(err, refusal) {
		c.t.Error(err)
	}
	return err == nil
}

func (c *holdClient) expect(consumer int, operation string, ok bool) {
	if !ok {
		c.t.Errorf("%s of consumer %d, which is %s: the outcome is impossible", operation, consumer, c.states[consumer])
	}
}

// TestHoldsOfManyClients lets clients place, confirm, claim and delete at random
// on one or two servers, while holds end and both servers release. A model of
// each consumer says that every hold is confirmed or released, never both.
func TestHoldsOfManyClients(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, servers []*store.Store) {
		hotProviders(t, servers[0], 2) // less room than the consumers need
		var clients []*holdClient
		var running sync.WaitGroup
		until := time.Now().Add(patience.Of(t, 2*time.Second))
		for number := range 8 {
			c := &holdClient{t: t, random: rand.New(rand.NewPCG(uint64(number), 7)), servers: servers,
				states: map[int]holdState{}, generation: map[int]int64{}, released: map[int]int{}}
			for k := range 8 {
				c.states[100*number+k] = isGone
			}
			clients = append(clients, c)
			running.Go(func() {
				for steps := 0; steps < 20 || time.Now().Before(until); steps++ {
					c.step(100*number + c.random.IntN(8))
				}
			})
		}
		running.Wait()
		for _, c := range clients {
			for consumer, state := range c.states {
				if state == isHeld && !endHold(t, servers[0], consumer) {
					t.Errorf("the hold of consumer %d is lost", consumer)
				}
				if state == isHeld || state == isEnded {
					c.released[consumer]++
				}
			}
		}
		for _, s := range servers { // they do not know the ends that the test wrote
			if err := s.ReleaseEnded(t.Context()); err != nil {
				t.Error(err)
			}
		}
		awaitNoHold(t, servers[0])
		compareReleases(t, servers[0], clients)
		checkUse(t, servers)
	})
}

// compareReleases compares the consumers and the audit events of their releases
// with the model.
func compareReleases(t *testing.T, s *store.Store, clients []*holdClient) {
	t.Helper()
	got := releases(t, s)
	total := 0
	for _, c := range clients {
		for consumer, state := range c.states {
			if exists := consumerOn(t, s, consumer) != nil; exists != (state == isConfirmed) {
				t.Errorf("consumer %d, which was %s, exists: %v", consumer, state, exists)
			}
			if got[storetest.UUID(consumer)] != c.released[consumer] {
				t.Errorf("consumer %d was released %d times, want %d", consumer,
					got[storetest.UUID(consumer)], c.released[consumer])
			}
			total += c.released[consumer]
		}
	}
	if total == 0 {
		t.Error("no hold was released")
	}
}

// TestHeldUnitsOfProviders compares the held units of providers with the
// consumers, after each random hold, claim, confirmation and release. Viewers of a
// project see none.
func TestHeldUnitsOfProviders(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		const providers = 4
		hotProviders(t, s, providers)
		random, on, isHeld := rand.New(rand.NewPCG(3, 9)), map[int]string{}, map[int]bool{}
		var uuids []string
		for n := range providers {
			uuids = append(uuids, storetest.UUID(n))
		}
		step := func(consumer int) error {
			switch {
			case on[consumer] == "":
				p := placing(placement.Random, 1, consumer)
				if p.Request.Seed = random.IntN(99); random.IntN(3) > 0 {
					p.HoldFor, isHeld[consumer] = new(600), true
				}
				outcomes, _, err := s.Place(storetest.AsAdmin(), p, false)
				on[consumer] = outcomes[0].Row.Held[0].Provider
				return err
			case random.IntN(2) == 0:
				isHeld[consumer] = false
				return confirm(s, consumer)
			}
			on[consumer], isHeld[consumer] = "", false
			_, err := s.DeleteAllocations(storetest.AsAdmin(), storetest.UUID(consumer))
			return err
		}
		for range 60 {
			if err := step(700 + random.IntN(12)); err != nil {
				t.Fatal(err)
			}
			want := map[string]map[string]int64{}
			for _, uuid := range uuids {
				want[uuid] = map[string]int64{}
			}
			for consumer, uuid := range on {
				if isHeld[consumer] {
					want[uuid]["VCPU"]++
				}
			}
			if got, err := s.HeldOfProviders(storetest.AsAdmin(), uuids); err != nil ||
				fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("held are %v, want %v, %v", got, want, err)
			}
		}
		member := access.WithViewer(t.Context(),
			access.Viewer{UserID: "u", ProjectID: "p", Roles: []string{access.RoleMember}})
		if got, err := s.HeldOfProviders(member, uuids); got != nil || err != nil {
			t.Errorf("a member of the project sees %v, %v", got, err)
		}
	})
}
