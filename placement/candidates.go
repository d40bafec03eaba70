package placement

import (
	"cmp"
	"errors"
	"iter"
	"maps"
	"slices"
)

// Candidate is one way to serve a request: the amounts allocated on each
// provider, by provider uuid and class, and the providers that serve each
// group, by suffix with "" first. Providers that serve only groups without
// resources are in the mappings alone.
type Candidate struct {
	// Root is the uuid of the anchor.
	Root string
	// Alternatives has the chosen alternative of each group with FirstOf, the
	// unsuffixed group first, then by suffix.
	Alternatives []GroupAlternative
	Allocations  []ProviderAllocation
	Mappings     []Mapping
}

// providers returns the uuids of the providers with allocations.
func (c *Candidate) providers() []string {
	uuids := make([]string, len(c.Allocations))
	for i := range c.Allocations {
		uuids[i] = c.Allocations[i].Provider
	}
	return uuids
}

// Page is a run of candidates in their total order.
type Page struct {
	Candidates []Candidate
	Positions  []Position // of each candidate
	HasNext    bool
	Steps      int // search steps taken
}

// MaxSteps bounds the search for one answer. A step considers one provider for
// a slot, or one anchor, and takes some tens of nanoseconds. The count depends
// on the world, the request and the page alone, never on the machine.
const MaxSteps = 20_000_000

// MaxCount is the largest limit that callers should pass to Count.
const MaxCount = 10_000

// ErrTooComplex is the error of a search that exceeds MaxSteps.
var ErrTooComplex = errors.New("placement: the request needs too many search steps")

// Candidates returns up to first candidates after a position (nil: from the
// beginning), in the order of the request.
//
// DepthFirst compares the anchor root's uuid first. Then it compares slot by
// slot, each by its provider's path of uuids: first the classes of the
// unsuffixed group by name, then the suffixed groups by suffix.
//
// A candidate that several anchors allow is listed once, under the first of
// them by uuid. Every candidate can be claimed on the world as it is. A
// DepthFirst position names providers, so pages neither repeat nor lose a
// candidate while others write, unless its anchor or a parent changes. A
// BreadthFirst position counts rounds: where an anchor gains or loses
// candidates, later pages can repeat or miss some of that anchor. A position of
// Spread, Pack, Random or LeastFragmenting has the anchor's score and counts
// its candidates: an anchor that moves past the position between two pages is
// repeated or missed, the others are not.
//
// The alternatives of groups make combinations (Group.FirstOf). All candidates
// of one combination precede the candidates of the next. A candidate of several
// combinations is listed for each.
//
// With preferences, the preference scores of anchors compare first. A
// DepthFirst position is then like a position of Spread.
//
// The error is ErrTooComplex, ErrPositionMismatch if the position came from
// another request or order, or ErrPositionGone.
func Candidates(w *World, r *Request, after *Position, first int) (Page, error) {
	var page Page
	request := r.fingerprint()
	if after != nil && after.request != request {
		return page, ErrPositionMismatch
	}
	if after != nil {
		var err error
		if after, err = after.in(w); err != nil {
			return page, err
		}
	}
	all := r.combinations()
	from := 0
	if after != nil {
		from = after.combination
	}
	for i := from; i < len(all) && !page.HasNext; i++ {
		plan := compile(w, &all[i].Request).narrowAnchors()
		plan.spent = page.Steps
		of, err := candidatesOf(plan, &all[i].Request, request, after, first-len(page.Candidates))
		for k := range of.Candidates {
			of.Candidates[k].Alternatives = all[i].alternatives
			of.Positions[k].combination, of.Positions[k].isCombined = i, len(all) > 1
		}
		page.Candidates, page.Positions = append(page.Candidates, of.Candidates...),
			append(page.Positions, of.Positions...)
		if page.HasNext, page.Steps = of.HasNext, of.Steps; err != nil {
			return page, err
		}
		after = nil
	}
	return page, nil
}

// candidatesOf returns a page of the candidates of one combination.
func candidatesOf(plan *plan, r *Request, request fingerprint, after *Position, first int) (Page, error) {
	var page Page
	switch {
	case r.Order == BreadthFirst:
		return breadthFirstPage(plan, r, request, after, first)
	case r.Order.isScored() || r.isPreferring():
		return scoredPage(plan, r, request, after, first)
	}
	s := newSearch(plan)
	s.after = after
	s.emit = func() bool {
		if len(page.Candidates) >= first {
			page.HasNext = true
			return false
		}
		page.Candidates = append(page.Candidates, s.buildCandidate())
		page.Positions = append(page.Positions, s.currentPosition(request))
		return true
	}
	err := s.run()
	page.Steps = s.steps
	return page, err
}

