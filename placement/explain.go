package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Explanation accounts for the providers of a world: how many each constraint
// eliminated, and which trees came nearest to a candidate.
type Explanation struct {
	// Considered is the number of providers in the world.
	Considered int
	Steps      []ExplanationStep
	Nearest    []NearMiss
}

// ExplanationStep is the effect of one constraint. The hosts come first: they
// keep the providers of their trees and the providers that share with those
// trees. Then taints eliminate the providers that they repel. Every class of the
// unsuffixed group and every suffixed group starts from the remaining providers.
// Its constraints eliminate providers one after the other, until none remain.
// Last come the constraints on the request as a whole. They apply to the
// providers that remain for any class or group.
type ExplanationStep struct {
	Kind       ConstraintKind
	Path       string // of the constraint's argument; empty for the request as a whole
	Constraint string // with its argument's path if it has one: "groups[1].forbidden CUSTOM_X"
	Eliminated int
	Remaining  int
}

// Explain returns the explanation of the answer to a valid request. Apart from
// the near misses and the taints, its length is proportional to the request. It
// explains the first alternatives of the groups.
func Explain(w *World, r *Request) Explanation {
	r = r.first()
	e := &explainer{reacher: w.newReacher(), remaining: w.newMask()}
	e.all = slices.Clone(e.known)
	if r.Hosts != nil {
		e.explainHosts(r.Hosts)
	}
	e.explainTaints(w.untolerated(r))
	for _, d := range w.demands(r.Unsuffixed.Resources) {
		e.explainSlot("", &r.Unsuffixed, []demand{d})
	}
	for i := range r.Groups {
		e.explainSlot(at("groups", i), &r.Groups[i], w.demands(r.Groups[i].Resources))
	}
	p := compile(w, r)
	slots := make([]servers, len(p.slots))
	for i := range p.slots {
		slots[i] = e.serversOf(p, &p.slots[i])
	}
	e.explainWhole(r, p, slots)
	return Explanation{Considered: w.Len(), Steps: e.steps, Nearest: e.nearestMisses(r, p, slots)}
}

// explainer collects the steps of an explanation. Every slot starts from the
// providers in all; remaining holds the providers that remain for any slot.
type explainer struct {
	*reacher
	all, remaining mask
	steps          []ExplanationStep
}

// ConstraintKind is the kind of a constraint, as the API names it.
type ConstraintKind string

// The kinds of constraints, in the order in which they are explained.
const (
	ConstraintHosts            ConstraintKind = "HOSTS"
	ConstraintTaint            ConstraintKind = "TAINT"
	ConstraintResourceClass    ConstraintKind = "RESOURCE_CLASS"
	ConstraintResourceAmount   ConstraintKind = "RESOURCE_AMOUNT"
	ConstraintInTree           ConstraintKind = "IN_TREE"
	ConstraintMemberOf         ConstraintKind = "MEMBER_OF"
	ConstraintForbiddenTrait   ConstraintKind = "FORBIDDEN_TRAIT"
	ConstraintRequiredTrait    ConstraintKind = "REQUIRED_TRAIT"
	ConstraintAnchorRoot       ConstraintKind = "ANCHOR_ROOT"
	ConstraintOneRoot          ConstraintKind = "ONE_ROOT"
	ConstraintRequiredTogether ConstraintKind = "REQUIRED_TOGETHER"
	ConstraintCombination      ConstraintKind = "COMBINATION"
)

// add adds the step of a constraint that reduced the number of providers from
// before to after.
func (e *explainer) add(kind ConstraintKind, path, constraint string, before, after int) {
	e.steps = append(e.steps,
		ExplanationStep{Kind: kind, Path: path, Constraint: constraint, Eliminated: before - after, Remaining: after})
}

// explainHosts restricts all to the providers usable from the trees of the
// hosts.
func (e *explainer) explainHosts(hosts *Hosts) {
	before, roots := e.all.size(), e.rootsAmong(e.linked(hosts))
	left := e.membersOf(roots)
	left.join(e.reachedFrom(roots, e.sharing))
	e.all = left
	e.add(ConstraintHosts, "hosts", "hosts", before, left.size())
}

