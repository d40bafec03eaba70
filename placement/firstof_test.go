package placement_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	. "github.com/cadastre-dev/cadastre/placement"
)

// alternatives gives groups of a request up to three alternatives each.
func (d *dice) alternatives(r *Request, providers int) {
	for i := range len(r.Groups) + 1 {
		if !d.chance(2) {
			continue
		}
		g := &r.Unsuffixed
		if i < len(r.Groups) {
			g = &r.Groups[i]
		} else if len(g.Resources) == 0 {
			continue
		}
		for range 1 + d.roll(3) {
			of := d.group("", providers)
			g.FirstOf = append(g.FirstOf,
				Alternative{Resources: without(of.Resources, g.Resources), RequiredAll: of.RequiredAll,
					RequiredAny: of.RequiredAny, RequiredAnySets: of.RequiredAnySets,
					Forbidden: of.Forbidden, MemberOf: of.MemberOf})
		}
	}
}

// without returns the amounts of other classes than the ones of the group.
func without(amounts, own []Amount) []Amount {
	return slices.DeleteFunc(amounts, func(a Amount) bool {
		return slices.ContainsFunc(own, func(b Amount) bool { return a.ResourceClass == b.ResourceClass })
	})
}

// plain returns the group with an alternative, by its definition.
func plain(g Group, a Alternative) Group {
	merged := Group{Suffix: g.Suffix, InTree: g.InTree, RequiredAny: g.RequiredAny,
		Resources:       append(slices.Clone(g.Resources), a.Resources...),
		RequiredAll:     append(slices.Clone(g.RequiredAll), a.RequiredAll...),
		Forbidden:       append(slices.Clone(g.Forbidden), a.Forbidden...),
		MemberOf:        append(slices.Clone(g.MemberOf), a.MemberOf...),
		RequiredAnySets: append(slices.Clone(g.RequiredAnySets), a.RequiredAnySets...)}
	if len(a.RequiredAny) > 0 {
		merged.RequiredAnySets = append(merged.RequiredAnySets, TraitSet{AnyOf: a.RequiredAny})
	}
	return merged
}

// eachChoice calls do with every choice of alternatives: the unsuffixed group
// changes last, then the groups by suffix.
func eachChoice(r Request, do func(Request, []GroupAlternative)) {
	groups := []*Group{&r.Unsuffixed}
	r.Groups = slices.Clone(r.Groups)
	slices.SortFunc(r.Groups, func(a, b Group) int { return cmp.Compare(a.Suffix, b.Suffix) })
	for i := range r.Groups {
		groups = append(groups, &r.Groups[i])
	}
	var try func(from int, chosen []GroupAlternative)
	try = func(from int, chosen []GroupAlternative) {
		if from == len(groups) {
			one := r
			one.Groups = slices.Clone(r.Groups)
			do(one, slices.Clone(chosen))
			return
		}
		g := *groups[from]
		for i, a := range g.FirstOf {
			*groups[from] = plain(g, a)
			try(from+1, append(chosen, GroupAlternative{Suffix: g.Suffix, Index: i}))
		}
		if *groups[from] = g; len(g.FirstOf) == 0 {
			try(from+1, chosen)
		}
	}
	try(0, nil)
}

// firstOf returns the candidates of every choice of alternatives.
func (o *oracle) firstOf(r *Request) (all []Candidate) {
	eachChoice(*r, func(one Request, chosen []GroupAlternative) {
		for _, candidate := range o.ordered(&one) {
			candidate.Alternatives = chosen
			all = append(all, candidate)
		}
	})
	return all
}

// chosen writes the candidates with their alternatives.
func chosen(candidates []Candidate) (text string) {
	for _, c := range candidates {
		text += fmt.Sprint(c.Root, " ", c.Alternatives, " ", render([]Candidate{c}))
	}
	return text
}

func TestAlternativesAreTriedInOrder(t *testing.T) {
	eachRandom(t, func(t *testing.T, d *dice, providers []Provider, r *Request) {
		d.alternatives(r, len(providers))
		w, o := NewWorld(diceNames, providers), newOracle(providers)
		r.Seed = d.roll(4)
		if d.chance(2) {
			r.Preferences = d.preferences(len(providers))
		}
		for _, r.Order = range orders {
			want := o.firstOf(r)
			for _, size := range []int{1 + d.roll(5) + len(want)/50, len(want) + 1} {
				if got := everyPage(t, w, r, size); chosen(got) != chosen(want) {
					t.Fatalf("order %d, pages of %d\nproviders %+v\nrequest %+v\nsolver:\n%s\noracle:\n%s", r.Order,
						size, providers, r, chosen(got), chosen(want))
				}
			}
			checkSteps(t, w, r)
			if n, exact, err := Count(w, r, 1<<30); n != len(want) || !exact || err != nil {
				t.Fatalf("Count says %d, %v, %v; there are %d", n, exact, err, len(want))
			}
			if n, exact, err := Count(w, r, len(want)/2); n != len(want)/2 ||
				exact != (len(want)/2 == len(want)) || err != nil {
				t.Fatalf("Count up to %d says %d, %v, %v", len(want)/2, n, exact, err)
			}
		}
	})
}

