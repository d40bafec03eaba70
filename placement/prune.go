package placement

import (
	"slices"
	"sort"
)

// What is here and in matching.go only prunes: it finds out early that a partial assignment cannot be
// completed. It never changes the order in which candidates come.

// narrowSubtrees drops options that no same-subtree constraint can use: each needs an ancestor-or-self that
// serves one of the constraint's slots and has options below it for all of them.
func (s *search) narrowSubtrees() bool {
	for _, subtree := range s.subtrees {
		var tops []*node
		for _, i := range subtree {
			for _, o := range s.options[i] {
				if s.isTop(subtree, o.node) {
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

// isTop says whether every slot of the constraint has an option at or below the node.
func (s *search) isTop(subtree []int, top *node) bool {
	for _, i := range subtree {
		if below := s.below(i, top); len(below) == 0 {
			return false
		}
	}
	return true
}

// below are the options of a slot at or below a node.
func (s *search) below(i int, top *node) []option {
	s.step(1)
	options := s.options[i]
	low := sort.Search(len(options), func(k int) bool { return comparePlaces(options[k].node, top) >= 0 })
	options = options[low:]
	end := top.tree.ends[top.place]
	high := sort.Search(len(options), func(k int) bool {
		n := options[k].node
		return n.tree != top.tree || n.place >= end
	})
	return options[:high]
}

// subtreePossible says whether a same-subtree constraint can still be met once the slots up to depth are
// chosen; when all of its slots are, whether it is met: one of the providers serving them is an ancestor of
// all the others or the same.
func (s *search) subtreePossible(subtree []int, depth int) bool {
	chosen := subtree[:sort.SearchInts(subtree, depth+1)]
	rest := subtree[len(chosen):]
	if len(chosen) == 0 || chosen[len(chosen)-1] != depth {
		return true // nothing new since it was last asked
	}
	first := s.chosen[chosen[0]].node
	for place := first.place; place >= 0; place = first.tree.parents[place] {
		top := s.world.nodes.at(first.tree.members[place])
		if s.isTopNow(chosen, rest, top) {
			return true
		}
	}
	return false
}

func (s *search) isTopNow(chosen, rest []int, top *node) bool {
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
		for _, o := range s.below(i, top) {
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

// narrowAnchors keeps only the roots that have a provider for every slot and clause that few providers can
// serve, judged by their traits and aggregates. Sharing providers could serve from many roots; where one of
// them is among the few, nothing is narrowed.
func (p *plan) narrowAnchors() *plan {
	for i := range p.slots {
		p.keepRootsOf(p.slots[i].allowed)
	}
	for _, clause := range p.clauses {
		var sets []bitset
		for _, trait := range clause {
			if trait != unknown {
				sets = append(sets, p.world.traitMembers.at(trait))
			}
		}
		few := p.world.full()
		few.keep(sets)
		p.keepRootsOf(few)
	}
	return p
}

func (p *plan) keepRootsOf(few mask) {
	if few == nil || few.count() > max(4, p.world.Len()/8) {
		return
	}
	roots := make(mask, len(few))
	for id := range p.world.limit {
		if !few.has(id) {
			continue
		}
		n := p.world.nodes.at(id)
		if n == nil {
			continue
		}
		if n.sharing {
			return
		}
		root := n.tree.members[0]
		roots[root/64] |= 1 << (root % 64)
	}
	p.restrictAnchors(roots)
}
