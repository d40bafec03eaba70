package placement

import (
	"fmt"
	"slices"
	"strings"
)

// ExplainByDefinition returns the same as Explain, computed provider by
// provider and tree by tree.
func ExplainByDefinition(w *World, r *Request) Explanation {
	e := &definition{World: w, all: w.newMask(), remaining: w.newMask()}
	for _, id := range w.byUUID.all() {
		e.all.add(id)
	}
	if r.Hosts != nil {
		e.explainHosts(r.Hosts)
	}
	e.explainTaints(r)
	for _, d := range w.demands(r.Unsuffixed.Resources) {
		e.explainSlot("", &r.Unsuffixed, []demand{d})
	}
	for i := range r.Groups {
		e.explainSlot(at("groups", i), &r.Groups[i], w.demands(r.Groups[i].Resources))
	}
	e.explainWhole(r)
	return Explanation{Considered: w.Len(), Steps: e.steps, Nearest: nearestByDefinition(w, r)}
}

// definition collects the steps of an explanation. Every slot starts from the
// providers in all; remaining holds the providers that remain for any slot.
type definition struct {
	*World
	all, remaining mask
	steps          []ExplanationStep
}

// add adds the step of a constraint that left after of before providers.
func (e *definition) add(kind ConstraintKind, path, constraint string, before, after int) {
	e.steps = append(e.steps,
		ExplanationStep{Kind: kind, Path: path, Constraint: constraint, Eliminated: before - after, Remaining: after})
}

// explainHosts restricts all to the providers usable from the trees of the
// hosts.
func (e *definition) explainHosts(hosts *Hosts) {
	before, roots, left := e.all.size(), e.linked(hosts), e.newMask()
	for _, anchor := range e.trees.all() {
		if !roots.has(anchor.members[0]) {
			continue
		}
		for _, id := range anchor.members {
			left.add(id)
		}
		for _, id := range anchor.aggregates {
			for _, member := range e.aggregateIndex.at(id).sharing {
				left.add(member)
			}
		}
	}
	e.all = left
	e.add(ConstraintHosts, "hosts", "hosts", before, left.size())
}

// explainTaints removes the providers with each taint and their descendants.
func (e *definition) explainTaints(r *Request) {
	for name := range e.traitNames.all() {
		if !strings.HasPrefix(name, "CUSTOM_TAINT_") || slices.Contains(r.tolerated(), name) {
			continue
		}
		before := e.all.size()
		for _, id := range e.byUUID.all() {
			for n := e.nodes.at(id); n != nil; n = e.parentOf(n) {
				if slices.Contains(n.provider.Traits, name) {
					e.all.remove(id)
				}
			}
		}
		if after := e.all.size(); after < before {
			e.add("TAINT", "tolerates", "tolerates "+name, before, after)
		}
	}
}

// parentOf returns the parent in the tree, nil for a root.
func (w *World) parentOf(n *node) *node {
	if i := n.tree.parents[n.index]; i >= 0 {
		return w.nodes.at(n.tree.members[i])
	}
	return nil
}

// explainSlot narrows all providers by the constraints of a slot, until none
// are left.
func (e *definition) explainSlot(path string, g *Group, demands []demand) {
	left := slices.Clone(e.all)
	for _, c := range e.constraints(g, path == "", demands) {
		before := left.size()
		if before == 0 {
			break
		}
		for _, id := range e.byUUID.all() {
			if left.has(id) && !c.keep(e.nodes.at(id)) {
				left.remove(id)
			}
		}
		argument, _, _ := strings.Cut(c.name, " ")
		e.add(c.kind, under(path, argument), under(path, c.name), before, left.size())
	}
	for i := range left {
		e.remaining[i] |= left[i]
	}
}

// slotTest is a constraint that a single provider must meet to serve a slot.
type slotTest struct {
	kind ConstraintKind
	name string // its argument and, after a space, the element
	keep func(n *node) bool
}

