package placement_test

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/big"
	"slices"
	"testing"

	. "github.com/cadastre-dev/cadastre/placement"
)

// byStrategy returns all candidates in the order of a strategy: it computes the
// scores of every assignment by their definitions and sorts.
func (o *oracle) byStrategy(r *Request) []Candidate {
	type scored struct {
		assignment
		root  *big.Rat
		slots []*big.Rat
	}
	var all []scored
	for _, of := range o.assignmentsByAnchor(r) {
		var found []scored
		for _, a := range of {
			one := scored{assignment: a, root: o.rootScore(r, a)}
			for i := range a.chosen {
				one.slots = append(one.slots, o.slotScore(r, a, i))
			}
			found = append(found, one)
		}
		slices.SortFunc(found, func(a, b scored) int {
			for i := range a.chosen {
				if order := cmp.Or(a.slots[i].Cmp(b.slots[i]),
					slices.Compare(o.paths[a.chosen[i]], o.paths[b.chosen[i]])); order != 0 {
					return order
				}
			}
			return 0
		})
		for i := range found {
			found[i].root = found[0].root // of its first candidate
		}
		all = append(all, found...)
	}
	slices.SortStableFunc(all, func(a, b scored) int {
		return cmp.Or(a.root.Cmp(b.root), cmp.Compare(a.anchor, b.anchor))
	})
	var candidates []Candidate
	for _, one := range all {
		candidates = append(candidates, one.candidate)
	}
	return o.distinct(r, candidates)
}

// rootScore returns the score of an assignment's root by this assignment.
func (o *oracle) rootScore(r *Request, a assignment) *big.Rat {
	switch r.Order {
	case Random:
		return hashed(r.Seed, a.anchor)
	case LeastFragmenting: // floats as in the definition
		weights, roots := 0, 0
		for _, shape := range r.Shapes {
			weights += shape.Weight
		}
		for uuid := range o.providers {
			if o.root(uuid) == uuid {
				roots++
			}
		}
		loss, _ := o.loss(r, a, 0, len(a.chosen)).Float64()
		share, _ := o.shareLeft(a, true).Float64()
		return new(big.Rat).SetFloat64(loss/float64(max(1, weights)) - share/float64(roots))
	}
	return signed(r.Order, o.shareLeft(a, r.Order == Pack))
}

// shareLeft returns the free share of the scarcest class of an assignment's
// root: of the classes asked for, or of all.
func (o *oracle) shareLeft(a assignment, all bool) *big.Rat {
	asked := map[string]int64{}
	for _, need := range a.needs {
		for _, amount := range need {
			asked[amount.ResourceClass] += amount.Amount
		}
	}
	sums := map[string][2]int64{} // free, capacity
	for _, p := range o.providers {
		for _, inventory := range p.Inventories {
			amount, ok := asked[inventory.ResourceClass]
			if o.root(p.UUID) == a.anchor && (ok || all) {
				sum, known := sums[inventory.ResourceClass]
				if !known {
					sum[0] = -amount
				}
				sum[0] += max(0, inventory.Capacity-inventory.Used)
				sum[1] += inventory.Capacity
				sums[inventory.ResourceClass] = sum
			}
		}
	}
	var least *big.Rat
	for _, sum := range sums {
		if sum[1] > 0 {
			least = smaller(least, big.NewRat(sum[0], sum[1]))
		}
	}
	return orZero(least)
}

func orZero(share *big.Rat) *big.Rat {
	if share == nil {
		return new(big.Rat)
	}
	return share
}

// slotScore returns the score of the provider of a slot after those before it.
func (o *oracle) slotScore(r *Request, a assignment, slot int) *big.Rat {
	switch r.Order {
	case Random:
		return hashed(r.Seed, a.chosen[slot])
	case LeastFragmenting:
		return o.loss(r, a, slot, slot+1)
	}
	var least *big.Rat
	for _, amount := range a.needs[slot] {
		inventory := o.inventory(a.chosen[slot], amount.ResourceClass)
		left := inventory.Capacity - inventory.Used - a.taken(a.chosen[slot], amount.ResourceClass, slot+1)
		least = smaller(least, big.NewRat(left, inventory.Capacity))
	}
	return signed(r.Order, least)
}

