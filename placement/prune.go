package placement

import (
	"slices"
	"sort"
)

// What is here only prunes: it finds out early that a partial assignment cannot be completed. It never
// changes the order in which candidates come.

// matcher keeps, for slots that compete for room, one complete matching of the slots not chosen yet to
// providers. No such matching, no candidate. The slots compete either because groups are isolated, one slot
// to a provider, or because they ask for the same class: a provider has room for no more slots than its
// free units hold of their smallest amounts. That is necessary, not sufficient.
type matcher struct {
	slots   []int     // ascending
	class   *demand   // nil for isolation
	sums    [][]int64 // per position: sums of the k smallest amounts of the slots from it on
	matched [][]int32 // per position: option index matched to each slot once the slots before are chosen
	filled  []int32   // slots matched, by local number
	visited []int32   // mark of the last attempt that tried this local number
	mark    int32
}

// newMatchers makes one matcher for isolation, or one per class that several slots ask for.
func (p *problem) newMatchers() []*matcher {
	var matchers []*matcher
	add := func(slots []int, class *demand) {
		if len(slots) < 2 {
			return
		}
		m := &matcher{slots: slots, class: class}
		for from := range len(slots) + 1 {
			m.matched = append(m.matched, make([]int32, len(slots)))
			if class != nil {
				m.sums = append(m.sums, smallestSums(p, slots[from:], class.index))
			}
		}
		matchers = append(matchers, m)
	}
	if p.isolate {
		var suffixed []int
		for i := p.classSlots; i < len(p.slots); i++ {
			suffixed = append(suffixed, i)
		}
		add(suffixed, nil)
		return matchers
	}
	askers := make([][]int, p.classes)
	demands := make([]*demand, p.classes)
	for i, s := range p.slots {
		for k := range s.demands {
			d := &s.demands[k]
			askers[d.index] = append(askers[d.index], i)
			demands[d.index] = d
		}
	}
	for index, slots := range askers {
		add(slots, demands[index])
	}
	return matchers
}

// smallestSums are the sums of the 1, 2, ... smallest amounts that slots ask of a class.
func smallestSums(p *problem, slots []int, class int) []int64 {
	var amounts []int64
	for _, i := range slots {
		for _, d := range p.slots[i].demands {
			if d.index == class {
				amounts = append(amounts, d.amount)
			}
		}
	}
	slices.Sort(amounts)
	for i := 1; i < len(amounts); i++ {
		amounts[i] += amounts[i-1]
	}
	return amounts
}

// matchAll makes the first matching of every matcher for the anchor just entered.
func (s *search) matchAll() bool {
	for _, m := range s.matchers {
		if len(m.filled) < len(s.holders) {
			m.filled = make([]int32, len(s.holders))
			m.visited = make([]int32, len(s.holders))
			m.mark = 0
		}
		for k := range m.slots {
			m.matched[0][k] = -1
		}
		if !s.complete(m, 0) {
			return false
		}
	}
	return true
}

// rematch carries the matching over the choice made at depth, if the matcher has to do with it.
func (s *search) rematch(m *matcher, depth int) bool {
	from := sort.SearchInts(m.slots, depth+1)
	if from == len(m.slots) {
		return true
	}
	if from == 0 {
		return true // none of its slots is chosen yet
	}
	if m.slots[from-1] == depth {
		copy(m.matched[from], m.matched[from-1])
		return s.complete(m, from)
	}
	return true
}

// complete repairs the matching of the slots from a position on and reports whether there is one.
func (s *search) complete(m *matcher, from int) bool {
	matched := m.matched[from]
	defer func() {
		for k := from; k < len(m.slots); k++ {
			if matched[k] >= 0 {
				m.filled[s.options[m.slots[k]][matched[k]].local] = 0
			}
		}
	}()
	if !s.step(len(m.slots) - from) {
		return false
	}
	for k := from; k < len(m.slots); k++ {
		if matched[k] < 0 {
			continue
		}
		o := s.options[m.slots[k]][matched[k]]
		if !s.fits(m.slots[k], o) || int64(m.filled[o.local]) >= s.places(m, from, o) {
			matched[k] = -1
			continue
		}
		m.filled[o.local]++
	}
	for k := from; k < len(m.slots); k++ {
		if matched[k] < 0 {
			m.mark++
			if !s.augment(m, from, k) {
				return false
			}
		}
	}
	return true
}

// augment finds a provider for the slot at position k, moving others aside where that helps.
func (s *search) augment(m *matcher, from, k int) bool {
	slot := m.slots[k]
	options := s.options[slot]
	if !s.step(len(options)) {
		return false
	}
	for i, o := range options {
		if m.visited[o.local] == m.mark || !s.fits(slot, o) {
			continue
		}
		m.visited[o.local] = m.mark
		if int64(m.filled[o.local]) < s.places(m, from, o) {
			m.filled[o.local]++
			m.matched[from][k] = int32(i)
			return true
		}
		for other := from; other < len(m.slots); other++ {
			at := m.matched[from][other]
			if at < 0 || s.options[m.slots[other]][at].local != o.local {
				continue
			}
			if s.augment(m, from, other) { // other has moved; its old place is k's
				m.matched[from][k] = int32(i)
				return true
			}
		}
	}
	return false
}

// places is how many of the slots from a position on a provider may hold at most.
func (s *search) places(m *matcher, from int, o option) int64 {
	if m.class == nil {
		return int64(1 - s.holders[o.local])
	}
	stock := o.node.stock(m.class.class)
	room := min(stock.free, stock.maxUnit) - s.loads[int(o.local)*s.classes+m.class.index]
	sums := m.sums[from]
	return int64(sort.Search(len(sums), func(i int) bool { return sums[i] > room }))
}

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
