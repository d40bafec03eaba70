package placement_test

import (
	"maps"
	"slices"
	"testing"

	. "github.com/cadastre-dev/cadastre/placement"
)

// TestPlacingTakesTheFirstCandidates compares the choices for several consumers
// with the first candidate of the world after each claim, and with a ledger.
func TestPlacingTakesTheFirstCandidates(t *testing.T) {
	eachRandom(t, func(t *testing.T, d *dice, providers []Provider, r *Request) {
		w := NewWorld(diceNames, providers)
		r.Shapes, r.Seed, r.Preferences = d.shapes(len(providers)), d.roll(9), d.preferences(len(providers))
		if d.chance(2) {
			d.alternatives(r, len(providers))
		}
		for _, r.Order = range orders {
			p := &Placing{Request: *r, Consumers: make([]NewConsumer, 1+d.roll(6)), Atomic: d.chance(2)}
			choices, err := p.Choose(w, d.roll(3), nil)
			if err != nil {
				t.Fatal(err)
			}
			at := compareChoices(t, p, providers, &choices)
			for _, spare := range choices.Spares {
				if !newOracle(at).fit(spare.Allocations) {
					t.Errorf("order %d: a spare does not fit: %v", r.Order, spare)
				}
			}
		}
	})
}

// compareChoices compares choices with the first candidate of the world after
// each claim. It returns the providers after all claims.
func compareChoices(t *testing.T, p *Placing, at []Provider, choices *Choices) []Provider {
	t.Helper()
	r := &p.Request
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
		first, o := page.Candidates[0], newOracle(at)
		if inTurns := r.Order == Random && i > 0; !inTurns && chosen([]Candidate{*choice}) != chosen(page.Candidates) {
			t.Fatalf("order %d, consumer %d of %d\n%+v\n%+v\ngot %s\nwant %s", r.Order, i, len(p.Consumers), at, r,
				chosen([]Candidate{*choice}), chosen(page.Candidates))
		}
		if o.score(r, choice.Root) != o.score(r, first.Root) || !slices.Equal(choice.Alternatives, first.Alternatives) {
			t.Fatalf("order %d, consumer %d: %v, want %v", r.Order, i, choice, first)
		}
		if !o.fit(choice.Allocations) {
			t.Fatalf("order %d, consumer %d does not fit: %v", r.Order, i, choice)
		}
		at = using(at, choice)
	}
	return at
}

