package placement

import (
	"iter"
	"slices"
)

// The search tries one anchor after the other. This file treats all trees
// together. It computes, as sets of dense ids, the providers that can serve a
// slot and the roots from which they can. Explain builds explanations from
// these sets. A search without candidates ends early because of them.

// reacher computes the sets of this file for one world.
type reacher struct {
	*World
	known   mask // all providers
	roots   mask // roots of trees
	sharing mask // sharing providers
}

func (w *World) newReacher() *reacher {
	r := &reacher{World: w, known: w.newMask(), roots: w.newMask()}
	for i := range r.known {
		for bit, root := range w.rootOf.word(i) {
			if root != 0 {
				r.known[i] |= 1 << bit
			}
			if root == int32(i*64+bit)+1 {
				r.roots[i] |= 1 << bit
			}
		}
	}
	r.sharing = w.union(w.traitSets([]int32{w.traits.lookup(TraitShares)}))
	return r
}

// rootsOf returns the roots of the trees that contain any of the providers.
func (r *reacher) rootsOf(providers mask) mask {
	roots := r.newMask()
	for i, word := range providers {
		roots[i] |= word & r.roots[i]
	}
	for i, word := range providers {
		for bit := range bitsOf(word &^ r.roots[i]) {
			if root := r.rootOf.at(int32(i)*64 + bit); root != 0 {
				roots.add(root - 1)
			}
		}
	}
	return roots
}

// membersOf returns the providers of the trees with these roots.
func (r *reacher) membersOf(roots mask) mask {
	members := slices.Clone(r.known)
	for i := range members {
		members[i] &^= r.roots[i] &^ roots[i]
		for bit := range bitsOf(members[i] &^ r.roots[i]) {
			if id := int32(i)*64 + bit; !roots.has(r.rootOf.at(id) - 1) {
				members.remove(id)
			}
		}
	}
	return members
}

// rootsReaching returns the roots of the trees that may use any of the sharing
// providers. Such a tree has a member in an aggregate of such a provider.
func (r *reacher) rootsReaching(sharing mask) mask {
	roots := r.newMask()
	done := map[int32]bool{}
	for id := range sharing.all() {
		for _, aggregate := range r.nodes.at(id).aggregates {
			if !done[aggregate] {
				done[aggregate] = true
				entry := r.aggregateIndex.at(aggregate)
				for _, root := range entry.roots.all() {
					roots.add(root)
				}
			}
		}
	}
	return roots
}

// reachedFrom returns the sharing providers that the trees with these roots may
// use.
func (r *reacher) reachedFrom(roots, sharing mask) mask {
	reached := r.newMask()
	reaches := map[int32]bool{} // by aggregate
	for id := range sharing.all() {
		if slices.ContainsFunc(r.nodes.at(id).aggregates, func(aggregate int32) bool {
			reach, ok := reaches[aggregate]
			if !ok {
				reach = r.hasRoot(aggregate, roots)
				reaches[aggregate] = reach
			}
			return reach
		}) {
			reached.add(id)
		}
	}
	return reached
}

// hasRoot reports whether the tree of any of the roots has a member in an
// aggregate.
func (r *reacher) hasRoot(aggregate int32, roots mask) bool {
	entry := r.aggregateIndex.at(aggregate)
	for _, root := range entry.roots.all() {
		if roots.has(root) {
			return true
		}
	}
	return false
}

// keepStocked keeps the providers that have an inventory of a class.
func (r *reacher) keepStocked(m mask, class int32) { r.keepAbove(m, class, 0) }

// keepAbove keeps the providers whose value in the column of a class is above a
// limit.
func (r *reacher) keepAbove(m mask, class int32, limit int64) {
	free := r.column(class).free
	for i, word := range m {
		if word == 0 {
			continue
		}
		var above uint64
		for bit, value := range free.word(i) {
			if value > limit {
				above |= 1 << bit
			}
		}
		m[i] = word & above
	}
}

// keepFitting keeps the providers that can take an amount.
func (r *reacher) keepFitting(m mask, d demand) {
	r.keepAbove(m, d.class, d.amount)
	picky := r.picky.at(d.class)
	for i := range m {
		for bit := range bitsOf(m[i] & picky.word(i)) {
			if id := int32(i)*64 + bit; !r.nodes.at(id).inventoryOf(d.class).fits(d.amount) {
				m.remove(id)
			}
		}
	}
}

// keepTree keeps the providers of the limit's tree; all if no limit is set.
func (r *reacher) keepTree(m mask, limit treeLimit) {
	if !limit.set {
		return
	}
	members := r.newMask()
	if limit.tree != nil {
		for _, id := range limit.tree.members {
			members.add(id)
		}
	}
	m.keep(members)
}

// servers are the providers that can serve a slot, regardless of the providers
// of other slots. The providers in own serve their own tree, if it may be an
// anchor. The providers in shared serve other trees.
type servers struct{ own, shared mask }

