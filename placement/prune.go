package placement

import (
	"slices"
	"sort"
)

// What this file and matching.go hold only prunes: it finds out early that a
// partial assignment cannot be completed. It never changes the order of
// candidates.

// narrowSubtrees removes options that no same-subtree constraint can use: each
// needs an ancestor, or itself, that serves one of the constraint's slots and
// covers options for all of them. It reports whether every slot has options
// left.
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
// once the slots up to depth are chosen; when all of its slots are, whether it
// is met: one of the providers serving them is an ancestor of all the others or
// the same.
func (s *search) isSubtreePossible(subtree []int, depth int) bool {
	chosen := subtree[:sort.SearchInts(subtree, depth+1)]
	rest := subtree[len(chosen):]
	if len(chosen) == 0 || chosen[len(chosen)-1] != depth {
		return true // nothing new since the last time
	}
	first := s.chosen[chosen[0]].node
	for i := first.index; i >= 0; i = first.tree.parents[i] {
		if s.isTop(s.world.nodes.at(first.tree.members[i]), chosen, rest) {
			return true
		}
	}
	return false
}

// isTop reports whether a node covers what is chosen for some slots of a
// constraint and options of the rest, and is or may be one of these providers.
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

// narrowAnchors keeps only the roots that have a provider for every slot and
// clause that few providers can serve by their traits and aggregates. Sharing
// providers could serve from many roots; where one of them is among the few,
// nothing is narrowed.
func (p *plan) narrowAnchors() *plan {
	for i := range p.slots {
		p.keepRootsOf(p.slots[i].allowed)
	}
	for _, clause := range p.clauses {
		p.keepRootsOf(p.world.union(p.world.traitSets(clause)))
	}
	return p
}

// keepRootsOf restricts the anchors to the roots of some providers, if these
// are few and none of them shares.
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
