package placement

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// MaxRebalanceMoves is the maximum of Rebalancing.MaxMoves.
// MaxRebalanceRequests is the maximum number of requests, which callers check.
const (
	MaxRebalanceMoves    = 100
	MaxRebalanceRequests = MaxShapes
)

// Rebalancing asks for moves of consumers after which more consumers of some
// requests fit.
type Rebalancing struct {
	// Requests are valid. The shares weigh them.
	Requests []MixedRequest
	// Providers are uuids. Only consumers on the trees of these providers are
	// moved; nil means all.
	Providers []string
	// Strategy is the order of the candidates, Seed the seed of Random.
	// LeastFragmenting keeps room for Requests, weighted by their shares.
	Strategy CandidateOrder
	Seed     int
	MaxMoves int
}

// Validate returns every problem of the rebalancing, but not of the requests.
func (r *Rebalancing) Validate(w *World) []Problem {
	var v validator
	if r.Providers != nil {
		v.checkTrees(w, r.Providers)
	}
	v.require(1 <= r.MaxMoves && r.MaxMoves <= MaxRebalanceMoves, "maxMoves", "must be between 1 and 100")
	return v.problems
}

// Members returns the uuids of all providers of the trees, sorted; nil means all.
func (r *Rebalancing) Members(w *World) []string {
	if r.Providers == nil {
		return nil
	}
	return (&Draining{Providers: r.Providers}).Members(w)
}

// RebalancePlan is a list of moves to make in this order.
type RebalancePlan struct {
	// Fits has Fit.AtLeast of each request before the moves.
	Fits  []int64
	Moves []RebalanceMove
	After *World // after all moves
}

// RebalanceMove is a move with its gain.
type RebalanceMove struct {
	Move
	// Fits has Fit.AtLeast of each request after the move.
	Fits []int64
	// Gain is the growth of Fits by the move: the sum over the requests,
	// weighted by their shares. It is positive.
	Gain int64
}

// Plan returns up to MaxMoves moves, each the best after the moves before it,
// until no move has a gain. Allocations are all allocations of the consumers that
// have any on the trees of Providers.
//
// Only consumers with all allocations in one tree are moved, each at most once.
// Plan considers the first candidate of each root, in the order of the strategy,
// for at most 64 roots with candidates. A consumer's target is the first of these
// that has another root and does not use the consumer's own tree. The consumer
// keeps its allocations meanwhile, so both places fit together. The best move has
// the largest gain, then the smallest amounts (as in Survive), then the first
// consumer by uuid.
//
// The error is ErrTooComplex or the context's error.
func (r *Rebalancing) Plan(ctx context.Context, w *World, allocations []*Allocation) (RebalancePlan, error) {
	p := &rebalancer{Rebalancing: r, world: w, held: w.holdingsOf(allocations), known: map[string][]int64{}}
	if err := p.begin(); err != nil {
		return RebalancePlan{}, err
	}
	plan := RebalancePlan{Fits: p.fits}
	for len(plan.Moves) < r.MaxMoves {
		best, err := p.best(ctx)
		if err != nil {
			return RebalancePlan{}, err
		}
		if best == nil {
			break
		}
		plan.Moves = append(plan.Moves, p.make(best))
	}
	plan.After = p.world
	return plan, nil
}

type rebalancer struct {
	*Rebalancing
	world    *World // after the moves so far
	held     *holdings
	rankings Rankings
	// shared reports for each request whether sharing providers may serve it.
	// How often any other request fits in a tree depends on that tree alone.
	shared    []bool
	hasShared bool
	fits      []int64 // of the world
	sources   []*source
	// Known has, by a tree's content, the fits of requests; 0 for shared ones.
	known map[string][]int64
	// isNamed is whether a request can tell like trees apart by their uuids.
	isNamed bool
	steps   int
}

// source is consumers with the same amounts on the same providers, by uuid.
type source struct {
	root      string
	need      *relocation
	consumers []evacuee
	leaves    []int64 // the change of the fits in the tree when one of them leaves, nil if unknown
	most      int64   // the gain of leaves alone
}

