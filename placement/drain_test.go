package placement_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	. "github.com/cadastre-dev/cadastre/placement"
)

var drainOrders = append([]CandidateOrder{DepthFirst, BreadthFirst}, strategies...)

// drainingTest checks one plan.
type drainingTest struct {
	*testing.T
	*reality
	roots    map[string]bool // of the drained trees
	draining Draining
	plan     DrainPlan
}

// TestDrainPlanIsWhatThenHappens draws plans on random worlds, replays their
// choices by the definitions, and makes their moves in a ledger.
func TestDrainPlanIsWhatThenHappens(t *testing.T) {
	moves, unplaced := 0, 0
	eachRandom(t, func(t *testing.T, d *dice, providers []Provider, _ *Request) {
		r := d.realityOf(providers)
		c := &drainingTest{T: t, reality: r, roots: map[string]bool{}}
		c.draining = Draining{Strategy: drainOrders[d.roll(6)], Seed: d.roll(9), MovesPerHost: 1 + d.roll(2)}
		for range 1 + d.roll(2) {
			uuid := providers[d.roll(len(providers))].UUID
			c.draining.Providers = append(c.draining.Providers, uuid)
			c.roots[r.rootOf(uuid)] = true
		}
		w := NewWorld(diceNames, providers)
		if problems := c.draining.Validate(w); len(problems) > 0 {
			t.Fatal(problems)
		}
		var err error
		if c.plan, err = c.draining.Plan(w, r.allocations()); err != nil {
			t.Fatal(err)
		}
		c.checkChoices()
		c.checkWaves()
		c.apply()
		moves, unplaced = moves+len(c.plan.Moves), unplaced+len(c.plan.Unplaced)
		if t.Failed() {
			t.Logf("%+v\n%+v\n%v", providers, c.draining, r.allocations())
		}
	})
	t.Logf("%d moves, %d do not fit", moves, unplaced)
}

// checkChoices checks, in the order of the consumers, that each takes a
// candidate, under DepthFirst the first, or has none.
func (c *drainingTest) checkChoices() {
	providers := c.without(c.roots)
	var unplaced []string
	evicted := c.evicted(c.roots)
	for i := range evicted {
		e := &evicted[i]
		candidates := newOracle(e.offered(providers)).candidates(e.request(c.reality))
		at := slices.IndexFunc(c.plan.Moves, func(m Move) bool { return m.Consumer == e.consumer })
		if at < 0 {
			unplaced = append(unplaced, e.consumer)
			if len(candidates) > 0 {
				c.Errorf("%s has %d candidates and no move", e.consumer, len(candidates))
			}
			continue
		}
		move := &c.plan.Moves[at]
		chosen := slices.IndexFunc(candidates, func(of Candidate) bool {
			return fmt.Sprint(of.Allocations) == fmt.Sprint(move.To)
		})
		if chosen < 0 || chosen > 0 && c.draining.Strategy == DepthFirst {
			c.Fatalf("%s goes to %v, the candidate %d of %d", e.consumer, move.To, chosen, len(candidates))
		}
		c.checkMove(e, move)
		providers = using(providers, &candidates[chosen])
	}
	var got []string
	for _, one := range c.plan.Unplaced {
		got = append(got, one.Consumer)
	}
	if !slices.Equal(got, unplaced) {
		c.Errorf("%v do not fit, want %v", got, unplaced)
	}
	if difference := differenceOf(c.plan.After, NewWorld(diceNames, providers)); difference != "" {
		c.Error(difference)
	}
	if len(c.plan.Unplaced) > 0 {
		if n, _, _ := Count(c.plan.Full, c.plan.Unplaced[0].Request, 1); n > 0 {
			c.Errorf("%s has a candidate in the world that explains why it has none", unplaced[0])
		}
	}
}

// checkMove compares the amounts of a move with the consumer's lost and kept
// amounts.
func (c *drainingTest) checkMove(e *evicted, move *Move) {
	lost, after := map[AllocationKey]int64{}, sumsOf(move.To)
	for _, a := range e.lost {
		lost[AllocationKey{Provider: a.Provider, ResourceClass: a.ResourceClass}] += a.Used
	}
	for _, a := range e.stays {
		after[AllocationKey{Provider: a.Provider, ResourceClass: a.ResourceClass}] += a.Used
	}
	if !maps.Equal(sumsOf(move.From), lost) || !maps.Equal(sumsOf(move.Allocations), after) {
		c.Errorf("%+v: leaves %v, has then %v", move, lost, after)
	}
}

