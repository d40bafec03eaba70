package placement

import (
	"slices"
	"sort"
	"strings"
)

// matcher keeps a matching of slots to providers. The matching is complete: each
// slot that competes for capacity and has no provider yet is matched. Without
// such a matching there is no candidate. Slots compete for one of two reasons.
// If groups are isolated, a provider serves at most one slot. If slots ask for
// the same class, a provider serves at most as many slots as its free units can
// hold of the smallest amounts. The second condition is necessary, not
// sufficient.
type matcher struct {
	slots   []int     // ascending
	class   *demand   // nil for isolation
	sums    [][]int64 // per k: sums of the 1, 2, ... smallest amounts of slots[k:]
	matched [][]int32 // per k: the option matched to each slot once slots[:k] are chosen, -1 for none
	counts  []int32   // the number of slots matched to a provider, by local number
	visited []int32   // the last attempt that tried a local number
	attempt int32

	// If the amounts of a class differ, a packer checks them, too.
	packer  *packer   // nil if all amounts are equal
	amounts [][]int64 // per k: the amounts of slots[k:], descending
	bins    []bin     // the providers that serve any of the slots, for the current anchor
	free    []int64   // reused
}

// bin is a provider that serves slots of a matcher. It has the provider's local
// number and the number of units of the class that the slots may take.
type bin struct {
	local int32
	units int64
}

