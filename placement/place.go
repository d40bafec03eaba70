package placement

import "slices"

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
// before. Under Random the consumers take the roots in turn. Rankings, which
// may be nil, makes it faster and changes nothing. The error is ErrTooComplex.
func (p *Placing) Choose(w *World, spares int, rankings *Rankings) (Choices, error) {
	c := &chooser{world: w, request: &p.Request, rankings: rankings}
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
			c.take(candidate)
		}
	}
	choices.After = c.world
	var err error
	if !isFull && spares > 0 {
		choices.Spares, err = c.spares(spares)
	}
	if err == nil {
		rankings.keep(c.ranking)
	}
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
// all roots in a ranking: a choice changes the score of one root.
type chooser struct {
	world    *World
	request  *Request
	rankings *Rankings
	ranking  *ranking
	taken    *Candidate // the last choice
	root     scoredRoot // its root
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
	candidate, root := c.ranking.best(s)
	c.root, c.steps = root, s.steps
	return candidate, s.err
}

// take claims a candidate, in the world of the chooser alone.
func (c *chooser) take(candidate *Candidate) {
	c.world = c.world.taking(candidate)
	if c.taken = candidate; c.ranking != nil {
		c.ranking.forget(c.root.id)
	}
}

// search returns a search of the current world with the ranking as it is there.
func (c *chooser) search() *search {
	isFirst := c.ranking == nil
	if isFirst {
		c.ranking = c.rankings.take(c.request.ranked(), c.world)
	}
	isNew := c.ranking == nil
	if isNew {
		c.ranking = newRanking(c.world, c.request)
	}
	s := c.ranking.search(c.world)
	s.steps = c.steps
	switch {
	case isNew:
		c.ranking.rank(s)
	case isFirst:
		c.ranking.follow(s, c.request.Seed)
	case c.taken != nil:
		c.putBack(s)
	}
	return s
}

// putBack scores the root of the last choice again, and the roots of providers
// that shared with it.
func (c *chooser) putBack(s *search) {
	if c.request.Order == Random {
		c.ranking.push(c.root.id, c.root.score+1<<53) // behind all roots that were chosen less often
	} else {
		trees := map[*providerTree]bool{s.world.nodes.at(c.root.id).tree: true}
		for i := range c.taken.Allocations {
			trees[s.world.treeOf(c.taken.Allocations[i].Provider)] = true
		}
		c.ranking.scoreAgain(s, trees)
	}
	c.taken = nil
}

// spares returns further candidates, each of another root.
func (c *chooser) spares(n int) ([]Candidate, error) {
	if !c.request.Order.isScored() {
		request := *c.request
		request.Order = BreadthFirst
		page, err := Candidates(c.world, &request, nil, n)
		return page.Candidates, err
	}
	s := c.search()
	var spares []Candidate
	var roots []scoredRoot
	for len(spares) < n {
		candidate, root := c.ranking.best(s)
		if candidate == nil {
			break
		}
		spares, roots = append(spares, *candidate), append(roots, root)
	}
	for _, root := range roots {
		c.ranking.push(root.id, root.score)
	}
	return spares, s.err
}