func smaller(a, b *big.Rat) *big.Rat {
	if a == nil || b.Cmp(a) < 0 {
		return b
	}
	return a
}

func signed(order CandidateOrder, share *big.Rat) *big.Rat {
	if order == Spread {
		return new(big.Rat).Neg(orZero(share))
	}
	return orZero(share)
}

// taken returns the units that the first n slots take from a provider.
func (a assignment) taken(uuid, class string, n int) (sum int64) {
	for i, need := range a.needs[:n] {
		for _, amount := range need {
			if a.chosen[i] == uuid && amount.ResourceClass == class {
				sum += amount.Amount
			}
		}
	}
	return sum
}

func (o *oracle) inventory(uuid, class string) Inventory {
	for _, inventory := range o.providers[uuid].Inventories {
		if inventory.ResourceClass == class {
			return inventory
		}
	}
	return Inventory{}
}

// hashed is the score of Random.
func hashed(seed int, uuid string) *big.Rat {
	mix := func(hash uint64) uint64 {
		for _, factor := range []uint64{0xff51afd7ed558ccd, 0xc4ceb9fe1a85ec53} {
			hash ^= hash >> 33
			hash *= factor
		}
		return hash ^ hash>>33
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(uuid))
	return new(big.Rat).SetInt64(int64(mix(h.Sum64()^mix(uint64(seed)+1)) >> 11))
}

// loss returns the loss of room by the slots from one to another.
func (o *oracle) loss(r *Request, a assignment, from, to int) *big.Rat {
	before, after := o.room(r, a, from), o.room(r, a, to)
	sum := 0.0
	for _, class := range diceClasses { // floats as in the definition
		var capacity int64
		for uuid := range o.providers {
			capacity += o.inventory(uuid, class).Capacity
		}
		if lost := before[class] - after[class]; lost != 0 {
			sum += float64(lost) / float64(capacity)
		}
	}
	return new(big.Rat).SetFloat64(sum)
}

// room returns the room of the tree of an assignment for all shapes, by class,
// after the first n slots.
func (o *oracle) room(r *Request, a assignment, n int) map[string]int64 {
	shapes := r.Shapes
	if len(shapes) == 0 {
		shapes = []Shape{{Resources: r.Unsuffixed.Resources, Groups: r.Groups, Policy: r.Policy,
			Tolerates: tolerated(r), Weight: 1}}
	}
	sum := map[string]int64{}
	for _, shape := range shapes {
		for class, units := range o.roomFor(shape, a, n) {
			sum[class] += int64(shape.Weight) * units
		}
	}
	return sum
}

func (o *oracle) roomFor(shape Shape, a assignment, n int) map[string]int64 {
	var groups []Group
	var unsuffixed int
	for _, amount := range shape.Resources {
		groups, unsuffixed = append(groups, Group{Resources: []Amount{amount}}), unsuffixed+1
	}
	var counts []int64
	for range groups {
		counts = append(counts, 1)
	}
	for _, g := range shape.Groups {
		g.Suffix = ""
		same := slices.IndexFunc(groups[unsuffixed:], func(other Group) bool {
			return fmt.Sprintf("%+v", other) == fmt.Sprintf("%+v", g)
		})
		if same >= 0 {
			counts[unsuffixed+same]++
			continue
		}
		groups, counts = append(groups, g), append(counts, 1)
	}
	sum, request := map[string]int64{}, &Request{Groups: shape.Groups, Tolerates: shape.Tolerates}
	for i, g := range groups {
		var times int64
		for uuid := range o.providers {
			if o.root(uuid) != a.anchor || o.repels(uuid, request) {
				continue
			}
			on := o.timesOf(g, a, uuid, n, shape.Policy == GroupPolicyIsolate && i >= unsuffixed)
			if on <= 0 {
				continue
			}
			times += on
			for _, amount := range g.Resources {
				inventory := o.inventory(uuid, amount.ResourceClass)
				sum[amount.ResourceClass] += inventory.Capacity - inventory.Used - a.taken(uuid, amount.ResourceClass,
					n)
			}
		}
		if times < counts[i] {
			return nil
		}
	}
	return sum
}

