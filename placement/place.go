package placement

// Placing asks to choose candidates for consumers without allocations, and to
// claim them. It follows `PlaceInput`.
type Placing struct {
	// Request has the order of the candidates and its Seed and Shapes.
	Request   Request
	Consumers []NewConsumer
	// Atomic means that either all consumers are placed or none.
	Atomic bool
	// HoldFor is the length of the hold in seconds, 1 to MaxHold; nil means no
	// hold.
	HoldFor *int
	// Policy restricts the hosts; nil allows all.
	Policy *Policy
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

// Validate returns every problem of the form of consumers, policy and hold, each
// at its path below path ("input"). The function Validate checks the Request.
func (p *Placing) Validate(path string) []Problem {
	var claim Claim
	for i := range p.Consumers {
		claim.Consumers = append(claim.Consumers, p.Consumers[i].Claim(new(Candidate)))
	}
	v := validator{problems: claim.Validate(path)}
	if p.Policy != nil {
		v.problems = append(v.problems, p.Policy.Validate(under(path, "policy"))...)
	}
	v.require(p.HoldFor == nil || 1 <= *p.HoldFor && *p.HoldFor <= MaxHold,
		under(path, "holdFor"), "must be between 1 and 86400")
	return v.problems
}

// Choices are the candidates for the consumers of a Placing.
type Choices struct {
	// Of has, for each consumer, its candidate, or nil where nothing fits. An
	// atomic placing ends at the first nil.
	Of []*Candidate
	// Spares are further candidates, each of another root where possible. The
	// policy allows each instead of the first choice or, if several consumers must
	// have distinct hosts, in addition to all choices.
	Spares []Candidate
	// Following are the choices for further consumers, half as many as spares, with a
	// ZoneSpread. If other placings with the policy are faster, it allows one of
	// these rather than a spare.
	Following []Candidate
	// After is the world after all candidates in Of.
	After *World
	Steps int // search steps taken
}

// Choose returns the candidates for the consumers, one after the other. Each is
// the first candidate, in the order of the request, that the policy allows in
// the world after the previous choices. BreadthFirst works as DepthFirst. Under
// Random the consumers take the roots in turn. Rankings, which may be nil,
// saves time and does not change the result. The error is ErrTooComplex.
func (p *Placing) Choose(w *World, spares int, rankings *Rankings) (Choices, error) {
	c := newChooser(w, &p.Request, rankings, p.Tally(w))
	choices := Choices{Of: make([]*Candidate, 0, len(p.Consumers))}
	isFull := false // once true, always true: all consumers have one request
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
		err = p.addSpares(&choices, c, spares, w)
	}
	if choices.Steps = c.steps; err == nil {
		c.keep()
	}
	return choices, err
}

// addSpares adds up to n spares, and the following choices. w is the world before the choices.
func (p *Placing) addSpares(choices *Choices, c *chooser, n int, w *World) (err error) {
	after, following := c.tally, 0
	if p.Policy != nil && (p.Policy.Hosts != DistinctHosts || len(p.Consumers) == 1) {
		c.tally = p.Tally(w) // a spare replaces the choice, so the policy need not allow both
	}
	if p.Policy != nil && p.Policy.Spread != nil {
		following = n / 2
	}
	choices.Spares, err = c.spares(n)
	for c.tally = after; err == nil && len(choices.Following) < following; {
		var candidate *Candidate
		if candidate, err = c.next(); candidate == nil || err != nil {
			break
		}
		c.take(candidate)
		choices.Following = append(choices.Following, *candidate)
	}
	return err
}

// Explain explains why nothing fits a consumer of the placing in a world. The
// last step is the policy's if it alone refuses the remaining providers.
func (p *Placing) Explain(w *World) Explanation {
	e := Explain(w, &p.Request)
	if last := len(e.Steps) - 1; p.Policy != nil && last >= 0 && e.Steps[last].Remaining > 0 {
		left := e.Steps[last].Remaining
		e.Steps = append(e.Steps, ExplanationStep{Kind: ConstraintCombination, Path: "policy",
			Constraint: "policy", Eliminated: left})
	}
	return e
}

// Taking returns the world after candidates were claimed, one after the other.
// The versions of the providers stay, so that later states from the database
// replace the providers.
func (w *World) Taking(candidates ...*Candidate) *World {
	for _, candidate := range candidates {
		w = w.With(Update{Providers: w.moving(nil, candidate.Allocations)})
	}
	return w
}

// chooser chooses one candidate after the other. For an order by score, with
// preferences, alternatives or a policy it keeps all roots in rankings, because
// a choice changes the scores of few roots.
type chooser struct {
	world    *World
	request  *Request
	rankings *Rankings
	lines    []*line // one for each combination of alternatives
	last     *line   // of the last choice
	tally    *Tally  // of the policy, nil without one
	steps    int
}