// target is a candidate with the change of the fits in its trees. Roots has the
// roots of these trees.
type target struct {
	*Candidate
	roots  []string
	change []int64
}

// isElsewhere reports whether the candidate has another root and uses no
// provider of this root's tree.
func (t *target) isElsewhere(root string) bool {
	return t.Root != root && !slices.Contains(t.roots, root)
}

// relocating is a consumer with its target, and the fits after the move.
type relocating struct {
	*source
	*target
	fits []int64
	gain int64
}

// begin counts the fits and lists the sources.
func (p *rebalancer) begin() error {
	for i := range p.Requests {
		request := &p.Requests[i].Request
		shared := compile(p.world, request).mayShare()
		fit, err := p.fit(p.world, request)
		if err != nil {
			return err
		}
		p.fits, p.shared, p.hasShared = append(p.fits, fit), append(p.shared, shared), p.hasShared || shared
		p.isNamed = p.isNamed || request.namesProviders()
	}
	only := map[*providerTree]bool{}
	for _, uuid := range p.Providers {
		only[p.world.treeOf(uuid)] = true
	}
	for tree := range p.held.in {
		if p.Providers == nil || only[tree] {
			p.addSources(tree)
		}
	}
	slices.SortFunc(p.sources, func(a, b *source) int {
		return cmp.Compare(a.consumers[0].consumer, b.consumers[0].consumer)
	})
	return nil
}

// namesProviders reports whether the request can tell like trees apart.
func (r *Request) namesProviders() bool {
	isIn := func(g Group) bool { return g.InTree != "" }
	return r.Hosts != nil || isIn(r.Unsuffixed) || slices.ContainsFunc(r.Groups, isIn)
}

// addSources lists the consumers with all allocations in a tree. It leaves out a
// consumer with an allocation above the use of its inventory in the world.
func (p *rebalancer) addSources(tree *providerTree) {
	type place struct {
		need  *relocation
		nodes string
	}
	of := map[place]*source{}
	for _, e := range p.held.evacuees(map[*providerTree]bool{tree: true}) {
		if len(e.stays) > 0 || slices.ContainsFunc(e.lost, p.exceedsUse) {
			continue
		}
		var nodes []byte
		for _, held := range e.lost {
			nodes = binary.AppendVarint(nodes, int64(held.node.index))
		}
		at := place{e.need, string(nodes)}
		if of[at] == nil {
			of[at] = &source{root: tree.root, need: e.need}
			p.sources = append(p.sources, of[at])
		}
		of[at].consumers = append(of[at].consumers, e)
	}
}

// exceedsUse reports whether an amount is more than its inventory has in use, or
// has no inventory.
func (p *rebalancer) exceedsUse(held holding) bool {
	inventories := held.node.provider.Inventories
	i := slices.IndexFunc(inventories, func(of Inventory) bool { return of.ResourceClass == p.held.names[held.class] })
	return i < 0 || held.used > inventories[i].Used
}

// fit returns Fit.AtLeast of a request.
func (p *rebalancer) fit(w *World, request *Request) (sum int64, err error) {
	err = p.fitEach(w, request, func(_ string, fits int64) { sum = sumUpTo(sum, fits) })
	return sum, err
}

// fitEach calls part with the root of each tree that can serve the request, and
// the number of consumers that fit there. Their sum is Fit.AtLeast.
func (p *rebalancer) fitEach(w *World, request *Request, part func(root string, fits int64)) error {
	f := newClaimer(w, request)
	before := f.steps
	for root, anchor := range f.anchorsFrom("") {
		if f.enter(anchor) {
			f.isSingle = !slices.ContainsFunc(f.options, func(options []option) bool { return len(options) > 1 })
			f.found.AtLeast = 0
			f.claimTree()
			part(root, f.found.AtLeast)
		}
	}
	p.steps += f.steps - before + fitOverhead
	if f.err != nil || p.steps > maxPlanSteps {
		return ErrTooComplex
	}
	return nil
}