// timesOf returns how many times a provider can serve a group after the first n
// slots of an assignment.
func (o *oracle) timesOf(g Group, a assignment, uuid string, n int, isolate bool) int64 {
	if !o.servesGroup(uuid, a.anchor, &g) {
		return 0
	}
	times := int64(MaxAmount)
	if isolate || len(g.Resources) == 0 {
		times = 1
	}
	for _, amount := range g.Resources {
		inventory := o.inventory(uuid, amount.ResourceClass)
		free := min(inventory.Capacity-inventory.Used-a.taken(uuid, amount.ResourceClass, n), int64(inventory.MaxUnit))
		times = min(times, free/amount.Amount)
	}
	return times
}

// strategies are the orders by score.
var strategies = []CandidateOrder{Spread, Pack, Random, LeastFragmenting}

// shapes returns up to three shapes.
func (d *dice) shapes(providers int) []Shape {
	var shapes []Shape
	for range d.roll(4) {
		if !d.chance(3) { // one that most trees have room for
			amount := Amount{ResourceClass: diceClasses[d.roll(3)], Amount: int64(1 + d.roll(3))}
			shapes = append(shapes, Shape{Resources: []Amount{amount}, Weight: 1 + d.roll(3)})
			continue
		}
		shape := Shape{Resources: d.group("", providers).Resources,
			Policy: GroupPolicy(d.roll(2)), Weight: 1 + d.roll(5)}
		for n := range d.roll(3) {
			g := d.group([]string{"_1", "_2"}[n], providers)
			g.Suffix = []string{"_1", "_2"}[n]
			shape.Groups = append(shape.Groups, g)
		}
		if len(shape.Groups) == 1 && d.chance(2) { // an equal group
			g := shape.Groups[0]
			g.Suffix = "_3"
			shape.Groups = append(shape.Groups, g)
		}
		shape.Tolerates = d.subset(diceTaints, 3)
		shapes = append(shapes, shape)
	}
	return shapes
}

func TestStrategiesFollowTheirScores(t *testing.T) {
	eachRandom(t, func(t *testing.T, d *dice, providers []Provider, r *Request) {
		w, o := NewWorld(diceNames, providers), newOracle(providers)
		r.Seed, r.Shapes = d.roll(4)-1, d.shapes(len(providers))
		for _, r.Order = range strategies {
			want := o.byStrategy(r)
			for _, size := range []int{1 + d.roll(5) + len(want)/50, len(want) + 1} {
				if got := render(everyPage(t, w, r, size)); got != render(want) {
					t.Errorf("order %d, pages of %d\nproviders %+v\nrequest %+v\nsolver:\n%s\noracle:\n%s", r.Order,
						size, providers, r, got, render(want))
					return
				}
			}
		}
	})
}

// TestSpreadIsPackReversed compares both orders in worlds of one class: their
// scores are the same list in opposite directions, and so are the candidates
// where no scores are equal.
func TestSpreadIsPackReversed(t *testing.T) {
	eachRandom(t, func(t *testing.T, d *dice, _ []Provider, _ *Request) {
		var providers []Provider
		for n := range 2 + d.roll(8) {
			p := Provider{UUID: uuidOf(n), Name: fmt.Sprint(n), Version: 1}
			p.Inventories = []Inventory{stocked("VCPU", 997, int64(100*n+d.roll(100)))} // never equal
			providers = append(providers, p)
		}
		w := NewWorld(diceNames, providers)
		r := &Request{Unsuffixed: Group{Resources: []Amount{{ResourceClass: "VCPU", Amount: int64(1 + d.roll(200))}}},
			Order: Spread}
		spread := every(t, w, r)
		r.Order = Pack
		packed := every(t, w, r)
		slices.Reverse(packed)
		if render(spread) != render(packed) {
			t.Errorf("spread:\n%s\npack reversed:\n%s", render(spread), render(packed))
		}
	})
}

