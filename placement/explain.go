package placement

import (
	"fmt"
	"slices"
)

// Explanation says where the providers went: for each constraint how many it took out, and which trees came
// nearest to a candidate.
type Explanation struct {
	// Considered is the number of providers in the world.
	Considered int
	Steps      []ExplanationStep
	Nearest    []NearMiss
}

// ExplanationStep is what one constraint did. Every class of the unsuffixed group and every suffixed group
// starts anew from all providers and is narrowed constraint by constraint until none remain; then the
// providers that remain for any of them are narrowed by what concerns the request as a whole.
type ExplanationStep struct {
	Constraint string // with its argument's path if it has one: "groups[1].forbidden CUSTOM_X"
	Eliminated int
	Remaining  int
}

// Explain accounts for the answer to a valid request. It is exact, deterministic and as long as the request
// at most, apart from the near misses.
func Explain(w *World, r *Request) Explanation {
	e := &explainer{World: w, live: make(mask, (w.limit+63)/64)}
	for _, id := range w.byUUID.all() {
		e.live[id/64] |= 1 << (id % 64)
	}
	remaining := make(mask, len(e.live))
	e.group("", &r.Unsuffixed, remaining)
	for i := range r.Groups {
		e.group(at("groups", i), &r.Groups[i], remaining)
	}
	e.whole(r, remaining)
	return Explanation{Considered: w.Len(), Steps: e.steps, Nearest: nearest(w, r)}
}

type explainer struct {
	*World
	live  mask
	steps []ExplanationStep
}

// step records that a constraint left the second set of the first.
func (e *explainer) step(constraint string, before, after int) {
	e.steps = append(e.steps, ExplanationStep{Constraint: constraint, Eliminated: before - after, Remaining: after})
}

// group explains one group and adds what remains of it.
func (e *explainer) group(path string, g *Group, remaining mask) {
	demands := e.demands(g.Resources)
	if path != "" {
		e.narrow(path, g, demands, remaining)
		return
	}
	for _, d := range demands {
		e.narrow(path, g, []demand{d}, remaining)
	}
}

// narrow takes the providers through the constraints of a slot. The aggregates of the unsuffixed group may
// be those of the root; its required traits concern several providers and come later.
func (e *explainer) narrow(path string, g *Group, demands []demand, remaining mask) {
	unsuffixed := path == ""
	left := slices.Clone(e.live)
	count := left.count()
	apply := func(constraint string, keep func(n *node) bool) {
		if count == 0 {
			return
		}
		for _, id := range e.byUUID.all() {
			if left.has(id) && !keep(e.nodes.at(id)) {
				left[id/64] &^= 1 << (id % 64)
			}
		}
		after := left.count()
		e.step(under(path, constraint), count, after)
		count = after
	}
	for _, d := range demands {
		apply("resources "+d.name, func(n *node) bool { return n.stock(d.class) != nil })
		apply(fmt.Sprintf("resources %s:%d", d.name, d.amount), func(n *node) bool {
			return n.stock(d.class).fits(d.amount)
		})
	}
	if g.InTree != "" {
		tree := e.treeOf(g.InTree)
		apply("inTree", func(n *node) bool { return n.tree == tree })
	}
	for i, filter := range g.MemberOf {
		joins := func(id int32) bool { return e.inAny(filter.AnyOf, id) }
		if len(filter.AnyOf) > 0 {
			apply(at("memberOf", i)+".anyOf", func(n *node) bool {
				return joins(n.id) || unsuffixed && joins(n.tree.members[0])
			})
		}
		if len(filter.NoneOf) > 0 {
			apply(at("memberOf", i)+".noneOf", func(n *node) bool { return !e.inAny(filter.NoneOf, n.id) })
		}
	}
	for _, trait := range sortedSet(g.Forbidden) {
		apply("forbidden "+trait, func(n *node) bool { return !slices.Contains(n.provider.Traits, trait) })
	}
	if !unsuffixed {
		eachClause(g, func(constraint string, clause []string) {
			apply(constraint, func(n *node) bool {
				return slices.ContainsFunc(clause, func(t string) bool { return slices.Contains(n.provider.Traits, t) })
			})
		})
	}
	for i := range left {
		remaining[i] |= left[i]
	}
}

// eachClause names a group's clauses by their argument.
func eachClause(g *Group, each func(constraint string, clause []string)) {
	for _, trait := range g.RequiredAll {
		each("requiredAll "+trait, []string{trait})
	}
	if len(g.RequiredAny) > 0 {
		each("requiredAny", g.RequiredAny)
	}
	for i, set := range g.RequiredAnySets {
		each(at("requiredAnySets", i), set.AnyOf)
	}
}

func (w *World) inAny(aggregates []string, id int32) bool {
	return slices.ContainsFunc(w.aggregateSets(aggregates), func(set bitset) bool { return set.has(id) })
}

// whole explains what concerns the request as a whole: roots, one anchor for all groups, the unsuffixed
// group's traits, and the combination.
func (e *explainer) whole(r *Request, remaining mask) {
	count := remaining.count()
	s := newSearch(compile(e.World, r))
	anchored, served, traited := make(mask, len(remaining)), make(mask, len(remaining)), make(mask, len(remaining))
	mark := func(m mask, options [][]option) {
		for i := range options {
			for _, o := range options[i] {
				m[o.node.id/64] |= 1 << (o.node.id % 64)
			}
		}
	}
	for _, anchor := range e.trees.all() {
		if !s.anchored(anchor) {
			continue
		}
		s.steps = 0 // this is one pass over the world, bounded by itself
		shared := s.sharedFor(anchor)
		complete := true
		for i := range s.slots {
			_, ok := s.fill(i, anchor, shared)
			complete = complete && ok
		}
		mark(anchored, s.options)
		if complete {
			mark(served, s.options)
			if s.reachClauses() {
				mark(traited, s.options)
			}
		}
	}
	next := func(constraint string, m mask, given bool) {
		if after := m.count(); count > 0 && (given || after < count) {
			e.step(constraint, count, after)
			count = after
		}
	}
	next("the anchor root: rootRequired, rootForbidden, its aggregates", anchored, false)
	next("one root for every group", served, len(s.slots) > 1)
	next("required traits of the unsuffixed group", traited, len(s.clauses) > 0)
	if count == 0 {
		return
	}
	if n, exact, _ := Count(e.World, r, 1); n == 0 && exact {
		e.step("groupPolicy, sameSubtree, sums of amounts and traits together", count, 0)
	}
}
