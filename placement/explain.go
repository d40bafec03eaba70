package placement

import (
	"cmp"
	"fmt"
	"math/bits"
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

// NearMiss is a tree that lacks little: what is missing in it and in what shares with it. Traits lists the
// required traits that were not found, all of an any-of set, and those missing on the root.
type NearMiss struct {
	Provider *Provider // the root
	Missing  []Shortage
	Traits   []string
}

// Shortage is how many of the units asked of a class the best provider could not give.
type Shortage struct {
	ResourceClass string
	Short         int64
}

// MaxNearest is how many near misses an explanation names.
const MaxNearest = 5

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

func (m mask) count() int {
	n := 0
	for _, word := range m {
		n += bits.OnesCount64(word)
	}
	return n
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
		e.clauses(g, func(constraint string, clause []string) {
			apply(constraint, func(n *node) bool {
				return slices.ContainsFunc(clause, func(t string) bool { return slices.Contains(n.provider.Traits, t) })
			})
		})
	}
	for i := range left {
		remaining[i] |= left[i]
	}
}

// clauses names a group's clauses by their argument.
func (e *explainer) clauses(g *Group, each func(constraint string, clause []string)) {
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

// nearest are the trees that lack least: fewest things, then fewest units, then by the root's uuid.
func nearest(w *World, r *Request) []NearMiss {
	type miss struct {
		NearMiss
		lacks int
		short int64
	}
	s := newSearch(compile(w, r))
	var misses []miss
	for _, anchor := range w.trees.all() {
		root := w.nodes.at(anchor.members[0])
		if s.bound && s.onlyTree != anchor {
			continue
		}
		m := miss{NearMiss: NearMiss{Provider: root.provider}}
		for _, trait := range sortedSet(r.RootRequired) {
			if !slices.Contains(root.provider.Traits, trait) {
				m.Traits = append(m.Traits, trait)
			}
		}
		s.steps = 0
		shared := s.sharedFor(anchor)
		for i := range s.slots {
			if _, ok := s.fill(i, anchor, shared); !ok {
				s.lack(&m.NearMiss, i, r, anchor)
			}
		}
		for c, clause := range r.Unsuffixed.clauses() {
			if s.loose > 0 && !s.anyMeets(c) {
				m.Traits = append(m.Traits, clause...)
			}
		}
		m.Traits = sortedSet(m.Traits)
		m.lacks = len(m.Missing) + len(m.Traits)
		for _, shortage := range m.Missing {
			m.short += shortage.Short
		}
		if m.lacks > 0 {
			misses = append(misses, m)
		}
	}
	slices.SortStableFunc(misses, func(a, b miss) int {
		return cmp.Or(cmp.Compare(a.lacks, b.lacks), cmp.Compare(a.short, b.short))
	})
	near := make([]NearMiss, 0, MaxNearest)
	for _, m := range misses[:min(len(misses), MaxNearest)] {
		near = append(near, m.NearMiss)
	}
	return near
}

// anyMeets says whether any option of the unsuffixed group meets a clause.
func (s *search) anyMeets(clause int) bool {
	for i := range s.loose {
		for _, o := range s.options[i] {
			if o.meets[clause/64]&(1<<(clause%64)) != 0 {
				return true
			}
		}
	}
	return false
}

// lack adds what the tree's best provider for a slot without options lacks. Nothing is added for what more
// units or traits would not mend.
func (s *search) lack(m *NearMiss, i int, r *Request, anchor *tree) {
	slot := &s.slots[i]
	var clauses [][]string
	if !slot.unjoined {
		for k := range r.Groups {
			if r.Groups[k].Suffix == slot.suffix {
				clauses = r.Groups[k].clauses()
			}
		}
	}
	best := NearMiss{}
	bestLacks, bestShort := -1, int64(0)
	for _, id := range anchor.members {
		n := s.world.nodes.at(id)
		var own NearMiss
		var short int64
		for _, d := range slot.demands {
			if lacking := d.amount - n.stock(d.class).obtainable(d.amount); lacking > 0 {
				own.Missing = append(own.Missing, Shortage{ResourceClass: d.name, Short: lacking})
				short += lacking
			}
		}
		for _, clause := range clauses {
			if !slices.ContainsFunc(clause, func(t string) bool { return slices.Contains(n.provider.Traits, t) }) {
				own.Traits = append(own.Traits, clause...)
			}
		}
		lacks := len(own.Missing) + len(own.Traits)
		if lacks > 0 && (bestLacks < 0 || lacks < bestLacks || lacks == bestLacks && short < bestShort) {
			best, bestLacks, bestShort = own, lacks, short
		}
	}
	m.Traits = append(m.Traits, best.Traits...)
	m.Missing = append(m.Missing, best.Missing...)
}

// obtainable is the largest amount up to the one asked that the inventory would give.
func (s *stock) obtainable(amount int64) int64 {
	if s == nil {
		return 0
	}
	most := min(amount, s.free, s.maxUnit)
	if s.stepSize > 1 {
		most -= most % s.stepSize
	}
	if most < s.minUnit {
		return 0
	}
	return most
}
