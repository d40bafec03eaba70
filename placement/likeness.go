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
	// apart: by the inventories of the classes that it asks for (without total,
	// reserved and ratio), by the traits that its groups name and by taints, by
	// the aggregates of its filters, and by their children. Providers that share
	// are alike only if all of their aggregates are the same. Roots are never
	// alike. Two candidates have one shape if exchanges of like providers, each
	// with its descendants, turn one into the other, with its mappings. Candidates
	// of two roots or two combinations never have one shape.
	DistinctShape
)

// MaxOfShape is the maximum of Request.Alternatives.
const MaxOfShape = 1000

// AlternativesRule is the message for a number that Allows refuses.
const AlternativesRule = "must be between 1 and 1000"

// Allows reports whether a number is valid for Request.Alternatives: any number
// with DistinctNone, otherwise 1 to MaxOfShape.
func (d CandidateDistinct) Allows(alternatives int) bool {
	return d == DistinctNone || 1 <= alternatives && alternatives <= MaxOfShape
}

// likeness lists the properties by which a request can tell providers apart.
type likeness struct {
	limit      int     // maximum number of candidates of each shape
	classes    []int32 // that the request asks for
	traits     []int32 // sorted
	aggregates []int32 // sorted
}

// likenessOf returns the likeness of a request, nil if it lists all candidates.
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

// appendContent appends a key of the content of a provider. The request can
// tell providers with equal keys apart only by their children.
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
// At each depth, only exchanges that leave the providers of earlier slots in
// place matter. Options that they turn into each other are an orbit. The rank
// of an assignment is a number with one digit for each slot: how many options
// of the orbit come before the chosen one, to the base of the orbit's size.
// Further slots never lower the rank, so the search prunes a branch whose rank
// reaches the limit.
type shapes struct {
	*likeness
	paths   map[*providerTree][]int32
	numbers map[string]int32
	ranks   []int          // per depth: of the slots before
	orbits  [][]*orbit     // per depth: of each option
	index   [][]int        // per depth: the number of options of the orbit before each option
	fixed   map[int32]bool // providers that stay in place: chosen, or above a chosen one
}

// orbit is options that exchanges turn into each other.
type orbit struct{ size int }

// orbitKey identifies an orbit: the members of a tree that have the same number
// in pathsOf and the same top. The top of a member is its nearest ancestor, or
// the member itself, that stays in place.
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

// beginShapes discards the orbits of a depth. They depend on earlier slots.
func (s *search) beginShapes(depth int) {
	if s.shapes != nil {
		s.shapes.orbits[depth] = s.shapes.orbits[depth][:0]
	}
}

// isAmongFirst reports whether the choice of options[k] for the slot at depth
// may lead to candidates that are among the first of their shape. It sets the
// rank for the next depth.
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

// pathsOf returns a number for each member of a tree. Two members have the same
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
