package placement

import (
	"context"
	"math"
	"math/bits"
)

// MaxMixShare is the largest share of one request in a mix.
const MaxMixShare = 1000

// MixedRequest is a request in a mix. It follows `MixedRequestInput`.
type MixedRequest struct {
	Request Request
	Share   int
}

// Mix is how many more consumers of several requests fit together, placed in
// turn: as many of each request as its share, then the same again.
type Mix struct {
	// AtLeast is the number of consumers that a Placing with the order DepthFirst
	// places until one of them has no candidate. It is less if the search ends at
	// its limit of steps.
	AtLeast int64
	// AtMost is a number of consumers that no choice of candidates exceeds.
	AtMost int64
	// Each is the part of each request in these numbers.
	Each []MixCount
	// Next is the index of the request whose turn it is after AtLeast consumers.
	Next int
	// LimitedBy are the limits of the next request after AtLeast consumers; see
	// Fit.
	LimitedBy []FitLimit
}

// MixCount is the part of one request in the numbers of a Mix.
type MixCount struct{ AtLeast, AtMost int64 }

// Exact returns the number if AtLeast and AtMost are equal, else nil.
func (m *Mix) Exact() *int64 { return (&MixCount{m.AtLeast, m.AtMost}).Exact() }

// Exact returns the number if AtLeast and AtMost are equal, else nil.
func (c *MixCount) Exact() *int64 {
	if c.AtLeast != c.AtMost {
		return nil
	}
	return &c.AtLeast
}

// FitsTogether returns how many more consumers of valid requests fit together.
// Each share is 1 to MaxMixShare. For a single request the numbers are as in
// Fits.
//
// AtMost is the largest number that no bound excludes. A bound gives each
// consumer a weight, and limits the sum of the weights. The bounds are Fit.AtMost
// of each request; for each class that several requests need, the units of the
// providers that can serve it, in steps of the greatest common divisor of the
// amounts; and, with the amounts of each such class as weights, the sum over the
// trees. In a tree, each request stays within its own bound there, and the
// consumers stay within the units of each class, unless sharing providers can
// serve it.
//
// The error is the one of the context.
func FitsTogether(ctx context.Context, w *World, requests []MixedRequest) (Mix, error) {
	m := &mixer{world: w, requests: requests, claimed: map[claimKey]int64{}, round: map[claimKey]int64{},
		classes: map[int32]*mixedClass{}}
	var mix Mix
	var err error
	if mix.AtMost, err = m.most(ctx); err != nil {
		return Mix{}, err
	}
	if mix.AtLeast, err = m.place(ctx); err != nil {
		return Mix{}, err
	}
	for i := range requests {
		mix.Each = append(mix.Each, MixCount{m.countOf(i, mix.AtLeast), m.countOf(i, mix.AtMost)})
		if m.countOf(i, mix.AtLeast%m.shares()+1) > m.countOf(i, mix.AtLeast%m.shares()) {
			mix.Next = i
		}
	}
	mix.LimitedBy = Fits(m.after(), &requests[mix.Next].Request).LimitedBy
	return mix, nil
}

// mixer counts how often requests fit in turn.
type mixer struct {
	world    *World
	requests []MixedRequest
	claimed  map[claimKey]int64
	round    map[claimKey]int64 // the units that one round of all shares claims
	classes  map[int32]*mixedClass
	bounds   []weightBound
}

// mixedClass is a class that requests need.
type mixedClass struct {
	name     string
	amounts  []int64 // of one consumer of each request
	unit     int64   // the greatest common divisor of the amounts of all slots
	serving  mask    // the providers that can serve a slot
	isShared bool    // whether sharing providers can serve a slot
	requests int     // number of requests that need the class
}

// weightBound limits the sum of the weights of all consumers. Consumers of one
// request have the same weight.
type weightBound struct {
	weights []int64
	most    int64
}

