package placement

import (
	"cmp"
	"math"
	"slices"
)

// FailureGrouping selects which trees fail together.
type FailureGrouping string

// The groupings.
const (
	FailureOfHost      FailureGrouping = "HOST" // one tree
	FailureOfAggregate FailureGrouping = "AGGREGATE"
	// FailureOfCapability groups trees by the values of one capability.
	FailureOfCapability FailureGrouping = "CAPABILITY"
)

// FailingTogether says which trees fail together. For FailureOfCapability, Values
// has the values of the capability, by the row id of the resource that a root is
// linked to.
type FailingTogether struct {
	By     FailureGrouping
	Values map[int64][]string
}

// Failure is the loss of some trees, with its effect on their consumers.
type Failure struct {
	// Exactly one of these is set, as the grouping requires: the root of the
	// tree, the uuid of the aggregate, or the value of the capability.
	Root            *Provider
	Aggregate       *string
	CapabilityValue *string
	Consumers       int
	// Unplaced are the consumers that do not fit elsewhere, the largest need first.
	Unplaced []Unplaced
}

// Missing returns the amounts that the unplaced consumers lose, summed by class.
func (f *Failure) Missing() []Amount {
	sums := map[string]int64{}
	for _, one := range f.Unplaced {
		for _, amount := range one.Resources {
			sums[amount.ResourceClass] = sumUpTo(sums[amount.ResourceClass], amount.Amount)
		}
	}
	return sortedAmounts(sums)
}

// Name returns the name of the root, the uuid of the aggregate, or the value.
func (f *Failure) Name() string {
	switch {
	case f.Aggregate != nil:
		return *f.Aggregate
	case f.CapabilityValue != nil:
		return *f.CapabilityValue
	}
	return f.Root.Name
}

// Failures are possible losses of trees in a world.
type Failures struct {
	world  *World
	groups []failureGroup
}

type failureGroup struct {
	Failure
	trees []*providerTree
}

// Failures returns one possible loss for each tree of the providers, or for each
// of their aggregates or values, as of.By says. An aggregate fails with all trees
// that have a provider in it, a value with all trees whose root's resource has it.
func (w *World) Failures(of FailingTogether, providers []*Provider) *Failures {
	f := &Failures{world: w}
	seen := map[string]bool{}
	for _, provider := range providers {
		var names []string
		switch of.By {
		case FailureOfHost:
			names = []string{provider.Root}
		case FailureOfAggregate:
			names = provider.Aggregates
		case FailureOfCapability:
			root, _ := w.Provider(provider.Root)
			names = of.Values[root.ResourceRow]
		}
		for _, name := range names {
			if !seen[name] {
				seen[name] = true
				f.add(of.By, name)
			}
		}
	}
	if of.By == FailureOfCapability {
		f.addTrees(of.Values)
	}
	return f
}

// addTrees adds to each value's group the trees whose root's resource has it.
func (f *Failures) addTrees(values map[int64][]string) {
	groups := map[string]*failureGroup{}
	for i := range f.groups {
		groups[*f.groups[i].CapabilityValue] = &f.groups[i]
	}
	for _, tree := range f.world.trees.all() {
		root := f.world.nodes.at(tree.members[0]).provider
		for _, value := range values[root.ResourceRow] {
			if group := groups[value]; group != nil {
				group.trees = append(group.trees, tree)
			}
		}
	}
}

func (f *Failures) add(by FailureGrouping, name string) {
	var group failureGroup
	switch by {
	case FailureOfHost:
		root, _ := f.world.Provider(name)
		group.Root, group.trees = root, []*providerTree{f.world.treeOf(name)}
	case FailureOfCapability:
		group.CapabilityValue = &name
	case FailureOfAggregate:
		group.Aggregate = &name
		entry := f.world.aggregateIndex.at(f.world.aggregates.lookup(name))
		for _, root := range entry.roots.all() {
			group.trees = append(group.trees, f.world.nodes.at(root).tree)
		}
	}
	f.groups = append(f.groups, group)
}

// Providers returns the uuids of all providers in the trees of the losses, nil if
// these are all providers of the world.
func (f *Failures) Providers() []string {
	trees := map[*providerTree]bool{}
	uuids := []string{}
	for _, group := range f.groups {
		for _, tree := range group.trees {
			if trees[tree] {
				continue
			}
			trees[tree] = true
			for _, id := range tree.members {
				uuids = append(uuids, f.world.nodes.at(id).provider.UUID)
			}
		}
	}
	if len(uuids) == f.world.Len() {
		return nil
	}
	return uuids
}

