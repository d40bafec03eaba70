package placement

import (
	"maps"
	"slices"
)

// option is a provider that can serve a slot. Local numbers the providers of one anchor: its own by place,
// then the sharing ones of other trees.
type option struct {
	node  *node
	local int32
	meets []uint64 // clauses its traits meet, for the unsuffixed group
}

// sharedOptions are, per slot, the sharing providers that a set of aggregates makes usable.
type sharedOptions struct {
	options [][]option
}

// enter prepares the search below an anchor: every slot's options, narrowed by what no assignment can get
// around. It reports false when nothing can come of it.
func (s *search) enter(anchor *tree) bool {
	if !s.step(1) || !s.anchored(anchor) {
		return false
	}
	s.anchor = anchor
	shared := s.sharedFor(anchor)
	ownless := true
	for i := range s.slots {
		own, ok := s.fill(i, anchor, shared)
		if !ok {
			return false
		}
		ownless = ownless && own == 0
	}
	if ownless {
		// Only providers of other trees: every anchor with the same aggregates has the same assignments.
		if s.exhausted[shared] {
			return false
		}
		s.exhausted[shared] = true
	}
	if locals := len(anchor.members) + len(s.numbers); len(s.holders) < locals {
		s.holders = make([]int32, locals)
		s.loads = make([]int64, locals*s.classes)
	}
	return s.narrowSubtrees() && s.reachClauses() && s.matchAll()
}

// fill lists the options of a slot in path order and says how many are of the anchor's own tree; it reports
// false when there are none at all.
func (s *search) fill(i int, anchor *tree, shared *sharedOptions) (own int, ok bool) {
	slot := &s.slots[i]
	options := s.options[i][:0]
	var foreign []option
	if shared != nil {
		foreign = shared.options[i]
		if !s.step(len(foreign)) {
			return 0, false
		}
	}
	base := int32(len(anchor.members))
	next := 0
	for ; next < len(foreign) && foreign[next].node.tree.root < anchor.root; next++ {
		options = append(options, foreign[next].shifted(base))
	}
	if !s.step(len(anchor.members)) {
		return 0, false
	}
	for place, id := range anchor.members {
		if !s.hasRoom(slot, id) {
			continue
		}
		if n := s.world.nodes.at(id); s.serves(slot, n, anchor) {
			options = append(options, option{node: n, local: int32(place), meets: s.meets(i, n)})
			own++
		}
	}
	for ; next < len(foreign); next++ {
		if foreign[next].node.tree != anchor { // at home it is an option of the tree's own
			options = append(options, foreign[next].shifted(base))
		}
	}
	s.options[i] = options
	return own, len(options) > 0
}

func (o option) shifted(base int32) option {
	o.local += base
	return o
}

// hasRoom is the quick test of the columns and sets before the provider itself is touched.
func (s *search) hasRoom(slot *slot, id int32) bool {
	if !slot.allowed.has(id) {
		return false
	}
	for i := range slot.demands {
		d := &slot.demands[i]
		if d.class == unknown {
			return false
		}
		if c := s.world.columns.at(d.class); c.rooms.at(id) <= d.amount {
			return false
		}
	}
	return true
}

// sharedFor lists the sharing providers that the anchor's aggregates make usable; nil when there are none.
func (s *search) sharedFor(anchor *tree) *sharedOptions {
	s.clauseArena = s.clauseArena[:0] // the options of the anchor before are gone
	if len(anchor.aggregates) == 0 {
		return nil
	}
	var key []byte
	for _, id := range anchor.aggregates {
		if entry := s.world.aggregated.at(id); len(entry.sharers) > 0 {
			key = append(key, byte(id), byte(id>>8), byte(id>>16), byte(id>>24))
		}
	}
	if len(key) == 0 {
		return nil
	}
	if shared, found := s.shared[string(key)]; found {
		return shared
	}
	ids := map[int32]bool{}
	for _, id := range anchor.aggregates {
		for _, sharer := range s.world.aggregated.at(id).sharers {
			ids[sharer] = true
		}
	}
	nodes := make([]*node, 0, len(ids))
	for id := range maps.Keys(ids) {
		nodes = append(nodes, s.world.nodes.at(id))
	}
	slices.SortFunc(nodes, comparePlaces)

	shared := &sharedOptions{options: make([][]option, len(s.slots))}
	for i := range s.slots {
		slot := &s.slots[i]
		s.step(len(nodes))
		for _, n := range nodes {
			if s.serves(slot, n, nil) {
				number, found := s.numbers[n.id]
				if !found {
					number = int32(len(s.numbers))
					s.numbers[n.id] = number
				}
				shared.options[i] = append(shared.options[i], option{node: n, local: number, meets: s.meets(i, n)})
			}
		}
	}
	s.shared[string(key)] = shared
	s.clauseArena = nil // what it holds is kept with the shared options
	return shared
}

// meets are the clauses of the unsuffixed group that a provider's traits meet, nil for other slots.
func (s *search) meets(i int, n *node) []uint64 {
	if i >= s.classSlots || len(s.clauses) == 0 {
		return nil
	}
	words := (len(s.clauses) + 63) / 64
	start := len(s.clauseArena)
	s.clauseArena = append(s.clauseArena, make([]uint64, words)...)
	meets := s.clauseArena[start : start+words : start+words]
	for c, clause := range s.clauses {
		if intersects(clause, n.traits) {
			meets[c/64] |= 1 << (c % 64)
		}
	}
	return meets
}

// reachClauses works out which clauses each slot and those after it can meet; false if some clause never is.
func (s *search) reachClauses() bool {
	if len(s.clauses) == 0 {
		return true
	}
	for i := s.classSlots - 1; i >= 0; i-- {
		copy(s.reach[i], s.reach[i+1])
		for _, o := range s.options[i] {
			for word := range o.meets {
				s.reach[i][word] |= o.meets[word]
			}
		}
	}
	return s.clausesWithin(s.reach[0], s.met[0])
}

// clausesWithin says whether two sets together hold every clause.
func (s *search) clausesWithin(a, b []uint64) bool {
	for c := range s.clauses {
		if (a[c/64]|b[c/64])&(1<<(c%64)) == 0 {
			return false
		}
	}
	return true
}
