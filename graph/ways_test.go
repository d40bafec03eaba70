package graph_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"
)

// ways describe how one answer shows a counter and a number of the same thing:
// along two paths that may share their first steps.
type ways struct {
	counter, number path
	shared          int // the number of shared steps
	shown           shown
	numberFirst     bool   // in the document
	beside          string // another field, before both
}

// mutation returns the mutation with a payload that shows both, or "" for a
// query.
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
	known  memo[[2]string, []path] // by start and end
	own    memo[[2]string, []path] // by mutation and end
	taking memo[[2]string, []path] // by step of coverage and end
	passed memo[[3]string, bool]   // by start, end and the type between
}

// memo caches expensive results by key.
type memo[K comparable, V any] struct {
	mu    sync.Mutex
	found map[K]V
}

// of returns the cached value of a key, or computes it.
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
		return slices.DeleteFunc(slices.Clone(f.between("Mutation", to)), func(p path) bool {
			return p[0].field != mutation
		})
	})
}

// passes reports whether a path between two types passes a third one.
func (f *wayFinder) passes(from, to, by string) bool {
	return f.passed.of([3]string{from, to, by}, func() bool {
		return slices.ContainsFunc(f.between(from, to), func(p path) bool {
			return slices.ContainsFunc(p, func(s step) bool { return s.on == by })
		})
	})
}

// draw returns a random way to show a counter and a number of a facet: with the
// number on the path to the counter, or along two paths that part.
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

// besideAnother sometimes adds another field before the ways.
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

// drawTaking is draw for ways whose path to the counter takes a given step of
// coverage. Ok is false if there is none.
func (f *wayFinder) drawTaking(chance *rand.Rand, of facet, wanted string) (w ways, ok bool) {
	if mutation, isPayload := strings.CutPrefix(wanted, inPayload); isPayload {
		roots := slices.DeleteFunc(slices.Clone(steps(f.schema, "Mutation")), func(s step) bool {
			return s.field != mutation
		})
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

// drawOwn draws ways in the payloads of mutations that write the number.
func (f *wayFinder) drawOwn(chance *rand.Rand, of facet) (ways, bool) {
	write := of.writes[chance.IntN(len(of.writes))].mutation
	all := f.ofMutation(write, of.of)
	begin := all[chance.IntN(len(all))][:1]
	w, ok := f.drawBelow(chance, of, begin, begin.end(""))
	return w, ok && len(w.number) > 1 && (isOwn(w.counter) || !isOwn(w.number))
}

// drawAfter draws ways in the payloads of mutations that write other things.
// The ways first lead to a thing of the same type, and then to the facet's
// type.
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

// drawBelow draws ways with paths that begin with the given steps, or in a
// type.
func (f *wayFinder) drawBelow(chance *rand.Rand, of facet, begin path, from string) (ways, bool) {
	return f.drawTo(chance, of, begin, from, f.between(from, of.of))
}

// drawTo is drawBelow with a choice of paths to the counter.
func (f *wayFinder) drawTo(chance *rand.Rand, of facet, begin path, from string, counters []path) (ways, bool) {
	if len(counters) == 0 {
		return ways{}, false
	}
	counter := counters[chance.IntN(len(counters))]
	w := ways{counter: slices.Concat(begin, counter),
		shown: of.shows[chance.IntN(len(of.shows))], numberFirst: chance.IntN(2) == 0}
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

// coverage records the steps of ways that reached a thing.
type coverage struct {
	mu      sync.Mutex
	reached map[string]bool
	tried   map[string]int // number of failed ways per step
}

// inPayload begins the steps to a counter in the payload of a mutation.
const inPayload = "a counter in the payload of "

// counterStep returns the coverage step for a step to the counter of a type.
func counterStep(of facet, s step) string { return "counter of " + of.of + ": " + s.String() }

// stepsOf returns the steps that a way covers: every step to the counter of a
// type, and the last step to the type that shows numbers.
func stepsOf(of facet, w ways) (counter, number []string) {
	if mutation := w.mutation(); mutation != "" {
		if of.writesBy(mutation) {
			kind := fmt.Sprintf("%s in the payload of %s, own: counter %t, number %t", of.name,
				mutation, isOwn(w.counter), isOwn(w.number))
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

// mostTries is the maximum number of failed ways per step.
const mostTries = 3

// wants reports whether a step was not reached yet and is worth another try.
func (c *coverage) wants(steps []string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(steps, func(step string) bool { return !c.reached[step] && c.tried[step] < mostTries })
}

// note records the steps of a path that was tried.
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

// noteBoth records the steps of a way. If only one of the two paths reached
// nothing, it records a failure for that path alone.
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

// missed returns the steps with one of the given prefixes that no way has
// reached, sorted.
func (c *coverage) missed(beginnings ...string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for step := range c.tried {
		if !c.reached[step] &&
			slices.ContainsFunc(beginnings, func(b string) bool { return strings.HasPrefix(step, b) }) {
			out = append(out, step)
		}
	}
	slices.Sort(out)
	return out
}
