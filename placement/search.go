package placement

import (
	"slices"
	"sort"
)

// search walks the assignments of slots to providers, anchor by anchor, in the
// total order of candidates.
type search struct {
	*plan
	strategy *strategy // nil if the order compares paths alone
	shapes   *shapes   // nil if all candidates are listed
	after    *Position
	tally    *Tally      // whose zones exclude providers, nil for none
	emit     func() bool // for the assignment in chosen; false ends the search
	steps    int
	vain     int // anchors without a candidate
	err      error

	anchor  *providerTree
	options [][]option // per slot, in path order
	chosen  []option   // per slot, up to the current depth
	parts   []part     // of the candidate under construction

	// By the provider's local number: the amounts of each merged class chosen
	// so far, and how many suffixed slots it serves so far.
	amountsChosen []int64
	slotsServed   []int32

	// The units of inventories that were claimed during the search, nil for a
	// search that claims nothing.
	claimed map[claimKey]int64
	// Evacuated are the units that were claimed by the search of a survivor.
	evacuated *evacuatedUnits
	// Lost trees, which are no anchors.
	dead map[*providerTree]bool

	matchers    []*matcher
	clauseArena []uint64   // the clauses that own options meet, reused from anchor to anchor
	met         [][]uint64 // per depth: clauses met so far
	reach       [][]uint64 // per slot: clauses that this slot and later ones can still meet

	shared    map[string]*sharedOptions
	numbers   map[int32]int32 // local numbers of sharing providers of other trees, counted from 0
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
		steps:     p.spent,
	}
	s.shapes, s.matchers = newShapes(p), p.newMatchers()
	for _, m := range s.matchers {
		if m.class != nil && m.amounts[0][0] != m.amounts[0][len(m.amounts[0])-1] {
			m.packer = newPacker(s.step)
		}
	}
	words := (len(p.clauses) + 63) / 64
	for range p.classSlots + 1 {
		s.met = append(s.met, make([]uint64, words))
		s.reach = append(s.reach, make([]uint64, words))
	}
	return s
}

// run emits the candidates after the position, nil for all candidates, until emit
// returns false.
func (s *search) run() error {
	if len(s.slots) == 0 {
		return nil
	}
	start := ""
	if s.after != nil {
		start = s.after.anchor
	}
	for root, anchor := range s.anchorsFrom(start) {
		if !s.enter(anchor) {
			if s.err != nil {
				return s.err
			}
			s.vain++
			continue
		}
		if !s.assign(0, s.after != nil && root == start) {
			return s.err
		}
	}
	return s.err
}

// step counts work and reports whether it is within MaxSteps.
func (s *search) step(n int) bool {
	if s.steps += n; s.steps > MaxSteps {
		s.err = ErrTooComplex
		return false
	}
	return true
}

// assign chooses a provider for the slot at this depth and continues with the
// next slot. If resuming is set, the slots so far have the providers of the
// position that the search continues after. It reports false when the search
// has ended.
func (s *search) assign(depth int, resuming bool) bool {
	if depth == len(s.slots) {
		if resuming || !s.isFirstAnchor() {
			return s.err == nil
		}
		return s.emit()
	}
	s.beginShapes(depth)
	options := s.inOrder(depth)
	for k, o := range options {
		if !s.step(1) {
			return false
		}
		stillResuming := false
		if resuming {
			order := s.after.compare(s.world, o.node, depth)
			if order < 0 {
				continue
			}
			stillResuming = order == 0
		}
		if !s.fits(depth, o) || !s.isAmongFirst(depth, k, options) {
			continue
		}
		s.choose(depth, o)
		goOn := !s.isFeasible(depth) || s.assign(depth+1, stillResuming)
		s.unchoose(depth, o)
		if !goOn || s.err != nil {
			return false
		}
	}
	return true
}

