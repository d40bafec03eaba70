package placement

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"sync"
)

// Fit is how many more consumers of a request fit together in a world.
type Fit struct {
	// AtLeast is the number that a Placing with the order DepthFirst places, one
	// consumer after the other, until nothing fits. It is less if the search ends
	// at its limit of steps.
	AtLeast int64
	// AtMost is a number that no choice of candidates exceeds.
	AtMost int64
	// LimitedBy are the limits of AtMost, most providers first, then by kind and
	// name. No other class, trait or aggregate alone raises AtMost; several
	// others together may. If the list is empty, only new providers help.
	LimitedBy []FitLimit
}

// Exact returns the number of consumers if AtLeast equals AtMost, else nil.
func (f *Fit) Exact() *int64 {
	if f.AtLeast != f.AtMost {
		return nil
	}
	return &f.AtLeast
}

// MaxFitRequests is the largest number of requests that callers should count in
// one answer.
const MaxFitRequests = 50

// fitSteps returns the maximum number of steps of one call of Fits, at most
// MaxSteps. It grows with the providers to allow one pass over a large world.
func fitSteps(providers int) int { return min(MaxSteps, 1_000_000+16*providers) }

// Fits returns how many more consumers of a valid request fit together.
//
// It visits the anchors in the order DepthFirst. On each it claims the first
// candidate as often as it fits, then the next one. The sum is AtLeast: a
// placing claims the same candidates, because use never adds candidates.
//
// AtMost adds up bounds of the trees. Each consumer needs every slot served, so
// a tree has room for at most as many consumers as the providers of each slot
// can serve. The scarcest class of a provider limits how often it serves.
// Sharing providers serve several trees and count once. AtLeast and AtMost are
// equal if the slots of the request need different classes, no provider shares,
// no constraint concerns several slots, and the steps suffice.
func Fits(w *World, r *Request) Fit { return newFitter(w, r).fit(r) }

func newFitter(w *World, r *Request) *fitter {
	f := newClaimer(w, r)
	f.limits, f.refused = newLimiter(w), newLimiter(w)
	f.groupSlots()
	return f
}

// newClaimer returns a fitter that counts AtLeast alone.
func newClaimer(w *World, r *Request) *fitter {
	p := compile(w, r).narrowAnchors()
	p.narrow()
	f := &fitter{search: newSearch(p)}
	f.steps = MaxSteps - fitSteps(w.Len())
	f.claimed = map[claimKey]int64{}
	f.emit = f.claimOften
	return f
}

func (f *fitter) fit(r *Request) Fit {
	anchors := slices.Clone(f.anchors)
	f.countLone()
	f.searchTrees()
	f.anchors = anchors
	return f.finish(r)
}

// searchTrees adds, for each anchor's tree, the consumers that fit, the bound
// and the limits.
func (f *fitter) searchTrees() {
	for _, anchor := range f.anchorsFrom("") {
		claimed := f.claimed
		f.claimed = nil // the bound counts all units of sharing providers
		canServe := f.enter(anchor)
		f.claimed = claimed
		if canServe {
			f.addTree()
		} else {
			f.limitRefused(anchor)
		}
		if f.err != nil {
			break
		}
	}
}

func (f *fitter) finish(r *Request) Fit {
	f.found.AtMost = f.mostOfAll()
	f.limits.addRefused(r, f.found.AtMost > 0)
	f.found.LimitedBy = f.limits.list()
	return f.found
}

// claimKey names an inventory of a node.
type claimKey struct{ node, class int32 }

// fitter counts how often a request fits: AtLeast by claims, AtMost by bounds.
type fitter struct {
	*search
	kinds   []servedKind
	jointly []jointClass
	limits  limiter
	refused limiter // of trees without candidates; see limitMerged
	found   Fit
	trees   int64                   // the sum of the bounds of the trees
	ofTree  map[*providerTree]int64 // the bound of each tree; nil if only the sum is wanted

	// Of the current tree.
	isSingle bool // each slot has one option
	visited  []int32
	visit    int32
}

