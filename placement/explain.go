package placement

import (
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
