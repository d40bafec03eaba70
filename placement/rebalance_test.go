package placement_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	. "github.com/cadastre-dev/cadastre/placement"
)

// rebalancingTest checks one plan. Providers is after the moves so far.
type rebalancingTest struct {
	*testing.T
	*reality
	of        Rebalancing
	providers []Provider
	moved     map[string]bool
}

// tenants gives all use of the providers to consumers of one tree each, and some
// of it to consumers of several trees.
func (d *dice) tenants(providers []Provider) *reality {
	r := d.realityOf(providers)
	r.held = map[string][]*Allocation{}
	for _, p := range r.list() {
		for _, inventory := range p.Inventories {
			consumer := r.rootOf(p.UUID)[:35] + fmt.Sprint(d.roll(3))
			if d.roll(6) == 0 {
				consumer = consumerOf(0)
			}
			if inventory.Used > 0 {
				r.held[consumer] = append(r.held[consumer],
					&Allocation{Consumer: consumer, Provider: p.UUID,
						ResourceClass: inventory.ResourceClass, Used: inventory.Used})
			}
		}
	}
	return r
}

// TestRebalancingMakesTheBestMove compares each move with the best of all moves by
// the definition, and makes it in a ledger.
func TestRebalancingMakesTheBestMove(t *testing.T) {
	moves, plans, shared, seed := 0, 0, 0, uint64(1<<51)
	eachRandom(t, func(t *testing.T, d *dice, providers []Provider, first *Request) {
		seed++
		w, m := NewWorld(diceNames, providers), &dice{bytes: randomBytes(seed, 600)}
		c := &rebalancingTest{T: t, reality: m.tenants(providers), providers: providers, moved: map[string]bool{}}
		c.of = Rebalancing{Requests: m.mix(w, providers, first), Strategy: drainOrders[d.roll(6)],
			Seed: d.roll(9), MaxMoves: 1 + d.roll(4)}
		if d.roll(4) == 0 {
			c.of.Providers = []string{providers[d.roll(len(providers))].UUID}
		}
		if problems := c.of.Validate(w); len(problems) > 0 {
			t.Fatal(problems)
		}
		plan, err := c.of.Plan(t.Context(), w, c.allocations())
		if err != nil {
			t.Fatal(err)
		}
		c.check(&plan)
		if t.Failed() {
			t.Logf("%+v\n%+v\n%+v\n%v", plan, providers, c.of, c.allocations())
		}
		moves, plans = moves+len(plan.Moves), plans+1
		if share(providers) && len(plan.Moves) > 0 {
			shared++
		}
	})
	if t.Logf("%d moves of %d plans, %d with moves and shared providers", moves, plans, shared); moves == 0 {
		t.Error("no moves")
	}
}

func (c *rebalancingTest) check(plan *RebalancePlan) {
	fits := c.fits(c.providers)
	if !slices.Equal(plan.Fits, fits) {
		c.Errorf("fits %v, want %v", plan.Fits, fits)
	}
	ledger := (&drainingTest{reality: c.reality}).ledger()
	for i := range plan.Moves {
		move, want := &plan.Moves[i], c.best(fits)
		if want == nil || fmt.Sprint(*move) != fmt.Sprint(*want) {
			c.Errorf("move %d is %+v, want %+v", i, move, want)
			return
		}
		claim := &Claim{Consumers: []ConsumerClaim{{UUID: move.Consumer + " gets", Allocations: move.To}}}
		if refused := ledger.Claim(claim, "input",
			Known{ResourceClass: func(string) bool { return true }}); refused != nil {
			c.Fatalf("move %d: %v", i, refused)
		}
		if !ledger.Release(move.Consumer + " stays") {
			c.Fatalf("move %d: %s has no place", i, move.Consumer)
		}
		c.providers, c.moved[move.Consumer], fits = moved(c.providers, &move.Move), true, move.Fits
	}
	if rest := c.best(fits); len(plan.Moves) < c.of.MaxMoves && rest != nil {
		c.Errorf("there is another move: %+v", rest)
	}
	if difference := differenceOf(plan.After, NewWorld(diceNames, c.providers)); difference != "" {
		c.Error(difference)
	}
}

func (c *rebalancingTest) fits(providers []Provider) (fits []int64) {
	w := NewWorld(diceNames, providers)
	for i := range c.of.Requests {
		fit := Fits(w, &c.of.Requests[i].Request)
		fits = append(fits, fit.AtLeast)
	}
	return fits
}

