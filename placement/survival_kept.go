package placement

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// Survivals caches the losses of stored worlds (not of a Foreseen) for recent
// values of FailingTogether. For a world that differs from the last one in use
// alone, it recomputes only the losses that the changes concern. It finds changed
// providers by their Version. It is safe for concurrent use. The zero value is
// ready.
type Survivals struct {
	mutex sync.Mutex
	kept  []*survival // the last used first
}

const (
	// maxSurvivals is the maximum number of lists of losses that are kept.
	maxSurvivals = 4
	// maxKeptHoldings is the maximum number of allocations of a kept list, and of
	// the sum of the consumers of its losses. Each allocation takes about 100 bytes
	// of the list.
	maxKeptHoldings = 2_000_000
	// maxFresh is the maximum number of consumers that have changed since a kept list
	// was computed as a whole.
	maxFresh = 50_000
	// maxKeptNeeds is the maximum number of different needs of a kept list.
	maxKeptNeeds = 10_000
)

// Survive returns the losses of all trees of a world, as Failures.Survive does.
// Load returns all allocations of the consumers that have any on the given
// providers; nil means all providers. The error is ErrTooComplex or of load.
func (s *Survivals) Survive(
	w *World, of FailingTogether, load func(providers []string) ([]*Allocation, error),
) ([]*Failure, error) {
	if k := s.take(w, of); k != nil {
		changed := k.changed(w)
		var members []string
		for tree := range changed.trees {
			for _, id := range tree.members {
				members = append(members, w.nodes.at(id).provider.UUID)
			}
		}
		var allocations []*Allocation
		if len(members) > 0 {
			var err error
			if allocations, err = load(members); err != nil {
				s.keep(k)
				return nil, err
			}
		}
		if err := k.follow(w, changed, allocations); err == nil {
			return s.keep(k), nil
		}
	}
	allocations, err := load(nil)
	if err != nil {
		return nil, err
	}
	k := newSurvival(w.Failures(of, slices.Collect(w.Providers())), allocations)
	if err := k.loseAll(); err != nil {
		return nil, err
	}
	k.of = of
	return s.keep(k), nil
}

// take removes and returns the kept losses for a grouping, nil if there are
// none. It drops the losses of worlds of another shape.
func (s *Survivals) take(w *World, of FailingTogether) *survival {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.kept = slices.DeleteFunc(s.kept, func(k *survival) bool { return k.world.shape != w.shape })
	at := slices.IndexFunc(s.kept, func(k *survival) bool {
		return k.of.By == of.By && maps.EqualFunc(k.of.Values, of.Values, slices.Equal)
	})
	if at < 0 {
		return nil
	}
	k := s.kept[at]
	s.kept = slices.Delete(s.kept, at, at+1)
	return k
}

