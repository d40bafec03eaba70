package placement

import (
	"cmp"
	"slices"
)

// plan is a request compiled to a world's dense ids: slots in the order in
// which candidates compare. Exactly one provider serves a slot, which is one
// class of the unsuffixed group, or a suffixed group.
type plan struct {
	world *World
	slots []slot
	// classSlots is the number of slots of the unsuffixed group; they come
	// first.
	classSlots int
	// clauses must each be met by the union of the traits of the providers
	// serving the unsuffixed group.
	clauses [][]int32

	isolate  bool
	subtrees [][]int // slots, per same-subtree constraint
	classes  int     // number of different classes asked for

	likeness *likeness // nil if all candidates are listed

	anchors mask // roots allowed to anchor a candidate, nil for all
	spent   int  // search steps taken for the answer before this plan

	// inTree limits the unsuffixed group to one tree, which is then the only
	// anchor.
	inTree treeLimit
	// memberOf holds the providers that meet every AnyOf of the unsuffixed
	// group's aggregate filters; nil is all providers.
	memberOf mask
}

// slot is one provider to be chosen.
type slot struct {
	suffix     string
	unsuffixed bool // one class of the unsuffixed group
	demands    []demand
	allowed    mask // providers allowed by their own traits and aggregates, nil for all
	inTree     treeLimit
}

// demand is an amount of a class. If merged, other slots ask for the class too,
// so that sums matter. Index numbers the classes of the plan.
type demand struct {
	class  int32
	index  int
	name   string
	amount int64
	merged bool
}

// treeLimit is the inTree of a group.
type treeLimit struct {
	set  bool
	tree *providerTree // nil if there is no such tree
}

func (l treeLimit) allows(t *providerTree) bool { return !l.set || l.tree == t }

func (w *World) treeLimit(inTree string) treeLimit {
	return treeLimit{set: inTree != "", tree: w.treeOf(inTree)}
}

// compile returns the plan of a valid request.
func compile(w *World, r *Request) *plan {
	p := &plan{world: w, isolate: r.Policy == GroupPolicyIsolate}
	if len(r.Unsuffixed.Resources) > 0 {
		p.addUnsuffixed(&r.Unsuffixed)
	}
	p.classSlots = len(p.slots)
	for _, g := range bySuffix(r.Groups) {
		p.slots = append(p.slots, w.groupSlot(&g))
	}
	for _, subtree := range r.SameSubtree {
		var slots []int
		for i := p.classSlots; i < len(p.slots); i++ {
			if slices.Contains(subtree.Suffixes, p.slots[i].suffix) {
				slots = append(slots, i)
			}
		}
		if len(slots) > 1 {
			p.subtrees = append(p.subtrees, slots)
		}
	}
	if len(r.RootRequired) > 0 || len(r.RootForbidden) > 0 {
		root := Group{RequiredAll: r.RootRequired}
		p.restrictAnchors(w.matching(root.clauses(), r.RootForbidden, nil))
	}
	if r.Hosts != nil {
		p.restrictAnchors(w.linked(r.Hosts))
	}
	if taints := w.untolerated(r); len(taints) > 0 {
		p.repel(taints)
	}
	p.numberClasses()
	p.likeness = p.likenessOf(r)
	return p
}

// bySuffix returns the groups in the order of their suffixes.
func bySuffix(groups []Group) []Group {
	return slices.SortedFunc(slices.Values(groups), func(a, b Group) int { return cmp.Compare(a.Suffix, b.Suffix) })
}

func (w *World) groupSlot(g *Group) slot {
	return slot{
		suffix:  g.Suffix,
		demands: w.demands(g.Resources),
		allowed: w.matching(g.clauses(), g.Forbidden, g.MemberOf),
		inTree:  w.treeLimit(g.InTree),
	}
}

func (p *plan) addUnsuffixed(g *Group) {
	w := p.world
	for _, clause := range g.clauses() {
		p.clauses = append(p.clauses, w.traits.lookupAll(clause))
	}
	p.inTree = w.treeLimit(g.InTree)

	// The provider or, if it is in the anchor's tree, the root must meet every
	// AnyOf. Neither provider nor anchor may be in an aggregate of a NoneOf.
	var anyOf, noneOf []AggregateFilter
	for _, filter := range g.MemberOf {
		if len(filter.AnyOf) > 0 {
			anyOf = append(anyOf, AggregateFilter{AnyOf: filter.AnyOf})
		}
		if len(filter.NoneOf) > 0 {
			noneOf = append(noneOf, AggregateFilter{NoneOf: filter.NoneOf})
		}
	}
	p.memberOf = w.matching(nil, nil, anyOf)
	if len(noneOf) > 0 {
		p.restrictAnchors(w.matching(nil, nil, noneOf))
	}
	allowed := w.matching(nil, g.Forbidden, noneOf)
	for _, d := range w.demands(g.Resources) {
		p.slots = append(p.slots, slot{unsuffixed: true, demands: []demand{d}, allowed: allowed})
	}
}

func (p *plan) restrictAnchors(allowed mask) {
	if p.anchors == nil {
		p.anchors = allowed
	} else {
		p.anchors.keep(allowed)
	}
}

// demands returns the amounts of a group as demands, sorted by class name.
func (w *World) demands(resources []Amount) []demand {
	demands := make([]demand, len(resources))
	for i, amount := range resources {
		demands[i] = demand{class: w.classes.lookup(amount.ResourceClass),
			name: amount.ResourceClass, amount: amount.Amount}
	}
	slices.SortFunc(demands, func(a, b demand) int { return cmp.Compare(a.name, b.name) })
	return demands
}

// numberClasses numbers the requested classes and marks the classes that
// several slots ask for.
func (p *plan) numberClasses() {
	indexes, askers := map[string]int{}, map[string]int{}
	for _, s := range p.slots {
		for _, d := range s.demands {
			if _, ok := indexes[d.name]; !ok {
				indexes[d.name] = len(indexes)
			}
			askers[d.name]++
		}
	}
	for _, s := range p.slots {
		for i := range s.demands {
			d := &s.demands[i]
			d.index, d.merged = indexes[d.name], askers[d.name] > 1
		}
	}
	p.classes = len(indexes)
}

// mayAnchor reports whether a tree may anchor a candidate at all.
func (p *plan) mayAnchor(anchor *providerTree) bool {
	return p.inTree.allows(anchor) && p.anchors.has(anchor.members[0])
}

// serves reports whether a provider can serve a slot from an anchor that it
// reaches, regardless of the providers of other slots. A nil anchor stands for
// any tree except the provider's own.
func (p *plan) serves(s *slot, n *node, anchor *providerTree) bool {
	if !s.allowed.has(n.id) || !s.inTree.allows(n.tree) {
		return false
	}
	if s.unsuffixed {
		own := n.tree == anchor
		if !own && p.inTree.set || !p.memberOf.has(n.id) && !(own && p.memberOf.has(anchor.members[0])) {
			return false
		}
	}
	for i := range s.demands {
		if !n.inventoryOf(s.demands[i].class).fits(s.demands[i].amount) {
			return false
		}
	}
	return true
}