// servedKind is all slots with equal amounts of the same classes. The units of
// a provider bound how often it serves any of them.
type servedKind struct {
	slots   []int
	demands []demand
	isolate bool
	// The servings that all trees need: own from providers that do not share, and
	// lacking from sharing providers. The key of lacking and of pools stands for
	// the set of sharing providers that a tree reaches; pools has their ids.
	own     int64
	lacking map[string]int64
	pools   map[string][]int32
	sharing map[int32]int64 // servings of each sharing provider
	// Per demand: the providers whose units limit a tree, and the providers whose
	// units limit the trees that need sharing providers.
	limiting, needed []mask
	isOpen           bool // whether a higher bound of some tree could raise mostOfAll

	// Of the current tree.
	options  []option
	times    []int64 // of each option
	servings int64   // of all options
}

// jointClass is a class that several kinds need, with the sum of the amounts of
// their slots.
type jointClass struct {
	demand
	kinds []int
}

// groupSlots sets the kinds and the joint classes of the request.
func (f *fitter) groupSlots() {
	known := map[string]int{}
	for i := range f.slots {
		s := &f.slots[i]
		if len(s.demands) == 0 {
			continue
		}
		isolate := f.isolate && i >= f.classSlots
		key := strconv.AppendBool(nil, isolate)
		for _, d := range s.demands {
			key = binary.AppendVarint(binary.AppendVarint(key, int64(d.index)), d.amount)
		}
		k, ok := known[string(key)]
		if !ok {
			k = len(f.kinds)
			known[string(key)] = k
			f.kinds = append(f.kinds, servedKind{demands: s.demands, isolate: isolate,
				lacking: map[string]int64{}, pools: map[string][]int32{}, sharing: map[int32]int64{},
				limiting: make([]mask, len(s.demands)), needed: make([]mask, len(s.demands))})
		}
		f.kinds[k].slots = append(f.kinds[k].slots, i)
	}
	classes := make([]jointClass, f.classes)
	for k := range f.kinds {
		for _, d := range f.kinds[k].demands {
			of := &classes[d.index]
			amount := of.amount + d.amount*int64(len(f.kinds[k].slots))
			of.demand, of.kinds = d, append(of.kinds, k)
			of.amount = amount
		}
	}
	f.jointly = slices.DeleteFunc(classes, func(of jointClass) bool { return len(of.kinds) < 2 })
}

// countLone counts the consumers that fit in lone trees, and removes these
// trees from the anchors. They need no search: the provider serves every slot,
// as often as its units allow. Trees whose units or maxUnit do not suffice for
// all slots together stay. All trees stay if several groups are isolated.
func (f *fitter) countLone() {
	if f.isolate && len(f.slots) > f.classSlots+1 {
		return
	}
	totals, free, times := f.totals(), make([]int64, f.classes), make([]int64, f.classes)
	lone := f.world.lone.of(f.world)
	for at, id := range lone.ids {
		if !f.anchors.has(id) {
			continue
		}
		most := int64(math.MaxInt64)
		for i, of := range totals {
			var largest int64
			if free[i], largest = lone.unitsOf(at, of.class); of.amount > largest {
				most = 0
				break
			}
			times[i] = free[i] / of.amount
			most = min(most, times[i])
		}
		if most > 0 {
			f.anchors.remove(id)
			f.addLone(id, free, times, most)
		}
	}
}

// loneTrees are the trees of a single provider that is in no aggregate of any
// sharing provider, including itself. Their units are adjacent in memory: a
// list of requests reads them again and again.
type loneTrees struct {
	once   sync.Once
	ids    []int32
	units  []loneUnits
	starts []int32 // in units, by index in ids; one more at the end
}

// loneUnits are the free units of a class, and the largest amount of one allocation.
type loneUnits struct {
	free, largest int64
	class         int32
}

// of returns the lone trees of w, computed by the first call. Only w may hold
// l.
func (l *loneTrees) of(w *World) *loneTrees {
	l.once.Do(func() {
		r := w.newReacher()
		lone := slices.Clone(r.roots)
		for id := range r.known.all() {
			if root := r.rootOf.at(id) - 1; root != id {
				lone.remove(root)
			}
		}
		lone.without(r.rootsReaching(r.sharing))
		for id := range lone.all() {
			l.ids, l.starts = append(l.ids, id), append(l.starts, int32(len(l.units)))
			inventories := w.nodes.at(id).inventories
			for i := range inventories {
				of := &inventories[i]
				l.units = append(l.units, loneUnits{of.free, min(of.free, int64(of.maxUnit)), of.class})
			}
		}
		l.starts = append(l.starts, int32(len(l.units)))
	})
	return l
}

