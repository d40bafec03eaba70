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
	held := f.world.holdingsOf(allocations)
	s := &survivor{world: f.world, claimed: map[claimKey]int64{}, dead: map[*providerTree]bool{}, finders: map[*relocation]*firstFit{}}
	found := make([]*Failure, 0, len(f.groups))
	for i := range f.groups {
		group := &f.groups[i]
		s.lose(group.trees)
		evacuees := held.evacuees(s.dead)
		group.Consumers = len(evacuees)
		for k := range evacuees {
			fits, err := s.place(&evacuees[k])
			if err != nil {
				return nil, err
			}
			if !fits {
				group.Unplaced = append(group.Unplaced, evacuees[k].unplaced())
			}
		}
		found = append(found, &group.Failure)
	}
	slices.SortFunc(found, func(a, b *Failure) int {
		return cmp.Or(cmp.Compare(len(b.Unplaced), len(a.Unplaced)), cmp.Compare(a.Name(), b.Name()))
	})
	return found, nil
}

// survivor places the consumers of one loss after the other. It keeps a search
// for each need: use and losses never add candidates, so the trees that have
// candidates in the whole world are the only ones to try.
type survivor struct {
	world   *World
	finders map[*relocation]*firstFit
	steps   int

	// Of the current loss.
	claimed map[claimKey]int64
	dead    map[*providerTree]bool
	loss    int // its number
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

// place places a consumer, and reports whether it fits.
func (s *survivor) place(e *evacuee) (bool, error) {
	f := s.finders[e.need]
	if f == nil {
		f = newFirstFit(s.world, &e.need.Request)
		s.finders[e.need] = f
	}
	if f.loss != s.loss {
		f.loss, f.next = s.loss, 0
	}
	f.claimed, f.dead, f.steps = s.claimed, s.dead, s.steps
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
	trees []*providerTree // that may have candidates in the whole world, so far
	last  string          // the root of the last tree that was tried for them
	isAll bool
	found bool

	loss, next int // the first tree to try in the current loss
}

func newFirstFit(w *World, r *Request) *firstFit {
	f := &firstFit{search: newSearch(compile(w, r).narrowAnchors())}
	f.emit = func() bool {
		for i, o := range f.chosen {
			f.claim(i, o, 1)
		}
		f.found = true
		return false
	}
	return f
}

// place claims the first candidate from a tree on. It returns the number of the
// tree.
func (f *firstFit) place(from int) int {
	for f.found = false; from < len(f.trees) || f.extend(); from++ {
		if f.dead[f.trees[from]] {
			continue
		}
		if f.enterAgain(f.trees[from]) {
			f.assign(0, false)
		}
		if f.found || f.err != nil {
			break
		}
	}
	return from
}

// enterAgain is enter for a tree that may have been entered before.
func (f *firstFit) enterAgain(anchor *providerTree) bool {
	clear(f.exhausted)
	return f.enter(anchor)
}

// extend adds the next tree that may have candidates in the whole world.
func (f *firstFit) extend() bool {
	if f.isAll {
		return false
	}
	claimed := f.claimed
	f.claimed = nil
	defer func() { f.claimed = claimed }()
	for root, anchor := range f.anchorsFrom(f.last) {
		if root == f.last {
			continue
		}
		f.last = root
		if f.enterAgain(anchor) {
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
