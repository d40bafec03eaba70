package placement

import (
	"cmp"
	"errors"
	"slices"
)

// Candidate is one way to serve a request: what each provider gives, by provider uuid and class, and who
// serves which group, by suffix with "" first. Providers that serve only resourceless groups appear in the
// mappings alone.
type Candidate struct {
	Allocations []ProviderAllocation
	Mappings    []Mapping
}

// Page is a run of candidates in the total order.
type Page struct {
	Candidates []Candidate
	Positions  []Position // of each candidate
	HasNext    bool
	Steps      int // search steps taken
}

// MaxSteps bounds the search for one answer. A step is one provider or one pairing looked at, some tens of
// nanoseconds; the count depends on the world, the request and the page alone, never on the machine.
const MaxSteps = 20_000_000

// MaxCount is how far callers are expected to let Count go.
const MaxCount = 10_000

// ErrTooComplex says that MaxSteps did not suffice.
var ErrTooComplex = errors.New("placement: the request needs too many search steps")

// Candidates lists up to first candidates after a position (nil: from the beginning), in the one total
// order: by the anchor root's uuid; then slot by slot, the classes of the unsuffixed group by name and then
// the suffixed groups by suffix, each by its provider's path of uuids. A candidate that several anchors
// allow belongs to the least. The world decides alone: what is listed can be claimed on it as it is. It
// fails with ErrTooComplex, or with ErrPositionMismatch if the position came from another request.
func Candidates(w *World, r *Request, after *Position, first int) (Page, error) {
	var page Page
	hash := r.hash()
	if after != nil && after.request != hash {
		return page, ErrPositionMismatch
	}
	s := newSearch(compile(w, r).narrowAnchors())
	s.after = after
	s.emit = func() bool {
		if len(page.Candidates) >= first {
			page.HasNext = true
			return false
		}
		page.Candidates = append(page.Candidates, s.candidate())
		page.Positions = append(page.Positions, s.position(hash))
		return true
	}
	err := s.run()
	page.Steps = s.steps
	return page, err
}

// Count is the number of candidates, counted without building them, up to a limit; exact is false when
// there are more.
func Count(w *World, r *Request, limit int) (n int, exact bool, err error) {
	exact = true
	s := newSearch(compile(w, r).narrowAnchors())
	s.emit = func() bool {
		exact = n < limit
		if exact {
			n++
		}
		return exact
	}
	err = s.run()
	return n, exact && err == nil, err
}

// search walks the assignments of slots to providers, anchor by anchor, in the total order.
type search struct {
	*plan
	after *Position
	emit  func() bool // for the assignment in chosen; false ends the search
	steps int
	err   error

	anchor  *tree
	options [][]option // per slot, in path order
	chosen  []option   // per slot, up to the current depth
	loads   []int64    // amount chosen so far, by provider's local number and merged class
	holders []int32    // suffixed slots served so far, by local number

	matchers    []*matcher
	clauseArena []uint64   // what own options meet, reused from anchor to anchor
	met         [][]uint64 // per depth: clauses met so far
	reach       [][]uint64 // per slot: clauses that this slot and later ones can still meet

	shared    map[string]*sharedOptions
	numbers   map[int32]int32 // local numbers of foreign sharing providers, counted from 0
	exhausted map[*sharedOptions]bool
}

func newSearch(p *plan) *search {
	s := &search{
		plan:      p,
		options:   make([][]option, len(p.slots)),
		chosen:    make([]option, len(p.slots)),
		shared:    map[string]*sharedOptions{},
		numbers:   map[int32]int32{},
		exhausted: map[*sharedOptions]bool{},
	}
	s.matchers = p.newMatchers()
	words := (len(p.clauses) + 63) / 64
	for range p.classSlots + 1 {
		s.met = append(s.met, make([]uint64, words))
		s.reach = append(s.reach, make([]uint64, words))
	}
	return s
}

// run emits every candidate after the position.
func (s *search) run() error {
	if len(s.slots) == 0 {
		return nil
	}
	start := ""
	if s.after != nil {
		start = s.after.anchor
	}
	for root, anchor := range s.world.trees.from(start) {
		if !s.enter(anchor) {
			if s.err != nil {
				return s.err
			}
			continue
		}
		if !s.place(0, s.after != nil && root == start) {
			return s.err
		}
	}
	return s.err
}

// step counts work; it reports false when there was too much.
func (s *search) step(n int) bool {
	if s.steps += n; s.steps > MaxSteps {
		s.err = ErrTooComplex
		return false
	}
	return true
}