// Survive returns the losses by number of unplaced consumers, the largest first,
// then by name. Allocations are all allocations of the consumers that have any on
// the trees of the losses, including allocations elsewhere.
//
// The consumers of the trees of a loss are placed one after the other in the
// world without these trees, the largest need first, then by uuid: each takes
// the first candidate in the order DepthFirst. A consumer needs the amounts that
// it loses; see requestOf. Allocations on other trees stay.
//
// The error is ErrTooComplex.
func (f *Failures) Survive(allocations []*Allocation) ([]*Failure, error) {
	k := newSurvival(f, allocations)
	if err := k.loseAll(); err != nil {
		return nil, err
	}
	return k.found, nil
}

// batch is a run of consumers of a loss with equal needs.
type batch struct {
	need      *relocation
	consumers []int32    // numbers
	occupied  []claimKey // of a single consumer, see evacuee.occupied
	placed    int        // the number of consumers that fit, from the first on
}

type batcher struct{ batches []batch }

func (b *batcher) add(need *relocation, consumer int32, occupied []claimKey) {
	if last := len(b.batches) - 1; last >= 0 && len(occupied) == 0 {
		if of := &b.batches[last]; of.need == need && len(of.occupied) == 0 {
			of.consumers = append(of.consumers, consumer)
			return
		}
	}
	b.batches = append(b.batches, batch{need: need, consumers: []int32{consumer}, occupied: occupied})
}

// batchesOf returns the batches of the loss of trees. Before has its batches from
// before the last holdings.replace, which changed the consumers in moved. If
// before is nil, batchesOf lists all consumers again.
func (h *holdings) batchesOf(trees map[*providerTree]bool, before []batch) []batch {
	b, fresh := batcher{[]batch{}}, []evacuee(nil)
	if before == nil {
		fresh = h.evacuees(trees)
	} else {
		fresh = h.movedEvacuees(trees)
	}
	addFresh := func() {
		b.add(fresh[0].need, fresh[0].number, fresh[0].occupied())
		fresh = fresh[1:]
	}
	for _, old := range before {
		for _, consumer := range old.consumers {
			if h.moved[consumer] {
				continue
			}
			for len(fresh) > 0 &&
				compareEvacuees(fresh[0].need, old.need, fresh[0].consumer, h.consumers[consumer]) < 0 {
				addFresh()
			}
			b.add(old.need, consumer, old.occupied)
		}
	}
	for len(fresh) > 0 {
		addFresh()
	}
	return b.batches
}

func consumersOf(batches []batch) (consumers int) {
	for i := range batches {
		consumers += len(batches[i].consumers)
	}
	return consumers
}

// survivor finds places for the consumers of each loss, loss by loss. It keeps a
// search for each need: use and losses never add candidates, so the trees that
// have candidates in the whole world are the only ones to try.
type survivor struct {
	world   *World
	sharing []int32 // providers that share, in path order
	steps   int

	// Of the current loss.
	claimed  *evacuatedUnits
	dead     map[*providerTree]bool
	loss     int               // a serial number, which each call of lose increments
	pooled   bool              // whether a tree that is lost has a provider that shares
	wanted   []unitsOf         // by class: the units that all consumers need, for the slots with pools alone
	foreseen []foreseenOutcome // by batch
}

type unitsOf struct {
	class int32
	units int64
}

func newSurvivor(w *World) *survivor {
	s := &survivor{world: w, claimed: newEvacuatedUnits(w), dead: map[*providerTree]bool{}}
	for _, n := range slices.SortedFunc(slices.Values(w.sharingNodes()), comparePaths) {
		s.sharing = append(s.sharing, n.id)
	}
	return s
}

func (w *World) sharingNodes() (sharing []*node) {
	for id := range w.idLimit {
		if n := w.nodes.at(id); n != nil && n.sharing {
			sharing = append(sharing, n)
		}
	}
	return sharing
}

// lose begins a loss. It claims the free units of lost providers that share,
// since other trees could use them.
func (s *survivor) lose(trees []*providerTree) {
	s.claimed.clear()
	clear(s.dead)
	s.loss++
	s.pooled = false
	for _, tree := range trees {
		s.dead[tree] = true
		for _, id := range tree.members {
			if n := s.world.nodes.at(id); n.sharing { // other providers serve only their own tree
				s.pooled = true
				for i := range n.inventories {
					s.claimed.add(n, n.inventories[i].class, max(0, n.inventories[i].free))
				}
			}
		}
	}
}

