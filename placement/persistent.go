package placement

import (
	"iter"
	"slices"
	"sort"
)

// The lists and maps of a World are persistent: a write copies the part that it
// changes and shares the rest with older Worlds. The search reads them in its
// inner loops, by dense id and in key order. This package implements them
// itself, because they must be about as fast as plain slices.

// edit identifies one update of a World. Until the update ends, it may write to
// the chunks that it has copied. It must copy other chunks first, because older
// Worlds share them. A chunk names the edit that owns it. No later edit has the
// same identity, so a chunk becomes read-only without further action.
type edit struct{ _ byte }

const chunkSize = 256

// array is a sequence indexed by dense ids, kept in chunks: a write copies one
// chunk and the list of chunks. An index never written reads as the zero value.
type array[T any] struct {
	owner  *edit
	chunks []*chunk[T]
}

type chunk[T any] struct {
	owner *edit
	items [chunkSize]T
}

func (a *array[T]) at(i int32) T {
	if c := int(i / chunkSize); c < len(a.chunks) && a.chunks[c] != nil {
		return a.chunks[c].items[i%chunkSize]
	}
	var zero T
	return zero
}

func (a *array[T]) set(e *edit, i int32, value T) {
	c := int(i / chunkSize)
	if a.owner != e {
		a.owner, a.chunks = e, slices.Clone(a.chunks)
	}
	for c >= len(a.chunks) {
		a.chunks = append(a.chunks, nil)
	}
	if old := a.chunks[c]; old == nil {
		a.chunks[c] = &chunk[T]{owner: e}
	} else if old.owner != e {
		a.chunks[c] = &chunk[T]{owner: e, items: old.items}
	}
	a.chunks[c].items[i%chunkSize] = value
}

// word returns the items of the i-th group of 64 ids; nil means zero values.
func (a *array[T]) word(i int) []T {
	const words = chunkSize / 64
	if c := i / words; c < len(a.chunks) && a.chunks[c] != nil {
		return a.chunks[c].items[i%words*64:][:64]
	}
	return nil
}

// bitset is a set of dense ids.
type bitset struct{ words array[uint64] }

func (b *bitset) put(e *edit, id int32, member bool) {
	word := b.words.at(id / 64)
	if member {
		word |= 1 << (id % 64)
	} else {
		word &^= 1 << (id % 64)
	}
	b.words.set(e, id/64, word)
}

func (b *bitset) has(id int32) bool { return b.words.at(id/64)&(1<<(id%64)) != 0 }

// word returns the i-th group of 64 ids.
func (b *bitset) word(i int) uint64 { return b.words.at(int32(i)) }

// sortedMap maps strings to values in key order, kept in runs: a write copies
// one run and the list of runs.
type sortedMap[V any] struct {
	owner *edit
	runs  []*run[V]
	size  int
}

type run[V any] struct {
	owner  *edit
	keys   []string
	values []V
}

const (
	runLimit = 512 // a run beyond this is halved
	runMin   = 64  // a run below this is joined to the one before if there is room
)

// locate returns the index of the run that holds or would hold the key.
func (m *sortedMap[V]) locate(key string) int {
	return max(0, sort.Search(len(m.runs), func(i int) bool { return m.runs[i].keys[0] > key })-1)
}

func (m *sortedMap[V]) get(key string) (V, bool) {
	if len(m.runs) > 0 {
		r := m.runs[m.locate(key)]
		if i, ok := slices.BinarySearch(r.keys, key); ok {
			return r.values[i], true
		}
	}
	var zero V
	return zero, false
}

func (m *sortedMap[V]) has(key string) bool {
	_, ok := m.get(key)
	return ok
}

// writable makes the list of runs and the run at i writable by the edit, and
// returns the run.
func (m *sortedMap[V]) writable(e *edit, i int) *run[V] {
	if m.owner != e {
		m.owner, m.runs = e, slices.Clone(m.runs)
	}
	if len(m.runs) == 0 {
		m.runs = append(m.runs, &run[V]{owner: e})
	}
	if r := m.runs[i]; r.owner != e {
		m.runs[i] = &run[V]{owner: e, keys: slices.Clone(r.keys), values: slices.Clone(r.values)}
	}
	return m.runs[i]
}

