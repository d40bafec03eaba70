package resident

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
)

// mostFrequent keeps the first of the counts added to it.
type mostFrequent struct {
	first int
	kept  counts
}

// counts is a heap of counts. The last one in order is on top.
type counts []Count

// compare orders counts by descending frequency.
func compare(a, b Count) int {
	return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Group, b.Group))
}

// Len returns the number of counts.
func (c counts) Len() int { return len(c) }

// Less reports whether count i comes after count j.
func (c counts) Less(i, j int) bool { return compare(c[i], c[j]) > 0 }

// Swap exchanges two counts.
func (c counts) Swap(i, j int) { c[i], c[j] = c[j], c[i] }

// Push adds a count.
func (c *counts) Push(count any) { *c = append(*c, count.(Count)) }

// Pop removes the last count.
func (c *counts) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

func (m *mostFrequent) add(count Count) {
	switch {
	case len(m.kept) < m.first:
		heap.Push(&m.kept, count)
	case m.first > 0 && compare(count, m.kept[0]) < 0:
		m.kept[0] = count
		heap.Fix(&m.kept, 0)
	}
}

func (m *mostFrequent) sorted() []Count {
	slices.SortFunc(m.kept, compare)
	return m.kept
}