// checkSteps checks that all combinations share the limit of steps.
func checkSteps(t *testing.T, w *World, r *Request) {
	t.Helper()
	steps := 0
	eachChoice(*r, func(one Request, _ []GroupAlternative) {
		page, err := Candidates(w, &one, nil, 1<<30)
		if steps += page.Steps; err != nil {
			t.Fatal(err)
		}
	})
	page, err := Candidates(w, r, nil, 1<<30)
	if err != nil || page.Steps != steps {
		t.Fatalf("%d steps, want the sum %d; %v", page.Steps, steps, err)
	}
}

// TestOneAlternativeIsThePlainGroup compares pages and positions with the ones
// of the merged groups.
func TestOneAlternativeIsThePlainGroup(t *testing.T) {
	eachRandom(t, func(t *testing.T, d *dice, providers []Provider, r *Request) {
		d.alternatives(r, len(providers))
		for _, g := range append([]*Group{&r.Unsuffixed}, pointers(r.Groups)...) {
			g.FirstOf = g.FirstOf[:min(1, len(g.FirstOf))]
		}
		w := NewWorld(diceNames, providers)
		for _, r.Order = range orders {
			got, err := Candidates(w, r, nil, 3)
			if err != nil {
				t.Fatal(err)
			}
			eachChoice(*r, func(merged Request, _ []GroupAlternative) {
				want, err := Candidates(w, &merged, nil, 3)
				if err != nil || render(got.Candidates) != render(want.Candidates) ||
					fmt.Sprint(got.Positions) != fmt.Sprint(want.Positions) {
					t.Fatalf("%v\n%v\n%v", err, got, want)
				}
			})
		}
	})
}

func pointers[T any](list []T) (all []*T) {
	for i := range list {
		all = append(all, &list[i])
	}
	return all
}

func TestAlternativesAreChecked(t *testing.T) {
	t.Parallel()
	w := NewWorld(cloudNames, flatCloud(1))
	one := Amount{ResourceClass: "VCPU", Amount: 1}
	r := &Request{
		Unsuffixed: Group{Resources: amounts(one), RequiredAll: []string{"COMPUTE_NODE"}, FirstOf: []Alternative{
			{Resources: amounts(one)}, {Forbidden: []string{"COMPUTE_NODE"}}, {Resources: amounts(Amount{"NONE", 0})}}},
		Groups: []Group{{Suffix: "_a", RequiredAny: []string{"CUSTOM_RARE", "HW_CPU_X86_AVX"},
			Forbidden: []string{"CUSTOM_RARE"}, FirstOf: []Alternative{{Resources: amounts(one)},
				{Forbidden: []string{"COMPUTE_NODE"}}, {Forbidden: []string{"HW_CPU_X86_AVX"}},
				{RequiredAll: []string{"CUSTOM_RARE"}}}},
			{Suffix: "_b", FirstOf: make([]Alternative, MaxAlternatives+1)}},
	}
	got := map[string]bool{}
	for _, p := range Validate(w, r) {
		got[p.Path] = true
	}
	for _, path := range []string{"firstOf[0].resources[0].resourceClass", "firstOf[1].forbidden",
		"firstOf[2].resources[0].resourceClass", "firstOf[2].resources[0].amount", "groups[0].resources",
		"groups[0].firstOf[2].forbidden", "groups[0].firstOf[3].requiredAll[0]", "groups[1].resources",
		"groups[1].firstOf"} {
		if !got[path] {
			t.Errorf("no problem at %s", path)
		}
	}
	if got["groups[0].firstOf[1].forbidden"] {
		t.Error("an alternative may forbid a trait that the group does not require")
	}
	for i := range r.Groups {
		r.Groups[i].FirstOf = make([]Alternative, MaxAlternatives)
	}
	got = map[string]bool{}
	for _, p := range Validate(w, r) {
		got[p.Path+" "+p.Message] = true
	}
	if !got["groups[1].firstOf the alternatives of all groups have more than 64 combinations"] {
		t.Errorf("%v", got)
	}
	if got := r.CheckPlain(); len(got) != 3 || got[2].Path != "groups[1].firstOf" {
		t.Errorf("%v", got)
	}
}