// line is a combination of alternatives with its ranking, nil before the first
// search.
type line struct {
	combination
	ranking *ranking
	isFull  bool       // once true, always true, since use only grows
	root    scoredRoot // of the last choice
	isOut   bool       // whether root is still out of the ranking
	// taken are the choices since the last search, of all lines.
	taken []*Candidate
}

// newChooser returns a chooser that searches only the first candidate of each
// shape. The first candidate of all is among these. With a policy on a level it
// searches all, because the policy treats candidates of one shape differently.
func newChooser(w *World, r *Request, rankings *Rankings, tally *Tally) *chooser {
	request := *r
	request.Distinct, request.Alternatives = DistinctShape, 1
	if tally.isByLevel() {
		request.Distinct, request.Alternatives = DistinctNone, 0
	}
	c := &chooser{world: w, request: &request, rankings: rankings, tally: tally}
	for _, one := range request.combinations() {
		c.lines = append(c.lines, &line{combination: one})
	}
	return c
}

// isRanked reports whether the choices follow rankings of all roots.
func (c *chooser) isRanked() bool {
	return c.request.Order.isScored() || c.request.isPreferring() || len(c.lines) > 1 || c.tally != nil
}

// next returns the next candidate, nil if nothing fits any more.
func (c *chooser) next() (*Candidate, error) {
	if !c.isRanked() {
		page, err := Candidates(c.world, c.request, nil, 1)
		if c.steps += page.Steps; c.steps > MaxSteps {
			err = ErrTooComplex
		}
		if err != nil || len(page.Candidates) == 0 {
			return nil, err
		}
		return &page.Candidates[0], nil
	}
	for _, l := range c.lines {
		if l.isFull {
			continue
		}
		s := c.search(l)
		candidate, root, isEmpty := l.ranking.best(s, c.tally)
		if c.steps = s.steps; s.err != nil {
			return nil, s.err
		}
		if candidate != nil {
			candidate.Alternatives = l.alternatives
			c.last, l.root = l, root
			return candidate, nil
		}
		l.isFull = isEmpty
	}
	return nil, nil
}

// take claims a candidate, only in the world of the chooser.
func (c *chooser) take(candidate *Candidate) {
	c.world = c.world.Taking(candidate)
	if !c.isRanked() {
		return
	}
	if c.tally != nil {
		c.tally.Place(candidate)
	}
	c.last.isOut = true
	c.last.ranking.forget(c.last.root.id)
	for _, l := range c.lines {
		l.taken = append(l.taken, candidate)
	}
}

// search returns a search of the current world, and updates the ranking of a
// line to that world.
func (c *chooser) search(l *line) *search {
	isFirst := l.ranking == nil
	if isFirst {
		l.ranking = c.rankings.take(l.ranked(), c.world)
	}
	isNew := l.ranking == nil
	if isNew {
		l.ranking = newRanking(c.world, &l.Request)
	}
	s := l.ranking.search(c.world)
	s.steps = c.steps
	switch {
	case isNew:
		l.ranking.rank(s)
	case isFirst:
		l.ranking.follow(s, c.request.Seed)
	default:
		l.putBack(s)
	}
	l.taken, l.isOut = nil, false
	return s
}

// putBack scores again the roots of the choices since the last search, and the
// roots of the providers that they use. Under Random it puts the root of the
// line's last choice behind the others.
func (l *line) putBack(s *search) {
	if l.Order == Random {
		if l.isOut {
			l.ranking.push(l.root.id, l.root.score+randomScores) // behind all roots that were chosen less often
		}
		return
	}
	trees := map[*providerTree]bool{}
	for _, candidate := range l.taken {
		trees[s.world.treeOf(candidate.Root)] = true
		for i := range candidate.Allocations {
			trees[s.world.treeOf(candidate.Allocations[i].Provider)] = true
		}
	}
	l.ranking.scoreAgain(s, trees)
	for tree := range trees {
		l.ranking.forget(tree.members[0])
	}
}

// spares returns up to n further candidates, each of another root where possible.
func (c *chooser) spares(n int) ([]Candidate, error) {
	if !c.isRanked() {
		request := *c.request
		request.Order = BreadthFirst
		request.Alternatives = n // the first n of a root are among the first n of their shapes
		page, err := Candidates(c.world, &request, nil, n)
		return page.Candidates, err
	}
	var spares []Candidate
	for _, l := range c.lines {
		if l.isFull || len(spares) == n {
			continue
		}
		s := c.search(l)
		var roots []scoredRoot
		for len(spares) < n {
			candidate, root, _ := l.ranking.best(s, c.tally)
			if candidate == nil {
				break
			}
			candidate.Alternatives = l.alternatives
			spares, roots = append(spares, *candidate), append(roots, root)
		}
		for _, root := range roots {
			l.ranking.push(root.id, root.score)
		}
		if c.steps = s.steps; s.err != nil {
			return spares, s.err
		}
	}
	return spares, nil
}

func (c *chooser) keep() {
	for _, l := range c.lines {
		c.rankings.keep(l.ranking)
	}
}