// constraints returns the constraints of a slot of the group. A provider can
// meet the aggregates of the unsuffixed group through its root. The group's
// required traits concern several providers and are not among the constraints.
func (e *definition) constraints(g *Group, unsuffixed bool, demands []demand) []slotTest {
	var list []slotTest
	add := func(kind ConstraintKind, name string, keep func(n *node) bool) {
		list = append(list, slotTest{kind, name, keep})
	}
	for _, d := range demands {
		add(ConstraintResourceClass, "resources "+d.name, func(n *node) bool { return n.inventoryOf(d.class) != nil })
		add(ConstraintResourceAmount, fmt.Sprintf("resources %s:%d", d.name, d.amount), func(n *node) bool {
			return n.inventoryOf(d.class).fits(d.amount)
		})
	}
	if limit := e.treeLimit(g.InTree); limit.set {
		add(ConstraintInTree, "inTree", func(n *node) bool { return limit.allows(n.tree) })
	}
	for i, filter := range g.MemberOf {
		path := at("memberOf", i)
		if len(filter.AnyOf) > 0 {
			members := e.union(e.aggregateSets(filter.AnyOf))
			add(ConstraintMemberOf, path+".anyOf", func(n *node) bool {
				return members.has(n.id) || unsuffixed && members.has(n.tree.members[0])
			})
		}
		if len(filter.NoneOf) > 0 {
			members := e.union(e.aggregateSets(filter.NoneOf))
			add(ConstraintMemberOf, path+".noneOf", func(n *node) bool { return !members.has(n.id) })
		}
	}
	for _, trait := range sortedSet(g.Forbidden) {
		add(ConstraintForbiddenTrait, "forbidden "+trait, func(n *node) bool {
			return !slices.Contains(n.provider.Traits, trait)
		})
	}
	if !unsuffixed {
		names := g.clauseNames()
		for i, clause := range g.clauses() {
			add(ConstraintRequiredTrait, names[i], func(n *node) bool { return n.provider.hasAnyTrait(clause) })
		}
	}
	return list
}

// explainWhole explains the constraints on the request as a whole: roots, one
// anchor for all groups, the unsuffixed group's traits, and the combination.
func (e *definition) explainWhole(r *Request) {
	s := newSearch(compile(e.World, r))
	anchored, served, clausesMet := e.newMask(), e.newMask(), e.newMask()
	for _, anchor := range e.trees.all() {
		if !s.mayAnchor(anchor) {
			continue
		}
		complete := s.listAllOptions(anchor)
		s.addOptions(anchored)
		if !complete {
			continue
		}
		s.addOptions(served)
		if s.reachClauses() {
			s.addOptions(clausesMet)
		}
	}
	count := e.remaining.size()
	narrow := func(kind ConstraintKind, constraint string, m mask, always bool) {
		if after := m.size(); count > 0 && (always || after < count) {
			e.add(kind, "", constraint, count, after)
			count = after
		}
	}
	narrow(ConstraintAnchorRoot, "root of the tree: rootRequired, rootForbidden, aggregates, taints", anchored, false)
	narrow(ConstraintOneRoot, "one tree for all groups", served, len(s.slots) > 1)
	narrow(ConstraintRequiredTogether, "required traits of the unsuffixed group", clausesMet, len(s.clauses) > 0)
	if count == 0 {
		return
	}
	if n, exact, _ := Count(e.World, r, 1); n == 0 && exact {
		e.add(ConstraintCombination, "", "groupPolicy, sameSubtree and the sums of amounts, combined with traits",
			count, 0)
	}
}

// addOptions adds the options of every slot to a mask.
func (s *search) addOptions(m mask) {
	for i := range s.options {
		for _, o := range s.options[i] {
			m.add(o.node.id)
		}
	}
}

// nearestByDefinition returns the trees that lack least: by number of missing
// things, then of units, then by the root's uuid. It omits trees that more
// units and traits would not help, because forbidden traits, aggregates or
// inTree exclude them.
func nearestByDefinition(w *World, r *Request) []NearMiss {
	f := &missFinder{search: newSearch(compile(w, r)), relaxed: compile(w, r.relaxed()),
		request: r, groups: bySuffix(r.Groups)}
	misses := []NearMiss{}
	for _, anchor := range w.trees.all() {
		if !f.relaxed.mayAnchor(anchor) {
			continue
		}
		miss, ok := f.missOfTree(anchor)
		if !ok || miss.things() == 0 {
			continue
		}
		i := len(misses)
		for i > 0 && compareMisses(miss, misses[i-1]) < 0 {
			i--
		}
		if i < MaxNearest {
			misses = slices.Insert(misses, i, miss)[:min(len(misses)+1, MaxNearest)]
		}
	}
	return misses
}