// place chooses a provider for the slot at this depth and goes on to the next. Tight means that all slots
// so far were chosen as in the position to continue after. It reports false when the search has ended.
func (s *search) place(depth int, tight bool) bool {
	if depth == len(s.slots) {
		if tight || !s.isFirstAnchor() {
			return s.err == nil
		}
		return s.emit()
	}
	for _, o := range s.options[depth] {
		if !s.step(1) {
			return false
		}
		stillTight := false
		if tight {
			order := s.world.comparePath(o.node, s.after.paths, depth)
			if order < 0 {
				continue
			}
			stillTight = order == 0
		}
		if !s.fits(depth, o) {
			continue
		}
		s.choose(depth, o)
		if s.promising(depth) && !s.place(depth+1, stillTight) {
			s.release(depth, o)
			return false
		}
		s.release(depth, o)
		if s.err != nil {
			return false
		}
	}
	return true
}

// fits says whether a provider can take a slot on top of what is chosen already.
func (s *search) fits(i int, o option) bool {
	if s.isolate && i >= s.classSlots && s.holders[o.local] > 0 {
		return false
	}
	for _, d := range s.slots[i].demands {
		if !d.merged {
			continue
		}
		sum := s.loads[int(o.local)*s.classes+d.index] + d.amount
		if stock := o.node.stock(d.class); sum > stock.free || sum > stock.maxUnit {
			return false
		}
	}
	return true
}

func (s *search) choose(i int, o option) {
	s.chosen[i] = o
	for _, d := range s.slots[i].demands {
		if d.merged {
			s.loads[int(o.local)*s.classes+d.index] += d.amount
		}
	}
	if i >= s.classSlots {
		s.holders[o.local]++
	} else if len(s.clauses) > 0 {
		for word := range o.meets {
			s.met[i+1][word] = s.met[i][word] | o.meets[word]
		}
	}
}

func (s *search) release(i int, o option) {
	for _, d := range s.slots[i].demands {
		if d.merged {
			s.loads[int(o.local)*s.classes+d.index] -= d.amount
		}
	}
	if i >= s.classSlots {
		s.holders[o.local]--
	}
}

// promising prunes: it reports false only if no choice for the slots after this depth completes a candidate.
func (s *search) promising(depth int) bool {
	if depth < s.classSlots && len(s.clauses) > 0 && !s.clausesWithin(s.met[depth+1], s.reach[depth+1]) {
		return false
	}
	for _, subtree := range s.subtrees {
		if !s.subtreePossible(subtree, depth) {
			return false
		}
	}
	for _, m := range s.matchers {
		if !s.rematch(m, depth) {
			return false
		}
	}
	return s.err == nil
}

// isFirstAnchor says whether no lesser anchor allows the same assignment. One with a provider that does not
// share has only this anchor; otherwise every anchor is a root that the first provider's aggregates reach, or
// that provider's own, which its aggregates reach too if it has any.
func (s *search) isFirstAnchor() bool {
	for _, o := range s.chosen {
		if !o.node.sharing {
			return true
		}
	}
	for _, id := range s.chosen[0].node.aggregates {
		roots := s.world.aggregated.at(id).roots
		for root, rootID := range roots.all() {
			if root >= s.anchor.root {
				break
			}
			if !s.step(1) || s.allows(s.world.nodes.at(rootID).tree) {
				return false
			}
		}
	}
	return true
}

// allows says whether the chosen providers, all of them sharing, could serve from another anchor too.
func (s *search) allows(anchor *tree) bool {
	if !s.anchored(anchor) {
		return false
	}
	for i, o := range s.chosen {
		if !o.node.reaches(anchor) || !s.serves(&s.slots[i], o.node, anchor) {
			return false
		}
	}
	return true
}

// candidate builds what is chosen.
func (s *search) candidate() Candidate {
	var candidate Candidate
	given := map[*node]map[string]int64{}
	for i, o := range s.chosen {
		if len(s.slots[i].demands) > 0 && given[o.node] == nil {
			given[o.node] = map[string]int64{}
		}
		for _, d := range s.slots[i].demands {
			given[o.node][d.name] += d.amount
		}
	}
	for n, amounts := range given {
		allocation := ProviderAllocation{Provider: n.provider.UUID}
		for class, amount := range amounts {
			allocation.Resources = append(allocation.Resources, Amount{ResourceClass: class, Amount: amount})
		}
		slices.SortFunc(allocation.Resources, compareAmounts)
		candidate.Allocations = append(candidate.Allocations, allocation)
	}
	slices.SortFunc(candidate.Allocations, func(a, b ProviderAllocation) int { return cmp.Compare(a.Provider, b.Provider) })

	if s.classSlots > 0 {
		mapping := Mapping{}
		for _, o := range s.chosen[:s.classSlots] {
			mapping.Providers = append(mapping.Providers, o.node.provider.UUID)
		}
		mapping.Providers = sortedSet(mapping.Providers)
		candidate.Mappings = append(candidate.Mappings, mapping)
	}
	for i := s.classSlots; i < len(s.slots); i++ {
		uuid := s.chosen[i].node.provider.UUID
		candidate.Mappings = append(candidate.Mappings, Mapping{Suffix: s.slots[i].suffix, Providers: []string{uuid}})
	}
	return candidate
}

func compareAmounts(a, b Amount) int { return cmp.Compare(a.ResourceClass, b.ResourceClass) }
