package placement

import (
	"slices"
	"sort"
)

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
func (p *plan) newMatchers() []*matcher {
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
func smallestSums(p *plan, slots []int, class int) []int64 {
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
	if from == len(m.slots) || from == 0 || m.slots[from-1] != depth {
		return true
	}
	copy(m.matched[from], m.matched[from-1])
	return s.complete(m, from)
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