// evacuatedUnits counts the claimed units of each inventory of a world.
type evacuatedUnits struct {
	starts []int32 // the index of the first inventory, by provider
	units  []int64
	used   []int32 // indices of all units that are not 0, perhaps also of some that are
}

func newEvacuatedUnits(w *World) *evacuatedUnits {
	u, all := &evacuatedUnits{starts: make([]int32, w.idLimit)}, int32(0)
	for id := range w.idLimit {
		u.starts[id] = all
		if n := w.nodes.at(id); n != nil {
			all += int32(len(n.inventories))
		}
	}
	u.units = make([]int64, all)
	return u
}

// of returns a pointer to the claimed units of a class on a provider, and their
// index. The provider must have an inventory of the class.
func (u *evacuatedUnits) of(n *node, class int32) (units *int64, index int32) {
	index = u.starts[n.id]
	for i := 0; n.inventories[i].class != class; i++ {
		index++
	}
	return &u.units[index], index
}

func (u *evacuatedUnits) add(n *node, class int32, units int64) {
	of, index := u.of(n, class)
	if *of == 0 {
		u.used = append(u.used, index)
	}
	*of += units
}

func (u *evacuatedUnits) clear() {
	for _, i := range u.used {
		u.units[i] = 0
	}
	u.used = u.used[:0]
}

// want sets wanted: for the demands with pools, it adds up the units that all
// consumers of the current loss need.
func (s *survivor) want(batches []batch) {
	s.wanted = s.wanted[:0]
	for i := range batches {
		for _, d := range s.finderOf(batches[i].need).pooled {
			at := slices.IndexFunc(s.wanted, func(of unitsOf) bool { return of.class == d.class })
			if at < 0 {
				at, s.wanted = len(s.wanted), append(s.wanted, unitsOf{class: d.class})
			}
			s.wanted[at].units = sumUpTo(s.wanted[at].units, mostProduct(d.amount, len(batches[i].consumers)))
		}
	}
}

// foreseenOutcome is the part of a batch's outcome that is known before placing.
type foreseenOutcome struct {
	fitting    int  // the number of consumers, from the first on, that surely fit
	isHomeless bool // whether none fits
	isFirm     bool // whether all fit while the finder keeps the trees that it requires
}

// foresee sets the outcomes of the current loss that are known without placing.
// It returns the number of batches up to the last one that must be placed.
//
// A consumer claims units in one tree, or, if providers share, in at most one
// for each slot. Providers that share and have enough units for all consumers do
// not count. A consumer fits if more trees have a candidate for it in the whole
// world than there are trees in which the consumers before it may claim units.
func (s *survivor) foresee(batches []batch) (toPlace int, err error) {
	s.foreseen = s.foreseen[:0]
	taken := 0
	for i := range batches {
		f, of := s.finderOf(batches[i].need), foreseenOutcome{}
		consumers, spoilt := len(batches[i].consumers), taken+len(batches[i].occupied)
		if f.mayShare && (len(batches[i].occupied) > 0 || !s.isPlentiful(f)) {
			taken += consumers * (len(f.slots) - 1)
		} else {
			f.countLiving(spoilt+consumers, s)
			of.fitting = max(0, min(consumers, f.living-spoilt))
			of.isHomeless = f.living == 0
			required := spoilt + consumers + len(s.dead)
			if of.isFirm = of.fitting == consumers && f.extendTo(required); of.isFirm {
				f.required = max(f.required, required)
			}
		}
		if f.err != nil {
			return 0, f.err
		}
		if s.foreseen = append(s.foreseen, of); !of.isHomeless {
			taken += consumers
		}
		if of.fitting < consumers && !of.isHomeless {
			toPlace = i + 1
		}
	}
	return toPlace, nil
}

// isPlentiful reports whether each pool of the need has either enough units for
// all consumers of the current loss, or too few for one consumer with the need.
// It is false if the need is not plain (see firstFit), and if a provider of a
// lost tree shares.
func (s *survivor) isPlentiful(f *firstFit) bool {
	if s.pooled || !f.isPlain {
		return false
	}
	for i := range f.pooled {
		if f.pooled[i].least < unitsIn(s.wanted, f.pooled[i].class) {
			return false
		}
	}
	return true
}

