package resident

import (
	"slices"
	"strings"
)

// Kind is the kind of the values in a column.
type Kind int

// The kinds of columns. Created and Updated serve orders alone.
const (
	OfType       Kind = iota // the type, as an opaque value
	OfProject                // the id of the project
	OfVisibility             // the visibility
	OfName                   // the name
	OfTag                    // tags in the form of TagValue
	OfItem                   // values of a metadata key
	Created                  // time of creation
	Updated                  // time of the last update
)

// Column identifies a column of values. Columns of metadata have a key.
type Column struct {
	Kind Kind
	Key  string
}

// TagValue returns the value of a tag: its folded name, then its name.
func TagValue(folded, name string) string { return folded + tagSeparator + name }

// tagSeparator cannot occur in a string of a database.
const tagSeparator = "\x00"

// postings are the sorted values of a column, with the resources that have
// each.
type postings struct {
	values  []string
	ends    []uint32 // end of each value's members
	members []uint32
}

// of returns the numbers of the resources with the value at an index, ascending.
func (c *postings) of(place int) []uint32 { return c.within(place, place+1) }

// within returns the numbers of the resources with the values at the indexes
// [from, to), which must not be empty, value by value.
func (c *postings) within(from, to int) []uint32 {
	begin := uint32(0)
	if from > 0 {
		begin = c.ends[from-1]
	}
	return c.members[begin:c.ends[to-1]]
}

// between returns the indexes [from, to) of the values that begin with a prefix.
func (c *postings) between(prefix string) (from, to int) {
	from, _ = slices.BinarySearch(c.values, prefix)
	rest := c.values[from:]
	to, _ = slices.BinarySearchFunc(rest, prefix, func(value, prefix string) int {
		if strings.HasPrefix(value, prefix) {
			return -1
		}
		return 1
	})
	return from, from + to
}

// numbering is resources numbered from 0, in the order of their uuids. It is
// immutable.
type numbering struct {
	uuids   []string
	rows    []int64
	columns map[Column]*postings
	times   map[Kind]timeline
	bytes   int64
}

// part is a numbering with the set of its resources that have not changed
// since.
type part struct {
	*numbering
	live  Set
	count int
}

// number returns the number of the resource with a uuid.
func (r *numbering) number(uuid string) (uint32, bool) {
	place, found := slices.BinarySearch(r.uuids, uuid)
	return uint32(place), found
}

// Approximate memory in bytes.
const (
	resourceBytes = 92 // its uuid, row id and times
	valueBytes    = 24 // without its string
	memberBytes   = 4
	columnBytes   = 300
)

// Builder builds Resources. The caller must add resources in the order of their
// uuids.
type Builder struct {
	uuids   []string
	rows    []int64
	columns map[Column]*columnBuilder
	times   [2][]int64 // Created and Updated, by number
	taken   int64
}

// columnBuilder is a column that accepts values in any order.
type columnBuilder struct {
	places  map[string]uint32
	values  []string
	entries []entry
}

// entry says that a resource has a value.
type entry struct{ value, number uint32 }

// NewBuilder returns a builder without resources.
func NewBuilder() *Builder { return &Builder{columns: map[Column]*columnBuilder{}} }

// Resource adds a resource with its uuid, row id and times in nanoseconds, and
// returns its number.
func (b *Builder) Resource(uuid string, row, created, updated int64) uint32 {
	b.uuids, b.rows = append(b.uuids, uuid), append(b.rows, row)
	b.times[0], b.times[1] = append(b.times[0], created), append(b.times[1], updated)
	b.taken += resourceBytes
	return uint32(len(b.uuids) - 1)
}

// Value adds a value of a resource.
func (b *Builder) Value(number uint32, in Column, value string) {
	of := b.column(in)
	of.entries = append(of.entries, entry{b.place(of, value), number})
	b.taken += memberBytes
}

// Bytes returns the approximate memory of everything added.
func (b *Builder) Bytes() int64 { return b.taken }

