package placement

import (
	"cmp"
	"errors"
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