// fits reports whether a provider can take a slot in addition to the slots
// chosen before.
func (s *search) fits(i int, o option) bool {
	if s.isolate && i >= s.classSlots && s.slotsServed[o.local] > 0 {
		return false
	}
	for _, d := range s.slots[i].demands {
		if !d.merged && s.claimed == nil && s.evacuated == nil {
			continue
		}
		sum := s.amountsChosen[int(o.local)*s.classes+d.index] + d.amount
		if inventory := o.node.inventoryOf(d.class); sum > s.freeOn(o.node, inventory) ||
			sum > int64(inventory.maxUnit) {
			return false
		}
	}
	return true
}

// freeOn returns the free units of an inventory, without the units claimed
// during the search.
func (s *search) freeOn(n *node, inventory *nodeInventory) int64 {
	if s.evacuated != nil {
		units, _ := s.evacuated.of(n, inventory.class)
		return inventory.free - *units
	}
	if len(s.claimed) == 0 {
		return inventory.free
	}
	return inventory.free - s.claimed[claimKey{n.id, inventory.class}]
}

// claim claims the amounts of a slot on a provider, a number of times.
func (s *search) claim(i int, o option, times int64) {
	for _, d := range s.slots[i].demands {
		if s.evacuated != nil {
			s.evacuated.add(o.node, d.class, times*d.amount)
			continue
		}
		s.claimed[claimKey{o.node.id, d.class}] += times * d.amount
	}
}

func (s *search) choose(i int, o option) {
	if s.strategy != nil && s.strategy.rooms != nil {
		s.strategy.rooms.choose(s, i, o)
	}
	s.chosen[i] = o
	for _, d := range s.slots[i].demands {
		if d.merged {
			s.amountsChosen[int(o.local)*s.classes+d.index] += d.amount
		}
	}
	if i >= s.classSlots {
		s.slotsServed[o.local]++
	} else if len(s.clauses) > 0 {
		for word := range o.clauses {
			s.met[i+1][word] = s.met[i][word] | o.clauses[word]
		}
	}
}

func (s *search) unchoose(i int, o option) {
	for _, d := range s.slots[i].demands {
		if d.merged {
			s.amountsChosen[int(o.local)*s.classes+d.index] -= d.amount
		}
	}
	if i >= s.classSlots {
		s.slotsServed[o.local]--
	}
}

