package graph_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"
)

// ways are how one answer shows a counter and a number of the same thing: by two
// paths that share their first steps, or none.
type ways struct {
	counter, number path
	shared          int // steps
	shown           shown
	numberFirst     bool   // in the document
	beside          string // another field, before these
}

// mutation returns the mutation whose payload shows both, "" for a query.
func (w ways) mutation() string {
	if len(w.counter) > 0 && w.counter[0].of == "Mutation" {
		return w.counter[0].field
	}
	return ""
}

// aliases returns the aliases of the two paths.
func (w ways) aliases() (counter, number string) {
	if w.shared > 0 {
		return "a", "a"
	}
	return "a", "b"
}

// wayFinder draws ways at random.
type wayFinder struct {
	schema *ast.Schema
	known  memo[[2]string, []path] // by both ends
	own    memo[[2]string, []path] // by a mutation and the end
	taking memo[[2]string, []path] // by a step of coverage and the end
	passed memo[[3]string, bool]   // by both ends and what is between
}

// memo is what was found, of which there is much, by what it was found for.
type memo[K comparable, V any] struct {
	mu    sync.Mutex
	found map[K]V
}

// of returns what is known by a key, and finds it where nothing is.
func (m *memo[K, V]) of(key K, find func() V) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, ok := m.found[key]
	if !ok {
		if m.found == nil {
			m.found = map[K]V{}
		}
		value = find()
		m.found[key] = value
	}
	return value
}

// between returns the paths from a type to another one.
func (f *wayFinder) between(from, to string) []path {
	return f.known.of([2]string{from, to}, func() []path {
		all := pathsTo(f.schema, from, to)
		slices.SortStableFunc(all, func(a, b path) int { return len(a) - len(b) })
		return all
	})
}

// ofMutation returns the paths from a mutation to a type.
func (f *wayFinder) ofMutation(mutation, to string) []path {
	return f.own.of([2]string{mutation, to}, func() []path {
		return slices.DeleteFunc(slices.Clone(f.between("Mutation", to)), func(p path) bool { return p[0].field != mutation })
	})
}

// passes reports whether a path from a type to another one passes a third one.
func (f *wayFinder) passes(from, to, by string) bool {
	return f.passed.of([3]string{from, to, by}, func() bool {
		return slices.ContainsFunc(f.between(from, to), func(p path) bool { return slices.ContainsFunc(p, func(s step) bool { return s.on == by }) })
	})
}

// draw returns how an answer may show a counter and a number of a facet: the
// number on the way to the counter, or both by paths that part somewhere.
func (f *wayFinder) draw(chance *rand.Rand, of facet) ways {
	for {
		w, ok := ways{}, false
		switch chance.IntN(6) {
		case 0:
			w, ok = f.drawOwn(chance, of)
		case 1:
			w, ok = f.drawAfter(chance, of, steps(f.schema, "Mutation"))
		default:
			w, ok = f.drawBelow(chance, of, nil, "Query")
		}
		if ok {
			return w.besideAnother(chance)
		}
	}
}

// besideAnother returns the ways with another field before them, or without.
func (w ways) besideAnother(chance *rand.Rand) ways {
	if chance.IntN(6) == 0 {
		w.beside = `beside: __schema { queryType { name } }`
		if w.mutation() != "" {
			w.beside = `beside: updateResourceType(input: {name: "${type}", protected: true}) { resourceType { namespaces { nodes { revision tags { name } } }
				resources { nodes { revision metadata { value } provider { generation allocations { nodes { used consumer { generation } } } } } } } }`
		}
	}
	return w
}

// drawTaking draws as draw does, of those ways to the counter of a facet that take
// one of the steps of coverage; false where none may.
func (f *wayFinder) drawTaking(chance *rand.Rand, of facet, wanted string) (w ways, ok bool) {
	if mutation, isPayload := strings.CutPrefix(wanted, inPayload); isPayload {
		roots := slices.DeleteFunc(slices.Clone(steps(f.schema, "Mutation")), func(s step) bool { return s.field != mutation })
		w, ok = f.drawAfter(chance, of, roots)
	} else {
		w, ok = f.drawTo(chance, of, nil, "Query", f.taking.of([2]string{wanted, of.of}, func() []path {
			return slices.DeleteFunc(slices.Clone(f.between("Query", of.of)), func(p path) bool {
				return !slices.ContainsFunc(p, func(s step) bool { return counterStep(of, s) == wanted })
			})
		}))
	}
	return w.besideAnother(chance), ok
}

// drawOwn draws from the payloads of the mutations that write the number.
func (f *wayFinder) drawOwn(chance *rand.Rand, of facet) (ways, bool) {
	write := of.writes[chance.IntN(len(of.writes))].mutation
	all := f.ofMutation(write, of.of)
	begin := all[chance.IntN(len(all))][:1]
	w, ok := f.drawBelow(chance, of, begin, begin.end(""))
	return w, ok && len(w.number) > 1 && (isOwn(w.counter) || !isOwn(w.number))
}

