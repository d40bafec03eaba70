package placement

import (
	"cmp"
	"slices"
)

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

// nearest are the trees that lack least: fewest things, then fewest units, then by the root's uuid. A tree
// in which more units and traits would not mend it, because of forbidden traits, aggregates or inTree, is
// not near.
func nearest(w *World, r *Request) []NearMiss {
	type miss struct {
		NearMiss
		lacks int
		short int64
	}
	s := newSearch(compile(w, r))
	mended := compile(w, r.mended())
	var misses []miss
	for _, anchor := range w.trees.all() {
		if !mended.anchored(anchor) {
			continue
		}
		root := w.nodes.at(anchor.members[0]).provider
		m := miss{NearMiss: NearMiss{Provider: root}}
		for _, trait := range r.RootRequired {
			if !slices.Contains(root.Traits, trait) {
				m.Traits = append(m.Traits, trait)
			}
		}
		if !s.lacking(&m.NearMiss, mended, r, anchor) {
			continue
		}
		slices.SortFunc(m.Missing, func(a, b Shortage) int {
			return cmp.Or(cmp.Compare(a.ResourceClass, b.ResourceClass), cmp.Compare(a.Short, b.Short))
		})
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

// mended is the request without required traits; its slots are the same.
func (r *Request) mended() *Request {
	ease := func(g Group) Group {
		g.RequiredAll, g.RequiredAny, g.RequiredAnySets = nil, nil, nil
		return g
	}
	m := *r
	m.RootRequired = nil
	m.Unsuffixed = ease(r.Unsuffixed)
	m.Groups = make([]Group, len(r.Groups))
	for i := range r.Groups {
		m.Groups[i] = ease(r.Groups[i])
	}
	return &m
}

// lacking adds what an anchor's tree and its sharing providers lack; it reports false if something else than
// units and traits is in the way.
func (s *search) lacking(m *NearMiss, mended *plan, r *Request, anchor *tree) bool {
	s.steps = 0
	shared := s.sharedFor(anchor)
	met := make([]bool, len(s.clauses))
	for i := range s.slots {
		_, served := s.fill(i, anchor, shared)
		if s.slots[i].unsuffixed {
			for c, clause := range s.clauses {
				met[c] = met[c] || slices.ContainsFunc(s.options[i], func(o option) bool { return intersects(clause, o.node.traits) })
			}
		}
		if served {
			continue
		}
		able := slot{unsuffixed: s.slots[i].unsuffixed, allowed: mended.slots[i].allowed, bound: mended.slots[i].bound, tree: mended.slots[i].tree}
		var members []*node
		for _, id := range anchor.members {
			if n := s.world.nodes.at(id); mended.serves(&able, n, anchor) {
				members = append(members, n)
			}
		}
		best := s.leastLacking(i, r, members)
		if best == nil {
			return false
		}
		m.Missing = append(m.Missing, best.Missing...)
		m.Traits = append(m.Traits, best.Traits...)
		for _, n := range members {
			for c, clause := range s.clauses {
				met[c] = met[c] || s.slots[i].unsuffixed && intersects(clause, n.traits)
			}
		}
	}
	for c, clause := range r.Unsuffixed.clauses() {
		if s.classSlots > 0 && !met[c] {
			m.Traits = append(m.Traits, clause...)
		}
	}
	return true
}

// leastLacking is what the provider that lacks least lacks for a slot, nil if there is no provider.
func (s *search) leastLacking(i int, r *Request, members []*node) *NearMiss {
	slot := &s.slots[i]
	var clauses [][]string
	if !slot.unsuffixed {
		for k := range r.Groups {
			if r.Groups[k].Suffix == slot.suffix {
				clauses = r.Groups[k].clauses()
			}
		}
	}
	var best *NearMiss
	var bestLacks int
	var bestShort int64
	for _, n := range members {
		own := new(NearMiss)
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
		if best == nil || lacks < bestLacks || lacks == bestLacks && short < bestShort {
			best, bestLacks, bestShort = own, lacks, short
		}
	}
	return best
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
