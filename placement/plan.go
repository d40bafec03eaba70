package placement

import (
	"cmp"
	"math/bits"
	"slices"
)

// plan is a request translated to a world's dense ids: slots in the order of the total order of
// candidates. A slot is what exactly one provider serves: one class of the unsuffixed group, or a suffixed
// group.
type plan struct {
	world *World
	slots []slot
	// classSlots is the number of slots of the unsuffixed group; they come first.
	classSlots int
	// clauses must each be met by the union of the traits of the providers serving the unsuffixed group.
	clauses [][]int32

	isolate  bool
	subtrees [][]int // slots, per same-subtree constraint
	classes  int     // number of different classes asked

	// anchors are the roots allowed to anchor a candidate, nil for all. If the unsuffixed group is bound by
	// inTree, onlyTree is all it may use and the only anchor; nil if there is no such tree.
	anchors  mask
	bound    bool
	onlyTree *tree
	// joined holds who meets the positive aggregate filters of the unsuffixed group.
	joined mask
}

// slot is one provider to be chosen.
type slot struct {
	suffix     string
	demands    []demand
	unsuffixed bool  // one class of the unsuffixed group
	allowed    mask  // by traits and aggregates of the provider alone; nil for all
	bound      bool  // by inTree
	tree       *tree // if bound; nil if there is no such tree
}

// demand is an amount of a class. Merged says that other slots ask for the class too, so that sums matter;
// index numbers the plan's classes.
type demand struct {
	class  int32
	index  int
	name   string
	amount int64
	merged bool
}

// mask is a flat set of dense ids; nil stands for all of them.
type mask []uint64

func (m mask) has(id int32) bool {
	return m == nil || m[id/64]&(1<<(id%64)) != 0
}

func (m mask) count() int {
	n := 0
	for _, word := range m {
		n += bits.OnesCount64(word)
	}
	return n
}

// unknown is the id of a name the world has never seen; no set has it.
const unknown = int32(1<<31 - 1)

func (n *interned) lookup(name string) int32 {
	if id, found := n.ids.get(name); found {
		return id
	}
	return unknown
}

func (n *interned) lookupAll(names []string) []int32 {
	ids := make([]int32, len(names))
	for i, name := range names {
		ids[i] = n.lookup(name)
	}
	slices.Sort(ids)
	return ids
}

// full is the mask of every id.
func (w *World) full() mask {
	m := make(mask, (w.limit+63)/64)
	for i := range m {
		m[i] = ^uint64(0)
	}
	return m
}

// keep leaves only members of at least one of the sets.
func (m mask) keep(sets []bitset) {
	for i := range m {
		var word uint64
		for s := range sets {
			word |= sets[s].word(i)
		}
		m[i] &= word
	}
}

// drop takes the members of every set out.
func (m mask) drop(sets []bitset) {
	for i := range m {
		for s := range sets {
			m[i] &^= sets[s].word(i)
		}
	}
}

func (w *World) traitSets(names []string) []bitset {
	sets := make([]bitset, 0, len(names))
	for _, name := range names {
		if id := w.traits.lookup(name); id != unknown {
			sets = append(sets, w.traitMembers.at(id))
		}
	}
	return sets
}

func (w *World) aggregateSets(uuids []string) []bitset {
	sets := make([]bitset, 0, len(uuids))
	for _, uuid := range uuids {
		if id := w.aggregates.lookup(canonicalOr(uuid)); id != unknown {
			sets = append(sets, w.aggregated.at(id).members)
		}
	}
	return sets
}

// treeOf is the tree that holds a provider, nil for an unknown one.
func (w *World) treeOf(uuid string) *tree {
	if id, found := w.byUUID.get(canonicalOr(uuid)); found {
		return w.nodes.at(id).tree
	}
	return nil
}

// clauses are the group's required traits as "each of these: any of those".
func (g *Group) clauses() [][]string {
	var clauses [][]string
	for _, trait := range g.RequiredAll {
		clauses = append(clauses, []string{trait})
	}
	if len(g.RequiredAny) > 0 {
		clauses = append(clauses, g.RequiredAny)
	}
	for _, set := range g.RequiredAnySets {
		clauses = append(clauses, set.AnyOf)
	}
	return clauses
}

// alone is the mask of providers that meet the constraints on their own traits and aggregates.
func (w *World) alone(clauses [][]string, forbidden []string, memberOf []AggregateFilter) mask {
	if len(clauses) == 0 && len(forbidden) == 0 && len(memberOf) == 0 {
		return nil
	}
	allowed := w.full()
	for _, clause := range clauses {
		allowed.keep(w.traitSets(clause))
	}
	allowed.drop(w.traitSets(forbidden))
	for _, filter := range memberOf {
		if len(filter.AnyOf) > 0 {
			allowed.keep(w.aggregateSets(filter.AnyOf))
		}
		allowed.drop(w.aggregateSets(filter.NoneOf))
	}
	return allowed
}