func (b *Builder) column(in Column) *columnBuilder {
	of := b.columns[in]
	if of == nil {
		of = &columnBuilder{places: map[string]uint32{}}
		b.columns[in] = of
		b.taken += columnBytes
	}
	return of
}

func (b *Builder) place(of *columnBuilder, value string) uint32 {
	place, found := of.places[value]
	if !found {
		place = uint32(len(of.values))
		of.places[value] = place
		of.values = append(of.values, value)
		b.taken += valueBytes + int64(len(value))
	}
	return place
}

// part returns everything added as a part.
func (b *Builder) part() part {
	built := &numbering{uuids: b.uuids, rows: b.rows,
		columns: make(map[Column]*postings, len(b.columns)), bytes: b.taken,
		times: map[Kind]timeline{Created: newTimeline(b.times[0]), Updated: newTimeline(b.times[1])}}
	for in, of := range b.columns {
		built.columns[in] = of.column()
	}
	return part{built, fullSet(len(b.uuids)), len(b.uuids)}
}

// column returns the sorted values, with the resources that have each. All
// values are substrings of one string.
func (b *columnBuilder) column() *postings {
	order := make([]uint32, len(b.values)) // place by rank
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(x, y uint32) int { return strings.Compare(b.values[x], b.values[y]) })
	of := &postings{values: make([]string, len(order)), ends: make([]uint32, len(order)),
		members: make([]uint32, len(b.entries))}
	rank, all := make([]uint32, len(order)), strings.Join(b.values, "")
	starts, start := make([]int, len(order)), 0
	for place, value := range b.values {
		starts[place] = start
		start += len(value)
	}
	for i, place := range order {
		rank[place] = uint32(i)
		of.values[i] = all[starts[place] : starts[place]+len(b.values[place])]
	}
	for _, e := range b.entries {
		of.ends[rank[e.value]]++
	}
	begins, sum := make([]uint32, len(order)), uint32(0)
	for i, count := range of.ends {
		begins[i] = sum
		sum += count
		of.ends[i] = sum
	}
	for _, e := range b.entries {
		at := rank[e.value]
		of.members[begins[at]] = e.number
		begins[at]++
	}
	for i := range of.values { // merged parts added their members one part after the other
		if members := of.of(i); !slices.IsSorted(members) {
			slices.Sort(members)
		}
	}
	return of
}

// merged returns the unchanged resources of two parts as one part.
func merged(x, y part) part {
	b := NewBuilder()
	var numbers [2][]uint32
	parts := [2]part{x, y}
	var at [2]int
	for i, p := range parts {
		numbers[i] = make([]uint32, len(p.uuids))
	}
	b.uuids, b.rows = make([]string, 0, x.count+y.count), make([]int64, 0, x.count+y.count)
	for at[0] < len(x.uuids) || at[1] < len(y.uuids) {
		from := 0
		if at[0] == len(x.uuids) || at[1] < len(y.uuids) && y.uuids[at[1]] < x.uuids[at[0]] {
			from = 1
		}
		if number := uint32(at[from]); parts[from].live.has(number) {
			p := parts[from]
			numbers[from][number] = b.Resource(p.uuids[number], p.rows[number],
				p.times[Created].nanos[number], p.times[Updated].nanos[number])
		}
		at[from]++
	}
	for i, p := range parts {
		for in, of := range p.columns {
			b.addColumn(in, of, p.live, numbers[i])
		}
	}
	return b.part()
}

// addColumn adds the values of another part's unchanged resources, under their
// new numbers.
func (b *Builder) addColumn(in Column, of *postings, live Set, numbers []uint32) {
	for i, value := range of.values {
		members := of.of(i)
		if live.among(members) == 0 {
			continue
		}
		into := b.column(in)
		place := b.place(into, value)
		for _, number := range members {
			if live.has(number) {
				into.entries = append(into.entries, entry{place, numbers[number]})
				b.taken += memberBytes
			}
		}
	}
}
