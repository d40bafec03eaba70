package placement

import (
	"container/heap"
	"slices"
)

// Placing chooses and claims for consumers without allocations. It follows
// `PlaceInput`.
type Placing struct {
	// Request has the order of the candidates and its Seed and Shapes.
	Request   Request
	Consumers []NewConsumer
	// Atomic means that all consumers are placed or none.
	Atomic bool
	// HoldFor is for how many seconds the consumers are held, 1 to MaxHold; nil
	// means that they are not.
	HoldFor *int
}

// NewConsumer is a consumer to place.
type NewConsumer struct {
	UUID      string
	ProjectID string
	UserID    string
	Type      *string
}

// Claim returns the claim of a candidate for the consumer.
func (n *NewConsumer) Claim(candidate *Candidate) ConsumerClaim {
	return ConsumerClaim{UUID: n.UUID, ProjectID: n.ProjectID, UserID: n.UserID, Type: n.Type,
		Allocations: candidate.Allocations, Mappings: candidate.Mappings}
}

// Validate returns every problem of the consumers' form and of the hold, each at
// its path below path ("input"). Validate of the Request returns the others.
func (p *Placing) Validate(path string) []Problem {
	var claim Claim
	for i := range p.Consumers {
		claim.Consumers = append(claim.Consumers, p.Consumers[i].Claim(new(Candidate)))
	}
	v := validator{problems: claim.Validate(path)}
	v.require(p.HoldFor == nil || 1 <= *p.HoldFor && *p.HoldFor <= MaxHold, under(path, "holdFor"), "must be between 1 and 86400")
	return v.problems
}

// Choices are the candidates for the consumers of a Placing.
type Choices struct {
	// Of has, for each consumer, its candidate, or nil where nothing fits. An
	// atomic placing ends at the first nil.
	Of []*Candidate
	// Spares are further candidates, each of another root where possible.
	Spares []Candidate
	// After is the world after all candidates in Of.
	After *World
}

// Choose returns the candidates for the consumers, one after the other: each is
// the first candidate, in the order of the request, of the world after those
// before. Under Random the consumers take the roots in turn. The error is
// ErrTooComplex.
func (p *Placing) Choose(w *World, spares int) (Choices, error) {
	c := &chooser{world: w, request: &p.Request}
	choices := Choices{Of: make([]*Candidate, 0, len(p.Consumers))}
	isFull := false // then it stays so: all consumers ask for the same
	for range p.Consumers {
		var candidate *Candidate
		if !isFull {
			var err error
			if candidate, err = c.next(); err != nil {
				return choices, err
			}
			isFull = candidate == nil
		}
		choices.Of = append(choices.Of, candidate)
		if isFull && p.Atomic {
			break
		}
		if candidate != nil {
			c.world = c.world.taking(candidate)
		}
	}
	choices.After = c.world
	if isFull || spares == 0 {
		return choices, nil
	}
	var err error
	choices.Spares, err = c.spares(spares)
	return choices, err
}

// taking returns the world after a candidate was claimed. The versions of its
// providers stay, so that the states of the database replace them.
func (w *World) taking(candidate *Candidate) *World {
	var update Update
	for _, allocation := range candidate.Allocations {
		id, _ := w.byUUID.get(allocation.Provider)
		provider := *w.nodes.at(id).provider
		provider.Inventories = slices.Clone(provider.Inventories)
		for _, amount := range allocation.Resources {
			provider.use(amount.ResourceClass, amount.Amount)
		}
		update.Providers = append(update.Providers, provider)
	}
	return w.With(update)
}

// chooser chooses one candidate after the other. For an order by score it keeps
// all roots in a heap: a choice changes the score of one root.
type chooser struct {
	world    *World
	request  *Request
	plan     *plan
	strategy *strategy
	roots    rootHeap
	last     *scoredRoot // the root of the last choice, to be scored again
	taken    *Candidate  // the last choice
	steps    int
}