func (r *reacher) serversOf(p *plan, s *slot) servers {
	own := slices.Clone(r.known)
	own.keep(s.allowed)
	r.keepTree(own, s.inTree)
	if s.unsuffixed && p.memberOf != nil {
		either := r.membersOf(r.rootsAmong(p.memberOf))
		either.join(p.memberOf)
		own.keep(either)
	}
	for _, d := range s.demands {
		r.keepFitting(own, d)
	}
	shared := slices.Clone(own)
	shared.keep(r.sharing)
	if s.unsuffixed {
		shared.keep(p.memberOf)
		if p.inTree.set {
			clear(shared)
		}
	}
	return servers{own, shared}
}

// rootsAmong returns the roots in a mask; for a nil mask, all roots.
func (r *reacher) rootsAmong(m mask) mask {
	roots := slices.Clone(r.roots)
	roots.keep(m)
	return roots
}

// anchorsOf returns the roots that may anchor a candidate at all.
func (r *reacher) anchorsOf(p *plan) mask {
	anchors := r.rootsAmong(p.anchors)
	r.keepTree(anchors, p.inTree)
	return anchors
}

// rootsServed returns the roots of the trees that have a server for a slot.
func (r *reacher) rootsServed(by servers) mask {
	roots := r.rootsOf(by.own)
	if !by.shared.isEmpty() {
		roots.join(r.rootsReaching(by.shared))
	}
	return roots
}

// with returns the servers that are in a mask.
func (s servers) with(m mask) servers {
	own, shared := slices.Clone(s.own), slices.Clone(s.shared)
	own.keep(m)
	shared.keep(m)
	return servers{own, shared}
}

// keepServed keeps the anchors that have a server for every slot.
func (r *reacher) keepServed(anchors mask, slots []servers) {
	for _, of := range slots {
		anchors.keep(r.rootsServed(of))
	}
}

// keepMeeting keeps the anchors that can meet every clause: a provider with one
// of the clause's traits can serve the unsuffixed group from the anchor.
func (r *reacher) keepMeeting(anchors mask, p *plan, slots []servers) {
	for _, clause := range p.clauses {
		if anchors.isEmpty() {
			return
		}
		having := r.union(r.traitSets(clause))
		met := r.newMask()
		for _, of := range slots[:p.classSlots] {
			met.join(r.rootsServed(of.with(having)))
		}
		anchors.keep(met)
	}
}

// usedFrom returns the servers of all slots that the anchors' trees may use.
func (r *reacher) usedFrom(anchors mask, slots []servers) mask {
	members, used := r.membersOf(anchors), r.newMask()
	shared := r.newMask()
	for _, of := range slots {
		used.join(of.own)
		shared.join(of.shared)
	}
	used.keep(members)
	if !shared.isEmpty() {
		used.join(r.reachedFrom(anchors, shared))
	}
	return used
}

// narrow restricts the anchors to roots that have a possible provider for every
// slot and for every clause of the unsuffixed group. It reads the whole world,
// so it is too expensive for a search that finds a page soon.
func (p *plan) narrow() {
	r := p.world.newReacher()
	anchors := r.anchorsOf(p)
	slots := make([]servers, len(p.slots))
	for i := range p.slots {
		if anchors.isEmpty() {
			break
		}
		slots[i] = r.serversOf(p, &p.slots[i])
		anchors.keep(r.rootsServed(slots[i]))
	}
	r.keepMeeting(anchors, p, slots)
	p.restrictAnchors(anchors)
}

// anchorsFrom yields the trees that may anchor a candidate, by root, from start on
// and including start. After too many anchors without a candidate it calls narrow
// and then yields only the remaining anchors.
func (s *search) anchorsFrom(start string) iter.Seq2[string, *providerTree] {
	return func(yield func(string, *providerTree) bool) {
		patience := s.world.Len() / 64
		last, narrowed := start, false
		if s.anchors == nil {
			for root, anchor := range s.world.trees.from(start) {
				if s.vain > patience {
					s.narrow()
					s.vain, narrowed = 0, true
					break
				}
				last = root
				if !yield(root, anchor) {
					return
				}
			}
			if !narrowed {
				return
			}
		}
		s.yieldAnchors(last, narrowed, patience, yield)
	}
}

// yieldAnchors continues anchorsFrom when the plan has a mask of anchors.
func (s *search) yieldAnchors(start string, narrowed bool, patience int, yield func(string, *providerTree) bool) {
	if s.anchors.isEmpty() { // some slot has no provider, or the request contradicts itself
		return
	}
	resumed := narrowed // start was yielded
	for uuid, id := range s.world.byUUID.from(start) {
		if resumed && uuid == start || !s.anchors.has(id) {
			continue
		}
		if !narrowed && s.vain > patience {
			s.narrow()
			s.vain, narrowed = 0, true
			if !s.anchors.has(id) {
				continue
			}
		}
		if n := s.world.nodes.at(id); n.index == 0 && !yield(uuid, n.tree) {
			return
		}
	}
}