// Count returns the number of candidates, counted without building them, up to
// a limit; exact is false when there are more, or after an error. The error is
// ErrTooComplex.
func Count(w *World, r *Request, limit int) (n int, exact bool, err error) {
	exact = true
	steps := 0
	for _, one := range r.combinations() {
		p := compile(w, &one.Request).narrowAnchors()
		p.spent = steps
		s := newSearch(p)
		s.emit = func() bool {
			exact = n < limit
			if exact {
				n++
			}
			return exact
		}
		if err = s.run(); err != nil || !exact {
			return n, false, err
		}
		steps = s.steps
	}
	return n, exact, nil
}

// part is an amount on one provider: of a candidate's demand, or of a holding.
type part struct {
	provider string
	Amount
}

// buildCandidate returns the candidate of the chosen providers.
func (s *search) buildCandidate() Candidate {
	parts := s.parts[:0]
	for i, o := range s.chosen {
		for _, d := range s.slots[i].demands {
			parts = append(parts, part{o.node.provider.UUID, Amount{ResourceClass: d.name, Amount: d.amount}})
		}
	}
	s.parts = parts
	sortParts(parts)
	return Candidate{Root: s.anchor.root, Allocations: allocationsOf(parts), Mappings: s.mappings()}
}

// sortParts sorts parts by provider and resource class.
func sortParts(parts []part) {
	slices.SortFunc(parts, func(a, b part) int {
		return cmp.Or(cmp.Compare(a.provider, b.provider), cmp.Compare(a.ResourceClass, b.ResourceClass))
	})
}

// allocationsOf returns sorted parts as allocations. It adds up the amounts of
// a class on a provider. The amounts of all providers share one array.
func allocationsOf(parts []part) []ProviderAllocation {
	providers := 0
	for i, p := range parts {
		if i == 0 || parts[i-1].provider != p.provider {
			providers++
		}
	}
	if providers == 0 {
		return nil
	}
	allocations := make([]ProviderAllocation, 0, providers)
	amounts := make([]Amount, 0, len(parts))
	start := 0
	for i, p := range parts {
		begins := i == 0 || parts[i-1].provider != p.provider
		if begins {
			allocations, start = append(allocations, ProviderAllocation{Provider: p.provider}), len(amounts)
		}
		if last := len(amounts) - 1; !begins && amounts[last].ResourceClass == p.ResourceClass {
			amounts[last].Amount += p.Amount.Amount
		} else {
			amounts = append(amounts, p.Amount)
		}
		allocations[len(allocations)-1].Resources = amounts[start:len(amounts):len(amounts)]
	}
	return allocations
}

// mappings returns the providers of the current candidate by group.
func (s *search) mappings() []Mapping {
	var mappings []Mapping
	if s.classSlots > 0 {
		providers := make([]string, s.classSlots)
		for i, o := range s.chosen[:s.classSlots] {
			providers[i] = o.node.provider.UUID
		}
		slices.Sort(providers)
		mappings = append(mappings, Mapping{Providers: slices.Compact(providers)})
	}
	for i := s.classSlots; i < len(s.slots); i++ {
		mappings = append(mappings,
			Mapping{Suffix: s.slots[i].suffix, Providers: []string{s.chosen[i].node.provider.UUID}})
	}
	return mappings
}

// ProviderSummaries returns all providers, with inventories or without, of
// every tree that has a provider in the allocations or mappings of the
// candidates. It orders trees by their root's uuid and providers by their path
// of uuids. A sharing provider adds its own tree.
func ProviderSummaries(w *World, candidates []Candidate) []*Provider {
	roots := make(map[string]bool, len(candidates))
	last := "" // most candidates name one provider several times
	add := func(uuid string) {
		if uuid == last {
			return
		}
		last = uuid
		if t := w.treeOf(uuid); t != nil {
			roots[t.root] = true
		}
	}
	for _, c := range candidates {
		for _, allocation := range c.Allocations {
			add(allocation.Provider)
		}
		for _, mapping := range c.Mappings {
			for _, uuid := range mapping.Providers {
				add(uuid)
			}
		}
	}
	summaries := make([]*Provider, 0, len(roots))
	for _, root := range slices.Sorted(maps.Keys(roots)) {
		summaries = append(summaries, w.Tree(root)...)
	}
	return summaries
}