func unitsIn(list []unitsOf, class int32) int64 {
	for _, of := range list {
		if of.class == class {
			return of.units
		}
	}
	return 0
}

// finderOf returns the search for a need, ready for the current loss.
func (s *survivor) finderOf(need *relocation) *firstFit {
	f := need.finder
	if f == nil {
		f = newFirstFit(s.world, &need.Request)
		f.setPools(s.sharing)
		need.finder = f
	}
	if f.loss != s.loss {
		f.loss, f.next, f.living, f.counted = s.loss, 0, 0, 0
	}
	f.evacuated, f.dead = s.claimed, s.dead
	return f
}

// place claims candidates for the consumers of a batch, and sets placed.
func (s *survivor) place(r *batch) error {
	f := s.finderOf(r.need)
	f.steps = s.steps
	if len(r.occupied) == 0 {
		r.placed = f.placeAll(len(r.consumers))
	} else {
		blocked := s.occupy(r.occupied)
		r.placed = 0
		if f.place(0); f.found {
			r.placed = 1
		}
		for i, key := range r.occupied {
			if blocked[i] > 0 {
				s.claimed.add(s.world.nodes.at(key.node), key.class, -blocked[i])
			}
		}
	}
	s.steps = f.steps
	return f.err
}

// occupy claims all free units of some inventories, and returns the units claimed.
func (s *survivor) occupy(keys []claimKey) []int64 {
	units := make([]int64, len(keys))
	for i, key := range keys {
		n := s.world.nodes.at(key.node)
		if inventory := n.inventoryOf(key.class); inventory != nil {
			claimed, _ := s.claimed.of(n, key.class)
			units[i] = max(0, inventory.free-*claimed)
			s.claimed.add(n, key.class, units[i])
		}
	}
	return units
}

// firstFit finds the first candidate of a request, again and again.
type firstFit struct {
	*search
	trees    []*providerTree // that may have candidates in the whole world, so far
	last     string          // the root of the last tree that was tried for them
	isAll    bool
	found    bool
	mayShare bool // whether sharing providers may serve; if not, each of trees has a candidate
	initial  mask // anchors of the plan, before use narrowed them

	// IsPlain is whether no slot constrains another slot, so that the first
	// candidate of a tree has, for each slot, the first provider with room. Pools
	// has, by slot, the sharing providers that may serve it. Pooled has the
	// demands of slots with pools.
	isPlain bool
	times   int64 // at most the number of times that the candidate found fits
	pools   [][]int32
	pooled  []pooledDemand

	// Of the current loss: its serial number, the index of the first tree to try,
	// and how many of the first `counted` trees are not lost.
	loss, next, living, counted int

	// Required is the number of trees on which firm outcomes of losses rely. Losses
	// has at least the indices of the losses with the need.
	required int
	losses   []int32
}

// pooledDemand is a demand that pools may serve. Least is the least number of free
// units among the pools that have enough for one slot, the largest int64 if none
// has.
type pooledDemand struct {
	demand
	pools []int32
	least int64
}

func newFirstFit(w *World, r *Request) *firstFit {
	f := &firstFit{search: newSearch(compile(w, r).narrowAnchors())}
	f.initial, f.mayShare = slices.Clone(f.anchors), true
	f.emit = func() bool {
		if f.claimed != nil || f.evacuated != nil {
			for i, o := range f.chosen {
				f.claim(i, o, 1)
			}
		}
		f.found = true
		return false
	}
	return f
}

// setPools sets the pools of the slots to the providers that share and may
// serve them, and so mayShare, isPlain and pooled. The request must be of a
// relocation.
func (f *firstFit) setPools(sharing []int32) {
	f.mayShare = false
	f.isPlain = len(f.matchers)+len(f.subtrees)+len(f.clauses) == 0 && f.likeness == nil
	for i := range f.slots {
		var pools []int32
		for _, id := range sharing {
			if f.slots[i].mayUse(f.world.nodes.at(id)) {
				pools = append(pools, id)
			}
		}
		if f.pools = append(f.pools, pools); len(pools) == 0 {
			continue
		}
		f.mayShare = true
		for _, d := range f.slots[i].demands {
			f.pooled = append(f.pooled, pooledDemand{d, pools, 0})
		}
	}
	f.measurePools()
}

