package placement

import (
	"encoding/binary"
	"slices"
)

// packer decides whether amounts of one class fit into the free units of
// providers. An amount cannot be split over providers. A matching only counts
// how many of the smallest amounts a provider has room for. If amounts differ,
// that is not enough: twelve amounts each of 5, 3 and 2 units fit on twelve
// providers with 10 free units in few ways. The packer caches its decisions,
// because the search meets few different states.
type packer struct {
	decided map[string]bool
	steps   int // of the current call of fits
	counted func(int) bool
}

// maxPackingSteps limits the steps of one call of fits. Beyond the limit fits
// returns true and the search continues.
const maxPackingSteps = 20_000

func newPacker(counted func(int) bool) *packer {
	return &packer{decided: map[string]bool{}, counted: counted}
}

// fits reports whether all amounts, in descending order, fit into the free
// units. It may sort and change free. It reports true if it cannot decide.
func (p *packer) fits(free, amounts []int64) bool {
	slices.Sort(free)
	var demand, room int64
	for _, amount := range amounts {
		demand += amount
	}
	if len(amounts) == 0 {
		return true
	}
	least := amounts[len(amounts)-1]
	used := free[:0]
	for _, units := range free {
		if units = min(units, demand); units >= least { // units beyond the demand do not count
			used = append(used, units)
			room += units // at most 2^31 for each of an anchor's providers
		}
	}
	if demand > room || amounts[0] > used[len(used)-1] {
		return false
	}
	key := packingKey(used, amounts)
	if fits, ok := p.decided[key]; ok {
		return fits
	}
	p.steps = 0
	kinds := kindsOf(amounts)
	fits := packsFirstFit(used, amounts) || p.packBins(used, kinds, room-demand, map[string]bool{})
	p.decided[key] = fits
	return fits
}

// packingKey returns a cache key for free units and amounts.
func packingKey(free, amounts []int64) string {
	key := make([]byte, 0, 2*(len(free)+len(amounts)))
	for _, list := range [][]int64{free, amounts} {
		key = binary.AppendUvarint(key, uint64(len(list)))
		for _, n := range list {
			key = binary.AppendUvarint(key, uint64(n))
		}
	}
	return string(key)
}

// packsFirstFit reports whether the amounts fit by best fit in descending
// order: it places each amount on the provider with the fewest free units that
// still suffice.
func packsFirstFit(free, amounts []int64) bool {
	left := slices.Clone(free)
	for _, amount := range amounts {
		best := -1
		for i, units := range left {
			if units >= amount && (best < 0 || units < left[best]) {
				best = i
			}
		}
		if best < 0 {
			return false
		}
		left[best] -= amount
	}
	return true
}

// amountKind is an amount and the number of times that it is still to be
// placed.
type amountKind struct {
	amount int64
	count  int
}

func kindsOf(amounts []int64) []amountKind {
	var kinds []amountKind
	for _, amount := range amounts {
		if last := len(kinds) - 1; last >= 0 && kinds[last].amount == amount {
			kinds[last].count++
		} else {
			kinds = append(kinds, amountKind{amount, 1})
		}
	}
	return kinds
}

// packBins reports whether the amounts fit, true also if it cannot decide. It
// fills one provider after the other, the smallest first. Spare is the total
// number of units that may stay free. Failed holds states without a solution.
func (p *packer) packBins(free []int64, kinds []amountKind, spare int64, failed map[string]bool) bool {
	if !slices.ContainsFunc(kinds, func(kind amountKind) bool { return kind.count > 0 }) {
		return true
	}
	if len(free) == 0 {
		return false
	}
	state := binary.AppendUvarint(nil, uint64(len(free)))
	for _, kind := range kinds {
		state = binary.AppendUvarint(state, uint64(kind.count))
	}
	if failed[string(state)] {
		return false
	}
	if p.fill(free, kinds, 0, free[0], spare, failed) {
		return true
	}
	failed[string(state)] = true
	return false
}

// fill is packBins for a first provider that has only left free units. It places
// amounts of kinds[from:] there until no more fit, and then continues with the
// next provider. It is enough to try full providers: if another amount still
// fits, a solution can move it there.
func (p *packer) fill(free []int64, kinds []amountKind, from int, left, spare int64, failed map[string]bool) bool {
	if p.steps++; p.steps > maxPackingSteps || !p.counted(1) {
		return true // undecided
	}
	if from == len(kinds) {
		if left > spare ||
			slices.ContainsFunc(kinds, func(kind amountKind) bool { return kind.count > 0 && kind.amount <= left }) {
			return false
		}
		return p.packBins(free[1:], kinds, spare-left, failed)
	}
	kind := &kinds[from]
	most := min(kind.count, int(left/kind.amount))
	for placed := most; placed >= 0; placed-- {
		kind.count -= placed
		done := p.fill(free, kinds, from+1, left-int64(placed)*kind.amount, spare, failed)
		kind.count += placed
		if done {
			return true
		}
	}
	return false
}
