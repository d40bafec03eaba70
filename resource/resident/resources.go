// Package resident keeps resources in memory as sets by their types, projects,
// visibilities, names, tags and metadata items. Set operations evaluate filters and
// count facets that use only these, without a database. A value of Resources is
// immutable; With returns a changed copy.
package resident

import (
	"cmp"
	"slices"
	"strings"
)

// Resources are resources in parts, the largest usually first. A change adds a
// small part, and merges the last parts while their sizes are similar.
type Resources struct{ parts []part }

// growth is the minimum ratio between the sizes of the last two parts.
const growth = 4

// Resources returns everything added.
func (b *Builder) Resources() *Resources { return &Resources{[]part{b.part()}} }

// Count returns the number of resources.
func (r *Resources) Count() (count int) {
	for _, p := range r.parts {
		count += p.count
	}
	return count
}

// Bytes returns the approximate memory.
func (r *Resources) Bytes() (bytes int64) {
	for _, p := range r.parts {
		bytes += p.bytes + int64(len(p.live))*8
	}
	return bytes
}

// With returns the resources after a change of the ones with the uuids. changed
// must have exactly the ones that still exist.
func (r *Resources) With(uuids []string, changed *Resources) *Resources {
	parts := slices.Clone(r.parts)
	for i := range parts {
		parts[i] = parts[i].without(uuids)
	}
	parts = append(parts[:1],
		slices.DeleteFunc(append(parts[1:], changed.parts...), func(p part) bool { return p.count == 0 })...)
	for last := len(parts) - 1; last > 0; last-- {
		if one, next := parts[last-1], parts[last]; one.count >= growth*next.count && len(one.uuids) <= 2*one.count {
			break
		}
		parts[last-1] = merged(parts[last-1], parts[last])
		parts = parts[:last]
	}
	return &Resources{parts}
}

// without returns the part without the resources with the uuids.
func (p part) without(uuids []string) part {
	isOwn := false
	for _, uuid := range uuids {
		number, found := p.number(uuid)
		if !found || !p.live.has(number) {
			continue
		}
		if !isOwn {
			p.live, isOwn = slices.Clone(p.live), true
		}
		p.live.remove(number)
		p.count--
	}
	return p
}

// Count is the number of resources with a value.
type Count struct {
	Group, Value string // key that distinguishes values, and the value for display
	Count        int
}

// CountMatching returns the number of resources that meet all clauses.
func (r *Resources) CountMatching(clauses []Clause) (count int) {
	for _, p := range r.parts {
		count += p.matching(clauses).count()
	}
	return count
}

// Matching returns the row ids of the resources that meet all clauses,
// unordered.
func (r *Resources) Matching(clauses []Clause) (rows []int64) {
	for _, p := range r.parts {
		left := p.matching(clauses)
		rows = slices.Grow(rows, left.count())
		for number := range left.all() {
			rows = append(rows, p.rows[number])
		}
	}
	return rows
}

// Explain counts the resources that meet seen. considered is their total, passing
// the number that meets each clause, remaining the number that meets the clause
// and all before it.
func (r *Resources) Explain(seen Clause, clauses []Clause) (considered int, passing, remaining []int) {
	passing, remaining = make([]int, len(clauses)), make([]int, len(clauses))
	for _, p := range r.parts {
		all := p.matching([]Clause{seen})
		considered += all.count()
		left := slices.Clone(all)
		for i, clause := range clauses {
			holds := clause(p)
			left.and(holds)
			remaining[i] += left.count()
			holds.and(all)
			passing[i] += holds.count()
		}
	}
	return considered, passing, remaining
}

// matching returns the resources that meet all clauses.
func (p part) matching(clauses []Clause) Set {
	left := slices.Clone(p.live)
	for _, clause := range clauses {
		left.and(clause(p))
	}
	return left
}

// CountValues counts the values of a column that begin with a prefix, on the
// resources that meet the clauses. It returns the first counts by descending
// frequency, then by value. Tags with the same folded name count as one value.
func (r *Resources) CountValues(in Column, clauses []Clause, begin string, first int) []Count {
	return r.countGroups(clauses, first, in.Kind == OfTag, func(p part, yield func(value string, members []uint32)) {
		of := p.columns[in]
		if of == nil {
			return
		}
		from, to := of.between(begin)
		for i := from; i < to; i++ {
			yield(of.values[i], of.of(i))
		}
	})
}

// CountKeys is CountValues for the keys of metadata.
func (r *Resources) CountKeys(clauses []Clause, begin string, first int) []Count {
	return r.countGroups(clauses, first, false, func(p part, yield func(value string, members []uint32)) {
		for in, of := range p.columns {
			if in.Kind == OfItem && strings.HasPrefix(in.Key, begin) {
				yield(in.Key, of.members)
			}
		}
	})
}

// countGroups counts the matching resources among the members of groups. A part
// may have many groups. If groups have one value each, the counts of the first
// part, which is usually the largest, are not collected in a map.
func (r *Resources) countGroups(clauses []Clause, first int, isTag bool,
	each func(p part, yield func(value string, members []uint32))) []Count {
	others := map[string]Count{}
	kept := &mostFrequent{first: first}
	for i := len(r.parts) - 1; i >= 0; i-- {
		left := r.parts[i].matching(clauses)
		each(r.parts[i], func(value string, members []uint32) {
			count := left.among(members)
			if count == 0 {
				return
			}
			group := value
			if isTag {
				group, value, _ = strings.Cut(value, tagSeparator)
			}
			other, found := others[group]
			switch {
			case i > 0 || isTag:
				if found {
					value = min(value, other.Value)
				}
				others[group] = Count{group, value, count + other.Count}
			case found:
				delete(others, group)
				kept.add(Count{group, value, count + other.Count})
			default:
				kept.add(Count{group, value, count})
			}
		})
	}
	for _, count := range others {
		kept.add(count)
	}
	return kept.sorted()
}

// mostFrequent keeps the first of the counts added to it.
type mostFrequent struct {
	first int
	kept  []Count // the first counts so far, then at most as many others
	last  *Count  // the last of the first counts; nil if there are fewer
}

// compare orders counts by descending frequency, then by group.
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
