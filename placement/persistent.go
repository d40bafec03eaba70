package placement

import (
	"iter"
	"slices"
	"sort"
)

// edit identifies one change of a World. What an edit has copied it may write to until it ends; everything
// else is shared with older Worlds and is copied first. A chunk names the edit that owns it, so nothing has
// to be sealed afterwards: no later edit has the same identity.
type edit struct{ _ byte }

const chunkSize = 256

// array is a sequence indexed by dense ids, kept in chunks: a write copies one chunk and the list of chunks.
// An index never written reads as the zero value.
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

// bitset is a set of dense ids.
type bitset struct{ words array[uint64] }

func (b *bitset) has(id int32) bool { return b.words.at(id/64)&(1<<(id%64)) != 0 }

func (b *bitset) put(e *edit, id int32, member bool) {
	word := b.words.at(id / 64)
	if member {
		word |= 1 << (id % 64)
	} else {
		word &^= 1 << (id % 64)
	}
	b.words.set(e, id/64, word)
}

// word is the i-th group of 64 ids.
func (b *bitset) word(i int) uint64 { return b.words.at(int32(i)) }

// sorted maps text keys to values in key order, kept in runs: a write copies one run and the list of runs.
type sorted[V any] struct {
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
	runLeast = 64  // a run below this joins its neighbour if there is room
)

// locate finds the run that holds or would hold the key.
func (s *sorted[V]) locate(key string) int {
	return max(0, sort.Search(len(s.runs), func(i int) bool { return s.runs[i].keys[0] > key })-1)
}

func (s *sorted[V]) get(key string) (V, bool) {
	if len(s.runs) > 0 {
		r := s.runs[s.locate(key)]
		if i, found := slices.BinarySearch(r.keys, key); found {
			return r.values[i], true
		}
	}
	var zero V
	return zero, false
}

func (s *sorted[V]) has(key string) bool {
	_, found := s.get(key)
	return found
}

// own makes the list of runs, and the run at i, writable by the edit.
func (s *sorted[V]) own(e *edit, i int) *run[V] {
	if s.owner != e {
		s.owner, s.runs = e, slices.Clone(s.runs)
	}
	if len(s.runs) == 0 {
		s.runs = append(s.runs, &run[V]{owner: e})
	}
	if r := s.runs[i]; r.owner != e {
		s.runs[i] = &run[V]{owner: e, keys: slices.Clone(r.keys), values: slices.Clone(r.values)}
	}
	return s.runs[i]
}

func (s *sorted[V]) set(e *edit, key string, value V) {
	at := s.locate(key)
	r := s.own(e, at)
	i, found := slices.BinarySearch(r.keys, key)
	if found {
		r.values[i] = value
		return
	}
	s.size++
	r.keys = slices.Insert(r.keys, i, key)
	r.values = slices.Insert(r.values, i, value)
	if len(r.keys) > runLimit {
		half := len(r.keys) / 2
		upper := &run[V]{owner: e, keys: slices.Clone(r.keys[half:]), values: slices.Clone(r.values[half:])}
		clear(r.keys[half:])
		clear(r.values[half:])
		r.keys, r.values = r.keys[:half], r.values[:half]
		s.runs = slices.Insert(s.runs, at+1, upper)
	}
}

func (s *sorted[V]) remove(e *edit, key string) {
	if !s.has(key) {
		return
	}
	at := s.locate(key)
	r := s.own(e, at)
	i, _ := slices.BinarySearch(r.keys, key)
	s.size--
	r.keys = slices.Delete(r.keys, i, i+1)
	r.values = slices.Delete(r.values, i, i+1)
	switch {
	case len(r.keys) == 0:
		s.runs = slices.Delete(s.runs, at, at+1)
	case len(r.keys) < runLeast && at > 0 && len(s.runs[at-1].keys) <= runLimit/2:
		lower := s.own(e, at-1)
		lower.keys = append(lower.keys, r.keys...)
		lower.values = append(lower.values, r.values...)
		s.runs = slices.Delete(s.runs, at, at+1)
	}
}

// from yields every entry whose key is not below the given one, in key order.
func (s *sorted[V]) from(key string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		if len(s.runs) == 0 {
			return
		}
		first := s.locate(key)
		start, _ := slices.BinarySearch(s.runs[first].keys, key)
		for _, r := range s.runs[first:] {
			for i := start; i < len(r.keys); i++ {
				if !yield(r.keys[i], r.values[i]) {
					return
				}
			}
			start = 0
		}
	}
}

func (s *sorted[V]) all() iter.Seq2[string, V] { return s.from("") }

func (s *sorted[V]) keys() []string {
	keys := make([]string, 0, s.size)
	for key := range s.all() {
		keys = append(keys, key)
	}
	return keys
}

// interned gives every name it has ever seen a dense id.
type interned struct {
	ids   sorted[int32]
	names array[string]
}

func (n *interned) intern(e *edit, name string) int32 {
	if id, found := n.ids.get(name); found {
		return id
	}
	id := int32(n.ids.size)
	n.ids.set(e, name, id)
	n.names.set(e, id, name)
	return id
}