func sumsOf(allocations []ProviderAllocation) map[AllocationKey]int64 {
	sums := map[AllocationKey]int64{}
	for _, of := range allocations {
		for _, amount := range of.Resources {
			sums[AllocationKey{Provider: of.Provider, ResourceClass: amount.ResourceClass}] += amount.Amount
		}
	}
	return sums
}

// checkWaves checks that no tree has too many moves of a wave, that no wave is
// empty, and that the waves are in order.
func (c *drainingTest) checkWaves() {
	counts, waves := map[string]int{}, map[int]bool{}
	last := 0
	for _, move := range c.plan.Moves {
		roots := map[string]bool{}
		for _, of := range slices.Concat(move.From, move.To) {
			roots[c.rootOf(of.Provider)] = true
		}
		for root := range roots {
			key := fmt.Sprint(move.Wave, root)
			if counts[key]++; counts[key] > c.draining.MovesPerHost {
				c.Errorf("wave %d has %d moves of %s", move.Wave, counts[key], root)
			}
		}
		if move.Wave < last {
			c.Errorf("wave %d after %d", move.Wave, last)
		}
		last = move.Wave
		waves[move.Wave] = true
	}
	if len(waves) != c.plan.Waves || last != c.plan.Waves {
		c.Errorf("%d waves, want %d", c.plan.Waves, len(waves))
	}
}

// ledger returns the providers and consumers. Each consumer is two: what it
// loses, and what stays.
func (c *drainingTest) ledger() *Ledger {
	consumers, inventories := map[string]*LedgerConsumer{}, map[string]*LedgerProvider{}
	for _, p := range c.list() {
		of := &LedgerProvider{Inventories: map[string]Inventory{}}
		for _, inventory := range p.Inventories {
			of.Inventories[inventory.ResourceClass] = inventory
		}
		inventories[p.UUID] = of
	}
	for _, a := range c.allocations() {
		name := a.Consumer + " stays"
		if c.roots[c.rootOf(a.Provider)] {
			name = a.Consumer + " loses"
		}
		if consumers[name] == nil {
			consumers[name] = &LedgerConsumer{Generation: 1, Allocations: map[AllocationKey]int64{}}
		}
		consumers[name].Allocations[AllocationKey{Provider: a.Provider, ResourceClass: a.ResourceClass}] += a.Used
	}
	return NewLedger(consumers, inventories)
}

// apply makes the moves of one wave after the other. The consumers of a wave
// have both places together. Then the trees are empty, except for the consumers
// that do not fit.
func (c *drainingTest) apply() {
	ledger := c.ledger()
	left := map[AllocationKey]int64{}
	for _, a := range c.allocations() {
		if c.roots[c.rootOf(a.Provider)] {
			left[AllocationKey{Provider: a.Provider, ResourceClass: a.ResourceClass}] += a.Used
		}
	}
	for wave := 1; wave <= c.plan.Waves; wave++ {
		moves := slices.DeleteFunc(slices.Clone(c.plan.Moves), func(m Move) bool { return m.Wave != wave })
		for _, move := range moves {
			claim := &Claim{Consumers: []ConsumerClaim{{UUID: move.Consumer + " gets", Allocations: move.To}}}
			if refused := ledger.Claim(claim, "input",
				Known{ResourceClass: func(string) bool { return true }}); refused != nil {
				c.Errorf("wave %d: %v", wave, refused)
			}
		}
		for _, move := range moves {
			if !ledger.Release(move.Consumer + " loses") {
				c.Errorf("%s has left already", move.Consumer)
			}
			for key, used := range sumsOf(move.From) {
				left[key] -= used
			}
		}
	}
	for key, used := range left {
		held := ledger.Provider(key.Provider).Inventories[key.ResourceClass].Used
		if held != used || len(c.plan.Unplaced) == 0 && held != 0 {
			c.Errorf("%d %s are left on %s, want %d", held, key.ResourceClass, key.Provider, used)
		}
	}
}

