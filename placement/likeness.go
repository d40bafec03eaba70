package placement

import (
	"encoding/binary"
	"slices"
)

// CandidateDistinct decides which candidates are listed.
type CandidateDistinct int

const (
	// DistinctNone lists all candidates.
	DistinctNone CandidateDistinct = iota
	// DistinctShape lists at most Request.Alternatives candidates of each shape,
	// the first ones in the order of the request.
	//
	// Two providers with one parent are alike if the request cannot tell them
	// apart: by free units, capacity and units of the classes that it asks for, by
	// the traits that its groups name and by taints, by the aggregates of its
	// filters, and by their children. A provider that shares is like one with the
	// same aggregates. Roots are never alike. Two candidates have one shape if
	// exchanges of like providers, each with its descendants, turn one into the
	// other, with its mappings. Candidates of two roots or two combinations never do.
	DistinctShape
)

// MaxOfShape is the maximum of Request.Alternatives.
const MaxOfShape = 1000

// AlternativesRule is the rule of Allows.
const AlternativesRule = "must be between 1 and 1000"

// Allows reports whether Request.Alternatives may have a value.
func (d CandidateDistinct) Allows(alternatives int) bool {
	return d == DistinctNone || 1 <= alternatives && alternatives <= MaxOfShape
}

// likeness is the part of providers that a request can tell apart.
type likeness struct {
	limit      int     // candidates of each shape
	classes    []int32 // that the request asks for
	traits     []int32 // sorted
	aggregates []int32 // sorted
}

// likenessOf returns nil for a request that lists all candidates.
func (p *plan) likenessOf(r *Request) *likeness {
	if r.Distinct == DistinctNone {
		return nil
	}
	l := &likeness{limit: max(1, r.Alternatives), classes: make([]int32, p.classes)}
	for _, s := range p.slots {
		for _, d := range s.demands {
			l.classes[d.index] = d.class
		}
	}
	traits, aggregates := append(p.world.taints(), TraitShares), []string(nil)
	for _, g := range append([]Group{r.Unsuffixed}, r.Groups...) {
		traits = append(append(traits, g.Forbidden...), slices.Concat(g.clauses()...)...)
		for _, filter := range g.MemberOf {
			aggregates = append(aggregates, slices.Concat(canonicalAll(filter.AnyOf), canonicalAll(filter.NoneOf))...)
		}
	}
	l.traits, l.aggregates = p.world.traits.lookupAll(traits), p.world.aggregates.lookupAll(aggregates)
	return l
}

// appendContent appends a key of the content of a provider: like providers have
// one key.
func (l *likeness) appendContent(key []byte, n *node) []byte {
	for _, class := range l.classes {
		i := n.inventoryOf(class)
		if i == nil {
			key = append(key, 0)
			continue
		}
		key = append(key, 1)
		for _, number := range [...]int64{i.free, i.capacity, int64(i.minUnit), int64(i.maxUnit), int64(i.stepSize)} {
			key = binary.AppendVarint(key, number)
		}
	}
	key = appendIDs(key, common(n.traits, l.traits))
	if n.sharing {
		return appendIDs(key, n.aggregates)
	}
	return appendIDs(key, common(n.aggregates, l.aggregates))
}

func appendIDs(key []byte, ids []int32) []byte {
	key = binary.AppendUvarint(key, uint64(len(ids)))
	for _, id := range ids {
		key = binary.AppendVarint(key, int64(id))
	}
	return key
}

// common returns the elements of a that are in the sorted list b.
func common(a, b []int32) (both []int32) {
	for _, id := range a {
		if _, ok := slices.BinarySearch(b, id); ok {
			both = append(both, id)
		}
	}
	return both
}

// shapes ranks the assignments of each shape in the order of the search.
//
// The exchanges of like providers that leave the providers of the slots before
// a depth in place make orbits of the options at this depth. The rank of an
// assignment is a number whose digits are, slot by slot, how many options of
// the orbit come before the chosen one, to the base of the orbit's size. More
// slots never lower it, so the search prunes a branch when it reaches the
// limit.
type shapes struct {
	*likeness
	paths   map[*providerTree][]int32
	numbers map[string]int32
	ranks   []int          // per depth: of the slots before
	orbits  [][]*orbit     // per depth: of each option
	index   [][]int        // per depth: the number of options of the orbit before each option
	fixed   map[int32]bool // providers that an exchange leaves in place: chosen, or above a chosen one
}