// next returns the next candidate, nil where nothing fits.
func (c *chooser) next() (*Candidate, error) {
	if !c.request.Order.isScored() {
		page, err := Candidates(c.world, c.request, nil, 1)
		if c.steps += page.Steps; c.steps > MaxSteps {
			err = ErrTooComplex
		}
		if err != nil || len(page.Candidates) == 0 {
			return nil, err
		}
		return &page.Candidates[0], nil
	}
	s := c.search()
	if c.roots == nil {
		c.roots = s.scoredRoots(nil)
	}
	if c.last != nil {
		c.putBack(s)
	}
	c.taken, c.last = c.best(s)
	c.steps = s.steps
	return c.taken, s.err
}

// search returns a search of the current world. The masks and the trees of the
// plan stay true when use changes.
func (c *chooser) search() *search {
	if c.plan == nil {
		c.plan = compile(c.world, c.request).narrowAnchors()
		c.plan.narrow()
		c.strategy = newStrategy(c.plan, c.request)
	}
	c.plan.world = c.world
	if c.strategy.rooms != nil {
		c.strategy.rooms.world = c.world
	}
	s := newSearch(c.plan)
	s.strategy, s.steps = c.strategy, c.steps
	return s
}

// putBack scores the root of the last choice again, and the roots of providers
// that shared with it.
func (c *chooser) putBack(s *search) {
	root := *c.last
	c.last = nil
	if c.request.Order == Random {
		root.score += 1 << 53 // behind all roots that were chosen less often
		heap.Push(&c.roots, root)
		return
	}
	tree := s.world.nodes.at(root.id).tree
	score, ok := s.scoreOf(tree)
	if root.score = score; ok {
		heap.Push(&c.roots, root)
	}
	shared := map[*providerTree]bool{}
	for i := range c.taken.Allocations {
		id, _ := s.world.byUUID.get(c.taken.Allocations[i].Provider)
		shared[s.world.nodes.at(id).tree] = true
	}
	if delete(shared, tree); len(shared) > 0 {
		c.scoreAgain(s, shared)
	}
}

// scoreAgain scores the roots of some trees again. A root that cannot serve any
// more stays in the heap.
func (c *chooser) scoreAgain(s *search, trees map[*providerTree]bool) {
	for i := range c.roots {
		tree := s.world.nodes.at(c.roots[i].id).tree
		if !trees[tree] {
			continue
		}
		if score, ok := s.scoreOf(tree); ok {
			c.roots[i].score = score
		}
	}
	heap.Init(&c.roots)
}

// best returns the first candidate and its root. It removes the root from the
// heap, with those before it, which have no candidate.
func (c *chooser) best(s *search) (candidate *Candidate, of *scoredRoot) {
	s.emit = func() bool {
		found := s.buildCandidate()
		candidate = &found
		return false
	}
	for len(c.roots) > 0 && s.err == nil {
		root := heap.Pop(&c.roots).(scoredRoot)
		anchor := s.world.nodes.at(root.id).tree
		if c.request.Order == LeastFragmenting { // providers that share may have filled
			score, ok := s.scoreOf(anchor)
			if ok && score != root.score {
				root.score = score
				heap.Push(&c.roots, root)
				continue
			}
		}
		if s.enter(anchor) {
			s.assign(0, false)
		}
		if candidate != nil {
			return candidate, &root
		}
	}
	return nil, nil
}

// spares returns further candidates. The chooser must not be used afterwards.
func (c *chooser) spares(n int) ([]Candidate, error) {
	if !c.request.Order.isScored() {
		request := *c.request
		request.Order = BreadthFirst
		page, err := Candidates(c.world, &request, nil, n)
		return page.Candidates, err
	}
	s := c.search()
	if c.last != nil {
		c.putBack(s)
	}
	var spares []Candidate
	for len(spares) < n {
		candidate, _ := c.best(s)
		if candidate == nil {
			break
		}
		spares = append(spares, *candidate)
	}
	return spares, s.err
}