// CandidateOrder is a total order of candidates.
type CandidateOrder int

const (
	// DepthFirst lists the candidates of one anchor root after the other.
	DepthFirst CandidateOrder = iota
	// BreadthFirst lists the first candidate of each anchor root, then the second
	// of each, and so on. Within such a round, roots are in the order of their
	// uuids.
	BreadthFirst
)

// roundSearch searches one page of candidates in BreadthFirst order.
type roundSearch struct {
	plan   *plan
	wanted int // the maximum of the page, plus one to see whether there is a next page
	found  []ranked
	level  scoreLevel      // the anchors of one score of preferences, searched now
	live   []*providerTree // anchors that may have more candidates; nil for all
	steps  int
}

// ranked is a candidate with its place in the order.
type ranked struct {
	score  int16
	round  int
	anchor string
	Candidate
}

// breadthFirstPage returns up to first candidates after a position; nil is the
// beginning. The first pass takes one round, each later pass as many rounds as
// fill the page if no anchor runs out of candidates. So the number of passes
// grows with the logarithm of the product of page size and number of anchors.
//
// With preferences, the anchors of each score have separate rounds.
func breadthFirstPage(p *plan, r *Request, request fingerprint, after *Position, first int) (Page, error) {
	if len(p.slots) == 0 {
		return Page{}, nil
	}
	scores, steps := p.preferredBy(r)
	b := &roundSearch{plan: p, wanted: first + 1, steps: p.spent + steps}
	var err error
	for _, b.level = range p.levels(scores) {
		if after != nil && b.level.score > after.preferred {
			continue
		}
		from := after
		if after != nil && b.level.score < after.preferred {
			from = nil
		}
		if err = b.rounds(from); err != nil || len(b.found) >= b.wanted {
			break
		}
	}
	slices.SortStableFunc(b.found, func(x, y ranked) int {
		return cmp.Or(cmp.Compare(y.score, x.score), cmp.Compare(x.round, y.round), cmp.Compare(x.anchor, y.anchor))
	})
	page := Page{Steps: b.steps, HasNext: len(b.found) > first}
	for _, c := range b.found[:min(first, len(b.found))] {
		page.Candidates = append(page.Candidates, c.Candidate)
		page.Positions = append(page.Positions, Position{request: request, anchor: c.anchor, round: c.round,
			preferred: c.score, isPreferred: scores != nil})
	}
	return page, err
}

// rounds adds candidates of the level until the page is full or the level has
// no more. It begins after a position in the level; nil is the beginning.
func (b *roundSearch) rounds(after *Position) (err error) {
	round := 0
	b.live = b.level.trees
	if after != nil { // the rest of a round
		err = b.pass(after.anchor, after.round, after.round+1)
		round, b.live = after.round+1, b.level.trees
	}
	for rounds := 1; err == nil && len(b.found) < b.wanted; round += rounds {
		if b.live != nil {
			rounds = (b.wanted - len(b.found) + len(b.live) - 1) / len(b.live)
		}
		if err = b.pass("", round, round+rounds); len(b.live) == 0 {
			break
		}
	}
	return err
}

// pass adds the candidates in rounds [from, to) of the live anchors after a
// root. Afterwards live holds the anchors that had a candidate in each of these
// rounds. A pass of one round ends when the page is full.
func (b *roundSearch) pass(after string, from, to int) error {
	s := newSearch(b.plan)
	s.steps = b.steps
	var live []*providerTree
	round := 0
	isFull := func() bool { return to == from+1 && len(b.found) >= b.wanted }
	s.emit = func() bool {
		if round >= from {
			b.found = append(b.found, ranked{b.level.score, round, s.anchor.root, s.buildCandidate()})
		}
		round++
		return round < to
	}
	for root, anchor := range b.anchors(s, after) {
		if root == after {
			continue
		}
		if round = 0; s.enter(anchor) {
			s.assign(0, false)
		} else {
			s.vain++
		}
		if round >= to {
			live = append(live, anchor)
		}
		if s.err != nil || isFull() {
			break
		}
	}
	b.live, b.steps = live, s.steps
	return s.err
}

// anchors yields the live anchors from a root on.
func (b *roundSearch) anchors(s *search, from string) iter.Seq2[string, *providerTree] {
	if b.live == nil {
		return s.anchorsFrom(from)
	}
	return func(yield func(string, *providerTree) bool) {
		for _, anchor := range b.live {
			if anchor.root >= from && !yield(anchor.root, anchor) {
				return
			}
		}
	}
}
