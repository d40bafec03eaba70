package resident

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// timeline has one time of each resource: in nanoseconds by number, and the
// numbers sorted by time.
type timeline struct {
	nanos   []int64
	numbers []uint32
}

func newTimeline(nanos []int64) timeline {
	numbers := make([]uint32, len(nanos))
	for i := range numbers {
		numbers[i] = uint32(i)
	}
	slices.SortFunc(numbers, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(nanos[a], nanos[b]), cmp.Compare(a, b))
	})
	return timeline{nanos, numbers}
}

// TimeKey returns a sort key for a time in nanoseconds.
func TimeKey(nanos int64) string {
	return string(binary.BigEndian.AppendUint64(nil, uint64(nanos)^1<<63))
}

// each yields the resources of a timeline in order, without the times that cannot
// be within the bounds.
func (o Order) each(of timeline, yield func(key string, members []uint32) bool) {
	from, to := 0, len(of.numbers)
	compare := func(number uint32, key string) int { return cmp.Compare(TimeKey(of.nanos[number]), key) }
	for _, bound := range o.Bounds {
		if bound.IsBelow {
			beyond, _ := slices.BinarySearchFunc(of.numbers, bound.Key+"\x00", compare)
			to = min(to, beyond)
		} else {
			place, _ := slices.BinarySearchFunc(of.numbers, bound.Key, compare)
			from = max(from, place)
		}
	}
	for i := range max(0, to-from) {
		place := from + i
		if o.Descending {
			place = to - 1 - i
		}
		if !yield(TimeKey(of.nanos[of.numbers[place]]), of.numbers[place:place+1]) {
			return
		}
	}
}