// shares returns the number of consumers of one round.
func (m *mixer) shares() (sum int64) {
	for i := range m.requests {
		sum += int64(m.requests[i].Share)
	}
	return sum
}

// countOf returns how many consumers of a request are among a number of consumers
// placed in turn.
func (m *mixer) countOf(request int, consumers int64) int64 {
	rest := consumers % m.shares()
	for i := range request {
		rest -= int64(m.requests[i].Share)
	}
	share := int64(m.requests[request].Share)
	return consumers/m.shares()*share + max(0, min(rest, share))
}

// place places the consumers in turn until one does not fit, and returns the
// number placed. A round that fits again takes the same candidates again, because
// use never adds candidates.
func (m *mixer) place(ctx context.Context) (placed int64, err error) {
	steps := max(0, MaxSteps-len(m.requests)*fitSteps(m.world.Len()))
	finders, from := make([]*firstFit, len(m.requests)), make([]int, len(m.requests))
	for i := range m.requests {
		f := newFirstFit(m.world, &m.requests[i].Request)
		f.claimed, finders[i] = m.claimed, f
		emit := f.emit
		f.emit = func() bool {
			for k, o := range f.chosen {
				for _, d := range f.slots[k].demands {
					m.round[claimKey{o.node.id, d.class}] += d.amount
				}
			}
			return emit()
		}
	}
	for {
		clear(m.round)
		for i, f := range finders {
			for range m.requests[i].Share {
				if err := ctx.Err(); err != nil {
					return 0, err
				}
				f.steps = steps
				from[i] = f.place(from[i])
				if steps = f.steps; !f.found {
					return placed, nil
				}
				placed = sumUpTo(placed, 1)
			}
		}
		times := int64(math.MaxInt64)
		for key, amount := range m.round {
			free := m.world.nodes.at(key.node).inventoryOf(key.class).free
			times = min(times, (free-m.claimed[key])/amount)
		}
		for key, amount := range m.round {
			m.claimed[key] += times * amount
		}
		placed = sumUpTo(placed, mostProduct(times, int(m.shares())))
	}
}

// after returns the world in which the claimed units are in use.
func (m *mixer) after() *World {
	states := map[int32]*Provider{}
	for key, amount := range m.claimed {
		n := m.world.nodes.at(key.node)
		if states[key.node] == nil {
			state := *n.provider
			state.Inventories = append([]Inventory{}, state.Inventories...)
			states[key.node] = &state
		}
		states[key.node].use(m.classes[key.class].name, amount)
	}
	var update Update
	for _, state := range states {
		update.Providers = append(update.Providers, *state)
	}
	return m.world.With(update)
}

// most returns the largest number of consumers that no bound excludes.
func (m *mixer) most(ctx context.Context) (int64, error) {
	ofTrees := make([]map[*providerTree]int64, len(m.requests))
	isWhole := true
	for i := range m.requests {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		f := newFitter(m.world, &m.requests[i].Request)
		f.ofTree = map[*providerTree]int64{}
		alone := make([]int64, len(m.requests))
		alone[i] = 1
		m.bounds = append(m.bounds, weightBound{alone, f.fit(&m.requests[i].Request).AtMost})
		ofTrees[i] = f.ofTree
		isWhole = isWhole && f.err == nil
		m.addClasses(i, f)
	}
	for class, of := range m.classes {
		if of.requests > 1 {
			m.bounds = append(m.bounds, weightBound{of.amounts, of.unitsOf(m.world, class, of.serving)})
		}
	}
	if isWhole {
		m.addTrees(ofTrees)
	}
	least, most := int64(0), int64(math.MaxInt64)
	for least < most {
		middle := most - (most-least)/2
		if m.isWithin(middle) {
			least = middle
		} else {
			most = middle - 1
		}
	}
	return most, nil
}

