package placement

import (
	"cmp"
	"slices"
)

// FailureGrouping selects which trees fail together.
type FailureGrouping string

// The groupings.
const (
	FailureOfHost      FailureGrouping = "HOST" // one tree
	FailureOfAggregate FailureGrouping = "AGGREGATE"
	// FailureOfCapability is all trees whose resource has a value of a capability.
	FailureOfCapability FailureGrouping = "CAPABILITY"
)

// FailingTogether says which trees fail together. Values has the values of the
// capability by the row of the resource of a root.
type FailingTogether struct {
	By     FailureGrouping
	Values map[int64][]string
}

// Failure is the loss of some trees, with its effect on their consumers.
type Failure struct {
	// Root is the root of the tree. Aggregate is the uuid of the aggregate, or
	// CapabilityValue the value, of the trees.
	Root            *Provider
	Aggregate       *string
	CapabilityValue *string
	Consumers       int
	// Unplaced are the consumers that do not fit elsewhere, the largest first.
	Unplaced []Unplaced
}

// Missing returns the sums of the amounts that do not fit elsewhere.
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

// Failures returns the losses of the trees of providers, or of their aggregates or
// values. An aggregate fails with all trees that have a provider in it.
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

// addTrees adds the trees of all values that fail.
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

// Providers returns the uuids of all providers of the trees, nil if they are all
// providers of the world.
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

// Survive returns the losses, the most consumers that do not fit first, then by
// name. Allocations are all allocations of the consumers on the trees.
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

// survivor places the consumers of one loss after the other. It keeps a search
// for each need: use and losses never add candidates, so the trees that have
// candidates in the whole world are the only ones to try.
type survivor struct {
	world   *World
	finders map[*relocation]*firstFit
	sharing []*node // providers that share
	steps   int

	// Of the current loss.
	claimed map[claimKey]int64
	dead    map[*providerTree]bool
	loss    int // its number
}

func newSurvivor(w *World) *survivor {
	return &survivor{world: w, claimed: map[claimKey]int64{}, dead: map[*providerTree]bool{},
		finders: map[*relocation]*firstFit{}, sharing: w.sharingNodes()}
}

// sharingNodes returns the providers that share.
func (w *World) sharingNodes() (sharing []*node) {
	for id := range w.idLimit {
		if n := w.nodes.at(id); n != nil && n.sharing {
			sharing = append(sharing, n)
		}
	}
	return sharing
}

// lose begins a loss.
func (s *survivor) lose(trees []*providerTree) {
	clear(s.claimed)
	clear(s.dead)
	s.loss++
	for _, tree := range trees {
		s.dead[tree] = true
		for _, id := range tree.members {
			if n := s.world.nodes.at(id); n.sharing { // others serve their own tree alone
				for i := range n.inventories {
					s.occupy(claimKey{id, n.inventories[i].class})
				}
			}
		}
	}
}

// occupy claims all free units of an inventory, and returns the units that were
// claimed before.
func (s *survivor) occupy(key claimKey) (before int64) {
	before = s.claimed[key]
	if inventory := s.world.nodes.at(key.node).inventoryOf(key.class); inventory != nil {
		s.claimed[key] = max(before, inventory.free)
	}
	return before
}

// outcome is whether a consumer fits.
type outcome byte

const (
	isOpen outcome = iota // only placing tells
	isFitting
	isHomeless
)

// foresee returns the outcomes of the consumers of the current loss that follow
// without placing, the number of consumers to place, and whether all outcomes stay
// while each finder keeps the trees that it requires.
//
// A consumer claims units in one tree, or with providers that share in one for
// each slot. So it fits if more trees have a candidate for it in the whole world
// than the consumers before it may claim units in.
func (s *survivor) foresee(evacuees []evacuee) (outcomes []outcome, toPlace int, isFirm bool, err error) {
	outcomes, isFirm = make([]outcome, len(evacuees)), true
	taken := 0
	for i := range evacuees {
		e := &evacuees[i]
		f := s.finderOf(e.need)
		spoilt := taken + len(e.occupied())
		switch {
		case f.mayShare:
			taken += len(f.slots) - 1
		case f.hasLiving(spoilt+1, s):
			outcomes[i] = isFitting
		case f.err != nil:
			return nil, 0, false, f.err
		case f.living == 0:
			outcomes[i], isFirm = isHomeless, false
			continue
		}
		taken++
		if outcomes[i] == isOpen {
			toPlace, isFirm = i+1, false
		} else if required := spoilt + 1 + len(s.dead); len(f.trees) >= required || f.extendTo(required) {
			f.required = max(f.required, required)
		} else {
			isFirm = false
		}
	}
	return outcomes, toPlace, isFirm, nil
}

// finderOf returns the search for a need.
func (s *survivor) finderOf(need *relocation) *firstFit {
	f := s.finders[need]
	if f == nil {
		f = newFirstFit(s.world, &need.Request)
		f.mayShare = slices.ContainsFunc(s.sharing, f.maySlotsUse)
		s.finders[need] = f
	}
	if f.loss != s.loss {
		f.loss, f.next, f.living, f.counted = s.loss, 0, 0, 0
	}
	f.claimed, f.dead = s.claimed, s.dead
	return f
}