// maxPlanSteps bounds the search for one plan. That many steps took about
// six seconds, less than the time limit of an operation.
const maxPlanSteps = 3 * MaxSteps

// fitOverhead is the cost of fitEach in a small world, in steps, in addition to
// the steps of the search.
const fitOverhead = 8

// best returns the best move, nil if none has a gain.
func (p *rebalancer) best(ctx context.Context) (best *relocating, err error) {
	sources, err := p.promising(ctx)
	if err != nil {
		return nil, err
	}
	targets, from := map[*relocation][]*target{}, map[*relocation][]string{}
	for _, s := range sources {
		from[s.need] = append(from[s.need], s.root)
	}
	for _, s := range sources {
		if best != nil && !p.hasShared && s.most < best.gain {
			break
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if _, ok := targets[s.need]; !ok {
			if targets[s.need], err = p.targets(s.need, from[s.need]); err != nil {
				return nil, err
			}
		}
		i := slices.IndexFunc(targets[s.need], func(t *target) bool { return t.isElsewhere(s.root) })
		if i < 0 {
			continue
		}
		move := &relocating{source: s, target: targets[s.need][i]}
		if err := p.count(move); err != nil {
			return nil, err
		}
		if move.gain > 0 && (best == nil || move.compare(best) < 0) {
			best = move
		}
	}
	return best, nil
}

// promising returns the sources that have consumers left, by the gain if one
// consumer leaves, the largest first. Unless a request is shared, it omits sources
// without a gain: no move gains more, because the use of its target only lowers
// fits.
func (p *rebalancer) promising(ctx context.Context) (sources []*source, err error) {
	if err := p.learnLeaves(ctx); err != nil {
		return nil, err
	}
	for _, s := range p.sources {
		if len(s.consumers) == 0 {
			continue
		}
		if s.leaves == nil {
			if s.leaves, err = p.changeIn(s.root, p.from(s), nil); err != nil {
				return nil, err
			}
			s.most = p.gainOf(s.leaves)
		}
		if s.most > 0 || p.hasShared {
			sources = append(sources, s)
		}
	}
	slices.SortStableFunc(sources, func(a, b *source) int { return cmp.Compare(b.most, a.most) })
	return sources, nil
}

// gainOf returns the sum of changes of the fits, each multiplied by the share
// of its request; 0 if the losses overflow.
func (p *rebalancer) gainOf(changes []int64) int64 {
	gains, losses := int64(0), int64(0)
	for i, change := range changes {
		share := int64(p.Requests[i].Share)
		gains = sumUpTo(gains, times(max(0, change), share, 1))
		losses = sumUpTo(losses, times(max(0, -change), share, 1))
	}
	if losses == math.MaxInt64 {
		return 0
	}
	return gains - losses
}

func (m *relocating) compare(other *relocating) int {
	return cmp.Or(cmp.Compare(other.gain, m.gain), cmp.Compare(m.need.size, other.need.size),
		cmp.Compare(m.consumers[0].consumer, other.consumers[0].consumer))
}

// maxTargets bounds the roots with candidates that are tried for one need.
const maxTargets = 64

// targets returns the first candidate of each root in the order of the
// strategy, until each root in from has one elsewhere, and at most maxTargets.
func (p *rebalancer) targets(need *relocation, from []string) ([]*target, error) {
	request := need.Request
	request.Order, request.Seed = p.Strategy, p.Seed
	if p.Strategy == LeastFragmenting {
		for i := range p.Requests {
			of := &p.Requests[i].Request
			request.Shapes = append(request.Shapes, Shape{Resources: of.Unsuffixed.Resources, Groups: of.Groups,
				Policy: of.Policy, Tolerates: of.tolerated(), Weight: p.Requests[i].Share})
		}
	}
	c := newChooser(p.world, &request, &p.rankings, nil)
	l := c.lines[0]
	s := c.search(l)
	var targets []*target
	var roots []scoredRoot
	for len(from) > 0 && len(targets) < maxTargets {
		candidate, root, _ := l.ranking.best(s, nil)
		if candidate == nil {
			break
		}
		t := &target{Candidate: candidate, roots: p.world.rootsOf(candidate.Allocations)}
		targets, roots = append(targets, t), append(roots, root)
		from = slices.DeleteFunc(from, t.isElsewhere)
	}
	for _, root := range roots {
		l.ranking.push(root.id, root.score)
	}
	if p.steps += s.steps; s.err != nil || p.steps > maxPlanSteps {
		return nil, ErrTooComplex
	}
	c.keep()
	for _, t := range targets {
		t.change = make([]int64, len(p.fits))
		for _, root := range t.roots {
			change, err := p.changeIn(root, nil, t.Allocations)
			if err != nil {
				return nil, err
			}
			for i := range change {
				t.change[i] += change[i]
			}
		}
	}
	return targets, nil
}

// changeIn returns the change of the fits in a tree if allocations leave it and
// others are added. It is 0 for shared requests.
func (p *rebalancer) changeIn(root string, from, to []ProviderAllocation) ([]int64, error) {
	before, err := p.fitsIn(root, nil)
	if err != nil {
		return nil, err
	}
	after, err := p.fitsIn(root, p.world.moving(from, to))
	if err != nil {
		return nil, err
	}
	change := make([]int64, len(before))
	for i := range change {
		change[i] = after[i] - before[i]
	}
	return change, nil
}

// fitsIn returns the fits of the requests in a tree alone, with other states of
// some providers. It is 0 for shared requests.
func (p *rebalancer) fitsIn(root string, states []Provider) ([]int64, error) {
	key, tree := p.treeWith(root, states)
	if p.known[key] == nil {
		if err := p.learn(map[string][]Provider{key: tree}); err != nil {
			return nil, err
		}
	}
	return p.known[key], nil
}

// treeWith returns the providers of a tree, some of them in the given states,
// and a key of their content.
func (p *rebalancer) treeWith(root string, states []Provider) (key string, tree []Provider) {
	for _, id := range p.world.treeOf(root).members {
		tree = append(tree, *p.world.nodes.at(id).provider)
		last := &tree[len(tree)-1]
		if i := slices.IndexFunc(states, func(state Provider) bool { return state.UUID == last.UUID }); i >= 0 {
			*last = states[i]
		}
	}
	return p.contentOf(tree), tree
}

// treesTogether is the number of trees that learn searches together. Each
// request is compiled once for all of them.
const treesTogether = 128

// learnLeaves counts the fits in the trees of sources without known leaves,
// with and without one of their consumers.
func (p *rebalancer) learnLeaves(ctx context.Context) error {
	trees := map[string][]Provider{}
	for i, s := range p.sources {
		if len(s.consumers) > 0 && s.leaves == nil {
			for _, states := range [][]Provider{nil, p.world.moving(p.from(s), nil)} {
				if key, tree := p.treeWith(s.root, states); p.known[key] == nil {
					trees[key] = tree
				}
			}
		}
		if len(trees) < treesTogether && i < len(p.sources)-1 {
			continue
		}
		if err := cmp.Or(ctx.Err(), p.learn(trees)); err != nil {
			return err
		}
		clear(trees)
	}
	return nil
}

// learn adds the fits in trees to the known ones. It copies the trees into one
// world, with new uuids in the same order. If isNamed is set, each tree keeps its
// uuids in a separate world.
func (p *rebalancer) learn(trees map[string][]Provider) error {
	var all []Provider
	keys := map[string]string{} // by roots
	for key, tree := range trees {
		p.known[key] = make([]int64, len(p.Requests))
		if p.isNamed {
			if err := p.learnIn(tree, map[string]string{tree[0].UUID: key}); err != nil {
				return err
			}
			continue
		}
		of := map[string]string{"": ""}
		for i := range tree {
			of[tree[i].UUID] = fmt.Sprintf("%08x-0000-4000-8000-%012x", len(keys)+1, i)
			all = append(all, tree[i])
			last := &all[len(all)-1]
			last.UUID, last.Name, last.Parent = of[last.UUID], of[last.UUID], of[last.Parent]
		}
		keys[of[tree[0].UUID]] = key
	}
	return p.learnIn(all, keys)
}

// learnIn adds the fits in the trees of providers to the known ones, by the keys
// of their roots.
func (p *rebalancer) learnIn(providers []Provider, keys map[string]string) error {
	w := NewWorld(Names{}, providers)
	for i := range p.Requests {
		if p.shared[i] || len(providers) == 0 {
			continue
		}
		err := p.fitEach(w, &p.Requests[i].Request, func(root string, fits int64) { p.known[keys[root]][i] = fits })
		if err != nil {
			return err
		}
	}
	return nil
}

// contentOf returns a key of the providers of a tree. Trees with equal keys have
// equal fits.
func (p *rebalancer) contentOf(tree []Provider) string {
	var key []byte
	for i := range tree {
		of := &tree[i]
		parent := slices.IndexFunc(tree[:i], func(other Provider) bool { return other.UUID == of.Parent })
		key = binary.AppendVarint(key, int64(parent))
		if p.isNamed {
			key = append(key, of.UUID...)
		}
		for _, names := range [][]string{of.Traits, of.Aggregates} {
			key = binary.AppendUvarint(key, uint64(len(names)))
			for _, name := range names {
				key = append(binary.AppendUvarint(key, uint64(len(name))), name...)
			}
		}
		key = binary.AppendUvarint(key, uint64(len(of.Inventories)))
		for k := range of.Inventories {
			has := &of.Inventories[k]
			key = append(binary.AppendUvarint(key, uint64(len(has.ResourceClass))), has.ResourceClass...)
			units := [...]int64{has.Capacity, has.Used, int64(has.MinUnit), int64(has.MaxUnit), int64(has.StepSize)}
			for _, number := range units {
				key = binary.AppendVarint(key, number)
			}
		}
	}
	return string(key)
}

// count sets the fits and the gain of a move.
func (p *rebalancer) count(m *relocating) (err error) {
	var after *World
	if p.hasShared {
		after = p.world.With(Update{Providers: p.world.moving(p.from(m.source), m.Allocations)})
	}
	m.fits = make([]int64, len(p.fits))
	changes := make([]int64, len(p.fits))
	for i := range m.fits {
		m.fits[i] = p.fits[i] + m.leaves[i] + m.change[i]
		if p.shared[i] {
			if m.fits[i], err = p.fit(after, &p.Requests[i].Request); err != nil {
				return err
			}
		}
		changes[i] = m.fits[i] - p.fits[i]
	}
	m.gain = p.gainOf(changes)
	return nil
}

// from returns the allocations of the next consumer of a source.
func (p *rebalancer) from(s *source) []ProviderAllocation {
	return allocationsOf(p.held.partsOf(s.consumers[0].lost))
}

func (p *rebalancer) make(best *relocating) RebalanceMove {
	move := RebalanceMove{p.held.moveOf(&best.consumers[0], best.Candidate), best.fits, best.gain}
	p.world, p.fits = p.world.With(Update{Providers: p.world.moving(move.From, move.To)}), best.fits
	best.consumers = best.consumers[1:]
	for _, s := range p.sources {
		if s.root == best.root || slices.Contains(best.roots, s.root) {
			s.leaves = nil
		}
	}
	return move
}

// moving returns the providers of both lists after the amounts have moved from
// the first to the second. Their versions stay, see Taking.
func (w *World) moving(from, to []ProviderAllocation) []Provider {
	states := make([]Provider, 0, len(from)+len(to))
	use := func(of []ProviderAllocation, sign int64) {
		for _, allocation := range of {
			i := slices.IndexFunc(states, func(state Provider) bool { return state.UUID == allocation.Provider })
			if i < 0 {
				i = len(states)
				provider, _ := w.Provider(allocation.Provider)
				states = append(states, *provider)
				states[i].Inventories = slices.Clone(provider.Inventories)
			}
			for _, amount := range allocation.Resources {
				states[i].use(amount.ResourceClass, sign*amount.Amount)
			}
		}
	}
	use(from, -1)
	use(to, 1)
	return states
}
