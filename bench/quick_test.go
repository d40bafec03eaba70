package main

import (
	"fmt"
	"os"
	"testing"
)

// The sizes of the two worlds that the test compares.
var (
	fewerOf = size{110, 110}
	moreOf  = size{440, 440}
)

// testShapesAndGrowth checks rules that hold on every machine, even a busy one.
// A request takes the same number of statements in a small and a large world,
// for a short and a long page, and on both databases. All servers give the same
// answers. Neither bytes nor allocations grow faster than the page.
func testShapesAndGrowth(t *testing.T, path string, databases []string) {
	b := newBench(t, options{binaries: []binary{{"tree", path}}, databases: databases})
	definitions, err := readDefinitions(os.Getenv("CADASTRE_TEST_DEFINITIONS"))
	if err != nil {
		t.Fatal(err)
	}
	b.large, b.small = newWorld(1, moreOf, definitions), newWorld(1, fewerOf, definitions)
	b.works = inBothWorlds(append(allWorks(t), pagedWorks(t)...))
	if err := b.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	counted := map[string][]*series{} // by name of work
	for _, work := range b.works {
		all, err := b.prepare(t.Context(), work)
		if err != nil {
			t.Fatalf("%s: %v", work.Name, err)
		}
		for _, s := range all {
			if s.refused != "" {
				t.Fatalf("%s, %s: %s", s.target, work.Name, s.refused)
			}
			if err := s.count(t.Context()); err != nil {
				t.Fatalf("%s, %s: %v", s.target, work.Name, err)
			}
		}
		counted[work.Name] = append(counted[work.Name], all...)
	}
	for name, of := range counted {
		for _, s := range of {
			if got, want := s.counted["statements"], of[0].counted["statements"]; got != want ||
				got != float64(int(got)) {
				t.Errorf("%s: %v statements of %s with %d providers, and %v of %s with %d", name,
					got, s.target, len(s.target.world.providers), want, of[0].target, len(of[0].target.world.providers))
			}
		}
	}
	for name := range pagedLists() {
		checkGrowth(t, name, counted)
	}
}

// inBothWorlds returns each work in either world, with few clients and without
// peers, for counting. It omits works on trees.
func inBothWorlds(all []work) []work {
	var both []work
	for _, one := range all {
		if one.World == nestedWorld {
			continue
		}
		one.Clients, one.Operations, one.Peer = min(one.Clients, 2), minCounted, nil
		if one.Undo != nil {
			one.Clients = 1 // several writers may share transactions, or try again
		}
		for _, one.World = range []string{"", smallWorld} {
			both = append(both, one)
		}
	}
	return both
}

// shortPage is the length of the shortest page; others have twice and four times
// as many rows.
const shortPage = 20

// pagedLists returns the lists that the test pages through, with several page
// lengths, by their paths in the answer.
func pagedLists() map[string]Question {
	return map[string]Question{
		"allocationCandidates.nodes": {Document: `query($first: Int!) { allocationCandidates(first: $first, resources: [{resourceClass: "VCPU", amount: 4}]) {
			nodes { allocations { provider { uuid } resources { resourceClass amount } } mappings { suffix providers { uuid } } }
			providerSummaries { provider { uuid parent { uuid } root { uuid } } inventories { resourceClass capacity used } traits } } }`},
		"resources.nodes": {Document: `query($first: Int!) { resources(first: $first) { nodes { uuid name type { name } projectId visibility metadata { key value userModifiable } } } }`},
		"resourceProviders.nodes": {Document: `query($first: Int!) { resourceProviders(first: $first) { nodes {
			uuid name traits aggregates inventories { resourceClass total used } allocations(first: 1) { nodes { used consumer { uuid } } } } } }`},
	}
}

func page(list string, times int) string { return fmt.Sprintf("%s, %d times the page", list, times) }

// pagedWorks returns a work for each page of each list.
func pagedWorks(t *testing.T) []work {
	t.Helper()
	var all []work
	for list, question := range pagedLists() {
		for _, times := range []int{1, 2, 4} {
			question.Variables = object{"first": times * shortPage}
			all = append(all, work{Name: page(list, times), List: list, As: admin, Clients: 1, Question: question})
		}
	}
	return all
}

// checkGrowth checks that a page of four times the length takes at most four
// times as much. Pages of every length include the fixed cost of a request. On a
// busy machine work of the server in the background adds to few requests, so a
// page that takes more is counted again.
func checkGrowth(t *testing.T, list string, counted map[string][]*series) {
	t.Helper()
	for i, short := range counted[page(list, 1)] {
		long := counted[page(list, 4)][i]
		if short.rows != shortPage || long.rows != 4*shortPage {
			t.Errorf("%s: pages of %d and %d rows, want %d and %d", list, short.rows, long.rows, shortPage, 4*shortPage)
		}
		grown := growth(short, long)
		for range 3 {
			if grown == "" {
				break
			}
			for _, one := range []*series{short, long} {
				if err := one.count(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			grown = growth(short, long)
		}
		if grown != "" {
			t.Errorf("%s, %s: %s", list, short.target, grown)
		}
	}
}

// growth lists the counters that grow faster than the page, or returns "".
func growth(short, long *series) (grown string) {
	short.counted["bytes"], long.counted["bytes"] = float64(len(short.answer)), float64(len(long.answer))
	for _, what := range []string{"bytes", "allocations", "allocatedBytes"} {
		const times, spare = 4, 1.1
		if long.counted[what] > times*spare*short.counted[what] {
			grown += fmt.Sprintf("%.0f %s for %d rows, and %.0f for %d; ",
				short.counted[what], what, short.rows, long.counted[what], long.rows)
		}
	}
	return grown
}
