package placement

import (
	"iter"
	"math/bits"
)

// mask is a set of dense ids, 64 to a word. For has and as an argument of keep,
// nil means all ids; for the other methods nil is empty.
type mask []uint64

// newMask returns an empty mask for the providers of the world.
func (w *World) newMask() mask { return make(mask, (w.idLimit+63)/64) }

// allIDs returns the mask of all ids, of providers or not.
func (w *World) allIDs() mask {
	m := w.newMask()
	for i := range m {
		m[i] = ^uint64(0)
	}
	return m
}

func (m mask) has(id int32) bool { return m == nil || m[id/64]&(1<<(id%64)) != 0 }

func (m mask) add(id int32) { m[id/64] |= 1 << (id % 64) }

func (m mask) remove(id int32) { m[id/64] &^= 1 << (id % 64) }

func (m mask) size() int {
	n := 0
	for _, word := range m {
		n += bits.OnesCount64(word)
	}
	return n
}

// union returns the mask of the members of any of the sets.
func (w *World) union(sets []bitset) mask {
	m := w.newMask()
	for i := range m {
		for s := range sets {
			m[i] |= sets[s].word(i)
		}
	}
	return m
}

// keep removes the ids that the other mask lacks.
func (m mask) keep(other mask) {
	if other == nil {
		return
	}
	for i := range m {
		m[i] &= other[i]
	}
}

// without removes the ids of the other mask, which must not be nil.
func (m mask) without(other mask) {
	for i := range m {
		m[i] &^= other[i]
	}
}

// join adds the ids of the other mask, which must not be nil.
func (m mask) join(other mask) {
	for i := range m {
		m[i] |= other[i]
	}
}

func (m mask) isEmpty() bool {
	for _, word := range m {
		if word != 0 {
			return false
		}
	}
	return true
}

// all yields the ids in order. An id that is removed during the iteration is
// still yielded if its word is the current one.
func (m mask) all() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for i, word := range m {
			for bit := range bitsOf(word) {
				if !yield(int32(i)*64 + bit) {
					return
				}
			}
		}
	}
}

// bitsOf yields the indices of the set bits.
func bitsOf(word uint64) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for ; word != 0; word &= word - 1 {
			if !yield(int32(bits.TrailingZeros64(word))) {
				return
			}
		}
	}
}

// removeAll removes the members of every set.
func (m mask) removeAll(sets []bitset) {
	for i := range m {
		for s := range sets {
			m[i] &^= sets[s].word(i)
		}
	}
}

// linked returns the mask of the providers linked to the hosts' resources; nil
// hosts mean no restriction.
func (w *World) linked(hosts *Hosts) mask {
	if hosts == nil {
		return nil
	}
	resources := rowSet{}
	for _, row := range hosts.Resources {
		resources.add(row)
	}
	m := w.newMask()
	for id := range w.idLimit {
		if resources.has(w.resources.at(id)) {
			m.add(id)
		}
	}
	return m
}

// rowSet is a set of row ids, 64 to an entry, because rows of one request are
// mostly close together.
type rowSet map[int64]uint64

func (s rowSet) add(row int64) { s[row>>6] |= 1 << (row & 63) }

func (s rowSet) has(row int64) bool { return s[row>>6]&(1<<(row&63)) != 0 }

// matching returns the mask of the providers that meet constraints on their own
// traits and aggregates, nil without constraints. It may have ids of no
// provider.
func (w *World) matching(clauses [][]string, forbidden []string, memberOf []AggregateFilter) mask {
	if len(clauses) == 0 && len(forbidden) == 0 && len(memberOf) == 0 {
		return nil
	}
	m := w.allIDs()
	for _, clause := range clauses {
		m.keep(w.union(w.traitSets(w.traits.lookupAll(clause))))
	}
	m.removeAll(w.traitSets(w.traits.lookupAll(forbidden)))
	for _, filter := range memberOf {
		if len(filter.AnyOf) > 0 {
			m.keep(w.union(w.aggregateSets(filter.AnyOf)))
		}
		m.removeAll(w.aggregateSets(filter.NoneOf))
	}
	return m
}

// traitSets returns, for each known trait, the set of the providers with it.
func (w *World) traitSets(traits []int32) []bitset {
	sets := make([]bitset, 0, len(traits))
	for _, trait := range traits {
		if trait != unknown {
			sets = append(sets, w.traitMembers.at(trait))
		}
	}
	return sets
}

// aggregateSets returns, for each known aggregate, the set of its members.
func (w *World) aggregateSets(uuids []string) []bitset {
	sets := make([]bitset, 0, len(uuids))
	for _, uuid := range uuids {
		if id := w.aggregates.lookup(canonicalOr(uuid)); id != unknown {
			sets = append(sets, w.aggregateIndex.at(id).members)
		}
	}
	return sets
}