func moved(providers []Provider, move *Move) []Provider {
	from := Candidate{Allocations: []ProviderAllocation{}}
	for _, of := range move.From {
		negative := ProviderAllocation{Provider: of.Provider}
		for _, amount := range of.Resources {
			negative.Resources = append(negative.Resources,
				Amount{ResourceClass: amount.ResourceClass, Amount: -amount.Amount})
		}
		from.Allocations = append(from.Allocations, negative)
	}
	return using(using(providers, &from), &Candidate{Allocations: move.To})
}

// best tries all consumers and returns the best move, nil if none has a gain.
func (c *rebalancingTest) best(before []int64) (best *RebalanceMove) {
	var size float64
	for root := range c.providersByRoot() {
		if !c.mayMoveFrom(root) {
			continue
		}
		for _, e := range c.evicted(map[string]bool{root: true}) {
			move := c.moveOf(&e, root)
			if move == nil {
				continue
			}
			move.Fits = c.fits(moved(c.providers, &move.Move))
			for i, fit := range move.Fits {
				move.Gain += int64(c.of.Requests[i].Share) * (fit - before[i])
			}
			if move.Gain > 0 && (best == nil ||
				cmp.Or(cmp.Compare(best.Gain, move.Gain), cmp.Compare(e.size, size),
					strings.Compare(move.Consumer, best.Consumer)) < 0) {
				best, size = move, e.size
			}
		}
	}
	return best
}

func (c *rebalancingTest) providersByRoot() map[string]bool {
	roots := map[string]bool{}
	for _, p := range c.providers {
		roots[c.rootOf(p.UUID)] = true
	}
	return roots
}

func (c *rebalancingTest) mayMoveFrom(root string) bool {
	return c.of.Providers == nil ||
		slices.ContainsFunc(c.of.Providers, func(uuid string) bool { return c.rootOf(uuid) == root })
}

// moveOf returns the move of a consumer to its candidate, nil if it has none.
func (c *rebalancingTest) moveOf(e *evicted, root string) *RebalanceMove {
	if len(e.stays) > 0 || c.moved[e.consumer] {
		return nil
	}
	candidates, seen := c.candidates(e.request(c.reality)), map[string]bool{root: true}
	i := slices.IndexFunc(candidates, func(of Candidate) bool {
		isFirst := !seen[of.Root]
		seen[of.Root] = true
		return isFirst && !slices.ContainsFunc(of.Allocations, func(a ProviderAllocation) bool {
			return c.rootOf(a.Provider) == root
		})
	})
	if i < 0 {
		return nil
	}
	to := candidates[i].Allocations
	return &RebalanceMove{Move: Move{Consumer: e.consumer, From: listed(e.lost), To: to, Allocations: to}}
}

// candidates returns the candidates of a request in the order of the strategy.
func (c *rebalancingTest) candidates(request *Request) []Candidate {
	if c.of.Strategy == DepthFirst {
		return newOracle(c.providers).candidates(request)
	}
	request.Order, request.Seed = c.of.Strategy, c.of.Seed
	if c.of.Strategy == BreadthFirst { // of all roots, the first candidate of each comes first
		request.Order = DepthFirst
	}
	if c.of.Strategy == LeastFragmenting {
		for _, of := range c.of.Requests {
			tolerates := slices.Concat(of.Request.Tolerates, of.Request.RootRequired)
			for _, group := range append(slices.Clone(of.Request.Groups), of.Request.Unsuffixed) {
				tolerates = append(tolerates, slices.Concat(clauses(&group)...)...)
			}
			request.Shapes = append(request.Shapes,
				Shape{Resources: of.Request.Unsuffixed.Resources, Groups: of.Request.Groups,
					Policy: of.Request.Policy, Tolerates: tolerates, Weight: of.Share})
		}
	}
	return every(c.T, NewWorld(diceNames, c.providers), request)
}

// listed returns allocations by provider and class.
func listed(of []*Allocation) (list []ProviderAllocation) {
	sorted := slices.SortedFunc(slices.Values(of), func(a, b *Allocation) int {
		return cmp.Or(strings.Compare(a.Provider, b.Provider), strings.Compare(a.ResourceClass, b.ResourceClass))
	})
	for _, a := range sorted {
		if len(list) == 0 || list[len(list)-1].Provider != a.Provider {
			list = append(list, ProviderAllocation{Provider: a.Provider})
		}
		last := &list[len(list)-1]
		last.Resources = append(last.Resources, Amount{ResourceClass: a.ResourceClass, Amount: a.Used})
	}
	return list
}