// compile translates a valid request.
func compile(w *World, r *Request) *plan {
	p := &plan{world: w, isolate: r.Policy == GroupPolicyIsolate}
	if len(r.Unsuffixed.Resources) > 0 {
		p.addUnsuffixed(&r.Unsuffixed)
	}
	p.classSlots = len(p.slots)

	groups := slices.Clone(r.Groups)
	slices.SortFunc(groups, func(a, b Group) int { return cmp.Compare(a.Suffix, b.Suffix) })
	numbers := map[string]int{}
	for i := range groups {
		g := &groups[i]
		numbers[g.Suffix] = len(p.slots)
		p.slots = append(p.slots, slot{
			suffix:  g.Suffix,
			demands: w.demands(g.Resources),
			allowed: w.alone(g.clauses(), g.Forbidden, g.MemberOf),
			bound:   g.InTree != "",
			tree:    w.treeOf(g.InTree),
		})
	}
	for _, subtree := range r.SameSubtree {
		var members []int
		for _, suffix := range subtree.Suffixes {
			if number, found := numbers[suffix]; found {
				members = append(members, number)
			}
		}
		slices.Sort(members)
		if members = slices.Compact(members); len(members) > 1 {
			p.subtrees = append(p.subtrees, members)
		}
	}

	if len(r.RootRequired) > 0 || len(r.RootForbidden) > 0 {
		p.restrictAnchors(w.alone(singletons(r.RootRequired), r.RootForbidden, nil))
	}
	p.number()
	return p
}

func singletons(names []string) [][]string {
	sets := make([][]string, len(names))
	for i, name := range names {
		sets[i] = []string{name}
	}
	return sets
}

// addUnsuffixed adds the slots of the group without suffix.
func (p *plan) addUnsuffixed(g *Group) {
	w := p.world
	for _, clause := range g.clauses() {
		p.clauses = append(p.clauses, w.traits.lookupAll(clause))
	}
	p.bound, p.onlyTree = g.InTree != "", w.treeOf(g.InTree)

	// The provider itself or the anchor root must meet all positive filters; neither may be in a forbidden
	// aggregate.
	var positive, negative []AggregateFilter
	for _, filter := range g.MemberOf {
		if len(filter.AnyOf) > 0 {
			positive = append(positive, AggregateFilter{AnyOf: filter.AnyOf})
		}
		if len(filter.NoneOf) > 0 {
			negative = append(negative, AggregateFilter{NoneOf: filter.NoneOf})
		}
	}
	p.joined = w.alone(nil, nil, positive)
	if len(negative) > 0 {
		p.restrictAnchors(w.alone(nil, nil, negative))
	}
	allowed := w.alone(nil, g.Forbidden, negative)
	for _, d := range w.demands(g.Resources) {
		one := []demand{d}
		p.slots = append(p.slots, slot{demands: one, unsuffixed: true, allowed: allowed})
	}
}

func (p *plan) restrictAnchors(allowed mask) {
	if p.anchors == nil {
		p.anchors = allowed
		return
	}
	for i := range p.anchors {
		p.anchors[i] &= allowed[i]
	}
}

// demands are a group's amounts by class name.
func (w *World) demands(resources []Amount) []demand {
	demands := make([]demand, len(resources))
	for i, amount := range resources {
		demands[i] = demand{class: w.classes.lookup(amount.ResourceClass), name: amount.ResourceClass, amount: amount.Amount}
	}
	slices.SortFunc(demands, func(a, b demand) int { return cmp.Compare(a.name, b.name) })
	return demands
}

// number gives the classes asked for their numbers and marks those that several slots ask for.
func (p *plan) number() {
	index, asked := map[string]int{}, map[string]int{}
	for _, s := range p.slots {
		for _, d := range s.demands {
			if _, found := index[d.name]; !found {
				index[d.name] = len(index)
			}
			asked[d.name]++
		}
	}
	for _, s := range p.slots {
		for i := range s.demands {
			d := &s.demands[i]
			d.index, d.merged = index[d.name], asked[d.name] > 1
		}
	}
	p.classes = len(index)
}

// anchored says whether a tree may anchor a candidate at all.
func (p *plan) anchored(anchor *tree) bool {
	if p.bound && p.onlyTree != anchor {
		return false
	}
	return p.anchors.has(anchor.members[0])
}

// serves is the whole test of one provider for one slot from an anchor it reaches.
func (p *plan) serves(s *slot, n *node, anchor *tree) bool {
	if !s.allowed.has(n.id) || s.bound && n.tree != s.tree {
		return false
	}
	if s.unsuffixed {
		if n.tree != anchor && p.bound {
			return false
		}
		if !p.joined.has(n.id) && (n.tree != anchor || !p.joined.has(anchor.members[0])) {
			return false
		}
	}
	for i := range s.demands {
		if !n.stock(s.demands[i].class).fits(s.demands[i].amount) {
			return false
		}
	}
	return true
}