// orbit is options that exchanges turn into each other.
type orbit struct{ size int }

// orbitKey identifies an orbit: below the nearest ancestor that stays in place,
// members of a tree with equal paths.
type orbitKey struct {
	tree      *providerTree
	top, path int32
}

func newShapes(p *plan) *shapes {
	if p.likeness == nil {
		return nil
	}
	return &shapes{likeness: p.likeness, paths: map[*providerTree][]int32{}, numbers: map[string]int32{},
		ranks: make([]int, len(p.slots)+1), orbits: make([][]*orbit, len(p.slots)), index: make([][]int, len(p.slots)),
		fixed: map[int32]bool{}}
}

// beginShapes begins with the options at a depth.
func (s *search) beginShapes(depth int) {
	if s.shapes != nil {
		s.shapes.orbits[depth] = s.shapes.orbits[depth][:0]
	}
}

// isAmongFirst reports whether the choice of options[k] for the slot at depth
// may lead to candidates that are among the first of their shape.
func (s *search) isAmongFirst(depth, k int, options []option) bool {
	if s.shapes == nil {
		return true
	}
	rank := s.shapes.ranks[depth]
	if k > 0 || rank > 0 { // the first option is the first of its orbit
		if len(s.shapes.orbits[depth]) == 0 {
			s.findOrbits(depth, options)
		}
		rank = rank*s.shapes.orbits[depth][k].size + s.shapes.index[depth][k]
	}
	s.shapes.ranks[depth+1] = rank
	return rank < s.shapes.limit
}

func (s *search) findOrbits(depth int, options []option) {
	h := s.shapes
	clear(h.fixed)
	for _, o := range s.chosen[:depth] {
		for i := o.node.index; i >= 0; i = o.node.tree.parents[i] {
			h.fixed[o.node.tree.members[i]] = true
		}
	}
	s.step(depth + len(options))
	found := map[orbitKey]*orbit{}
	orbits, index := h.orbits[depth][:0], h.index[depth][:0]
	for _, o := range options {
		t, top := o.node.tree, o.node.index
		path := s.pathsOf(t)[top]
		for top >= 0 && !h.fixed[t.members[top]] {
			top = t.parents[top]
		}
		key := orbitKey{t, top, path}
		if found[key] == nil {
			found[key] = new(orbit)
		}
		orbits, index = append(orbits, found[key]), append(index, found[key].size)
		found[key].size++
	}
	h.orbits[depth], h.index[depth] = orbits, index
}

// pathsOf returns a number for each member of a tree. Two members have one
// number if each ancestor of one is like the ancestor of the other at the same
// depth, and they are like each other.
func (s *search) pathsOf(t *providerTree) []int32 {
	h := s.shapes
	if paths, ok := h.paths[t]; ok {
		return paths
	}
	s.step(len(t.members))
	paths, children := make([]int32, len(t.members)), make([][]int32, len(t.members))
	for i := len(paths) - 1; i >= 0; i-- {
		slices.Sort(children[i])
		paths[i] = h.numberOf(appendIDs(h.appendContent(nil, s.world.nodes.at(t.members[i])), children[i]))
		if parent := t.parents[i]; parent >= 0 {
			children[parent] = append(children[parent], paths[i])
		}
	}
	paths[0] = 0
	below := map[[2]int32]int32{}
	for i := 1; i < len(paths); i++ { // parents come first
		step := [2]int32{paths[t.parents[i]], paths[i]}
		if _, ok := below[step]; !ok {
			below[step] = int32(len(below)) + 1
		}
		paths[i] = below[step]
	}
	h.paths[t] = paths
	return paths
}

func (h *shapes) numberOf(key []byte) int32 {
	number, ok := h.numbers[string(key)]
	if !ok {
		number = int32(len(h.numbers))
		h.numbers[string(key)] = number
	}
	return number
}