// explainSlot applies the constraints of a slot to the providers in all, one
// after the other until none are left. It adds the rest to remaining.
func (e *explainer) explainSlot(path string, g *Group, demands []demand) {
	left := slices.Clone(e.all)
	for _, c := range e.constraints(g, path == "", demands) {
		before := left.size()
		if before == 0 {
			break
		}
		c.keep(left)
		argument, _, _ := strings.Cut(c.name, " ")
		e.add(c.kind, under(path, argument), under(path, c.name), before, left.size())
	}
	e.remaining.join(left)
}

// slotConstraint is a constraint that a single provider must meet to serve a
// slot.
type slotConstraint struct {
	kind ConstraintKind
	name string       // the argument and, after a space, the element
	keep func(m mask) // keeps the providers that meet it
}

// constraints returns the constraints of a slot of the group. A provider can
// meet the aggregates of the unsuffixed group through its root. The required
// traits of that group concern several providers and are not in the result.
func (e *explainer) constraints(g *Group, unsuffixed bool, demands []demand) []slotConstraint {
	var list []slotConstraint
	add := func(kind ConstraintKind, name string, keep func(m mask)) {
		list = append(list, slotConstraint{kind, name, keep})
	}
	for _, d := range demands {
		add(ConstraintResourceClass, "resources "+d.name, func(m mask) { e.keepStocked(m, d.class) })
		add(ConstraintResourceAmount, fmt.Sprintf("resources %s:%d", d.name, d.amount), func(m mask) {
			e.keepFitting(m, d)
		})
	}
	if limit := e.treeLimit(g.InTree); limit.set {
		add(ConstraintInTree, "inTree", func(m mask) { e.keepTree(m, limit) })
	}
	for i, filter := range g.MemberOf {
		path := at("memberOf", i)
		if len(filter.AnyOf) > 0 {
			add(ConstraintMemberOf, path+".anyOf", func(m mask) { e.keepAggregates(m, filter.AnyOf, unsuffixed) })
		}
		if len(filter.NoneOf) > 0 {
			add(ConstraintMemberOf, path+".noneOf", func(m mask) { m.removeAll(e.aggregateSets(filter.NoneOf)) })
		}
	}
	for _, trait := range sortedSet(g.Forbidden) {
		add(ConstraintForbiddenTrait, "forbidden "+trait, func(m mask) { m.removeAll(e.setsOf([]string{trait})) })
	}
	if !unsuffixed {
		names := g.clauseNames()
		for i, clause := range g.clauses() {
			add(ConstraintRequiredTrait, names[i], func(m mask) { m.keep(e.union(e.setsOf(clause))) })
		}
	}
	return list
}

// setsOf returns, for each known trait among the names, the set of providers
// with it.
func (e *explainer) setsOf(traits []string) []bitset {
	return e.traitSets(e.World.traits.lookupAll(traits))
}

// keepAggregates keeps the members of aggregates; with roots, also the
// providers of the trees whose root is a member.
func (e *explainer) keepAggregates(m mask, aggregates []string, roots bool) {
	members := e.union(e.aggregateSets(aggregates))
	if roots {
		members.join(e.membersOf(e.rootsAmong(members)))
	}
	m.keep(members)
}

// clauseNames returns, for each of clauses, the argument that it comes from,
// followed by the trait for requiredAll.
func (g *Group) clauseNames() []string {
	var names []string
	for _, trait := range g.RequiredAll {
		names = append(names, "requiredAll "+trait)
	}
	if len(g.RequiredAny) > 0 {
		names = append(names, "requiredAny")
	}
	for i := range g.RequiredAnySets {
		names = append(names, at("requiredAnySets", i))
	}
	return names
}

func (p *Provider) hasAnyTrait(traits []string) bool {
	return slices.ContainsFunc(traits, func(trait string) bool { return slices.Contains(p.Traits, trait) })
}