// using returns providers after a candidate was claimed.
func using(providers []Provider, candidate *Candidate) []Provider {
	after := slices.Clone(providers)
	for i := range after {
		after[i].Inventories = slices.Clone(after[i].Inventories)
		for _, allocation := range candidate.Allocations {
			for _, amount := range allocation.Resources {
				for k := range after[i].Inventories {
					if allocation.Provider == after[i].UUID &&
						after[i].Inventories[k].ResourceClass == amount.ResourceClass {
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
	p := &Placing{Request: Request{Unsuffixed: threeClasses(1), Order: Random, Seed: 3},
		Consumers: make([]NewConsumer, 20)}
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

// TestRankingsChangeNothing places for three requests by turns while use and
// more than use changes, claims fail, and choices are made from worlds with
// claims that are never made. Each choice is the one without rankings.
func TestRankingsChangeNothing(t *testing.T) {
	eachRandom(t, func(t *testing.T, d *dice, providers []Provider, r *Request) {
		state, requests := map[string]Provider{}, []*Request{r, d.request(len(providers)), {Unsuffixed: Group{
			Resources: []Amount{{ResourceClass: "VCPU", Amount: 1}}}}}
		for _, p := range providers {
			state[p.UUID] = p
		}
		for _, of := range requests {
			if d.chance(3) {
				d.alternatives(of, len(providers))
			}
			of.Shapes, of.Preferences = d.shapes(len(providers)), d.preferences(len(providers))
		}
		w, kept := NewWorld(diceNames, providers), new(Rankings)
		for step := range 16 {
			p := &Placing{Request: *requests[d.roll(3)], Consumers: make([]NewConsumer, 1+d.roll(3))}
			d.relink(p.Request.Preferences)
			p.Request.Order, p.Request.Seed = orders[d.roll(len(orders))], d.roll(3)
			if d.chance(2) {
				p.Policy = d.policy(len(providers))
			}
			spares := d.roll(3)
			got, err := p.Choose(w, spares, kept)
			if err != nil {
				t.Fatal(err)
			}
			want, err := p.Choose(w, spares, nil)
			if err != nil {
				t.Fatal(err)
			}
			if renderChoices(got) != renderChoices(want) {
				t.Fatalf("step %d, order %d\n%+v\ngot %s\nwant %s", step, p.Request.Order, p.Request,
					renderChoices(got), renderChoices(want))
			}
			switch d.roll(4) {
			case 0: // the claims fail
			case 1: // the next choice is made before the claims
				w = got.After
			case 2:
				w = w.With(d.claimOrRelease(state, got.Of[0]))
			default:
				var update Update
				d.update(&update, state, step)
				w = w.With(update)
			}
		}
	})
}

// A kept ranking has a heap of the first roots of each seed, and more when it is
// empty. The worlds of TestRankingsChangeNothing are too small for that.
func TestRandomPlacingFillsACloudWithARanking(t *testing.T) {
	t.Parallel()
	w, kept := NewWorld(cloudNames, flatCloud(300)), new(Rankings)
	for seed, isFull := 1, false; !isFull; seed++ {
		p := &Placing{Request: Request{Unsuffixed: threeClasses(16), Order: Random, Seed: seed},
			Consumers: make([]NewConsumer, 1+seed%3)}
		spares := seed % 4 * 10
		got, err := p.Choose(w, spares, kept)
		if err != nil {
			t.Fatal(err)
		}
		want, err := p.Choose(w, spares, nil)
		if err != nil {
			t.Fatal(err)
		}
		if renderChoices(got) != renderChoices(want) {
			t.Fatalf("seed %d\ngot %s\nwant %s", seed, renderChoices(got), renderChoices(want))
		}
		w, isFull = want.After, slices.Contains(want.Of, nil)
	}
}

func renderChoices(choices Choices) string {
	var all []Candidate
	for _, choice := range choices.Of {
		if choice == nil {
			choice = new(Candidate)
		}
		all = append(all, *choice)
	}
	return render(all) + "spares\n" + render(choices.Spares) + "following\n" + render(choices.Following)
}

// claimOrRelease returns the update that claims a candidate, or that releases
// units of a provider.
func (d *dice) claimOrRelease(state map[string]Provider, candidate *Candidate) Update {
	var update Update
	for _, uuid := range slices.Sorted(maps.Keys(state)) {
		p := state[uuid]
		changed := []Provider{p}
		if candidate != nil && d.chance(2) {
			changed = using(changed, candidate)
		} else if len(p.Inventories) > 0 {
			changed[0].Inventories = slices.Clone(p.Inventories)
			changed[0].Inventories[0].Used = max(0, p.Inventories[0].Used-int64(d.roll(3)))
		}
		changed[0].Version++
		state[uuid] = changed[0]
		update.Providers = append(update.Providers, changed[0])
	}
	return update
}

// BenchmarkPlacing places one consumer after the other in 100,000 hosts.
func BenchmarkPlacing(b *testing.B) {
	flat := NewWorld(cloudNames, flatCloud(100_000))
	for name, order := range map[string]CandidateOrder{"spread": Spread, "pack": Pack,
		"random": Random, "least": LeastFragmenting} {
		b.Run(name, func(b *testing.B) {
			w, kept := flat, new(Rankings)
			p := &Placing{Request: Request{Unsuffixed: threeClasses(1), Order: order},
				Consumers: make([]NewConsumer, 1)}
			for i := range b.N + 1 {
				if i == 1 {
					b.ResetTimer()
				}
				p.Request.Seed = i
				choices, err := p.Choose(w, 2, kept)
				if err != nil {
					b.Fatal(err)
				}
				w = choices.After
			}
		})
	}
}