func TestRebalancingNamesEveryProblem(t *testing.T) {
	t.Parallel()
	w := NewWorld(diceNames, family())
	for want, of := range map[string]Rebalancing{
		"maxMoves: must be between 1 and 100": {},
		"providers[1]: resource provider " + uuidOf(9) + " does not exist\nmaxMoves: must be between 1 and 100": {
			Providers: []string{uuidOf(3), uuidOf(9)}, MaxMoves: 101},
		"providers: has 1001 entries, at most 1000 are allowed": {Providers: slices.Repeat([]string{uuidOf(3)}, 1001),
			MaxMoves: 1},
	} {
		if got := strings.Join(texts(of.Validate(w)), "\n"); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// fragmented returns hosts with 8 units, each with a few consumers of 1 to 4
// units. Every third host has a trait, every fourth is in an aggregate.
func fragmented(hosts int, seed uint64) (providers []Provider, allocations []*Allocation) {
	chance := rand.New(rand.NewPCG(seed, 2))
	for i := range hosts {
		used := int64(0)
		for k := range 1 + chance.IntN(4) {
			amount := min(int64(1+chance.IntN(4)), 8-used)
			if used += amount; amount > 0 {
				allocations = append(allocations,
					&Allocation{Consumer: numbered(1_000_000 + i*8 + k), Provider: numbered(i),
						ResourceClass: "VCPU", Used: amount})
			}
		}
		host := Provider{UUID: numbered(i), Name: numbered(i), Inventories: []Inventory{stocked("VCPU", 8, used)}}
		if i%3 == 0 {
			host.Traits = []string{"CUSTOM_A"}
		}
		if i%4 == 1 {
			host.Aggregates = []string{uuidOf(7)}
		}
		providers = append(providers, host)
	}
	return providers, allocations
}

// TestRebalancingOfPlainHosts makes moves until none has a gain.
func TestRebalancingOfPlainHosts(t *testing.T) {
	t.Parallel()
	rebalanceAll(t, wholeHosts, fragmented)
}

// TestRebalancingWithAPool does the same with requests that also need a pool.
func TestRebalancingWithAPool(t *testing.T) {
	t.Parallel()
	rebalanceAll(t, func(strategy CandidateOrder, moves int) Rebalancing {
		of := wholeHosts(strategy, moves)
		for i := range of.Requests[:2] {
			resources := &of.Requests[i].Request.Unsuffixed.Resources
			*resources = append(slices.Clone(*resources), Amount{ResourceClass: "DISK_GB", Amount: 5})
		}
		return of
	}, func(hosts int, seed uint64) ([]Provider, []*Allocation) {
		providers, allocations := fragmented(hosts, seed)
		for i := range providers {
			providers[i].Aggregates = append(providers[i].Aggregates, uuidOf(8))
		}
		return append(providers,
			Provider{UUID: uuidOf(9), Name: "pool", Traits: []string{TraitShares}, Aggregates: []string{uuidOf(8)},
				Inventories: []Inventory{stocked("DISK_GB", 5+int32(seed%4)*5, 0)}}), allocations
	})
}

// rebalanceAll compares plans with the best moves in small clouds.
func rebalanceAll(t *testing.T, plan func(CandidateOrder, int) Rebalancing,
	cloud func(int, uint64) ([]Provider, []*Allocation)) {
	t.Helper()
	moves := 0
	for seed := range uint64(120) {
		providers, allocations := cloud(2+int(seed%4), seed)
		r := &reality{providers: map[string]Provider{}, held: map[string][]*Allocation{}}
		for _, p := range providers {
			r.providers[p.UUID] = p
		}
		for _, a := range allocations {
			r.held[a.Consumer] = append(r.held[a.Consumer], a)
		}
		c := &rebalancingTest{T: t, reality: r, providers: providers, moved: map[string]bool{}}
		c.of = plan(drainOrders[seed%6], 20)
		plan, err := c.of.Plan(t.Context(), NewWorld(diceNames, providers), allocations)
		if err != nil {
			t.Fatal(err)
		}
		if c.check(&plan); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		moves += len(plan.Moves)
	}
	if moves < 40 {
		t.Errorf("%d moves", moves)
	}
}

func wholeHosts(strategy CandidateOrder, moves int) Rebalancing {
	request := Request{Unsuffixed: Group{Resources: []Amount{{ResourceClass: "VCPU", Amount: 8}}}}
	half := Request{Unsuffixed: Group{Resources: []Amount{{ResourceClass: "VCPU", Amount: 4}}}}
	with, in := half, half
	with.Unsuffixed.RequiredAll = []string{"CUSTOM_A"}
	in.Unsuffixed.MemberOf = []AggregateFilter{{AnyOf: []string{uuidOf(7)}}}
	return Rebalancing{Requests: []MixedRequest{{Request: request, Share: 3}, {Request: half, Share: 1},
		{Request: with, Share: 4}, {Request: in, Share: 2}},
		Strategy: strategy, MaxMoves: moves}
}

func TestRebalancingStopsWithItsContext(t *testing.T) {
	t.Parallel()
	providers, allocations := fragmented(20, 1)
	of := wholeHosts(LeastFragmenting, 3)
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := of.Plan(ended, NewWorld(diceNames, providers), allocations); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	plan, err := of.Plan(t.Context(), NewWorld(diceNames, providers), allocations)
	if err != nil || len(plan.Moves) != 3 {
		t.Errorf("%d moves, %v", len(plan.Moves), err)
	}
}

// TestRebalancingLeavesOutWhatTheWorldLacks has a consumer with more units than
// are in use.
func TestRebalancingLeavesOutWhatTheWorldLacks(t *testing.T) {
	t.Parallel()
	of := wholeHosts(DepthFirst, 3)
	for used, want := range map[int64]int{3: 1, 2: 0} {
		providers := []Provider{
			{UUID: uuidOf(0), Name: "a", Inventories: []Inventory{stocked("VCPU", 8, used)}},
			{UUID: uuidOf(1), Name: "b", Inventories: []Inventory{stocked("VCPU", 8, 1)}},
		}
		allocations := []*Allocation{{Consumer: consumerOf(1), Provider: uuidOf(0), ResourceClass: "VCPU", Used: 3}}
		plan, err := of.Plan(t.Context(), NewWorld(diceNames, providers), allocations)
		if err != nil || len(plan.Moves) != want {
			t.Errorf("%d in use: %+v, %v", used, plan.Moves, err)
		}
	}
}

// BenchmarkRebalance plans 100 moves.
func BenchmarkRebalance(b *testing.B) {
	for _, hosts := range []int{1000, 10_000} {
		providers, allocations := fragmented(hosts, 1)
		w := NewWorld(diceNames, providers)
		for _, strategy := range []CandidateOrder{DepthFirst, Pack, LeastFragmenting} {
			b.Run(fmt.Sprintf("%d/%v", hosts, strategy), func(b *testing.B) {
				of := wholeHosts(strategy, 100)
				for b.Loop() {
					plan, err := of.Plan(b.Context(), w, allocations)
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(plan.Fits[0]), "before")
					b.ReportMetric(float64(Fits(plan.After, &of.Requests[0].Request).AtLeast), "after")
				}
			})
		}
	}
}

// BenchmarkRebalanceDevices plans 100 moves among nodes with eight devices each,
// for 32 requests.
func BenchmarkRebalanceDevices(b *testing.B) {
	chance := rand.New(rand.NewPCG(3, 4))
	var providers []Provider
	var allocations []*Allocation
	for i := range 1200 {
		root, cores := numbered(i*16), int64(0)
		for k := range 8 {
			device := numbered(i*16 + k + 1)
			used := int64(0)
			for n := range 1 + chance.IntN(3) {
				amount := min([]int64{100, 250, 330, 500, 750, 1000}[chance.IntN(6)], 1000-used)
				if used += amount; amount > 0 {
					consumer := numbered(1_000_000 + i*64 + k*8 + n)
					allocations = append(allocations,
						&Allocation{Consumer: consumer, Provider: device, ResourceClass: "DISK_GB", Used: amount},
						&Allocation{Consumer: consumer, Provider: root, ResourceClass: "VCPU", Used: 1 + amount/200})
					cores += 1 + amount/200
				}
			}
			providers = append(providers, Provider{UUID: device, Name: device, Parent: root,
				Inventories: []Inventory{stocked("DISK_GB", 1000, used)}})
		}
		providers = append(providers,
			Provider{UUID: root, Name: root, Inventories: []Inventory{stocked("VCPU", 96, cores)}})
	}
	of := Rebalancing{Strategy: LeastFragmenting, MaxMoves: 100}
	for i := range 32 {
		request := Request{Unsuffixed: Group{Resources: []Amount{{ResourceClass: "VCPU", Amount: int64(1 + i%7)}}},
			Policy: GroupPolicyIsolate}
		for k := range 1 + i%4 {
			request.Groups = append(request.Groups,
				Group{Suffix: fmt.Sprint("_", k),
					Resources: []Amount{{ResourceClass: "DISK_GB", Amount: []int64{1000, 500, 250, 100, 750}[i%5]}}})
		}
		of.Requests = append(of.Requests, MixedRequest{Request: request, Share: 1 + i})
	}
	w := NewWorld(diceNames, providers)
	for b.Loop() {
		plan, err := of.Plan(b.Context(), w, allocations)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(plan.Moves)), "moves")
	}
}