func TestDrainingNamesEveryProblem(t *testing.T) {
	t.Parallel()
	w := NewWorld(diceNames, family())
	for want, draining := range map[string]Draining{
		"providers: must name at least one provider\nmovesPerHost: must be between 1 and 1000": {},
		"providers[1]: resource provider " + uuidOf(9) + " does not exist\nmovesPerHost: must be between 1 and 1000": {
			Providers: []string{uuidOf(3), uuidOf(9)}, MovesPerHost: 1001},
		"providers: has 1001 entries, at most 1000 are allowed": {Providers: slices.Repeat([]string{uuidOf(3)}, 1001),
			MovesPerHost: 1},
	} {
		if got := strings.Join(texts(draining.Validate(w)), "\n"); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// BenchmarkDrain drains 10 of 100,000 hosts, with 200 consumers each.
func BenchmarkDrain(b *testing.B) {
	providers := flatCloud(100_000)
	var allocations []*Allocation
	draining := Draining{MovesPerHost: 2}
	for i := range providers {
		if i%64 > 0 && i%64 < 61 {
			continue
		}
		providers[i].Inventories[2] = stocked("VCPU", 256, 0)
	}
	for i := range 10 {
		of := &providers[i*64]
		draining.Providers = append(draining.Providers, of.UUID)
		for k := range 200 {
			for class, used := range map[string]int64{"VCPU": 1, "MEMORY_MB": 512 + int64(k%3)*64} {
				allocations = append(allocations,
					&Allocation{Consumer: numbered(5_000_000 + i*200 + k),
						Provider: of.UUID, ResourceClass: class, Used: used})
			}
		}
		of.Inventories[1], of.Inventories[2] = stocked("MEMORY_MB", 131072, 200*600), stocked("VCPU", 256, 200)
	}
	w := NewWorld(cloudNames, providers)
	for _, strategy := range drainOrders {
		draining.Strategy = strategy
		b.Run(fmt.Sprint(strategy), func(b *testing.B) {
			for b.Loop() {
				plan, err := draining.Plan(w, allocations)
				if err != nil || len(plan.Moves) != 2000 {
					b.Fatal(len(plan.Moves), err)
				}
			}
		})
	}
}

// TestDrainPlanIsLimited drains too many consumers, then as many as allowed, and then
// the same while each of their searches tries all providers of a large tree.
func TestDrainPlanIsLimited(t *testing.T) {
	t.Parallel()
	providers := []Provider{{UUID: uuidOf(0), Name: "host",
		Inventories: []Inventory{stocked("VCPU", 4_000_000, 2001*2002/2)}}}
	var allocations []*Allocation
	for n := range MaxDrainedConsumers + 1 {
		allocations = append(allocations,
			&Allocation{Consumer: numbered(n), Provider: uuidOf(0), ResourceClass: "VCPU", Used: int64(n + 1)})
	}
	draining := Draining{Providers: []string{uuidOf(0)}, MovesPerHost: 1}
	if _, err := draining.Plan(NewWorld(diceNames, providers), allocations); !errors.Is(err, ErrTooManyConsumers) {
		t.Error(err)
	}
	plan, err := draining.Plan(NewWorld(diceNames, providers), allocations[1:])
	if err != nil || len(plan.Unplaced) != MaxDrainedConsumers || plan.Waves != 0 {
		t.Error(len(plan.Unplaced), plan.Waves, err)
	}
	providers = append(providers, Provider{UUID: uuidOf(1), Name: "other"})
	for n := range 31_000 {
		providers = append(providers, Provider{UUID: numbered(n), Name: fmt.Sprint("below", n), Parent: uuidOf(1)})
	}
	if _, err := draining.Plan(NewWorld(diceNames, providers), allocations[1:]); !errors.Is(err, ErrTooComplex) {
		t.Errorf("a plan of 62 million steps: %v", err)
	}
}

// TestADrainScoresWhatTheConsumerKeeps drains a host whose consumer also has an
// allocation on another host, which therefore cannot serve it twice there.
func TestADrainScoresWhatTheConsumerKeeps(t *testing.T) {
	t.Parallel()
	provider := func(n int, parent string, used int64) Provider {
		return Provider{UUID: uuidOf(n), Name: fmt.Sprint("h", n), Parent: parent,
			Inventories: []Inventory{{ResourceClass: "VCPU",
				Total: 10, MinUnit: 1, MaxUnit: 10, StepSize: 1, AllocationRatio: 1, Capacity: 10, Used: used}}}
	}
	w := NewWorld(diceNames,
		[]Provider{provider(1, "", 2), provider(2, "", 0), provider(3, uuidOf(2), 1), provider(4, "", 3)})
	held := func(provider int, used int64) *Allocation {
		return &Allocation{Consumer: "x", Provider: uuidOf(provider), ResourceClass: "VCPU", Used: used}
	}
	// tree 2 has 19 of 20 free, tree 4 has 7 of 10
	for strategy, want := range map[CandidateOrder]int{Spread: 2, Pack: 4} {
		d := Draining{Providers: []string{uuidOf(1)}, Strategy: strategy, MovesPerHost: 1}
		plan, err := d.Plan(w, []*Allocation{held(1, 2), held(3, 1)})
		if err != nil || len(plan.Moves) != 1 || plan.Moves[0].To[0].Provider != uuidOf(want) {
			t.Errorf("order %d: %+v, %v, want host %d", strategy, plan.Moves, err, want)
		}
	}
}
