package placement

import (
	"cmp"
	"fmt"
	"slices"
)

// MaxDrainedProviders and MaxDrainedConsumers are the maximum numbers of
// providers and consumers of one plan. MaxMovesPerHost is the maximum of
// Draining.MovesPerHost.
const (
	MaxDrainedProviders = 1000
	MaxDrainedConsumers = 2000
	MaxMovesPerHost     = 1000
)

// Draining asks where the consumers of some trees can go.
type Draining struct {
	// Providers are uuids. The plan drains the whole tree of each provider.
	Providers []string
	// Strategy is the order of the candidates, Seed the seed of Random.
	Strategy CandidateOrder
	Seed     int
	// MovesPerHost is the maximum number of moves of one wave from or to a tree.
	MovesPerHost int
}

// Validate returns every problem of the draining.
func (d *Draining) Validate(w *World) []Problem {
	var v validator
	v.require(len(d.Providers) > 0, "providers", "must name at least one provider")
	v.checkTrees(w, d.Providers)
	v.require(1 <= d.MovesPerHost && d.MovesPerHost <= MaxMovesPerHost, "movesPerHost", "must be between 1 and 1000")
	return v.problems
}

// checkTrees checks that there are not too many providers and, if the input has
// no problem so far, that all exist.
func (v *validator) checkTrees(w *World, providers []string) {
	v.atMost(MaxDrainedProviders, "providers", len(providers))
	if len(v.problems) == 0 {
		for i, uuid := range providers {
			if w.treeOf(uuid) == nil {
				v.add(at("providers", i), "resource provider %s does not exist", uuid)
			}
		}
	}
}

// trees returns the trees of the providers that exist.
func (d *Draining) trees(w *World) map[*providerTree]bool {
	trees := map[*providerTree]bool{}
	for _, uuid := range d.Providers {
		if tree := w.treeOf(uuid); tree != nil {
			trees[tree] = true
		}
	}
	return trees
}

// Members returns the uuids of all providers of the trees, sorted. It leaves out
// providers that the world does not have.
func (d *Draining) Members(w *World) []string {
	uuids := []string{}
	for tree := range d.trees(w) {
		for _, id := range tree.members {
			uuids = append(uuids, w.nodes.at(id).provider.UUID)
		}
	}
	slices.Sort(uuids)
	return uuids
}

// ErrTooManyConsumers is the error of a plan for more than MaxDrainedConsumers
// consumers.
var ErrTooManyConsumers = fmt.Errorf("the hosts have more than %d consumers", MaxDrainedConsumers)

// DrainPlan is where the consumers of drained trees go.
type DrainPlan struct {
	Moves []Move // by wave
	// Unplaced are the consumers that do not fit, the largest first.
	Unplaced []Unplaced
	Waves    int
	// After is the world without the trees, after all moves. Full is After where
	// inventories that must not serve the first of Unplaced take nothing.
	After, Full *World
}

// Move is the move of one consumer. Its old and its new allocations fit in the
// world at the same time.
type Move struct {
	Consumer string
	// Generation is the consumer's generation, if the caller sets it.
	Generation int64
	// Wave counts from 1 in a DrainPlan, and is 0 in a RebalancePlan. The moves
	// of one wave can run at the same time.
	Wave int
	// The consumer leaves From and gets To. Allocations are all its allocations
	// afterwards.
	From, To, Allocations []ProviderAllocation
}

