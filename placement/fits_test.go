package placement_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	. "github.com/cadastre-dev/cadastre/placement"
)

// mostThatFit returns the largest number of candidates, with repetitions, that
// fit on providers together. It tries all combinations, and reports false if
// these are too many.
func mostThatFit(providers []Provider, candidates []Candidate) (most int64, ok bool) {
	free := map[string]int64{}
	for _, p := range providers {
		for _, inventory := range p.Inventories {
			free[p.UUID+inventory.ResourceClass] = inventory.Free()
		}
	}
	distinct := map[string]bool{}
	candidates = slices.DeleteFunc(slices.Clone(candidates), func(c Candidate) bool {
		key := fmt.Sprint(c.Allocations)
		defer func() { distinct[key] = true }()
		return distinct[key]
	})
	steps := 0
	var try func(from int, placed int64)
	try = func(from int, placed int64) {
		most = max(most, placed)
		if steps++; steps > 30_000 {
			return
		}
		for i := from; i < len(candidates); i++ {
			if take(free, &candidates[i], 1) {
				try(i, placed+1)
			}
			take(free, &candidates[i], -1)
		}
	}
	try(0, 0)
	return most, steps <= 30_000
}

// take takes a candidate out of free units, and reports whether it fits.
func take(free map[string]int64, c *Candidate, times int64) bool {
	fits := true
	for _, allocation := range c.Allocations {
		for _, amount := range allocation.Resources {
			key := allocation.Provider + amount.ResourceClass
			free[key] -= times * amount.Amount
			fits = fits && free[key] >= 0
		}
	}
	return fits
}