// unitsOf returns the units of a class of the tree at an index, 0 without an
// inventory of the class.
func (l *loneTrees) unitsOf(at int, class int32) (free, largest int64) {
	for i := l.starts[at]; i < l.starts[at+1]; i++ {
		if l.units[i].class == class {
			return l.units[i].free, l.units[i].largest
		}
	}
	return 0, 0
}

// totals returns the amounts of all slots together, by class.
func (f *fitter) totals() []demand {
	totals := make([]demand, f.classes)
	for i := range f.slots {
		for _, d := range f.slots[i].demands {
			d.amount += totals[d.index].amount
			totals[d.index] = d
		}
	}
	return totals
}

// addLone adds a lone tree and its limits. Most is the number of consumers that
// fit in the tree. By class, free has its free units, and times how often these
// suffice for all slots.
func (f *fitter) addLone(id int32, free, times []int64, most int64) {
	f.found.AtLeast, f.trees = sumUpTo(f.found.AtLeast, most), sumUpTo(f.trees, most)
	if f.ofTree != nil {
		f.ofTree[f.world.nodes.at(id).tree] = most
	}
	for k := range f.kinds {
		kind, least := &f.kinds[k], int64(math.MaxInt64)
		for j := range kind.demands {
			least = min(least, kind.demands[j].timesIn(free, times))
		}
		kind.own, kind.isOpen = sumUpTo(kind.own, mostProduct(most, len(kind.slots))), true
		if least/int64(len(kind.slots)) > most {
			continue
		}
		for j := range kind.demands {
			if len(kind.demands) == 1 || kind.demands[j].timesIn(free, times) == least {
				f.limitBy(kind.limiting, j, id)
			}
		}
	}
	for i := range f.jointly {
		if of := &f.jointly[i]; times[of.index] == most {
			f.limits.providersOf(ConstraintResourceAmount, of.name).add(id)
		}
	}
}

// timesIn returns how often the amount fits into the free units of its class.
// Times has this number for the amounts of all slots together.
func (d *demand) timesIn(free, times []int64) int64 {
	if d.merged {
		return free[d.index] / d.amount
	}
	return times[d.index]
}

// claimOften claims the chosen candidate as often as it fits, and adds that
// number to AtLeast. It returns false to end the current search of the tree.
func (f *fitter) claimOften() bool {
	times := int64(math.MaxInt64)
	for i, o := range f.chosen {
		for k := range f.slots[i].demands {
			d := &f.slots[i].demands[k]
			amount := d.amount
			if d.merged {
				amount = f.amountsChosen[int(o.local)*f.classes+d.index]
			}
			times = min(times, f.freeOn(o.node, o.node.inventoryOf(d.class))/amount)
		}
	}
	for i, o := range f.chosen {
		if f.isSingle && !o.node.sharing {
			continue // nothing else of this tree is searched
		}
		f.claim(i, o, times)
	}
	f.found.AtLeast = sumUpTo(f.found.AtLeast, times)
	return false
}

