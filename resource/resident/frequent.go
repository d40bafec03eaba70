package resident

import (
	"cmp"
	"slices"
	"strings"
)

// mostFrequent keeps the first of the counts added to it.
type mostFrequent struct {
	first int
	kept  []Count // the first counts so far, then at most as many others
	last  *Count  // of the first counts; later ones are not kept; nil if there are fewer
}

// compare orders counts by descending frequency.
func compare(a, b Count) int {
	return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Group, b.Group))
}

func (m *mostFrequent) add(count Count) {
	if m.first == 0 || m.last != nil && compare(count, *m.last) > 0 {
		return
	}
	if m.kept = append(m.kept, count); len(m.kept)/2 > m.first {
		m.kept = m.sorted()
		m.last = new(m.kept[m.first-1])
	}
}

func (m *mostFrequent) sorted() []Count {
	slices.SortFunc(m.kept, compare)
	return m.kept[:min(m.first, len(m.kept))]
}