// explainWhole explains the constraints on the request as a whole: roots, one
// anchor for all groups, the unsuffixed group's traits, and the combination.
func (e *explainer) explainWhole(r *Request, p *plan, slots []servers) {
	count := e.remaining.size()
	narrow := func(kind ConstraintKind, constraint string, m mask, always bool) {
		if after := m.size(); count > 0 && (always || after < count) {
			e.add(kind, "", constraint, count, after)
			count = after
		}
	}
	anchors := e.anchorsOf(p)
	narrow(ConstraintAnchorRoot, "root of the tree: rootRequired, rootForbidden, aggregates, taints",
		e.usedFrom(anchors, slots), false)
	e.keepServed(anchors, slots)
	narrow(ConstraintOneRoot, "one tree for all groups", e.usedFrom(anchors, slots), len(p.slots) > 1)
	e.keepMeeting(anchors, p, slots)
	narrow(ConstraintRequiredTogether, "required traits of the unsuffixed group",
		e.usedFrom(anchors, slots), len(p.clauses) > 0)
	if count == 0 {
		return
	}
	if n, exact, _ := Count(e.World, r, 1); n == 0 && exact {
		e.add(ConstraintCombination, "", "groupPolicy, sameSubtree and the sums of amounts, combined with traits",
			count, 0)
	}
}

// listAllOptions lists the options of every slot from an anchor and reports
// whether each has one. It counts steps from 0 again, so that calls for many
// anchors do not add up to MaxSteps.
func (s *search) listAllOptions(anchor *providerTree) bool {
	s.steps = 0
	shared := s.sharingProviders(anchor)
	complete := true
	for i := range s.slots {
		_, ok := s.listOptions(i, anchor, shared)
		complete = complete && ok
	}
	return complete
}

// MaxNearest is the maximum number of near misses of an explanation.
const MaxNearest = 5

// NearMiss is a tree that lacks little to serve a request, counting the
// providers that share with it. Traits lists the missing required traits,
// including those missing on the root and every trait of an any-of set.
type NearMiss struct {
	Provider *Provider // the root
	Missing  []Shortage
	Traits   []string
}

// Shortage is the number of units of a class that are missing on the provider
// that lacks least for a slot.
type Shortage struct {
	ResourceClass string
	Short         int64
}

// nearestMisses returns the trees that lack least, at most MaxNearest: by
// number of missing things, then of units, then by the root's uuid. It omits
// trees that more units and traits would not help, because forbidden traits,
// aggregates or inTree exclude them. It computes how much is missing for all
// trees together, and lists the missing things for the returned trees alone.
func (e *explainer) nearestMisses(r *Request, p *plan, slots []servers) []NearMiss {
	f := &missFinder{search: newSearch(p), relaxed: compile(e.World, r.relaxed()),
		request: r, groups: bySuffix(r.Groups)}
	misses := []NearMiss{}
	for _, root := range e.nearestRoots(f, slots) {
		if miss, ok := f.missOfTree(e.nodes.at(root).tree); ok {
			misses = append(misses, miss)
		}
	}
	return misses
}

// relaxed returns the request without required traits. Its slots and the taints
// that it tolerates are the same.
func (r *Request) relaxed() *Request {
	relax := func(g Group) Group {
		g.RequiredAll, g.RequiredAny, g.RequiredAnySets = nil, nil, nil
		return g
	}
	relaxed := *r
	relaxed.Tolerates, relaxed.RootRequired = r.tolerated(), nil
	relaxed.Unsuffixed = relax(r.Unsuffixed)
	relaxed.Groups = make([]Group, len(r.Groups))
	for i := range r.Groups {
		relaxed.Groups[i] = relax(r.Groups[i])
	}
	return &relaxed
}

// things returns the number of classes and traits that are missing.
func (m *NearMiss) things() int { return len(m.Missing) + len(m.Traits) }

// units returns the number of units that are missing, over all classes.
func (m *NearMiss) units() int64 {
	var units int64
	for _, shortage := range m.Missing {
		units += shortage.Short
	}
	return units
}

func compareMisses(a, b NearMiss) int {
	return cmp.Or(cmp.Compare(a.things(), b.things()), cmp.Compare(a.units(), b.units()))
}

