package placement

import (
	"cmp"
	"iter"
	"slices"
)

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
