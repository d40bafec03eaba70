package placement

import (
	"cmp"
	"slices"
)

// lack is how much is missing. The number of classes and traits together
// compares first, then the units.
type lack struct {
	classes, traits int32 // number of missing classes and traits, with repetitions
	units           int64
}

func (l lack) compare(other lack) int {
	if names := l.classes + l.traits - other.classes - other.traits; names != 0 {
		return int(names)
	}
	return cmp.Compare(l.units, other.units)
}

// addShort adds missing units of one class.
func (l *lack) addShort(units int64) {
	if units > 0 {
		l.classes++
		l.units += units
	}
}

// lackFinder computes, for all trees together, how much missOfTree would list
// as missing. Anchors holds the roots of the trees that would serve the request
// with more units and traits. Lacks holds the sum for each root. Missing holds,
// for each required trait, the roots of the trees that miss it.
type lackFinder struct {
	*reacher
	of      *missFinder
	anchors mask
	lacks   []lack
	missing map[string]mask
	// able holds, by slot of the unsuffixed group, the providers that serve it.
	// For a tree without such a provider it holds the providers that could
	// serve the slot with more units.
	able []ableServers

	// For the current slot, by root: the provider that lacks least, and how
	// much it lacks. A tree with only one provider to choose has no entry.
	chosen []int32
	least  []lack
	alone  mask // roots of trees with one provider
}

// ableServers are the providers that serve a slot, and the providers that could
// serve it with more units. A provider of the second kind counts only for trees
// without a provider of the first kind.
type ableServers struct {
	serving, could servers
	served         mask // roots of the trees that serving can serve
}