// isFeasible reports false only if no choice for the slots after this depth
// completes a candidate, or after an error.
func (s *search) isFeasible(depth int) bool {
	if depth < s.classSlots && len(s.clauses) > 0 && !s.areAllClauses(s.met[depth+1], s.reach[depth+1]) {
		return false
	}
	for _, subtree := range s.subtrees {
		if !s.isSubtreePossible(subtree, depth) {
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

// isFirstAnchor reports whether no earlier anchor allows the same assignment.
// If any chosen provider does not share, the assignment has only this anchor.
// If all of them share, the aggregates of the first provider reach every
// possible anchor. The root of that provider's tree is among them, because the
// provider is a member of these aggregates. Without aggregates that root is
// the only anchor.
func (s *search) isFirstAnchor() bool {
	for _, o := range s.chosen {
		if !o.node.sharing {
			return true
		}
	}
	for _, id := range s.chosen[0].node.aggregates {
		roots := s.world.aggregateIndex.at(id).roots
		for root, rootID := range roots.all() {
			if root >= s.anchor.root {
				break
			}
			if !s.step(1) || s.allowsAnchor(s.world.nodes.at(rootID).tree) {
				return false
			}
		}
	}
	return true
}

// allowsAnchor reports whether the chosen providers could also serve from
// another anchor. All of them are sharing providers.
func (s *search) allowsAnchor(anchor *providerTree) bool {
	if s.dead[anchor] || !s.mayAnchor(anchor) {
		return false
	}
	for i, o := range s.chosen {
		if !o.node.reaches(anchor) || !s.serves(&s.slots[i], o.node, anchor) {
			return false
		}
	}
	return true
}

// This file and matching.go only prune: they detect early that a partial
// assignment cannot be completed. They never change the order of candidates.

// narrowSubtrees removes options that a same-subtree constraint rules out. An
// option needs a top: itself or an ancestor that serves one of the constraint's
// slots and covers options for all of them. It reports whether every slot has
// options left.
func (s *search) narrowSubtrees() bool {
	for _, subtree := range s.subtrees {
		var tops []*node
		for _, i := range subtree {
			for _, o := range s.options[i] {
				if s.coversOptions(o.node, subtree) {
					tops = append(tops, o.node)
				}
			}
		}
		for _, i := range subtree {
			kept := s.options[i][:0]
			for _, o := range s.options[i] {
				if !s.step(1 + len(tops)) {
					return false
				}
				if slices.ContainsFunc(tops, func(top *node) bool { return top.covers(o.node) }) {
					kept = append(kept, o)
				}
			}
			if s.options[i] = kept; len(kept) == 0 {
				return false
			}
		}
	}
	return true
}

// coversOptions reports whether every one of the slots has an option that the
// node covers.
func (s *search) coversOptions(top *node, slots []int) bool {
	return !slices.ContainsFunc(slots, func(i int) bool { return len(s.covered(i, top)) == 0 })
}

// covered returns the options of a slot that a node covers.
func (s *search) covered(i int, top *node) []option {
	s.step(1)
	options := s.options[i]
	low := sort.Search(len(options), func(k int) bool { return comparePaths(options[k].node, top) >= 0 })
	options = options[low:]
	end := top.tree.ends[top.index]
	high := sort.Search(len(options), func(k int) bool {
		n := options[k].node
		return n.tree != top.tree || n.index >= end
	})
	return options[:high]
}

// isSubtreePossible reports whether a same-subtree constraint can still be met
// once the slots up to depth are chosen. If all of its slots are chosen, it
// reports whether the constraint is met: one of the providers serving them is
// an ancestor of all the others, or the same provider.
func (s *search) isSubtreePossible(subtree []int, depth int) bool {
	chosen := subtree[:sort.SearchInts(subtree, depth+1)]
	rest := subtree[len(chosen):]
	if len(chosen) == 0 || chosen[len(chosen)-1] != depth {
		return true // unchanged since the last check
	}
	first := s.chosen[chosen[0]].node
	for i := first.index; i >= 0; i = first.tree.parents[i] {
		if s.isTop(s.world.nodes.at(first.tree.members[i]), chosen, rest) {
			return true
		}
	}
	return false
}

// isTop reports whether a node covers the chosen providers of some slots of a
// constraint and options of the other slots, and is or may be one of these
// providers.
func (s *search) isTop(top *node, chosen, rest []int) bool {
	serves := false
	for _, i := range chosen {
		n := s.chosen[i].node
		if !top.covers(n) {
			return false
		}
		serves = serves || n == top
	}
	for _, i := range rest {
		possible := false
		for _, o := range s.covered(i, top) {
			if !s.step(1) {
				return false
			}
			if s.fits(i, o) {
				possible = true
				serves = serves || o.node == top // if the top is an option, it is the first
				break
			}
		}
		if !possible {
			return false
		}
	}
	return serves
}

// narrowAnchors keeps only roots with a provider in their tree for every slot
// and clause that few providers can serve by their traits and aggregates. A
// sharing provider may serve from many roots, so it does not narrow for a slot
// or clause that a sharing provider can serve.
func (p *plan) narrowAnchors() *plan {
	for i := range p.slots {
		p.keepRootsOf(p.slots[i].allowed)
	}
	for _, clause := range p.clauses {
		p.keepRootsOf(p.world.union(p.world.traitSets(clause)))
	}
	return p
}

// keepRootsOf restricts the anchors to the roots of the providers, if there are
// few of them and none is a sharing provider.
func (p *plan) keepRootsOf(providers mask) {
	if providers == nil || providers.size() > max(4, p.world.Len()/8) {
		return
	}
	roots := p.world.newMask()
	for id := range p.world.idLimit {
		if !providers.has(id) {
			continue
		}
		n := p.world.nodes.at(id)
		if n == nil {
			continue
		}
		if n.sharing {
			return
		}
		roots.add(n.tree.members[0])
	}
	p.restrictAnchors(roots)
}
