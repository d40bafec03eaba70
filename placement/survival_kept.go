package placement

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// Survivals keeps the losses of the last worlds. While only use changes, it
// computes again only the losses that the changes concern. It is safe for
// concurrent use. The zero value is ready.
type Survivals struct {
	mutex sync.Mutex
	kept  []*survival // the last used first
}

const (
	// maxSurvivals is the maximum number of lists of losses that are kept.
	maxSurvivals = 4
	// maxKeptHoldings is the maximum number of allocations of a kept list. Each has
	// about 100 bytes, with its part of the rest.
	maxKeptHoldings = 2_000_000
	// maxFresh is the maximum number of consumers that have changed since a kept list
	// was computed as a whole.
	maxFresh = 50_000
	// maxKeptNeeds is the maximum number of different needs of a kept list.
	maxKeptNeeds = 10_000
)

// Survive returns the losses of all trees of a world, as Failures.Survive does.
// Load returns all allocations of the consumers on some providers in the world;
// nil means all providers.
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
				return nil, err
			}
		}
		if err := k.follow(w, changed, allocations); err == nil {
			s.keep(k)
			return k.found, nil
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
	s.keep(k)
	return k.found, nil
}

// take removes and returns the losses of a world of the same shape, nil if there
// are none.
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

func (s *Survivals) keep(k *survival) {
	if k.held.count > maxKeptHoldings || len(k.held.needs) > maxKeptNeeds || len(k.held.fresh) > maxFresh {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.kept = slices.Insert(s.kept, 0, k)
	s.kept = s.kept[:min(len(s.kept), maxSurvivals)]
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
}

// lossState is how the outcome of a loss depends on the world.
type lossState struct {
	*Failure
	finders []*firstFit // of its needs
	isFirm  bool        // see foresee
	shares  bool        // whether sharing providers may serve
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

// loseAll computes all losses.
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

// compareFailures orders losses: the most consumers that do not fit first, then by
// name.
func compareFailures(a, b *Failure) int {
	return cmp.Or(cmp.Compare(len(b.Unplaced), len(a.Unplaced)), cmp.Compare(a.Name(), b.Name()))
}

// lose computes a loss.
func (k *survival) lose(number int32) error {
	group, s := &k.groups[number], k.survivor
	s.lose(group.trees)
	evacuees := k.held.evacuees(s.dead)
	outcomes, toPlace, isFirm, err := s.foresee(evacuees)
	if err != nil {
		return err
	}
	failure := group.Failure
	failure.Consumers = len(evacuees)
	state := lossState{Failure: &failure, isFirm: isFirm}
	for i := range evacuees {
		f := s.finderOf(evacuees[i].need)
		if state.shares = state.shares || f.mayShare; !slices.Contains(state.finders, f) {
			state.finders = append(state.finders, f)
		}
		isPlaced := outcomes[i] == isFitting
		if i < toPlace && outcomes[i] != isHomeless {
			if isPlaced, err = s.place(&evacuees[i]); err != nil {
				return err
			}
		}
		if !isPlaced {
			failure.Unplaced = append(failure.Unplaced, evacuees[i].unplaced())
		}
	}
	for _, f := range state.finders {
		if !slices.Contains(k.losses[number].finders, f) {
			f.losses = append(f.losses, number)
		}
	}
	k.losses[number] = state
	return nil
}

// changedUse is how two worlds of the same shape differ.
type changedUse struct {
	trees   map[*providerTree]bool // with providers of another state
	classes map[int32]bool         // with other free units
}

// changed returns how a world of the same shape differs.
func (k *survival) changed(w *World) changedUse {
	changed := changedUse{map[*providerTree]bool{}, map[int32]bool{}}
	for i, c := range w.nodes.chunks {
		before := k.world.nodes.chunks[i]
		if c == before {
			continue
		}
		for at, n := range c.items {
			if n == before.items[at] {
				continue
			}
			changed.trees[n.tree] = true
			for at, old := range before.items[at].inventories {
				if old.free != n.inventories[at].free {
					changed.classes[old.class] = true
				}
			}
		}
	}
	return changed
}

// follow computes the losses for a world of the same shape. Allocations are all
// allocations of the consumers on the changed trees. After an error the losses are
// void.
func (k *survival) follow(w *World, changed changedUse, allocations []*Allocation) error {
	s := k.survivor
	k.world, k.held.world, s.world = w, w, w
	if len(changed.trees) == 0 {
		return nil
	}
	s.sharing, s.steps = w.sharingNodes(), 0
	again := map[int32]bool{}
	for tree := range k.held.replace(changed.trees, allocations) {
		for _, number := range k.lost[tree] {
			again[number] = true
		}
	}
	for need, f := range s.finders {
		if f.mayShare && f.asks(changed.classes) {
			for _, number := range f.losses {
				again[number] = true
			}
			delete(s.finders, need)
		} else if err := f.follow(w, changed, again, k.losses); err != nil {
			return err
		}
	}
	void := map[*Failure]bool{}
	fresh := k.renew(changed.trees, again, void)
	for number := range again {
		void[k.losses[number].Failure] = true
		if err := k.lose(number); err != nil {
			return err
		}
		fresh = append(fresh, k.losses[number].Failure)
	}
	k.arrange(fresh, void)
	return nil
}

// renew sets the roots of the changed trees. It returns the losses that differ in
// nothing else, and adds the ones before to void.
func (k *survival) renew(
	changed map[*providerTree]bool, again map[int32]bool, void map[*Failure]bool,
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

// arrange replaces void losses by fresh ones in a new list.
func (k *survival) arrange(fresh []*Failure, void map[*Failure]bool) {
	slices.SortFunc(fresh, compareFailures)
	found := make([]*Failure, 0, len(k.found))
	for _, one := range k.found {
		if void[one] {
			continue
		}
		for len(fresh) > 0 && compareFailures(fresh[0], one) < 0 {
			found, fresh = append(found, fresh[0]), fresh[1:]
		}
		found = append(found, one)
	}
	k.found = append(found, fresh...)
}