// place places a consumer, and reports whether it fits.
func (s *survivor) place(e *evacuee) (bool, error) {
	f := s.finderOf(e.need)
	f.steps = s.steps
	occupied := e.occupied()
	if len(occupied) == 0 {
		f.next = f.place(f.next)
	} else {
		before := make([]int64, len(occupied))
		for i, key := range occupied {
			before[i] = s.occupy(key)
		}
		f.place(0)
		for i, key := range slices.Backward(occupied) {
			s.claimed[key] = before[i]
		}
	}
	s.steps = f.steps
	return f.found, f.err
}

// firstFit finds the first candidate of a request, again and again.
type firstFit struct {
	*search
	trees    []*providerTree // that may have candidates in the whole world, so far
	last     string          // the root of the last tree that was tried for them
	isAll    bool
	found    bool
	mayShare bool // whether sharing providers may serve; without, all trees have candidates
	initial  mask // anchors of the plan, before use narrowed them

	// Of the current loss: the first tree to try, and the number of trees among the
	// first ones that are not lost.
	loss, next, living, counted int

	// Required is the number of trees on which firm outcomes of losses rely. Losses
	// has at least the numbers of the losses with the need.
	required int
	losses   []int32
}

func newFirstFit(w *World, r *Request) *firstFit {
	f := &firstFit{search: newSearch(compile(w, r).narrowAnchors())}
	f.initial, f.mayShare = slices.Clone(f.anchors), true
	f.emit = func() bool {
		if f.claimed != nil {
			for i, o := range f.chosen {
				f.claim(i, o, 1)
			}
		}
		f.found = true
		return false
	}
	return f
}

// maySlotsUse reports whether a provider may serve a slot by its traits,
// aggregates and classes.
func (p *plan) maySlotsUse(n *node) bool {
	lacks := func(d demand) bool { return n.inventoryOf(d.class) == nil }
	return slices.ContainsFunc(p.slots, func(s slot) bool {
		return s.allowed.has(n.id) && !slices.ContainsFunc(s.demands, lacks)
	})
}

// place claims the first candidate from a tree on. It returns the number of the
// tree.
func (f *firstFit) place(from int) int {
	f.found = false
	for ; from < len(f.trees) || f.extend(); from++ {
		if f.dead[f.trees[from]] {
			continue
		}
		f.found = false // extend may have found one
		if f.enterAgain(f.trees[from]) {
			f.assign(0, false)
		}
		if f.found || f.err != nil {
			return from
		}
	}
	f.found = false
	return from
}

// hasLiving reports whether at least n trees that are not lost have a candidate
// in the whole world.
func (f *firstFit) hasLiving(n int, s *survivor) bool {
	f.steps = s.steps
	for f.living < n && (f.counted < len(f.trees) || f.extend()) {
		if !f.dead[f.trees[f.counted]] {
			f.living++
		}
		f.counted++
	}
	s.steps = f.steps
	return f.living >= n
}

// extendTo adds trees up to a number of them, and reports whether there are as
// many.
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
	claimed := f.claimed
	f.claimed = nil
	defer func() { f.claimed = claimed }()
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

// follow makes the search one in a world of the same shape. It adds the losses to
// compute again. Units of classes that the request does not ask for decide nothing.
func (f *firstFit) follow(w *World, changed changedUse, again map[int32]bool, losses []lossState) error {
	f.plan.world, f.anchors, f.vain, f.steps, f.dead = w, slices.Clone(f.initial), 0, 0, nil
	if !f.asks(changed.classes) {
		return nil
	}
	isTouched := f.enterChanged(changed.trees)
	isShort := !f.extendTo(f.required)
	if isShort {
		f.required = 0
	}
	if len(f.losses) > 2*len(losses) {
		slices.Sort(f.losses)
		f.losses = slices.Compact(f.losses)
	}
	for _, number := range f.losses {
		if isShort || isTouched && !losses[number].isFirm {
			again[number] = true
		}
	}
	return f.err
}

// enterChanged adds changed trees that have a candidate, and removes the ones that
// have none. It reports whether a tree had one or has one.
func (f *firstFit) enterChanged(trees map[*providerTree]bool) (isTouched bool) {
	for tree := range trees {
		if !f.isAll && tree.root > f.last {
			continue
		}
		at, took := slices.BinarySearchFunc(f.trees, tree.root, func(t *providerTree, root string) int {
			return cmp.Compare(t.root, root)
		})
		takes := f.takes(tree)
		isTouched = isTouched || took || takes
		if took && !takes {
			f.trees = slices.Delete(f.trees, at, at+1)
		} else if takes && !took {
			f.trees = slices.Insert(f.trees, at, tree)
		}
	}
	return isTouched
}

// extend adds the next tree that may have candidates in the whole world.
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