// measurePools computes the least units of the pooled demands.
func (f *firstFit) measurePools() {
	for i := range f.pooled {
		d := &f.pooled[i]
		d.least = math.MaxInt64
		for _, id := range d.pools {
			if free := f.world.nodes.at(id).inventoryOf(d.class).free; free >= d.amount {
				d.least = min(d.least, free)
			}
		}
	}
}

// maySlotsUse reports whether a provider may serve any slot.
func (p *plan) maySlotsUse(n *node) bool {
	return slices.ContainsFunc(p.slots, func(s slot) bool { return s.mayUse(n) })
}

// mayUse reports whether a provider may serve the slot by its traits, aggregates
// and classes.
func (s *slot) mayUse(n *node) bool {
	lacks := func(d demand) bool { return n.inventoryOf(d.class) == nil }
	return s.allowed.has(n.id) && !slices.ContainsFunc(s.demands, lacks)
}

// place claims the first candidate on trees[from] or later. It sets found, and
// returns the index of the tree.
func (f *firstFit) place(from int) int {
	f.found = false
	for ; from < len(f.trees) || f.extend(); from++ {
		if f.dead[f.trees[from]] {
			continue
		}
		f.found = false // extend may have found one
		f.try(f.trees[from])
		if f.found || f.err != nil {
			return from
		}
	}
	f.found = false
	return from
}

// placeAll claims candidates for a number of consumers, until no tree has one
// left. It returns the number of consumers that have one.
func (f *firstFit) placeAll(consumers int) (placed int) {
	for placed < consumers {
		if f.next = f.place(f.next); !f.found {
			break
		}
		times := min(f.times, int64(consumers-placed)) - 1
		for i, o := range f.chosen {
			f.claim(i, o, times)
		}
		placed += 1 + int(times)
	}
	return placed
}

// try emits the first candidate of a tree, if it has one.
func (f *firstFit) try(anchor *providerTree) {
	if f.isPlain {
		if f.choose(anchor) {
			f.emit()
		}
	} else if f.times = 1; f.enterAgain(anchor) {
		f.assign(0, false)
	}
}

// choose chooses the first candidate of a tree for a plain request, and reports
// whether there is one. It also sets times.
func (f *firstFit) choose(anchor *providerTree) bool {
	if !f.mayAnchor(anchor) {
		return false
	}
	f.times = math.MaxInt64
	for i := range f.slots {
		if f.chosen[i].node = f.firstServer(i, anchor); f.chosen[i].node == nil {
			return false
		}
	}
	return true
}

// firstServer returns the first provider in path order that has room for a slot,
// nil if none has.
func (f *firstFit) firstServer(i int, anchor *providerTree) *node {
	pools, slot := f.pools[i], &f.slots[i]
	for len(pools) > 0 {
		n := f.world.nodes.at(pools[0])
		if n.tree.root >= anchor.root {
			break
		}
		if pools = pools[1:]; n.reaches(anchor) && f.hasRoom(slot, n, anchor) {
			return n
		}
	}
	for _, id := range anchor.members {
		if n := f.world.nodes.at(id); f.hasRoom(slot, n, anchor) {
			return n
		}
	}
	for _, id := range pools {
		if n := f.world.nodes.at(id); n.tree != anchor && n.reaches(anchor) && f.hasRoom(slot, n, anchor) {
			return n
		}
	}
	return nil
}

// hasRoom reports whether a provider can serve a slot from an anchor that it
// reaches, with its unclaimed units. It lowers times to how often they suffice.
func (f *firstFit) hasRoom(slot *slot, n *node, anchor *providerTree) bool {
	if !f.step(1) || !f.serves(slot, n, anchor) {
		return false
	}
	for i := range slot.demands {
		d := &slot.demands[i]
		times := f.freeOn(n, n.inventoryOf(d.class)) / d.amount
		if times < 1 {
			return false
		}
		f.times = min(f.times, times)
	}
	return true
}

// countLiving sets living to the number of trees that are not lost and have a
// candidate in the whole world. It counts no further than the limit most.
func (f *firstFit) countLiving(most int, s *survivor) {
	f.steps = s.steps
	for f.living < most && (f.counted < len(f.trees) || f.extend()) {
		if !f.dead[f.trees[f.counted]] {
			f.living++
		}
		f.counted++
	}
	s.steps = f.steps
}

// extendTo adds trees until there are n, and reports whether there are as many.
func (f *firstFit) extendTo(n int) bool {
	for len(f.trees) < n && f.extend() {
	}
	return len(f.trees) >= n
}