// place returns the index of the run that holds or would hold the key, the key's
// index in the run, and whether the run holds it. It is fast for a key behind all
// others.
func (m *sortedMap[V]) place(key string) (n, i int, ok bool) {
	if n = len(m.runs) - 1; n < 0 {
		return 0, 0, false
	}
	if keys := m.runs[n].keys; key > keys[len(keys)-1] {
		return n, len(keys), false
	}
	n = m.locate(key)
	i, ok = slices.BinarySearch(m.runs[n].keys, key)
	return n, i, ok
}

func (m *sortedMap[V]) set(e *edit, key string, value V) {
	n, i, ok := m.place(key)
	r := m.writable(e, n)
	if ok {
		r.values[i] = value
		return
	}
	m.size++
	r.keys = slices.Insert(r.keys, i, key)
	r.values = slices.Insert(r.values, i, value)
	if len(r.keys) > runLimit {
		half := len(r.keys) / 2
		upper := &run[V]{owner: e, keys: slices.Clone(r.keys[half:]), values: slices.Clone(r.values[half:])}
		clear(r.keys[half:])
		clear(r.values[half:])
		r.keys, r.values = r.keys[:half], r.values[:half]
		m.runs = slices.Insert(m.runs, n+1, upper)
	}
}

func (m *sortedMap[V]) remove(e *edit, key string) {
	if !m.has(key) {
		return
	}
	n := m.locate(key)
	r := m.writable(e, n)
	i, _ := slices.BinarySearch(r.keys, key)
	m.size--
	r.keys = slices.Delete(r.keys, i, i+1)
	r.values = slices.Delete(r.values, i, i+1)
	switch {
	case len(r.keys) == 0:
		m.runs = slices.Delete(m.runs, n, n+1)
	case len(r.keys) < runMin && n > 0 && len(m.runs[n-1].keys) <= runLimit/2:
		lower := m.writable(e, n-1)
		lower.keys = append(lower.keys, r.keys...)
		lower.values = append(lower.values, r.values...)
		m.runs = slices.Delete(m.runs, n, n+1)
	}
}

// from yields every entry whose key is not less than the given one, in key
// order.
func (m *sortedMap[V]) from(key string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		if len(m.runs) == 0 {
			return
		}
		first := m.locate(key)
		start, _ := slices.BinarySearch(m.runs[first].keys, key)
		for _, r := range m.runs[first:] {
			for i := start; i < len(r.keys); i++ {
				if !yield(r.keys[i], r.values[i]) {
					return
				}
			}
			start = 0
		}
	}
}

func (m *sortedMap[V]) all() iter.Seq2[string, V] { return m.from("") }

func (m *sortedMap[V]) keys() []string {
	keys := make([]string, 0, m.size)
	for key := range m.all() {
		keys = append(keys, key)
	}
	return keys
}

// interner assigns a dense id to every name it has ever seen.
type interner struct{ ids sortedMap[int32] }

// unknown is the id of a name never seen; no set has it.
const unknown = int32(1<<31 - 1)

func (n *interner) intern(e *edit, name string) int32 {
	if id, ok := n.ids.get(name); ok {
		return id
	}
	id := int32(n.ids.size)
	n.ids.set(e, name, id)
	return id
}

// internAll returns the sorted ids of names.
func (n *interner) internAll(e *edit, names []string) []int32 {
	ids := make([]int32, len(names))
	for i, name := range names {
		ids[i] = n.intern(e, name)
	}
	slices.Sort(ids)
	return ids
}

// lookup returns the id of a name, or unknown.
func (n *interner) lookup(name string) int32 {
	if id, ok := n.ids.get(name); ok {
		return id
	}
	return unknown
}

// lookupAll returns the sorted ids of names, unknown for each name never seen.
func (n *interner) lookupAll(names []string) []int32 {
	ids := make([]int32, len(names))
	for i, name := range names {
		ids[i] = n.lookup(name)
	}
	slices.Sort(ids)
	return ids
}