// missFinder computes what trees lack. Relaxed is the plan of the request
// without required traits, groups are the suffixed groups in slot order.
type missFinder struct {
	*search
	relaxed *plan
	request *Request
	groups  []Group
	able    []*node // reused from slot to slot
}

// missOfTree returns the things missing from an anchor's tree and its sharing
// providers. It reports false if more units and traits would not help.
func (f *missFinder) missOfTree(anchor *providerTree) (NearMiss, bool) {
	miss := NearMiss{Provider: f.world.nodes.at(anchor.members[0]).provider}
	for _, trait := range f.request.RootRequired {
		if !slices.Contains(miss.Provider.Traits, trait) {
			miss.Traits = append(miss.Traits, trait)
		}
	}
	f.listAllOptions(anchor)
	met := make([]bool, len(f.clauses))
	for i := range f.slots {
		if !f.addMissOfSlot(i, anchor, &miss) {
			return miss, false
		}
		if f.slots[i].unsuffixed {
			for c, clause := range f.clauses {
				met[c] = met[c] ||
					slices.ContainsFunc(f.able, func(n *node) bool { return intersects(clause, n.traits) })
			}
		}
	}
	if f.classSlots > 0 {
		for c, clause := range f.request.Unsuffixed.clauses() {
			if !met[c] {
				miss.Traits = append(miss.Traits, clause...)
			}
		}
	}
	slices.SortFunc(miss.Missing, func(a, b Shortage) int {
		return cmp.Or(cmp.Compare(a.ResourceClass, b.ResourceClass), cmp.Compare(a.Short, b.Short))
	})
	miss.Traits = sortedSet(miss.Traits)
	return miss, true
}

// addMissOfSlot adds the things missing for a slot. It sets able to the
// providers that serve the slot or, if none does, that could with more units
// and traits. It reports false if able is empty.
func (f *missFinder) addMissOfSlot(i int, anchor *providerTree, miss *NearMiss) bool {
	f.able = f.able[:0]
	for _, o := range f.options[i] {
		f.able = append(f.able, o.node)
	}
	if len(f.able) > 0 {
		return true
	}
	slot := f.relaxed.slots[i]
	slot.demands = nil
	for _, id := range anchor.members {
		if n := f.world.nodes.at(id); f.relaxed.serves(&slot, n, anchor) {
			f.able = append(f.able, n)
		}
	}
	for _, n := range f.world.sharingWith(anchor) {
		if n.tree != anchor && f.relaxed.serves(&slot, n, anchor) {
			f.able = append(f.able, n)
		}
	}
	if len(f.able) == 0 {
		return false
	}
	misses := make([]NearMiss, len(f.able))
	for k, n := range f.able {
		misses[k] = f.missOfProvider(n, i)
	}
	least := slices.MinFunc(misses, compareMisses)
	miss.Missing = append(miss.Missing, least.Missing...)
	miss.Traits = append(miss.Traits, least.Traits...)
	return true
}

// missOfProvider returns the things that a provider lacks for a slot.
func (f *missFinder) missOfProvider(n *node, i int) NearMiss {
	var miss NearMiss
	for _, d := range f.slots[i].demands {
		if short := d.amount - n.inventoryOf(d.class).available(d.amount); short > 0 {
			miss.Missing = append(miss.Missing, Shortage{ResourceClass: d.name, Short: short})
		}
	}
	if i >= f.classSlots {
		for _, clause := range f.groups[i-f.classSlots].clauses() {
			if !n.provider.hasAnyTrait(clause) {
				miss.Traits = append(miss.Traits, clause...)
			}
		}
	}
	return miss
}

// available returns the largest amount up to the one asked that the inventory,
// which may be nil, can take.
func (i *nodeInventory) available(amount int64) int64 {
	if i == nil {
		return 0
	}
	available := min(amount, i.free, int64(i.maxUnit))
	if i.stepSize > 1 {
		available -= available % int64(i.stepSize)
	}
	if available < int64(i.minUnit) {
		return 0
	}
	return available
}