// enterAgain is enter for a tree that may have been entered before.
func (f *firstFit) enterAgain(anchor *providerTree) bool {
	clear(f.exhausted)
	return f.enter(anchor)
}

// takes reports whether a tree has a candidate in the whole world, or with
// sharing providers whether it may have one.
func (f *firstFit) takes(anchor *providerTree) bool {
	claimed, evacuated := f.claimed, f.evacuated
	f.claimed, f.evacuated = nil, nil
	defer func() { f.claimed, f.evacuated = claimed, evacuated }()
	if f.isPlain {
		return f.choose(anchor)
	}
	if isPossible := f.enterAgain(anchor); !isPossible || f.mayShare {
		return isPossible
	}
	f.found = false
	f.assign(0, false)
	return f.found
}

// asks reports whether the request asks for any of the classes.
func (f *firstFit) asks(classes map[int32]bool) bool {
	return slices.ContainsFunc(f.slots, func(s slot) bool {
		return slices.ContainsFunc(s.demands, func(d demand) bool { return classes[d.class] })
	})
}

// follow continues the search in a world of the same shape. It sets again[i] for
// each loss i that must be recomputed. Units of classes that the request does not
// ask for decide nothing.
func (f *firstFit) follow(w *World, changed changedUse, again []bool, losses []lossState) error {
	f.plan.world, f.anchors, f.vain, f.steps, f.dead = w, slices.Clone(f.initial), 0, 0, nil
	if !f.asks(changed.classes) {
		return nil
	}
	if f.followPools(changed.pools, again, losses) {
		f.trees, f.last, f.isAll, f.required = nil, "", false, 0
		clear(f.shared)
		return nil
	}
	touched := f.enterChanged(changed.trees)
	isShort := !f.extendTo(f.required)
	if isShort {
		f.required = 0
	}
	if len(f.losses) > 2*len(losses) {
		slices.Sort(f.losses)
		f.losses = slices.Compact(f.losses)
	}
	if !isShort && touched == nil {
		return f.err
	}
	for _, number := range f.losses {
		again[number] = again[number] || isShort || losses[number].reaches(f, touched)
	}
	return f.err
}

// followPools sets again[i] for each loss i whose consumers may find other room
// on changed pools. It reports whether these are all losses with the need.
func (f *firstFit) followPools(changed []changedPool, again []bool, losses []lossState) (all bool) {
	least := map[int32]int64{}
	for _, c := range changed {
		for i := range f.pooled {
			d := &f.pooled[i]
			switch {
			case d.class != c.class || !slices.Contains(d.pools, c.id):
			case !f.isPlain || (c.before >= d.amount) != (c.after >= d.amount):
				all = true
			case c.before >= d.amount:
				least[c.class] = min(c.before, c.after, cmp.Or(least[c.class], c.before))
			}
		}
	}
	if len(changed) > 0 {
		f.measurePools()
	}
	for class, units := range least {
		for _, number := range f.losses {
			again[number] = again[number] || unitsIn(losses[number].wanted, class) > units
		}
	}
	if all {
		for _, number := range f.losses {
			again[number] = true
		}
	}
	return all
}

// enterChanged adds the changed trees that have a candidate to trees, and removes
// the changed trees without one. It ignores trees that extend has not tried yet.
// It returns the first changed tree that had or has a candidate, nil for none.
func (f *firstFit) enterChanged(trees map[*providerTree]bool) (first *providerTree) {
	for tree := range trees {
		if !f.isAll && tree.root > f.last {
			continue
		}
		at, took := slices.BinarySearchFunc(f.trees, tree.root, func(t *providerTree, root string) int {
			return cmp.Compare(t.root, root)
		})
		takes := f.takes(tree)
		if (took || takes) && (first == nil || tree.root < first.root) {
			first = tree
		}
		if took && !takes {
			f.trees = slices.Delete(f.trees, at, at+1)
		} else if takes && !took {
			f.trees = slices.Insert(f.trees, at, tree)
		}
	}
	return first
}

// extend adds the next tree that may have candidates in the whole world. It
// reports false if no tree is left, or after an error.
func (f *firstFit) extend() bool {
	if f.isAll {
		return false
	}
	for root, anchor := range f.anchorsFrom(f.last) {
		if root == f.last {
			continue
		}
		f.last = root
		if f.takes(anchor) {
			f.trees = append(f.trees, anchor)
			return true
		}
		if f.err != nil {
			return false
		}
		f.vain++
	}
	f.isAll = true
	return false
}