// placedUntilRefused places consumers until one finds no candidate.
func placedUntilRefused(t *testing.T, w *World, r *Request) (placed int64) {
	t.Helper()
	p := &Placing{Request: *r, Consumers: make([]NewConsumer, 1000)}
	choices, err := p.Choose(w, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, choice := range choices.Of {
		if choice != nil {
			placed++
		}
	}
	return placed
}

// isIndependent reports whether the definition of Fits promises an exact
// number: no provider shares, the slots need different classes, and nothing
// else binds them to each other.
func isIndependent(providers []Provider, r *Request) bool {
	if slices.ContainsFunc(providers, func(p Provider) bool { return slices.Contains(p.Traits, TraitShares) }) {
		return false
	}
	if len(clauses(&r.Unsuffixed)) > 0 || len(r.SameSubtree) > 0 ||
		r.Policy == GroupPolicyIsolate && len(r.Groups) > 1 {
		return false
	}
	seen := map[string]bool{}
	for _, g := range append(slices.Clone(r.Groups), r.Unsuffixed) {
		for _, amount := range g.Resources {
			if seen[amount.ResourceClass] {
				return false
			}
			seen[amount.ResourceClass] = true
		}
	}
	return len(seen) > 0
}

// TestLoneTreesNeedNoSearch compares Fits with a search of all trees, in random
// worlds and in worlds of hosts without children. Only the bound of a tree may
// be lower after sharing providers were claimed.
func TestLoneTreesNeedNoSearch(t *testing.T) {
	compare := func(t *testing.T, w *World, r *Request) {
		t.Helper()
		fit, searched := Fits(w, r), FitsBySearch(w, r)
		if fit.AtMost < searched.AtMost && fit.AtLeast == searched.AtLeast {
			for p := range w.Providers() {
				if slices.Contains(p.Traits, TraitShares) {
					return
				}
			}
		}
		if !reflect.DeepEqual(fit, searched) {
			t.Fatalf("%+v, by search %+v\nproviders %+v\nrequest %+v", fit, searched, slices.Collect(w.Providers()), r)
		}
	}
	random, classes := rand.New(rand.NewPCG(1, 1)), []string{"VCPU", "MEMORY_MB"}
	demanded := func() (of Group) {
		for _, class := range classes[random.IntN(2) : 1+random.IntN(2)] {
			of.Resources = append(of.Resources, Amount{class, 1 + random.Int64N(3)})
		}
		return of
	}
	for range 5_000 {
		hosts := make([]Provider, 1+random.IntN(3))
		for i := range hosts {
			hosts[i] = Provider{UUID: numbered(i), Name: numbered(i), Version: 1}
			for _, class := range classes[random.IntN(2)*random.IntN(2):] {
				inventory := stocked(class, 1+random.Int32N(20), 0)
				inventory.MaxUnit = 1 + random.Int32N(9)
				hosts[i].Inventories = append(hosts[i].Inventories, inventory)
			}
		}
		r := &Request{Unsuffixed: demanded(),
			Policy: []GroupPolicy{GroupPolicyNone, GroupPolicyIsolate}[random.IntN(2)]}
		for i := range random.IntN(3) {
			if of := demanded(); len(of.Resources) > 0 {
				of.Suffix = fmt.Sprint("_", i)
				r.Groups = append(r.Groups, of)
			}
		}
		if w := NewWorld(diceNames, hosts); len(Validate(w, r)) == 0 {
			compare(t, w, r)
			inventories := slices.Clone(hosts[0].Inventories)
			inventories[0].Used = 1
			hosts[0].Inventories = inventories
			compare(t, w.With(Update{Providers: hosts[:1]}), r)
		}
	}
	eachRandom(t, func(t *testing.T, _ *dice, providers []Provider, r *Request) {
		if w := NewWorld(diceNames, providers); len(Validate(w, r)) == 0 {
			compare(t, w, r)
		}
	})
}

// TestFitsLiesBetweenItsBounds compares the numbers with a placing until no
// consumer fits, and with the largest number that any choice places.
func TestFitsLiesBetweenItsBounds(t *testing.T) {
	exact, all := 0, 0
	eachRandom(t, func(t *testing.T, _ *dice, providers []Provider, r *Request) {
		if len(Validate(NewWorld(diceNames, providers), r)) > 0 {
			return
		}
		w := NewWorld(diceNames, providers)
		fit := Fits(w, r)
		describe := func() string { return fmt.Sprintf("%+v\nproviders %+v\nrequest %+v", fit, providers, r) }
		if placed := placedUntilRefused(t, w, r); placed != fit.AtLeast {
			t.Fatalf("%d are placed: %s", placed, describe())
		}
		isExact := fit.Exact() != nil
		if isIndependent(providers, r) && !isExact {
			t.Fatalf("the number is not exact: %s", describe())
		}
		most, ok := mostThatFit(providers, newOracle(providers).candidates(r))
		if !ok {
			return
		}
		if most < fit.AtLeast || fit.AtMost < most || isExact && *fit.Exact() != most {
			t.Fatalf("%d fit: %s", most, describe())
		}
		if all++; isExact {
			exact++
		}
	})
	t.Logf("%d of %d are exact", exact, all)
}

// grown returns providers with more units of some classes in their inventories,
// and with a trait.
func grown(providers []Provider, classes map[string]bool, trait string) []Provider {
	after := slices.Clone(providers)
	for i := range after {
		p := &after[i]
		p.Inventories = slices.Clone(p.Inventories)
		for k := range p.Inventories {
			if of := &p.Inventories[k]; classes[of.ResourceClass] {
				of.Total, of.MaxUnit = of.Total+40, of.MaxUnit+40
				of.Capacity = Capacity(of.Total, of.Reserved, of.AllocationRatio)
			}
		}
		if trait != "" && !slices.Contains(p.Traits, trait) {
			p.Traits = append(slices.Clone(p.Traits), trait)
		}
	}
	return after
}

// TestARootAndItsProviderLackOneTrait needs one trait on a root and on the
// provider of its tree that would serve.
func TestARootAndItsProviderLackOneTrait(t *testing.T) {
	t.Parallel()
	vcpu := []Inventory{{ResourceClass: "VCPU", Total: 4, MinUnit: 1, MaxUnit: 4,
		StepSize: 1, AllocationRatio: 1, Capacity: 4}}
	w := NewWorld(diceNames, []Provider{{UUID: uuidOf(0), Name: "root"},
		{UUID: uuidOf(1), Name: "child", Parent: uuidOf(0), Inventories: vcpu}})
	r := &Request{RootRequired: []string{"CUSTOM_A"},
		Groups: []Group{{Suffix: "_1", RequiredAny: []string{"CUSTOM_A", "CUSTOM_B"},
			Resources: []Amount{{ResourceClass: "VCPU", Amount: 1}}}}}
	want := []FitLimit{{ConstraintRequiredTrait, "CUSTOM_A", 1}}
	if fit := Fits(w, r); !slices.Equal(fit.LimitedBy, want) {
		t.Errorf("%+v, want %+v", fit.LimitedBy, want)
	}
}

// TestOneGroupLacksUnitsAndOneTwoTraits needs units for one group, and two traits
// on the provider of another one.
func TestOneGroupLacksUnitsAndOneTwoTraits(t *testing.T) {
	t.Parallel()
	w := NewWorld(diceNames, []Provider{{UUID: uuidOf(0), Name: "root", Inventories: []Inventory{
		{ResourceClass: "MEMORY_MB", Total: 4, MinUnit: 1, MaxUnit: 9, StepSize: 1, AllocationRatio: 1, Capacity: 4},
		{ResourceClass: "VCPU", Total: 4, MinUnit: 1, MaxUnit: 9, StepSize: 1, AllocationRatio: 1, Capacity: 4}}}})
	r := &Request{Groups: []Group{
		{Suffix: "_1", Resources: []Amount{{ResourceClass: "VCPU", Amount: 5}}},
		{Suffix: "_2", Resources: []Amount{{ResourceClass: "MEMORY_MB", Amount: 1}},
			RequiredAll: []string{"CUSTOM_A", "CUSTOM_B"}}}}
	want := []FitLimit{{ConstraintRequiredTrait, "CUSTOM_A", 1}, {ConstraintRequiredTrait, "CUSTOM_B", 1},
		{ConstraintResourceAmount, "VCPU", 1}}
	if fit := Fits(w, r); !slices.Equal(fit.LimitedBy, want) {
		t.Errorf("%+v, want %+v", fit.LimitedBy, want)
	}
}

// mostWithEverything returns the largest number that fits if all providers have
// more units, the aggregates of the request and any of the traits.
func mostWithEverything(providers []Provider, r *Request) (most int64) {
	var aggregates []string
	for _, g := range append(slices.Clone(r.Groups), r.Unsuffixed) {
		for _, filter := range g.MemberOf {
			aggregates = append(aggregates, filter.AnyOf...)
		}
	}
	units := map[string]bool{"VCPU": true, "MEMORY_MB": true, "DISK_GB": true}
	return mostWith(providers, units, diceTraits, aggregates, r)
}

// mostWith returns the largest number that fits if all providers have more units
// of some classes, aggregates and any of some traits.
func mostWith(providers []Provider, units map[string]bool, traits, aggregates []string, r *Request) (most int64) {
	for chosen := range 1 << len(traits) {
		all := grown(providers, units, "")
		for i, trait := range traits {
			if chosen>>i&1 == 1 {
				all = grown(all, nil, trait)
			}
		}
		for i := range all {
			all[i].Aggregates = append(slices.Clone(all[i].Aggregates), aggregates...)
		}
		most = max(most, Fits(NewWorld(diceNames, all), r).AtMost)
	}
	return most
}

// share reports whether a provider shares. Then further aggregates help, too.
func share(providers []Provider) bool {
	return slices.ContainsFunc(providers, func(p Provider) bool { return slices.Contains(p.Traits, TraitShares) })
}

// namesOf returns the classes of limits, and their traits and aggregates in one
// string.
func namesOf(t *testing.T, limits []FitLimit, providers int) (classes map[string]bool, others string) {
	t.Helper()
	classes = map[string]bool{}
	for _, limit := range limits {
		switch {
		case limit.Providers < 1 || limit.Providers > providers:
			t.Fatalf("limit %+v", limit)
		case limit.Kind == ConstraintResourceAmount:
			classes[limit.Name] = true
		default:
			others += limit.Name + " "
		}
	}
	return classes, others
}

// TestOnlyLimitsRaiseWhatFits gives all providers more of what limitedBy does
// not name. If it names classes alone, more of these raises an exact number.
func TestOnlyLimitsRaiseWhatFits(t *testing.T) {
	raised := 0
	eachRandom(t, func(t *testing.T, _ *dice, providers []Provider, r *Request) {
		w := NewWorld(diceNames, providers)
		if len(Validate(w, r)) > 0 {
			return
		}
		fit := Fits(w, r)
		named, traits := namesOf(t, fit.LimitedBy, len(providers))
		others := map[string]bool{}
		for _, class := range diceClasses {
			others[class] = !named[class]
		}
		check := func(classes map[string]bool, trait string) {
			after := Fits(NewWorld(diceNames, grown(providers, classes, trait)), r)
			if after.AtMost > fit.AtMost {
				t.Fatalf("more of %v %s: %d\n%+v\nproviders %+v\nrequest %+v", classes,
					trait, after.AtMost, fit, providers, r)
			}
		}
		check(others, "")
		for _, trait := range diceTraits {
			if !strings.Contains(traits, trait) {
				check(nil, trait)
			}
		}
		if len(fit.LimitedBy) == 0 && !share(providers) { // then only further providers help
			most := mostWithEverything(providers, r)
			if most > fit.AtMost {
				t.Fatalf("more of everything: %d\n%+v\nproviders %+v\nrequest %+v", most, fit, providers, r)
			}
		}
		if fit.Exact() == nil || fit.AtMost == 0 || traits != "" || len(named) == 0 {
			return
		}
		if after := Fits(NewWorld(diceNames, grown(providers, named, "")), r); after.AtMost <= fit.AtMost {
			t.Fatalf("more of the limits does not raise: %+v\n%+v\nproviders %+v\nrequest %+v", after, fit, providers,
				r)
		}
		raised++
	})
	t.Logf("%d raised", raised)
}

// TestAllLimitsTogetherRaiseWhatFits gives all providers the limits of requests of
// which nothing fits. If anything helps, they do. The groups need different
// classes and may share providers, no provider shares with other trees, and a
// trait belongs to one group.
func TestAllLimitsTogetherRaiseWhatFits(t *testing.T) {
	raised := 0
	eachRandom(t, func(t *testing.T, _ *dice, providers []Provider, r *Request) {
		r.Policy, r.SameSubtree = GroupPolicyNone, nil
		r.Unsuffixed.RequiredAll, r.Unsuffixed.RequiredAny, r.Unsuffixed.RequiredAnySets = nil, nil, nil
		var classes []string
		for _, g := range append(slices.Clone(r.Groups), r.Unsuffixed) {
			for _, amount := range g.Resources {
				classes = append(classes, amount.ResourceClass)
			}
		}
		w := NewWorld(diceNames, providers)
		if slices.Sort(classes); len(slices.Compact(slices.Clone(classes))) < len(classes) || len(Validate(w, r)) > 0 {
			return
		}
		fit := Fits(w, r)
		if fit.AtMost > 0 || share(providers) || mostWithEverything(providers, r) == 0 {
			return
		}
		units, traits, aggregates := map[string]bool{}, []string{}, []string{}
		for _, limit := range fit.LimitedBy {
			switch limit.Kind {
			case ConstraintResourceAmount:
				units[limit.Name] = true
			case ConstraintRequiredTrait:
				traits = append(traits, limit.Name)
			default:
				aggregates = append(aggregates, limit.Name)
			}
		}
		if mostWith(providers, units, traits, aggregates, r) == 0 {
			t.Fatalf("more of all limits does not help: %+v\nproviders %+v\nrequest %+v", fit, providers, r)
		}
		raised++
	})
	t.Logf("%d raised", raised)
}

// TestSumsBeyondTheLargestNumber counts on providers whose units together exceed
// an int64.
func TestSumsBeyondTheLargestNumber(t *testing.T) {
	t.Parallel()
	var providers []Provider
	for i := range 4 {
		providers = append(providers,
			Provider{UUID: uuidOf(i), Name: fmt.Sprint("p", i), Inventories: []Inventory{{ResourceClass: "VCPU",
				Total: math.MaxInt32, MinUnit: 1, MaxUnit: math.MaxInt32, StepSize: 1,
				AllocationRatio: 4e9, Capacity: math.MaxInt64 - 1<<40}}})
	}
	w := NewWorld(diceNames, providers)
	vcpus := func(amount int64) []Amount { return []Amount{{ResourceClass: "VCPU", Amount: amount}} }
	for name, r := range map[string]Request{
		"one class": {Unsuffixed: Group{Resources: vcpus(1)}},
		"two groups": {Groups: []Group{{Suffix: "_1", Resources: vcpus(3)},
			{Suffix: "_2", Resources: vcpus(3)}}},
		"one class and a group": {Unsuffixed: Group{Resources: vcpus(1)},
			Groups: []Group{{Suffix: "_1", Resources: vcpus(1)}}},
		"groups that need units": {Groups: []Group{{Suffix: "_1", Resources: vcpus(2)},
			{Suffix: "_2", Resources: vcpus(5)}}},
	} {
		fit := Fits(w, &r)
		if fit.AtLeast <= 0 || fit.AtLeast > fit.AtMost {
			t.Errorf("%s: %+v", name, fit)
		}
		for _, requests := range [][]MixedRequest{{{r, 1}},
			{{r, 1}, {Request{Unsuffixed: Group{Resources: vcpus(2)}}, 3}}} {
			mix, err := FitsTogether(t.Context(), w, requests)
			if err != nil || mix.AtLeast <= 0 || mix.AtLeast > mix.AtMost {
				t.Errorf("%s together: %+v, %v", name, mix, err)
			}
			if len(requests) == 1 && (mix.AtLeast != fit.AtLeast || mix.AtMost != fit.AtMost) {
				t.Errorf("%s: %+v together, %+v alone", name, mix, fit)
			}
		}
	}
}