// Plan returns where the consumers of the trees go. Allocations are all
// allocations of the consumers that have any on the trees.
//
// The consumers are placed one after the other in the world without the trees,
// the largest need first, then by uuid: each takes the first candidate in the
// order of the strategy. Moves need nothing that other moves free, so they fit
// in any order. Each move is in the first wave in which none of its trees
// already has MovesPerHost moves.
//
// The error is ErrTooComplex or ErrTooManyConsumers.
func (d *Draining) Plan(w *World, allocations []*Allocation) (DrainPlan, error) {
	p := drainPlanner{Draining: d, world: w, held: w.holdingsOf(allocations)}
	evacuees := p.held.evacuees(d.trees(w))
	if len(evacuees) > MaxDrainedConsumers {
		return DrainPlan{}, ErrTooManyConsumers
	}
	p.plan.After = w.With(Update{Deleted: d.Members(w)})
	for len(evacuees) > 0 {
		n := 1
		if len(evacuees[0].occupied()) == 0 {
			for n < len(evacuees) && evacuees[n].need == evacuees[0].need && len(evacuees[n].occupied()) == 0 {
				n++
			}
		}
		if err := p.place(evacuees[:n]); err != nil {
			return DrainPlan{}, err
		}
		evacuees = evacuees[n:]
	}
	p.plan.Full = p.without(p.refused)
	p.addWaves()
	return p.plan, nil
}

type drainPlanner struct {
	*Draining
	world *World
	held  *holdings
	plan  DrainPlan
	// refused must not serve the first of Unplaced.
	refused []claimKey
	steps   int
}

// place places one consumer, or several with the same need.
func (p *drainPlanner) place(evacuees []evacuee) error {
	placing := Placing{Request: evacuees[0].need.Request, Consumers: make([]NewConsumer, len(evacuees))}
	placing.Request.Order, placing.Request.Seed = p.Strategy, p.Seed
	occupied := evacuees[0].occupied()
	choices, err := placing.Choose(p.without(occupied), 0, nil)
	if p.steps += choices.Steps; err == nil && p.steps > maxPlanSteps {
		err = ErrTooComplex
	}
	if err != nil {
		return err
	}
	for i, candidate := range choices.Of {
		if candidate == nil {
			if len(p.plan.Unplaced) == 0 {
				p.refused = occupied
			}
			p.plan.Unplaced = append(p.plan.Unplaced, evacuees[i].unplaced())
			continue
		}
		p.plan.Moves = append(p.plan.Moves, p.held.moveOf(&evacuees[i], candidate))
		if len(occupied) > 0 {
			p.plan.After = p.plan.After.Taking(candidate)
		}
	}
	if len(occupied) == 0 {
		p.plan.After = choices.After
	}
	return nil
}

// without returns the world after the moves so far, in which some inventories
// take no allocations. Their free units stay, because scores count them.
func (p *drainPlanner) without(occupied []claimKey) *World {
	var update Update
	for _, key := range occupied {
		provider, _ := p.plan.After.Provider(p.world.nodes.at(key.node).provider.UUID)
		i := slices.IndexFunc(update.Providers, func(other Provider) bool { return other.UUID == provider.UUID })
		if i < 0 {
			i = len(update.Providers)
			update.Providers = append(update.Providers, *provider)
			update.Providers[i].Inventories = slices.Clone(provider.Inventories)
		}
		for k := range update.Providers[i].Inventories {
			if of := &update.Providers[i].Inventories[k]; of.ResourceClass == p.held.names[key.class] {
				of.MaxUnit = 0
			}
		}
	}
	return p.plan.After.With(update)
}

func (p *drainPlanner) addWaves() {
	type place struct {
		root string
		wave int
	}
	moves := map[place]int{}
	for i := range p.plan.Moves {
		move := &p.plan.Moves[i]
		roots := p.world.rootsOf(slices.Concat(move.From, move.To))
		isFull := func(root string) bool { return moves[place{root, move.Wave}] >= p.MovesPerHost }
		for move.Wave = 1; slices.ContainsFunc(roots, isFull); move.Wave++ {
		}
		for _, root := range roots {
			moves[place{root, move.Wave}]++
		}
		p.plan.Waves = max(p.plan.Waves, move.Wave)
	}
	slices.SortStableFunc(p.plan.Moves, func(a, b Move) int { return cmp.Compare(a.Wave, b.Wave) })
}

// rootsOf returns the roots of the trees of allocations, each once.
func (w *World) rootsOf(allocations []ProviderAllocation) []string {
	var roots []string
	for _, allocation := range allocations {
		roots = append(roots, w.treeOf(allocation.Provider).root)
	}
	return sortedSet(roots)
}
