package placement

import (
	"slices"
	"sort"
)

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
