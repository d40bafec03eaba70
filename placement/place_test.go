package placement_test

import (
	"slices"
	"testing"

	. "github.com/cadastre-dev/cadastre/placement"
)

// TestPlacingTakesTheFirstCandidates compares the choices for several consumers
// with the first candidate of the world after each claim, and with a ledger.
func TestPlacingTakesTheFirstCandidates(t *testing.T) {
	eachRandom(t, func(t *testing.T, d *dice, providers []Provider, r *Request) {
		w := NewWorld(diceNames, providers)
		r.Shapes, r.Seed = d.shapes(len(providers)), d.roll(9)
		for _, r.Order = range append(strategies, DepthFirst, BreadthFirst) {
			p := &Placing{Request: *r, Consumers: make([]NewConsumer, 1+d.roll(6)), Atomic: d.chance(2)}
			choices, err := p.Choose(w, d.roll(3), nil)
			if err != nil {
				t.Fatal(err)
			}
			at := slices.Clone(providers)
			for i, choice := range choices.Of {
				page, err := Candidates(NewWorld(diceNames, at), r, nil, 1)
				if err != nil {
					t.Fatal(err)
				}
				if (choice == nil) != (len(page.Candidates) == 0) {
					t.Fatalf("order %d, consumer %d: %v, want %v", r.Order, i, choice, page.Candidates)
				}
				if choice == nil {
					if p.Atomic && i != len(choices.Of)-1 {
						t.Errorf("an atomic placing went on")
					}
					continue
				}
				if inTurns := r.Order == Random && i > 0; !inTurns && render([]Candidate{*choice}) != render(page.Candidates) {
					t.Fatalf("order %d, consumer %d of %d\n%+v\n%+v\ngot %s\nwant %s", r.Order, i, len(p.Consumers), providers, r, render([]Candidate{*choice}), render(page.Candidates))
				}
				if !newOracle(at).fit(choice.Allocations) {
					t.Fatalf("order %d, consumer %d does not fit: %v", r.Order, i, choice)
				}
				at = using(at, choice)
			}
			for _, spare := range choices.Spares {
				if !newOracle(at).fit(spare.Allocations) {
					t.Errorf("order %d: a spare does not fit: %v", r.Order, spare)
				}
			}
		}
	})
}

// using returns providers after a candidate was claimed.
func using(providers []Provider, candidate *Candidate) []Provider {
	after := slices.Clone(providers)
	for i := range after {
		after[i].Inventories = slices.Clone(after[i].Inventories)
		for _, allocation := range candidate.Allocations {
			for _, amount := range allocation.Resources {
				for k := range after[i].Inventories {
					if allocation.Provider == after[i].UUID && after[i].Inventories[k].ResourceClass == amount.ResourceClass {
						after[i].Inventories[k].Used += amount.Amount
					}
				}
			}
		}
	}
	return after
}

// TestRandomPlacingTakesRootsInTurn places as many consumers as there are roots
// and finds one on each.
func TestRandomPlacingTakesRootsInTurn(t *testing.T) {
	t.Parallel()
	p := &Placing{Request: Request{Unsuffixed: threeClasses(1), Order: Random, Seed: 3}, Consumers: make([]NewConsumer, 20)}
	choices, err := p.Choose(NewWorld(cloudNames, flatCloud(10)), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	on := map[string]int{}
	for _, choice := range choices.Of {
		on[choice.Allocations[0].Provider]++
	}
	for uuid, n := range on {
		if n != 2 {
			t.Errorf("%d consumers on %s", n, uuid)
		}
	}
}