// isWithin reports whether a number of consumers is within all bounds.
func (m *mixer) isWithin(consumers int64) bool {
	for _, bound := range m.bounds {
		sum := int64(0)
		for i, weight := range bound.weights {
			sum = sumUpTo(sum, times(weight, m.countOf(i, consumers), 1))
		}
		if sum > bound.most {
			return false
		}
	}
	return true
}

// times returns a×b/c, rounded down, and at most the largest int64. a and b must
// not be negative, c must be positive.
func times(a, b, c int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if high >= uint64(c) {
		return math.MaxInt64
	}
	quotient, _ := bits.Div64(high, low, uint64(c))
	return int64(min(quotient, math.MaxInt64))
}

func (m *mixer) addClasses(request int, f *fitter) {
	r := m.world.newReacher()
	for i := range f.slots {
		servers := r.serversOf(f.plan, &f.slots[i])
		for _, d := range f.slots[i].demands {
			of := m.classes[d.class]
			if of == nil {
				of = &mixedClass{name: d.name, amounts: make([]int64, len(m.requests)), serving: m.world.newMask()}
				m.classes[d.class] = of
			}
			if of.amounts[request] == 0 {
				of.requests++
			}
			of.amounts[request] += d.amount
			of.unit = divisor(of.unit, d.amount)
			of.serving.join(servers.own)
			of.serving.join(servers.shared)
			of.isShared = of.isShared || !servers.shared.isEmpty()
		}
	}
}

func divisor(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// unitsOf returns how many free units of providers the requests can use, in
// multiples of unit on each provider.
func (c *mixedClass) unitsOf(w *World, class int32, providers mask) (units int64) {
	for id := range providers.all() {
		units = sumUpTo(units, c.unitsOn(w.nodes.at(id), class))
	}
	return units
}

func (c *mixedClass) unitsOn(n *node, class int32) int64 {
	return max(0, n.inventoryOf(class).free) / c.unit * c.unit
}

// addTrees adds a bound for each class that several requests need: the sum of
// the bounds of all trees.
func (m *mixer) addTrees(ofTrees []map[*providerTree]int64) {
	trees := map[*providerTree]bool{}
	for _, of := range ofTrees {
		for tree := range of {
			trees[tree] = true
		}
	}
	var sums []weightBound
	for _, of := range m.classes {
		if of.requests > 1 {
			sums = append(sums, weightBound{weights: of.amounts})
		}
	}
	most, units := make([]int64, len(m.requests)), map[int32]int64{}
	for tree := range trees {
		for i, of := range ofTrees {
			most[i] = of[tree]
		}
		clear(units)
		for class, of := range m.classes {
			for _, id := range tree.members {
				if !of.isShared && of.serving.has(id) {
					units[class] = sumUpTo(units[class], of.unitsOn(m.world.nodes.at(id), class))
				}
			}
		}
		for k := range sums {
			sums[k].most = sumUpTo(sums[k].most, m.mostIn(sums[k].weights, most, units))
		}
	}
	m.bounds = append(m.bounds, sums...)
}

// mostIn returns a bound of the sum of the weights in a tree. Most has the
// maximum number of consumers of each request there, units the units of each
// class.
func (m *mixer) mostIn(weights, most []int64, units map[int32]int64) int64 {
	all := int64(0)
	for i, weight := range weights {
		all = sumUpTo(all, times(weight, most[i], 1))
	}
	least := all
	for class, of := range m.classes {
		if of.isShared {
			continue
		}
		others, needing, byUnits := int64(0), int64(0), int64(0)
		for i, weight := range weights {
			sum := times(weight, most[i], 1)
			if of.amounts[i] == 0 {
				others = sumUpTo(others, sum)
				continue
			}
			needing = sumUpTo(needing, sum)
			if sum > 0 {
				byUnits = max(byUnits, times(units[class], weight, of.amounts[i]))
			}
		}
		least = min(least, sumUpTo(others, min(needing, byUnits)))
	}
	return least
}