// drawAfter draws from the payloads of mutations that write other things, on
// ways that go on to one of the same type before they go on to the facet's.
func (f *wayFinder) drawAfter(chance *rand.Rand, of facet, roots []step) (ways, bool) {
	root := roots[chance.IntN(len(roots))]
	if _, ok := touches[root.field]; !ok || of.writesBy(root.field) {
		return ways{}, false
	}
	below := steps(f.schema, root.on)
	begin := path{root, below[chance.IntN(len(below))]}
	around := f.between(begin.end(""), begin.end(""))
	short := min(chance.IntN(len(around)), chance.IntN(len(around)), chance.IntN(len(around)))
	begin = slices.Concat(begin, around[short])
	return f.drawBelow(chance, of, begin, begin.end(""))
}

// drawBelow draws paths that begin with some steps, or in a type.
func (f *wayFinder) drawBelow(chance *rand.Rand, of facet, begin path, from string) (ways, bool) {
	return f.drawTo(chance, of, begin, from, f.between(from, of.of))
}

// drawTo draws as drawBelow does, with one of some paths to the counter.
func (f *wayFinder) drawTo(chance *rand.Rand, of facet, begin path, from string, counters []path) (ways, bool) {
	if len(counters) == 0 {
		return ways{}, false
	}
	counter := counters[chance.IntN(len(counters))]
	w := ways{counter: slices.Concat(begin, counter), shown: of.shows[chance.IntN(len(of.shows))], numberFirst: chance.IntN(2) == 0}
	if w.shown.of == "Query" {
		return w, from == "Query"
	}
	w.shared = len(begin)
	above := slices.IndexFunc(counter, func(s step) bool { return s.on == w.shown.of }) + 1
	switch chance.IntN(3) {
	case 0:
		if above == 0 && f.passes(from, of.of, w.shown.of) {
			return ways{}, false
		}
		w.shared += above
	case 1:
		if n := len(counter); n > 0 {
			w.shared += n - min(chance.IntN(n), chance.IntN(n))
		}
	}
	rest := f.between(w.counter[:w.shared].end("Query"), w.shown.of)
	if len(rest) == 0 {
		return ways{}, false
	}
	at := min(chance.IntN(len(rest)), chance.IntN(len(rest)))
	if above > 0 && w.shared == len(begin)+above {
		at = 0
	}
	w.number = slices.Concat(w.counter[:w.shared], rest[at])
	return w, len(w.number) > 0
}

// coverage is which steps were taken by ways that reached a thing.
type coverage struct {
	mu      sync.Mutex
	reached map[string]bool
	tried   map[string]int // steps of ways that reached nothing, so far
}

// inPayload begins the steps of ways to a counter in the payload of a mutation.
const inPayload = "a counter in the payload of "

// counterStep returns the step of a way to the counters of a type.
func counterStep(of facet, s step) string { return "counter of " + of.of + ": " + s.String() }

// stepsOf returns what a way is to cover: every step on the way to the counters
// of a type, and the last one on the way to what shows numbers.
func stepsOf(of facet, w ways) (counter, number []string) {
	if mutation := w.mutation(); mutation != "" {
		if of.writesBy(mutation) {
			kind := fmt.Sprintf("%s in the payload of %s, own: counter %t, number %t", of.name, mutation, isOwn(w.counter), isOwn(w.number))
			return []string{kind}, []string{kind + " " + w.shown.of}
		}
		return []string{inPayload + mutation}, []string{w.shown.of + " in a payload"}
	}
	for _, s := range w.counter {
		counter = append(counter, counterStep(of, s))
	}
	if n := len(w.number); n > 0 {
		number = append(number, "number in "+w.shown.of+": "+w.number[n-1].String())
	}
	return counter, append(number, of.name+" in "+w.shown.of+" "+w.shown.leaves)
}

// mostTries is how many ways that take a step are tried in vain.
const mostTries = 3

// wants reports whether any of some steps was not reached.
func (c *coverage) wants(steps []string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(steps, func(step string) bool { return !c.reached[step] && c.tried[step] < mostTries })
}

// note notes the steps of a path that was tried.
func (c *coverage) note(steps []string, reached bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, step := range steps {
		if reached {
			c.reached[step] = true
		} else {
			c.tried[step]++
		}
	}
}

// noteBoth notes the steps of a way, which may have reached nothing by one of its
// paths alone.
func (c *coverage) noteBoth(counter, number []string, shows reached) {
	if shows.both || !shows.counter || shows.number {
		c.note(counter, shows.both)
	}
	if shows.both || !shows.number || shows.counter {
		c.note(number, shows.both)
	}
}

// has reports whether a step was reached.
func (c *coverage) has(step string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reached[step]
}

// missed returns the steps with one of some beginnings that no way reached a
// thing by, sorted.
func (c *coverage) missed(beginnings ...string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for step := range c.tried {
		if !c.reached[step] && slices.ContainsFunc(beginnings, func(b string) bool { return strings.HasPrefix(step, b) }) {
			out = append(out, step)
		}
	}
	slices.Sort(out)
	return out
}
