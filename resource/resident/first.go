package resident

import (
	"cmp"
	"encoding/binary"
	"iter"
	"slices"
	"strings"
)

// Order is an order of resources by a column with one value for each resource, or
// by a time with the keys of TimeKey. The uuid breaks ties.
type Order struct {
	In         Column
	Name       func(value string) string // distinct sort key of a value; nil sorts by the value
	Descending bool
	Bounds     []Bound
}

// Bound keeps the resources on one side of a position, without the position
// itself: with IsBelow the ones with lower keys, otherwise the ones with higher
// keys. Uuids decide between equal keys. Descending does not change the side.
type Bound struct {
	IsBelow   bool
	Key, UUID string
}

// placed is a resource with its position.
type placed struct {
	key, uuid string
	row       int64
}

// First returns the row ids of the first resources of an order that meet all
// clauses and are within its bounds. most limits their number.
func (r *Resources) First(clauses []Clause, order Order, most int) []int64 {
	var found []placed
	for _, p := range r.parts {
		found = append(found, p.first(p.matching(clauses), order, most)...)
	}
	slices.SortFunc(found, func(a, b placed) int {
		return order.directed(cmp.Or(strings.Compare(a.key, b.key), strings.Compare(a.uuid, b.uuid)))
	})
	rows := make([]int64, min(most, len(found)))
	for i := range rows {
		rows[i] = found[i].row
	}
	return rows
}

func (o Order) directed(compared int) int {
	if o.Descending {
		return -compared
	}
	return compared
}

// first returns the first resources of a part that are in a set and within the
// bounds. most limits their number.
func (p part) first(left Set, order Order, most int) (found []placed) {
	if most <= 0 {
		return nil
	}
	for key, members := range order.values(p) {
		for i := range members {
			number := members[i]
			if order.Descending {
				number = members[len(members)-1-i]
			}
			if !left.has(number) || !order.isWithin(key, p.uuids[number]) {
				continue
			}
			if found = append(found, placed{key, p.uuids[number], p.rows[number]}); len(found) == most {
				return found
			}
		}
	}
	return found
}

// isWithin reports whether a position is within the bounds.
func (o Order) isWithin(key, uuid string) bool {
	for _, bound := range o.Bounds {
		compared := cmp.Or(strings.Compare(key, bound.Key), strings.Compare(uuid, bound.UUID))
		if compared == 0 || compared < 0 != bound.IsBelow {
			return false
		}
	}
	return true
}

// values yields the sort keys of a column in order, with the resources that
// have each. Unless Name is set, it omits keys that cannot be within the bounds.
func (o Order) values(p part) iter.Seq2[string, []uint32] {
	return func(yield func(key string, members []uint32) bool) {
		if times, ok := p.times[o.In.Kind]; ok {
			o.each(times, yield)
			return
		}
		of := p.columns[o.In]
		switch {
		case of == nil:
			return
		case o.Name != nil:
			o.named(of, yield)
			return
		}
		from, to := 0, len(of.values)
		for _, bound := range o.Bounds {
			place, found := slices.BinarySearch(of.values, bound.Key)
			switch {
			case !bound.IsBelow:
				from = max(from, place)
			case found:
				to = min(to, place+1)
			default:
				to = min(to, place)
			}
		}
		for i := range max(0, to-from) {
			place := from + i
			if o.Descending {
				place = to - 1 - i
			}
			if !yield(of.values[place], of.of(place)) {
				return
			}
		}
	}
}

// named yields the sort keys that Name gives to the values of a column. Such
// columns have few values.
func (o Order) named(of *postings, yield func(key string, members []uint32) bool) {
	places := make([]int, len(of.values))
	for i := range places {
		places[i] = i
	}
	slices.SortFunc(places, func(a, b int) int {
		return o.directed(strings.Compare(o.Name(of.values[a]), o.Name(of.values[b])))
	})
	for _, place := range places {
		if !yield(o.Name(of.values[place]), of.of(place)) {
			return
		}
	}
}

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