// nearestRoots returns up to MaxNearest roots of the trees that lack least,
// without the trees that lack nothing.
func (e *explainer) nearestRoots(of *missFinder, slots []servers) []int32 {
	f := &lackFinder{
		reacher: e.reacher, of: of, lacks: make([]lack, e.idLimit),
		missing: map[string]mask{}, alone: slices.Clone(e.roots),
	}
	others := slices.Clone(e.known)
	others.without(e.roots)
	for id := range others.all() {
		f.alone.remove(e.rootOf.at(id) - 1)
	}
	if !others.isEmpty() || !e.sharing.isEmpty() {
		f.chosen, f.least = make([]int32, e.idLimit), make([]lack, e.idLimit)
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

// having returns the providers that have at least one of the traits.
func (f *lackFinder) having(traits []string) mask {
	return f.union(f.traitSets(f.traits.lookupAll(traits)))
}

// addMissing records that the trees of roots that are not in met miss all traits
// of a clause.
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

// addSlot adds, for every tree in which no provider serves the slot, the lack
// of the provider that lacks least. On a tie the tree's own providers come
// first, in the order of the tree, then the providers that share with it. Trees
// without a provider that could serve the slot are no anchors any more.
func (f *lackFinder) addSlot(i int, by servers) {
	served := f.rootsServed(by)
	slot := f.of.relaxed.slots[i]
	slot.demands = nil
	could := f.serversOf(f.of.relaxed, &slot)
	could.own.without(f.membersOf(served))
	could.own.keep(f.membersOf(f.anchors))
	shared := f.rootsReaching(could.shared)
	helped := f.rootsOf(could.own)
	helped.join(shared)
	for k := range f.anchors {
		f.anchors[k] &= served[k] | helped[k]
	}
	if i < f.of.classSlots {
		f.able = append(f.able, ableServers{by, servers{slices.Clone(could.own), could.shared}, served})
	}
	shared.without(served)
	helped.without(served)
	f.addLeast(i, could, helped, shared)
}

// addLeast adds to the lacks of each root in roots the smallest shortfall of a
// provider that could serve the slot in its tree. shared holds the roots that
// sharing providers reach. It overwrites roots and could.own.
func (f *lackFinder) addLeast(i int, could servers, roots, shared mask) {
	clauses, having := f.clausesOf(i)
	alone := slices.Clone(could.own)
	alone.keep(f.alone)
	alone.without(shared)
	for _, d := range f.of.slots[i].demands {
		f.addShort(d, alone)
	}
	could.own.without(alone)
	seen := f.choose(i, could.own, clauses, having)
	if !shared.isEmpty() {
		f.chooseShared(i, could.shared, shared, seen, clauses, having)
	}
	lacking := make([]mask, len(clauses))
	for k := range lacking {
		lacking[k] = slices.Clone(alone)
		lacking[k].without(having[k])
	}
	roots.without(alone)
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

// addShort adds the missing units of a demand for trees with a single provider.
func (f *lackFinder) addShort(d demand, roots mask) {
	column, picky := f.column(d.class), f.picky.at(d.class)
	for i, word := range roots {
		free, odd := column.free.word(i), picky.word(i)
		if free == nil {
			free = make([]int64, 64)
		}
		for bit := range bitsOf(word) {
			id := int32(i)*64 + bit
			f.lacks[id].addShort(f.short(d, id, free[bit], odd&(1<<bit) != 0))
		}
	}
}

// short returns the number of units of a demand that are missing on a provider.
// Free is the provider's value in the column of the class. For a picky
// provider, short reads the inventory itself.
func (f *lackFinder) short(d demand, id int32, free int64, picky bool) int64 {
	if picky {
		return d.amount - f.nodes.at(id).inventoryOf(d.class).available(d.amount)
	}
	return d.amount - min(d.amount, max(0, free-1))
}

// choose selects, in each tree that contains providers in could, the one that
// lacks least for a slot. On a tie it selects the first in the tree. It returns
// the roots of these trees.
func (f *lackFinder) choose(i int, could mask, clauses [][]string, having []mask) mask {
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
	return seen
}

// chooseShared replaces the choice of a tree by a sharing provider that lacks
// less for a slot. On a tie between sharing providers it selects the first by
// path. Seen holds the roots with a choice. For each aggregate it considers
// only the sharing provider that lacks least.
func (f *lackFinder) chooseShared(i int, sharing, roots, seen mask, clauses [][]string, having []mask) {
	best := map[int32]int32{} // by aggregate
	lacks := map[int32]lack{} // by sharing provider
	isBetter := func(id, than int32) bool {
		return cmp.Or(lacks[id].compare(lacks[than]), comparePaths(f.nodes.at(id), f.nodes.at(than))) < 0
	}
	for id := range sharing.all() {
		lacks[id] = f.lackOf(i, id, clauses, having)
		for _, aggregate := range f.nodes.at(id).aggregates {
			if other, ok := best[aggregate]; !ok || isBetter(id, other) {
				best[aggregate] = id
			}
		}
	}
	for aggregate, id := range best {
		entry := f.aggregateIndex.at(aggregate)
		for _, root := range entry.roots.all() {
			chosen := f.chosen[root]
			// On a tie the tree's own provider stays.
			isForeign := seen.has(root) && f.rootOf.at(chosen)-1 != root
			order := lacks[id].compare(f.least[root])
			if roots.has(root) && (!seen.has(root) || order < 0 || order == 0 && isForeign && isBetter(id, chosen)) {
				seen.add(root)
				f.chosen[root], f.least[root] = id, lacks[id]
			}
		}
	}
}

// clausesOf returns the clauses that a provider must meet alone to serve a
// slot, and for each clause the providers that do.
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
		column, picky := f.column(d.class), f.picky.at(d.class)
		of.addShort(f.short(d, id, column.free.at(id), picky.has(id)))
	}
	for k, clause := range clauses {
		if !having[k].has(id) {
			of.traits += int32(len(clause))
		}
	}
	return of
}

// addClauses records the clauses that a tree does not meet. Only providers that
// serve the unsuffixed group, or could serve it, can meet its clauses.
func (f *lackFinder) addClauses() {
	if f.of.classSlots == 0 {
		return
	}
	for _, clause := range f.of.request.Unsuffixed.clauses() {
		having, met := f.having(clause), f.newMask()
		for _, of := range f.able {
			helped := f.rootsServed(of.could.with(having))
			helped.without(of.served)
			met.join(helped)
			met.join(f.rootsServed(of.serving.with(having)))
		}
		f.addMissing(clause, f.roots, met)
	}
}

// first returns up to MaxNearest roots of the trees that lack least, without
// the trees that lack nothing; on a tie by uuid.
func (f *lackFinder) first() []int32 {
	most := f.mostOfFirst()
	var less, asMuch []int32
	for root := range f.anchors.all() {
		switch of := f.lacks[root]; {
		case of.classes+of.traits == 0:
		case of.compare(most) < 0:
			less = append(less, root)
		case of.compare(most) == 0:
			asMuch = append(asMuch, root)
		}
	}
	roots := append(less, f.firstByUUID(asMuch, MaxNearest-len(less))...)
	slices.SortFunc(roots, func(a, b int32) int {
		return cmp.Or(f.lacks[a].compare(f.lacks[b]), cmp.Compare(f.uuidOf(a), f.uuidOf(b)))
	})
	return roots
}

// mostOfFirst returns the lack of the last tree that first returns.
func (f *lackFinder) mostOfFirst() lack {
	var least []lack // in order
	for root := range f.anchors.all() {
		of := f.lacks[root]
		if of.classes+of.traits == 0 || len(least) == MaxNearest && of.compare(least[MaxNearest-1]) >= 0 {
			continue
		}
		i, _ := slices.BinarySearchFunc(least, of, lack.compare)
		least = slices.Insert(least, i, of)[:min(len(least)+1, MaxNearest)]
	}
	if len(least) == 0 {
		return lack{}
	}
	return least[len(least)-1]
}

// firstByUUID returns the first n roots in the order of their uuids, or all
// roots unsorted if there are no more than n.
func (f *lackFinder) firstByUUID(roots []int32, n int) []int32 {
	if len(roots) <= n {
		return roots
	}
	if len(roots) < 64*n { // else a scan of all providers by uuid soon finds n of them
		slices.SortFunc(roots, func(a, b int32) int { return cmp.Compare(f.uuidOf(a), f.uuidOf(b)) })
		return roots[:n]
	}
	among, first := f.newMask(), make([]int32, 0, n)
	for _, root := range roots {
		among.add(root)
	}
	for _, id := range f.byUUID.all() {
		if among.has(id) {
			if first = append(first, id); len(first) == n {
				break
			}
		}
	}
	return first
}

func (f *lackFinder) uuidOf(id int32) string { return f.nodes.at(id).provider.UUID }