// keep keeps the losses for later requests, unless they exceed a maximum. It
// returns their failures; the caller must not read k afterwards, because another
// request may take and change it.
func (s *Survivals) keep(k *survival) []*Failure {
	found := k.found
	if k.held.count > maxKeptHoldings || k.listed > maxKeptHoldings ||
		len(k.held.needs) > maxKeptNeeds || len(k.held.fresh) > maxFresh {
		return found
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.kept = slices.Insert(s.kept, 0, k)
	s.kept = s.kept[:min(len(s.kept), maxSurvivals)]
	return found
}

// survival is the losses of a world.
type survival struct {
	*Failures
	of       FailingTogether
	held     *holdings
	survivor *survivor
	lost     map[*providerTree][]int32 // numbers of losses
	losses   []lossState               // by number
	found    []*Failure                // sorted
	unplaced []Unplaced                // reused
	listed   int                       // the sum of the consumers of all losses
}

// lossState is the outcome of a loss, with the things that it depends on.
type lossState struct {
	*Failure
	batches []batch // nil before the first lose
	isStale bool    // whether the consumers have changed since
	uses    []use   // of the needs
	wanted  []unitsOf
}

// use is how far a loss depends on the trees of a finder: up to a tree, or on all
// trees if reach is nil.
type use struct {
	finder *firstFit
	reach  *providerTree
}

// nowhere is the reach of outcomes that stay while the finder keeps the trees that it
// requires.
var nowhere = new(providerTree)

// reaches reports whether a loss depends on a tree of a finder, or on a later
// tree.
func (l *lossState) reaches(f *firstFit, tree *providerTree) bool {
	for _, of := range l.uses {
		if of.finder == f {
			return tree != nil && (of.reach == nil || tree.root <= of.reach.root)
		}
	}
	return false
}

// use records that the loss depends on a finder up to reach (see the type use).
func (l *lossState) use(f *firstFit, reach *providerTree) {
	for i := range l.uses {
		if of := &l.uses[i]; of.finder == f {
			if reach == nil || of.reach != nil && of.reach.root < reach.root {
				of.reach = reach
			}
			return
		}
	}
	l.uses = append(l.uses, use{f, reach})
}

func newSurvival(f *Failures, allocations []*Allocation) *survival {
	k := &survival{Failures: f, held: f.world.holdingsOf(allocations), survivor: newSurvivor(f.world),
		lost: map[*providerTree][]int32{}, losses: make([]lossState, len(f.groups))}
	for i := range f.groups {
		for _, tree := range f.groups[i].trees {
			k.lost[tree] = append(k.lost[tree], int32(i))
		}
	}
	return k
}

func (k *survival) loseAll() error {
	for i := range k.groups {
		if err := k.lose(int32(i)); err != nil {
			return err
		}
		k.found = append(k.found, k.losses[i].Failure)
	}
	slices.SortFunc(k.found, compareFailures)
	return nil
}

// compareFailures orders losses by number of unplaced consumers, the largest
// first, then by name.
func compareFailures(a, b *Failure) int {
	return cmp.Or(cmp.Compare(len(b.Unplaced), len(a.Unplaced)), cmp.Compare(a.Name(), b.Name()))
}

func (k *survival) lose(number int32) error {
	s, state := k.survivor, &k.losses[number]
	s.lose(k.groups[number].trees)
	if state.batches == nil || state.isStale {
		k.listed -= consumersOf(state.batches)
		state.batches, state.isStale = k.held.batchesOf(s.dead, state.batches), false
		k.listed += consumersOf(state.batches)
	}
	s.want(state.batches)
	toPlace, err := s.foresee(state.batches)
	if err != nil {
		return err
	}
	before := state.uses
	state.uses, state.wanted = make([]use, 0, len(before)), slices.Clone(s.wanted)
	for i := range state.batches {
		r, of := &state.batches[i], s.foreseen[i]
		f := s.finderOf(r.need)
		var reach *providerTree
		if r.placed = of.fitting; i < toPlace && !of.isHomeless {
			if err := s.place(r); err != nil {
				return err
			}
			if r.placed == len(r.consumers) && len(r.occupied) == 0 {
				reach = f.trees[f.next]
			}
		} else if of.isFirm {
			reach = nowhere
		}
		state.use(f, reach)
	}
	for _, of := range state.uses {
		if !slices.ContainsFunc(before, func(old use) bool { return old.finder == of.finder }) {
			of.finder.losses = append(of.finder.losses, number)
		}
	}
	k.find(number)
	return nil
}

// find sets the failure of a loss. If it equals the old one, the old pointer
// stays.
func (k *survival) find(number int32) {
	state, failure := &k.losses[number], k.groups[number].Failure
	unplaced := k.unplaced[:0]
	for i := range state.batches {
		r := &state.batches[i]
		failure.Consumers += len(r.consumers)
		for _, consumer := range r.consumers[r.placed:] {
			unplaced = append(unplaced, r.need.unplaced(k.held.consumers[consumer]))
		}
	}
	k.unplaced = unplaced
	if old := state.Failure; old == nil || old.Root != failure.Root || old.Consumers != failure.Consumers ||
		!slices.EqualFunc(old.Unplaced, unplaced, Unplaced.is) {
		failure.Unplaced = slices.Clone(unplaced)
		state.Failure = &failure
	}
}

// is reports whether both are the same consumer with the same need.
func (u Unplaced) is(other Unplaced) bool {
	return u.Consumer == other.Consumer && u.Request == other.Request
}

// changedUse is the difference in use between two worlds with the same providers
// and inventories.
type changedUse struct {
	trees   map[*providerTree]bool // of providers whose state has changed
	classes map[int32]bool         // whose free units have changed on a provider
	pools   []changedPool
}

// changedPool is an inventory of a sharing provider with changed free units.
type changedPool struct {
	id, class     int32
	before, after int64
}

// isStateOf reports whether two nodes have the same stored state. Every write of a
// provider or of its allocations raises the version.
func (n *node) isStateOf(other *node) bool {
	return n != nil && other != nil && n.provider.Row == other.provider.Row &&
		n.provider.Version == other.provider.Version
}

// changed returns the difference in use from k.world to w, which must have the
// same shape.
func (k *survival) changed(w *World) changedUse {
	changed := changedUse{trees: map[*providerTree]bool{}, classes: map[int32]bool{}}
	for i, c := range w.nodes.chunks {
		before := k.world.nodes.chunks[i]
		if c == before {
			continue
		}
		for at, n := range c.items {
			if n == before.items[at] || n.isStateOf(before.items[at]) {
				continue
			}
			changed.trees[n.tree] = true
			for at, old := range before.items[at].inventories {
				after := n.inventories[at].free
				if old.free == after {
					continue
				}
				if changed.classes[old.class] = true; n.sharing {
					changed.pools = append(changed.pools, changedPool{n.id, old.class, old.free, after})
				}
			}
		}
	}
	return changed
}

// follow updates the losses to a world of the same shape. Allocations are all
// allocations of the consumers on the changed trees. After an error the losses
// must not be used.
func (k *survival) follow(w *World, changed changedUse, allocations []*Allocation) error {
	s := k.survivor
	k.world, s.world = w, w
	if len(changed.trees) == 0 {
		return nil
	}
	s.steps = 0
	again := make([]bool, len(k.losses))
	for tree := range k.held.replace(changed.trees, allocations) {
		for _, number := range k.lost[tree] {
			again[number], k.losses[number].isStale = true, true
		}
	}
	for _, need := range k.held.needs {
		if need.finder == nil {
			continue
		}
		if err := need.finder.follow(w, changed, again, k.losses); err != nil {
			return err
		}
	}
	void := map[*Failure]bool{}
	fresh := k.renew(changed.trees, again, void)
	for number, isAgain := range again {
		if !isAgain {
			continue
		}
		before := k.losses[number].Failure
		if err := k.lose(int32(number)); err != nil {
			return err
		}
		if after := k.losses[number].Failure; after != before {
			void[before] = true
			fresh = append(fresh, after)
		}
	}
	k.arrange(fresh, void)
	return nil
}

// renew replaces the root providers in the losses of changed hosts. For losses
// not computed again, it returns new failures, and adds the old ones to void.
func (k *survival) renew(
	changed map[*providerTree]bool, again []bool, void map[*Failure]bool,
) (fresh []*Failure) {
	for tree := range changed {
		for _, number := range k.lost[tree] {
			group := &k.groups[number]
			if group.Root == nil {
				continue
			}
			group.Root = k.world.nodes.at(tree.members[0]).provider
			if !again[number] {
				failure := *k.losses[number].Failure
				void[k.losses[number].Failure] = true
				failure.Root, k.losses[number].Failure = group.Root, &failure
				fresh = append(fresh, &failure)
			}
		}
	}
	return fresh
}

// arrange sets found to a new sorted list, with fresh in place of void failures.
func (k *survival) arrange(fresh []*Failure, void map[*Failure]bool) {
	slices.SortFunc(fresh, compareFailures)
	found, rest := make([]*Failure, 0, len(k.found)+len(fresh)), k.found
	for _, one := range fresh {
		at, _ := slices.BinarySearchFunc(rest, one, compareFailures)
		found, rest = append(append(found, rest[:at]...), one), rest[at:]
	}
	k.found = slices.DeleteFunc(append(found, rest...), func(f *Failure) bool { return void[f] })
}
