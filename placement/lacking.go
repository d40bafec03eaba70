package placement

import (
	"cmp"
	"slices"
)

// lack is how much is missing.
type lack struct {
	classes, traits int32 // of which something is missing, with repetitions
	units           int64
}

func (l lack) compare(other lack) int {
	return cmp.Or(cmp.Compare(l.classes+l.traits, other.classes+other.traits), cmp.Compare(l.units, other.units))
}

// lackFinder computes how much each tree lacks that missOfTree would list.
// Anchors are the roots of the trees that more units and traits would help;
// lacks, by root, are their sums, and missing the roots where each trait is
// missing that is required somewhere.
type lackFinder struct {
	*reacher
	of      *missFinder
	anchors mask
	lacks   []lack
	missing map[string]mask
	// able are, of each slot of the unsuffixed group, the providers that serve it
	// or, in trees where none does, could with more units.
	able []servers

	// By root, for the slot that is looked at: the provider that lacks least, and
	// how much that is.
	chosen []int32
	least  []lack
}

// nearestRoots returns the roots of the trees that lack least, but something.
func (e *explainer) nearestRoots(of *missFinder, slots []servers) []int32 {
	f := &lackFinder{
		reacher: e.reacher, of: of, lacks: make([]lack, e.idLimit), missing: map[string]mask{},
		chosen: make([]int32, e.idLimit), least: make([]lack, e.idLimit),
	}
	f.anchors = e.anchorsOf(of.relaxed)
	for _, trait := range of.request.RootRequired {
		f.addMissing([]string{trait}, f.roots, f.having([]string{trait}))
	}
	for i := range slots {
		f.addSlot(i, slots[i])
	}
	f.addClauses()
	for _, roots := range f.missing {
		roots.keep(f.anchors)
		for root := range roots.all() {
			f.lacks[root].traits++
		}
	}
	return f.first()
}

// having returns the providers that have one of some traits.
func (f *lackFinder) having(traits []string) mask {
	return f.union(f.traitSets(f.traits.lookupAll(traits)))
}

// addMissing notes that all traits of a clause are missing in the trees of roots
// that are not among those where it is met.
func (f *lackFinder) addMissing(clause []string, roots, met mask) {
	for _, trait := range clause {
		at := f.missing[trait]
		if at == nil {
			at = f.newMask()
			f.missing[trait] = at
		}
		for i := range at {
			at[i] |= roots[i] &^ met[i]
		}
	}
}

// addSlot adds what is missing for a slot in the trees where nobody can serve it:
// what is missing on the provider that lacks least, the first of them in its tree.
func (f *lackFinder) addSlot(i int, by servers) {
	served := f.rootsServed(by)
	slot := f.of.relaxed.slots[i]
	slot.demands = nil
	could := f.serversOf(f.of.relaxed, &slot).own
	could.without(f.membersOf(served))
	could.keep(f.membersOf(f.anchors))
	helped := f.rootsOf(could)
	for k := range f.anchors {
		f.anchors[k] &= served[k] | helped[k]
	}
	if i < f.of.classSlots {
		own := slices.Clone(by.own)
		own.join(could)
		f.able = append(f.able, servers{own: own, shared: by.shared})
	}
	f.addLeast(i, could, helped)
}

// addLeast adds, for each of the trees of some roots, what is missing for a slot
// on that of the providers which lacks least.
func (f *lackFinder) addLeast(i int, could, roots mask) {
	clauses, having := f.clausesOf(i)
	f.choose(i, could, clauses, having)
	lacking := make([]mask, len(clauses))
	for k := range lacking {
		lacking[k] = f.newMask()
	}
	for root := range roots.all() {
		f.lacks[root].classes += f.least[root].classes
		f.lacks[root].units += f.least[root].units
		for k := range clauses {
			if !having[k].has(f.chosen[root]) {
				lacking[k].add(root)
			}
		}
	}
	none := f.newMask()
	for k, clause := range clauses {
		f.addMissing(clause, lacking[k], none)
	}
}

// choose finds the provider of each tree that lacks least for a slot: the first
// of them in its tree.
func (f *lackFinder) choose(i int, could mask, clauses [][]string, having []mask) {
	seen := f.newMask()
	for id := range could.all() {
		of, root := f.lackOf(i, id, clauses, having), f.rootOf.at(id)-1
		if seen.has(root) {
			order := of.compare(f.least[root])
			if order > 0 || order == 0 && f.nodes.at(id).index > f.nodes.at(f.chosen[root]).index {
				continue
			}
		}
		seen.add(root)
		f.chosen[root], f.least[root] = id, of
	}
}

// clausesOf returns the clauses that a provider must meet by itself to serve a
// slot, and for each the providers that do.
func (f *lackFinder) clausesOf(i int) (clauses [][]string, having []mask) {
	if i < f.of.classSlots {
		return nil, nil
	}
	clauses = f.of.groups[i-f.of.classSlots].clauses()
	for _, clause := range clauses {
		having = append(having, f.having(clause))
	}
	return clauses, having
}

// lackOf returns how much is missing on a provider for a slot.
func (f *lackFinder) lackOf(i int, id int32, clauses [][]string, having []mask) lack {
	var of lack
	for _, d := range f.of.slots[i].demands {
		column := f.columns.at(d.class)
		short := d.amount - min(d.amount, max(0, column.free.at(id)-1))
		if picky := f.picky.at(d.class); picky.has(id) {
			short = d.amount - f.nodes.at(id).inventoryOf(d.class).available(d.amount)
		}
		if short > 0 {
			of.classes++
			of.units += short
		}
	}
	for k, clause := range clauses {
		if !having[k].has(id) {
			of.traits += int32(len(clause))
		}
	}
	return of
}

// addClauses notes the clauses of the unsuffixed group that are met by nobody who
// serves it, or could.
func (f *lackFinder) addClauses() {
	if f.of.classSlots == 0 {
		return
	}
	for _, clause := range f.of.request.Unsuffixed.clauses() {
		having, met := f.having(clause), f.newMask()
		for _, of := range f.able {
			met.join(f.rootsServed(of.with(having)))
		}
		f.addMissing(clause, f.roots, met)
	}
}

// first returns the roots of the trees that lack least, but something: by uuid
// where they lack as much.
func (f *lackFinder) first() []int32 {
	var roots []int32
	for _, id := range f.byUUID.all() {
		if !f.anchors.has(id) || f.lacks[id].classes+f.lacks[id].traits == 0 {
			continue
		}
		i := len(roots)
		for i > 0 && f.lacks[id].compare(f.lacks[roots[i-1]]) < 0 {
			i--
		}
		if i < MaxNearest {
			roots = slices.Insert(roots, i, id)[:min(len(roots)+1, MaxNearest)]
		}
	}
	return roots
}
