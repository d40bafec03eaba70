package main

import (
	"fmt"
	"os"
	"testing"
)

// The sizes of the two worlds that answers are compared between, and of the
// pages that they are compared for.
var (
	fewerOf = size{110, 110}
	moreOf  = size{440, 440}
)

// testShapesAndGrowth checks what holds on every machine however busy: a request
// takes the same number of statements in a small world as in a large one, on a
// short page as on a long one and on both databases; servers answer alike; and
// neither bytes nor allocations grow faster than the page.
func testShapesAndGrowth(t *testing.T, path string, databases []string) {
	b := newBench(t, options{binaries: []binary{{"tree", path}}, databases: databases})
	definitions, err := readDefinitions(os.Getenv("CADASTRE_TEST_DEFINITIONS"))
	if err != nil {
		t.Fatal(err)
	}
	b.large, b.small = newWorld(1, moreOf, definitions), newWorld(1, fewerOf, definitions)
	b.works = inBothWorlds(append(works(), pagedWorks()...))
	if err := b.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	counted := map[string][]*series{} // by name of work
	for _, work := range b.works {
		all, err := b.prepare(t.Context(), work)
		if err != nil {
			t.Fatalf("%s: %v", work.name, err)
		}
		for _, s := range all {
			if err := s.count(t.Context()); err != nil {
				t.Fatalf("%s, %s: %v", s.target, work.name, err)
			}
		}
		counted[work.name] = append(counted[work.name], all...)
	}
	for name, of := range counted {
		for _, s := range of {
			if got, want := *s.counted.statements, *of[0].counted.statements; got != want || got != float64(int(got)) {
				t.Errorf("%s: %v statements of %s with %d providers, and %v of %s with %d", name,
					got, s.target, len(s.target.world.providers), want, of[0].target, len(of[0].target.world.providers))
			}
		}
	}
	for _, list := range pagedLists() {
		checkGrowth(t, list, counted)
	}
}

// inBothWorlds returns the works as they are counted: each for either world, by
// few clients and without peers. Those in trees are about neither.
func inBothWorlds(all []work) []work {
	var both []work
	for _, one := range all {
		if one.in == nestedWorld {
			continue
		}
		one.clients, one.operations, one.compared = min(one.clients, 2), leastCounted, nil
		if one.undo != nil {
			one.clients = 1 // what several write at once, they may share or try again
		}
		one.in = ""
		both = append(both, one)
		one.in = smallWorld
		both = append(both, one)
	}
	return both
}

// pagedList is a list that is asked for in pages of several lengths.
type pagedList struct {
	name    string
	first   int // length of the shortest page; the others have twice and four times as many
	list    []string
	request func(first int) request
}

func pagedLists() []pagedList {
	return []pagedList{
		{"candidates", 20, candidatesList(), func(first int) request { return candidates(first, fullCandidates)(nil, 0) }},
		{"resources", 25, resourcesList(), func(first int) request {
			return request{Query: resources, Variables: object{"first": first, "filter": object{"types": []string{resourceType}}}}
		}},
		{"providers", 20, []string{"resourceProviders", "nodes"}, func(first int) request {
			const query = `query($first: Int!) { resourceProviders(first: $first) { nodes {
				uuid name traits aggregates inventories { resourceClass total used } allocations(first: 1) { nodes { used consumer { uuid } } }
			} } }`
			return request{Query: query, Variables: object{"first": first}}
		}},
	}
}

func (l pagedList) page(times int) string { return fmt.Sprintf("%s, %d times the page", l.name, times) }

// pagedWorks returns a work for each page of each list.
func pagedWorks() []work {
	var all []work
	for _, list := range pagedLists() {
		for _, times := range []int{1, 2, 4} {
			asked := list.request(times * list.first)
			all = append(all, work{name: list.page(times), list: list.list, request: func(*world, int) request { return asked }})
		}
	}
	return all
}

// checkGrowth checks that four times the page takes four times as much at most:
// what every request takes is in all of them.
func checkGrowth(t *testing.T, list pagedList, counted map[string][]*series) {
	t.Helper()
	const times, spare = 4, 1.1
	for i, short := range counted[list.page(1)] {
		long := counted[list.page(times)][i]
		if short.rows != list.first || long.rows != times*list.first {
			t.Errorf("%s: pages of %d and %d rows, want %d and %d", list.name, short.rows, long.rows, list.first, times*list.first)
		}
		for _, grown := range []struct {
			what        string
			short, long float64
		}{
			{"bytes", float64(len(short.answer)), float64(len(long.answer))},
			{"allocations", *short.counted.allocations, *long.counted.allocations},
			{"allocated bytes", *short.counted.bytes, *long.counted.bytes},
		} {
			if grown.long > times*spare*grown.short {
				t.Errorf("%s, %s: %.0f %s for %d rows, and %.0f for %d", list.name, short.target, grown.short, grown.what, short.rows, grown.long, long.rows)
			}
		}
	}
}