// TestRandomOrderUsesEveryRoot takes the first root by many seeds.
func TestRandomOrderUsesEveryRoot(t *testing.T) {
	t.Parallel()
	w := NewWorld(cloudNames, flatCloud(10))
	first := map[string]int{}
	for seed := range 1000 {
		r := &Request{Unsuffixed: threeClasses(1), Order: Random, Seed: seed}
		page, err := Candidates(w, r, nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		first[page.Candidates[0].Allocations[0].Provider]++
	}
	for uuid, times := range first {
		if times < 50 || times > 200 { // 100 are expected, with a deviation of 10
			t.Errorf("%s came first %d times of 1000", uuid, times)
		}
	}
	if len(first) != 10 {
		t.Errorf("%d roots came first, want 10", len(first))
	}
}

// TestScoredPagesKeepOtherRoots moves one root between two pages. Only its own
// candidates are repeated or missed.
func TestScoredPagesKeepOtherRoots(t *testing.T) {
	t.Parallel()
	providers := flatCloud(20)
	w := NewWorld(cloudNames, providers)
	for _, order := range []CandidateOrder{Spread, Pack, LeastFragmenting} {
		r := &Request{Unsuffixed: threeClasses(1), Order: order}
		all := every(t, w, r)
		page, err := Candidates(w, r, nil, 5)
		if err != nil || len(page.Positions) != 5 {
			t.Fatalf("%d candidates, %v", len(page.Positions), err)
		}
		for _, moved := range []int{2, 10} { // on the first page, and after it
			uuid := all[moved].Allocations[0].Provider
			state, _ := w.Provider(uuid)
			next := *state
			next.Version++
			next.Inventories = slices.Clone(next.Inventories)
			for i := range next.Inventories {
				next.Inventories[i].Used = next.Inventories[i].Capacity / 2
			}
			rest, err := Candidates(w.With(Update{Providers: []Provider{next}}), r, &page.Positions[4], 100)
			if err != nil {
				t.Fatal(err)
			}
			others := func(candidates []Candidate) []Candidate {
				return slices.DeleteFunc(slices.Clone(candidates), func(c Candidate) bool {
					return c.Allocations[0].Provider == uuid
				})
			}
			if got, want := render(others(rest.Candidates)), render(others(all[5:])); got != want {
				t.Errorf("order %d, moved %d\ngot:\n%s\nwant:\n%s", order, moved, got, want)
			}
		}
	}
}

// TestLeastFragmentingKeepsWholeDevices places a half of a device: not on a
// device that still serves a whole one.
func TestLeastFragmentingKeepsWholeDevices(t *testing.T) {
	t.Parallel()
	providers := []Provider{
		{UUID: numbered(1), Name: "a", Version: 1}, {UUID: numbered(2), Name: "b", Version: 1},
		{UUID: numbered(3), Name: "a0", Parent: numbered(1), Version: 1,
			Inventories: []Inventory{stocked("VGPU", 10, 0)}},
		{UUID: numbered(4), Name: "a1", Parent: numbered(1), Version: 1,
			Inventories: []Inventory{stocked("VGPU", 10, 0)}},
		{UUID: numbered(5), Name: "b0", Parent: numbered(2), Version: 1,
			Inventories: []Inventory{stocked("VGPU", 10, 4)}},
	}
	w := NewWorld(cloudNames, providers)
	r := &Request{Groups: []Group{{Suffix: "_d", Resources: amounts(Amount{"VGPU", 5})}}, Order: LeastFragmenting,
		Shapes: []Shape{{Groups: []Group{{Suffix: "_d", Resources: amounts(Amount{"VGPU", 10})}}, Weight: 1}}}
	page, err := Candidates(w, r, nil, 1)
	if err != nil || page.Candidates[0].Allocations[0].Provider != numbered(5) {
		t.Errorf("%+v, %v", page.Candidates, err)
	}
	if got := Validate(w, &Request{Unsuffixed: threeClasses(1),
		Shapes: []Shape{{Resources: amounts(Amount{"NONE", 1})}}}); len(got) != 2 ||
		got[0].Path != "shapes[0].resources[0].resourceClass" || got[1].Path != "shapes[0].weight" {
		t.Errorf("%+v", got)
	}
}

func BenchmarkStrategies(b *testing.B) {
	flat := NewWorld(cloudNames, flatCloud(100_000))
	for name, order := range map[string]CandidateOrder{"spread": Spread, "pack": Pack,
		"random": Random, "least": LeastFragmenting} {
		b.Run(name, func(b *testing.B) {
			benchmark(b, flat, &Request{Unsuffixed: threeClasses(4), Order: order}, 10, 10)
		})
	}
}
