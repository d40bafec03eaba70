package placement_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	. "github.com/cadastre-dev/cadastre/placement"
)

// prefers reports whether a preference holds for a root, by its definition.
func (o *oracle) prefers(p Preference, root string) bool {
	if p.Hosts != nil {
		return slices.Contains(p.Hosts.Resources, o.providers[root].ResourceRow)
	}
	for uuid := range o.providers {
		if o.root(uuid) == root && (p.Trait != "" && o.hasTrait(uuid, p.Trait) ||
			p.Aggregate != "" && o.inAnyOf(uuid, []string{p.Aggregate})) {
			return true
		}
	}
	return false
}

func (o *oracle) score(r *Request, root string) (sum int) {
	for _, p := range r.Preferences {
		if o.prefers(p, root) {
			sum += p.Weight
		}
	}
	return sum
}

// ordered returns the candidates in the order of a request: of its strategy,
// then by the preferences.
func (o *oracle) ordered(r *Request) (all []Candidate) {
	switch r.Order {
	case DepthFirst:
		all = o.candidates(r)
	case BreadthFirst:
		all = o.breadthFirst(r)
	default:
		all = o.byStrategy(r)
	}
	slices.SortStableFunc(all, func(a, b Candidate) int { return cmp.Compare(o.score(r, b.Root), o.score(r, a.Root)) })
	return all
}

// orders are all orders of candidates.
var orders = append([]CandidateOrder{DepthFirst, BreadthFirst}, strategies...)

// preferences returns up to three preferences.
func (d *dice) preferences(providers int) []Preference {
	var some []Preference
	for range d.roll(4) {
		p := Preference{Weight: d.roll(5)*50 - 100}
		switch d.roll(3) {
		case 0:
			p.Trait = diceTraits[d.roll(3)]
		case 1:
			p.Aggregate = aggregateOf(d.roll(4))
		default:
			p.Hosts = &Hosts{Filter: fmt.Sprint(d.roll(2))}
			for n := range providers {
				if d.chance(2) {
					p.Hosts.Resources = append(p.Hosts.Resources, linkOf(n))
				}
			}
		}
		some = append(some, p)
	}
	return some
}

func TestPreferencesOrderHosts(t *testing.T) {
	eachRandom(t, func(t *testing.T, d *dice, providers []Provider, r *Request) {
		w, o := NewWorld(diceNames, providers), newOracle(providers)
		r.Preferences, r.Seed, r.Shapes = d.preferences(len(providers)), d.roll(4), d.shapes(len(providers))
		scoring := w.Scoring(r.Preferences)
		for _, r.Order = range orders {
			want := o.ordered(r)
			for _, size := range []int{1 + d.roll(5) + len(want)/50, len(want) + 1} {
				got := everyPage(t, w, r, size)
				if render(got) != render(want) {
					t.Fatalf("order %d, pages of %d\nproviders %+v\nrequest %+v\nsolver:\n%s\noracle:\n%s", r.Order,
						size, providers, r, render(got), render(want))
				}
				for i := range got {
					checkTerms(t, o, r, scoring, got[i].Root, want[i].Root)
				}
			}
			if n, exact, err := Count(w, r, 1<<30); n != len(want) || !exact || err != nil {
				t.Fatalf("Count says %d, %v, %v; there are %d", n, exact, err, len(want))
			}
		}
	})
}

func checkTerms(t *testing.T, o *oracle, r *Request, scoring *Scoring, root, want string) {
	t.Helper()
	if root != want {
		t.Fatalf("root %s, want %s", root, want)
	}
	holds := scoring.Holds(root)
	for i, p := range r.Preferences {
		if holds[i] != o.prefers(p, root) {
			t.Fatalf("preference %d of %s: %v", i, root, holds[i])
		}
	}
}

// TestWeightsOfZeroChangeNothing compares pages and their positions.
func TestWeightsOfZeroChangeNothing(t *testing.T) {
	eachRandom(t, func(t *testing.T, d *dice, providers []Provider, r *Request) {
		w, zeros := NewWorld(diceNames, providers), *r
		zeros.Preferences = d.preferences(len(providers))
		for i := range zeros.Preferences {
			zeros.Preferences[i].Weight = 0
		}
		for _, r.Order = range orders {
			zeros.Order = r.Order
			want, err := Candidates(w, r, nil, 5)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Candidates(w, &zeros, nil, 5)
			if err != nil || render(got.Candidates) != render(want.Candidates) ||
				fmt.Sprint(got.Positions) != fmt.Sprint(want.Positions) {
				t.Fatalf("order %d: %v\n%v\n%v", r.Order, err, got, want)
			}
		}
	})
}

func TestPreferencesAreChecked(t *testing.T) {
	t.Parallel()
	w := NewWorld(cloudNames, flatCloud(1))
	r := &Request{Unsuffixed: threeClasses(1), Preferences: []Preference{
		{Weight: 1}, {Trait: "CUSTOM_NONE", Weight: 101},
		{Aggregate: "x", Hosts: &Hosts{}, Weight: -101}, {Aggregate: aggregateOf(1)}}}
	var paths []string
	for _, p := range Validate(w, r) {
		paths = append(paths, p.Path)
	}
	want := []string{"preferences[0]", "preferences[1].trait", "preferences[1].weight", "preferences[2].aggregate",
		"preferences[2]", "preferences[2].weight"}
	if !slices.Equal(paths, want) {
		t.Errorf("%q", paths)
	}
	r.Preferences = make([]Preference, MaxPreferences+1)
	if got := Validate(w, r); got[0].Path != "preferences" {
		t.Errorf("%+v", got[0])
	}
	a, b := *r, *r
	a.Preferences, b.Preferences = []Preference{{Aggregate: aggregateOf(1), Weight: 1}},
		[]Preference{{Aggregate: aggregateOf(1), Weight: 2}}
	page, err := Candidates(w, &a, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Candidates(w, &b, &page.Positions[0], 1); err != ErrPositionMismatch {
		t.Errorf("the position of other weights: %v", err)
	}
}

// relink changes the resources that match filters, now and then.
func (d *dice) relink(preferences []Preference) {
	for i, p := range preferences {
		if p.Hosts != nil && d.chance(2) {
			preferences[i].Hosts = &Hosts{Filter: p.Hosts.Filter, Resources: []int64{linkOf(d.roll(5))}}
		}
	}
}
