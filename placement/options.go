package placement

import "slices"

// option is a provider that can serve a slot. Local is the provider's number
// within one anchor. The providers of the anchor's tree come first, by their
// index in the tree, then the sharing providers of other trees.
type option struct {
	node    *node
	local   int32
	clauses []uint64 // clauses that its traits meet, for the unsuffixed group
}

// sharedOptions are, per slot, the sharing providers that are usable through a
// set of aggregates.
type sharedOptions struct {
	options [][]option
}

// enter prepares the search below an anchor: it lists the options of every slot
// and removes options that no assignment can use. It reports whether there may
// be candidates that no earlier anchor has.
func (s *search) enter(anchor *providerTree) bool {
	if !s.step(1) || !s.mayAnchor(anchor) {
		return false
	}
	s.anchor = anchor
	shared := s.sharingProviders(anchor)
	onlyShared := true
	for i := range s.slots {
		own, ok := s.listOptions(i, anchor, shared)
		if !ok {
			return false
		}
		onlyShared = onlyShared && own == 0
	}
	if onlyShared && s.strategy == nil {
		// Every anchor with the same aggregates has the same assignments. The first
		// anchor by uuid lists them. A strategy visits anchors in another order.
		if s.exhausted[shared] {
			return false
		}
		s.exhausted[shared] = true
	}
	if locals := len(anchor.members) + len(s.numbers); len(s.slotsServed) < locals {
		s.slotsServed = make([]int32, locals)
		s.amountsChosen = make([]int64, locals*s.classes)
	}
	if s.strategy != nil && s.strategy.rooms != nil {
		s.strategy.rooms.enter(anchor)
	}
	return s.narrowSubtrees() && s.reachClauses() && s.matchAll()
}

// listOptions lists the options of a slot in path order. It returns the number
// of options in the anchor's own tree. If there are no options at all, or the
// steps are used up, ok is false.
func (s *search) listOptions(i int, anchor *providerTree, shared *sharedOptions) (own int, ok bool) {
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
		options = append(options, foreign[next].numberedFrom(base))
	}
	if !s.step(len(anchor.members)) {
		return 0, false
	}
	for index, id := range anchor.members {
		if !s.hasCapacity(slot, id) {
			continue
		}
		if n := s.world.nodes.at(id); s.serves(slot, n, anchor) && (len(slot.demands) == 0 || s.tally.mayServe(n)) {
			options = append(options, option{node: n, local: int32(index), clauses: s.clausesMet(i, n)})
			own++
		}
	}
	for ; next < len(foreign); next++ {
		if foreign[next].node.tree != anchor { // the providers of the anchor's tree are listed already
			options = append(options, foreign[next].numberedFrom(base))
		}
	}
	s.options[i] = options
	return own, len(options) > 0
}

func (o option) numberedFrom(base int32) option {
	o.local += base
	return o
}

// hasCapacity is a fast test of sets and columns, before the search reads the
// provider itself. It reports false only if the provider cannot serve the slot.
func (s *search) hasCapacity(slot *slot, id int32) bool {
	if !slot.allowed.has(id) {
		return false
	}
	for i := range slot.demands {
		d := &slot.demands[i]
		if d.class == unknown {
			return false
		}
		if c := s.world.column(d.class); c.free.at(id) <= d.amount {
			return false
		}
	}
	return true
}

// sharingProviders returns the options of the sharing providers that the
// anchor's aggregates make usable, nil if there are none.
func (s *search) sharingProviders(anchor *providerTree) *sharedOptions {
	s.clauseArena = s.clauseArena[:0] // the options of the last anchor are no longer used
	var key []byte
	for _, id := range anchor.aggregates {
		if entry := s.world.aggregateIndex.at(id); len(entry.sharing) > 0 {
			key = append(key, byte(id), byte(id>>8), byte(id>>16), byte(id>>24))
		}
	}
	if len(key) == 0 {
		return nil
	}
	if shared, ok := s.shared[string(key)]; ok {
		return shared
	}
	nodes := s.world.sharingWith(anchor)
	shared := &sharedOptions{options: make([][]option, len(s.slots))}
	for i := range s.slots {
		s.step(len(nodes))
		for _, n := range nodes {
			if s.serves(&s.slots[i], n, nil) {
				shared.options[i] = append(shared.options[i],
					option{node: n, local: s.numberOf(n), clauses: s.clausesMet(i, n)})
			}
		}
	}
	s.shared[string(key)] = shared
	s.clauseArena = nil // the shared options refer to the old one
	return shared
}

// sharingWith returns the providers that share with a tree, in path order. They
// may include providers of the tree itself.
func (w *World) sharingWith(anchor *providerTree) []*node {
	var nodes []*node
	for _, id := range anchor.aggregates {
		for _, member := range w.aggregateIndex.at(id).sharing {
			nodes = append(nodes, w.nodes.at(member))
		}
	}
	slices.SortFunc(nodes, comparePaths)
	return slices.Compact(nodes)
}

// numberOf returns the local number of a sharing provider of another tree.
func (s *search) numberOf(n *node) int32 {
	number, ok := s.numbers[n.id]
	if !ok {
		number = int32(len(s.numbers))
		s.numbers[n.id] = number
	}
	return number
}

// clausesMet returns the clauses of the unsuffixed group that a provider's
// traits meet, nil for slots of other groups.
func (s *search) clausesMet(i int, n *node) []uint64 {
	if i >= s.classSlots || len(s.clauses) == 0 {
		return nil
	}
	words := (len(s.clauses) + 63) / 64
	start := len(s.clauseArena)
	s.clauseArena = append(s.clauseArena, make([]uint64, words)...)
	met := s.clauseArena[start : start+words : start+words]
	for c, clause := range s.clauses {
		if intersects(clause, n.traits) {
			met[c/64] |= 1 << (c % 64)
		}
	}
	return met
}

// reachClauses computes the clauses that each slot and the slots after it can
// meet. It reports false if some clause cannot be met.
func (s *search) reachClauses() bool {
	if len(s.clauses) == 0 {
		return true
	}
	for i := s.classSlots - 1; i >= 0; i-- {
		copy(s.reach[i], s.reach[i+1])
		for _, o := range s.options[i] {
			for word := range o.clauses {
				s.reach[i][word] |= o.clauses[word]
			}
		}
	}
	return s.areAllClauses(s.reach[0], s.met[0])
}

// areAllClauses reports whether two sets together hold every clause.
func (s *search) areAllClauses(a, b []uint64) bool {
	for c := range s.clauses {
		if (a[c/64]|b[c/64])&(1<<(c%64)) == 0 {
			return false
		}
	}
	return true
}