// sumUpTo adds two numbers that are not negative, up to the largest int64.
func sumUpTo(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// timesIn returns how often an amount fits into a sum. The largest int64 stands
// for a sum that overflowed; timesIn returns it as is.
func timesIn(sum, amount int64) int64 {
	if sum == math.MaxInt64 {
		return sum
	}
	return sum / amount
}

// addTree claims candidates of the current tree until none fits, and adds the
// bound of the tree. If none fits and nothing was claimed before, it adds
// refused limits instead.
func (f *fitter) addTree() {
	f.isSingle = !slices.ContainsFunc(f.options, func(options []option) bool { return len(options) > 1 })
	isFresh := len(f.claimed) == 0
	before := f.found.AtLeast
	f.claimTree()
	for _, options := range f.options {
		for _, o := range options {
			if !f.isSingle && !o.node.sharing {
				for k := range o.node.inventories {
					delete(f.claimed, claimKey{o.node.id, o.node.inventories[k].class})
				}
			}
		}
	}
	if isFresh && before == f.found.AtLeast && f.err == nil { // the tree has no candidate
		f.limitMerged()
		return
	}
	f.bound()
}

// claimTree claims candidates of the current tree until none fits.
func (f *fitter) claimTree() {
	last := int64(-1)
	for last != f.found.AtLeast && f.err == nil && (last < 0 || !f.isSingle) {
		last = f.found.AtLeast
		f.assign(0, false)
	}
}

// bound adds the bound of the current tree and its limits.
func (f *fitter) bound() {
	most := int64(math.MaxInt64)
	for k := range f.kinds {
		f.count(&f.kinds[k])
		most = min(most, f.kinds[k].most())
	}
	for _, of := range f.jointly {
		most = min(most, timesIn(f.freeJointly(of), of.amount))
	}
	if !f.isSingle {
		for c := range f.clauses {
			most = min(most, f.meeting(c))
		}
	}
	f.trees = sumUpTo(f.trees, most)
	if f.ofTree != nil {
		f.ofTree[f.anchor] = most
	}
	for k := range f.kinds {
		kind := &f.kinds[k]
		f.addServings(kind, most)
		if timesIn(kind.servings, int64(len(kind.slots))) == most || kind.most() == most {
			f.limitEach(kind, kind.limiting)
		}
	}
	for _, of := range f.jointly {
		if timesIn(f.freeJointly(of), of.amount) == most {
			f.limitJointly(of)
		}
	}
	for c := range f.clauses {
		if !f.isSingle && f.meeting(c) == most {
			f.limitMeeting(c)
		}
	}
}

// count lists the options of a kind, and how often each can serve a slot of it.
func (f *fitter) count(kind *servedKind) {
	kind.options, kind.times, kind.servings = kind.options[:0], kind.times[:0], 0
	if len(f.visited) < len(f.slotsServed) {
		f.visited, f.visit = make([]int32, len(f.slotsServed)), 0
	}
	f.visit++
	for _, i := range kind.slots {
		for _, o := range f.options[i] {
			if f.visited[o.local] == f.visit {
				continue
			}
			f.visited[o.local] = f.visit
			times := kind.timesOn(o.node)
			kind.options, kind.times = append(kind.options, o), append(kind.times, times)
			kind.servings = sumUpTo(kind.servings, times)
		}
	}
}

// timesOn returns how often the units of a provider can serve a slot of the
// kind.
func (k *servedKind) timesOn(n *node) int64 {
	times := int64(math.MaxInt64)
	for i := range k.demands {
		times = min(times, n.inventoryOf(k.demands[i].class).free/k.demands[i].amount)
	}
	return times
}

// most returns a bound of the consumers in the current tree: each needs one
// serving for each slot of the kind, with isolate from different providers.
func (k *servedKind) most() int64 {
	slots := int64(len(k.slots))
	most := timesIn(k.servings, slots)
	for k.isolate && slots > 1 {
		var servings int64
		for _, times := range k.times {
			servings = sumUpTo(servings, min(times, most))
		}
		if timesIn(servings, slots) >= most {
			break
		}
		most = timesIn(servings, slots)
	}
	return most
}

// addServings adds the servings of a kind that the current tree needs. Most is
// the bound of the tree's consumers.
func (f *fitter) addServings(k *servedKind, most int64) {
	need, own := mostProduct(most, len(k.slots)), int64(0)
	var pools []int32
	for i, o := range k.options {
		if o.node.sharing {
			pools = append(pools, o.node.id)
			k.sharing[o.node.id] = k.times[i]
		} else {
			own = sumUpTo(own, k.times[i])
		}
	}
	k.own = sumUpTo(k.own, min(need, own))
	k.isOpen = k.isOpen || need <= own
	if need > own && len(pools) > 0 {
		f.limitEach(k, k.needed)
		var key []byte
		for _, id := range pools {
			key = binary.AppendVarint(key, int64(id))
		}
		k.lacking[string(key)] = sumUpTo(k.lacking[string(key)], need-own)
		k.pools[string(key)] = pools
	}
}

// mostProduct multiplies a number that is not negative by a positive one, up to
// the largest int64.
func mostProduct(a int64, b int) int64 {
	if a > math.MaxInt64/int64(b) {
		return math.MaxInt64
	}
	return a * int64(b)
}

// freeJointly returns the sum of the free units of a joint class on the options
// of its kinds. A provider counts once.
func (f *fitter) freeJointly(of jointClass) (free int64) {
	f.visit++
	for _, k := range of.kinds {
		for _, o := range f.kinds[k].options {
			if f.visited[o.local] != f.visit {
				f.visited[o.local] = f.visit
				free = sumUpTo(free, o.node.inventoryOf(of.class).free)
			}
		}
	}
	return free
}

// meeting returns the sum of the servings of class slots by the options that
// meet a clause. A consumer needs at least one of these servings.
func (f *fitter) meeting(clause int) (servings int64) {
	for i := range f.options[:f.classSlots] {
		d := &f.slots[i].demands[0]
		for _, o := range f.options[i] {
			if o.clauses[clause/64]&(1<<(clause%64)) != 0 {
				servings = sumUpTo(servings, o.node.inventoryOf(d.class).free/d.amount)
			}
		}
	}
	return servings
}

// mostOfAll returns AtMost, after an error mostByClass. If no higher bound of a
// tree could raise AtMost, the limits of the sharing providers replace the
// limits of the trees. It adds the refused limits.
func (f *fitter) mostOfAll() int64 {
	if f.err != nil {
		f.limits.join(f.refused)
		return f.mostByClass()
	}
	most, all := f.trees, make([]int64, len(f.kinds))
	for k := range f.kinds {
		all[k] = f.kinds[k].mostOfAll()
		most = min(most, all[k])
	}
	isOpen := most == f.trees
	for k := range f.kinds {
		isOpen = isOpen || all[k] == most && f.kinds[k].isOpen
	}
	if !isOpen {
		f.limits = newLimiter(f.world)
	}
	f.limits.join(f.refused)
	for k := range f.kinds {
		for i, d := range f.kinds[k].demands {
			if isOpen {
				f.limits.addAll(ConstraintResourceAmount, []string{d.name}, f.kinds[k].limiting[i])
			}
			if most < f.trees && all[k] == most {
				f.limits.addAll(ConstraintResourceAmount, []string{d.name}, f.kinds[k].needed[i])
			}
		}
	}
	return most
}

// mostOfAll returns a bound of the consumers in all trees together, in which
// each sharing provider counts once. It sets isOpen if sharing providers could
// serve more than the trees need.
func (k *servedKind) mostOfAll() int64 {
	var shared, all int64
	for key, lacking := range k.lacking {
		var servings int64
		for _, id := range k.pools[key] {
			servings = sumUpTo(servings, k.sharing[id])
		}
		k.isOpen = k.isOpen || lacking < servings
		shared = sumUpTo(shared, min(lacking, servings))
	}
	for _, servings := range k.sharing {
		all = sumUpTo(all, servings)
	}
	return timesIn(sumUpTo(k.own, min(shared, all)), int64(len(k.slots)))
}

// mostByClass returns AtMost for a search that was not finished: the least of
// the kinds' bounds. The bound of a kind counts all providers that can serve
// it. The classes of the kinds with the least bound become limits.
func (f *fitter) mostByClass() int64 {
	most, r := int64(math.MaxInt64), f.world.newReacher()
	all, serving := make([]int64, len(f.kinds)), make([]mask, len(f.kinds))
	for k := range f.kinds {
		kind, servers := &f.kinds[k], f.world.newMask()
		for _, i := range kind.slots {
			of := r.serversOf(f.plan, &f.slots[i])
			servers.join(of.own)
			servers.join(of.shared)
		}
		var servings int64
		for id := range servers.all() {
			servings = sumUpTo(servings, kind.timesOn(f.world.nodes.at(id)))
		}
		all[k], serving[k] = timesIn(servings, int64(len(kind.slots))), servers
		most = min(most, all[k])
	}
	for k := range f.kinds {
		for _, d := range f.kinds[k].demands {
			if all[k] == most {
				f.limits.addAll(ConstraintResourceAmount, []string{d.name}, serving[k])
			}
		}
	}
	return most
}