// newMatchers returns a single matcher if the policy isolates groups (none for
// fewer than two), otherwise one for each class that several slots ask for.
func (p *plan) newMatchers() []*matcher {
	if p.isolate {
		var suffixed []int
		for i := p.classSlots; i < len(p.slots); i++ {
			suffixed = append(suffixed, i)
		}
		if len(suffixed) < 2 {
			return nil
		}
		return []*matcher{p.newMatcher(suffixed, nil)}
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
	var matchers []*matcher
	for index, slots := range askers {
		if len(slots) > 1 {
			matchers = append(matchers, p.newMatcher(slots, demands[index]))
		}
	}
	return matchers
}

func (p *plan) newMatcher(slots []int, class *demand) *matcher {
	m := &matcher{slots: slots, class: class}
	for k := range len(slots) + 1 {
		m.matched = append(m.matched, make([]int32, len(slots)))
		if class != nil {
			m.sums = append(m.sums, p.smallestSums(slots[k:], class.index))
			m.amounts = append(m.amounts, p.amountsOf(slots[k:], class.index))
		}
	}
	return m
}

// amountsOf returns the amounts of a class that slots ask for, descending.
func (p *plan) amountsOf(slots []int, class int) []int64 {
	var amounts []int64
	for _, i := range slots {
		for _, d := range p.slots[i].demands {
			if d.index == class {
				amounts = append(amounts, d.amount)
			}
		}
	}
	slices.Sort(amounts)
	slices.Reverse(amounts)
	return amounts
}

// smallestSums returns the sums of the 1, 2, ... smallest amounts of a class
// that slots ask for.
func (p *plan) smallestSums(slots []int, class int) []int64 {
	amounts := p.amountsOf(slots, class)
	slices.Reverse(amounts)
	for i := 1; i < len(amounts); i++ {
		amounts[i] += amounts[i-1]
	}
	return amounts
}

// matchAll makes the first matching of every matcher for the current anchor. It
// reports whether every matcher has one and finds room for all amounts.
func (s *search) matchAll() bool {
	for _, m := range s.matchers {
		if len(m.counts) < len(s.slotsServed) {
			m.counts = make([]int32, len(s.slotsServed))
			m.visited = make([]int32, len(s.slotsServed))
			m.attempt = 0
		}
		for k := range m.slots {
			m.matched[0][k] = -1
		}
		if !s.complete(m, 0) {
			return false
		}
		s.listBins(m)
		if !s.packs(m, 0) {
			return false
		}
	}
	return true
}

// listBins lists the providers that serve any slot of a matcher with a packer.
func (s *search) listBins(m *matcher) {
	if m.packer == nil {
		return
	}
	m.attempt++
	m.bins = m.bins[:0]
	for _, i := range m.slots {
		if !s.step(len(s.options[i])) {
			return
		}
		for _, o := range s.options[i] {
			if m.visited[o.local] == m.attempt {
				continue
			}
			m.visited[o.local] = m.attempt
			inventory := o.node.inventoryOf(m.class.class)
			m.bins = append(m.bins, bin{o.local, min(s.freeOn(o.node, inventory), int64(inventory.maxUnit))})
		}
	}
}

// packs reports false only if the amounts of m.slots[from:] do not fit into the
// remaining units of the providers that serve any of these slots, or after
// MaxSteps.
func (s *search) packs(m *matcher, from int) bool {
	if m.packer == nil {
		return true
	}
	if !s.step(len(m.bins)) {
		return false
	}
	m.free = m.free[:0]
	for _, b := range m.bins {
		m.free = append(m.free, b.units-s.amountsChosen[int(b.local)*s.classes+m.class.index])
	}
	return m.packer.fits(m.free, m.amounts[from])
}

// rematch updates the matching after the choice for the slot at depth, if the
// slot is one of the matcher's. It reports whether a matching still exists.
func (s *search) rematch(m *matcher, depth int) bool {
	from := sort.SearchInts(m.slots, depth+1)
	if from == len(m.slots) || from == 0 || m.slots[from-1] != depth {
		return true
	}
	copy(m.matched[from], m.matched[from-1])
	return s.complete(m, from) && s.packs(m, from)
}

// complete repairs the matching of m.slots[from:] and reports whether one
// exists.
func (s *search) complete(m *matcher, from int) bool {
	matched := m.matched[from]
	defer func() {
		for k := from; k < len(m.slots); k++ {
			if matched[k] >= 0 {
				m.counts[s.options[m.slots[k]][matched[k]].local] = 0
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
		if !s.fits(m.slots[k], o) || int64(m.counts[o.local]) >= s.slotLimit(m, from, o) {
			matched[k] = -1
			continue
		}
		m.counts[o.local]++
	}
	for k := from; k < len(m.slots); k++ {
		if matched[k] < 0 {
			m.attempt++
			if !s.augment(m, from, k) {
				return false
			}
		}
	}
	return true
}

// augment matches m.slots[k] to a provider and moves other slots to different
// providers if necessary. It reports whether it succeeded.
func (s *search) augment(m *matcher, from, k int) bool {
	slot := m.slots[k]
	options := s.options[slot]
	if !s.step(len(options)) {
		return false
	}
	for i, o := range options {
		if m.visited[o.local] == m.attempt || !s.fits(slot, o) {
			continue
		}
		m.visited[o.local] = m.attempt
		if int64(m.counts[o.local]) < s.slotLimit(m, from, o) {
			m.counts[o.local]++
			m.matched[from][k] = int32(i)
			return true
		}
		for other := from; other < len(m.slots); other++ {
			matched := m.matched[from][other]
			if matched < 0 || s.options[m.slots[other]][matched].local != o.local {
				continue
			}
			if s.augment(m, from, other) { // the provider of other is free for k now
				m.matched[from][k] = int32(i)
				return true
			}
		}
	}
	return false
}

// slotLimit returns the maximum number of m.slots[from:] that a provider may be
// matched to.
func (s *search) slotLimit(m *matcher, from int, o option) int64 {
	if m.class == nil {
		return int64(1 - s.slotsServed[o.local])
	}
	inventory := o.node.inventoryOf(m.class.class)
	free := min(s.freeOn(o.node, inventory),
		int64(inventory.maxUnit)) - s.amountsChosen[int(o.local)*s.classes+m.class.index]
	sums := m.sums[from]
	return int64(sort.Search(len(sums), func(i int) bool { return sums[i] > free }))
}

// TaintPrefix begins the names of taints. A taint is a trait that repels. Only
// requests that tolerate it may use its provider and the provider's descendants,
// or have a root with it as their anchor. Claims ignore taints.
const TaintPrefix = "CUSTOM_TAINT_"

// maxTaintSteps is the maximum number of steps of an explanation that concern a
// single taint each. One more step counts the other taints together.
const maxTaintSteps = 16

// tolerated returns the traits that the request tolerates: Tolerates, and every
// trait that it requires. All groups tolerate them.
func (r *Request) tolerated() []string {
	tolerated := slices.Concat(r.Tolerates, r.RootRequired, slices.Concat(r.Unsuffixed.clauses()...))
	for i := range r.Groups {
		tolerated = append(tolerated, slices.Concat(r.Groups[i].clauses()...)...)
	}
	return tolerated
}

func (v *validator) checkTaints(path string, taints []string) {
	v.checkTraits(path, taints)
	for i, name := range taints {
		v.require(!v.world.HasTrait(name) ||
			strings.HasPrefix(name, TaintPrefix), at(path, i), "must begin with "+TaintPrefix)
	}
}

// taints returns the taints that providers have had, by name.
func (w *World) taints() (taints []string) {
	for name := range w.traits.ids.from(TaintPrefix) {
		if !strings.HasPrefix(name, TaintPrefix) {
			break
		}
		taints = append(taints, name)
	}
	return taints
}

// untolerated returns the taints that a request does not tolerate, by name.
func (w *World) untolerated(r *Request) []string {
	taints := w.taints()
	if len(taints) == 0 {
		return nil
	}
	tolerated := r.tolerated()
	return slices.DeleteFunc(taints, func(name string) bool { return slices.Contains(tolerated, name) })
}

// repelledBy returns the providers with any of some taints and their
// descendants.
func (w *World) repelledBy(taints []string) mask {
	repelled := w.newMask()
	for id := range w.union(w.traitSets(w.traits.lookupAll(taints))).all() {
		n := w.nodes.at(id)
		for _, member := range n.tree.members[n.index:n.tree.ends[n.index]] {
			repelled.add(member)
		}
	}
	return repelled
}

// repel removes the providers that some taints repel from the providers allowed
// for each slot, and from the anchors.
func (p *plan) repel(taints []string) {
	repelled := p.world.repelledBy(taints)
	if repelled.isEmpty() {
		return
	}
	left := p.world.allIDs()
	left.without(repelled)
	for i := range p.slots {
		if s := &p.slots[i]; s.allowed == nil {
			s.allowed = left
		} else {
			s.allowed.keep(left)
		}
	}
	p.restrictAnchors(slices.Clone(left))
}

// explainTaints removes the repelled providers from all, one taint after the
// other.
func (e *explainer) explainTaints(taints []string) {
	for steps := 0; len(taints) > 0; {
		some, constraint := taints[:1], "tolerates "+taints[0]
		if steps == maxTaintSteps {
			some, constraint = taints, "tolerates"
		}
		taints = taints[len(some):]
		before := e.all.size()
		e.all.without(e.repelledBy(some))
		if after := e.all.size(); after < before {
			e.add(ConstraintTaint, "tolerates", constraint, before, after)
			steps++
		}
	}
}
