package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	. "github.com/cadastre-dev/cadastre/placement"
)

func explained(e Explanation) string {
	lines := []string{fmt.Sprintf("considered %d", e.Considered)}
	for _, step := range e.Steps {
		lines = append(lines, fmt.Sprintf("%s: -%d, %d", step.Constraint, step.Eliminated, step.Remaining))
	}
	for _, near := range e.Nearest {
		line := "near " + near.Provider.Name
		for _, shortage := range near.Missing {
			line += fmt.Sprintf(" %s:%d", shortage.ResourceClass, shortage.Short)
		}
		lines = append(lines, strings.TrimSpace(line+" "+strings.Join(near.Traits, " ")))
	}
	return strings.Join(lines, "\n")
}

func TestExplainNamesWhatEachConstraintTookOut(t *testing.T) {
	t.Parallel()
	aggregate := numbered(99)
	host := func(n int, vcpu int32, used int64, aggregates []string, traits ...string) Provider {
		return Provider{UUID: uuidOf(n), Name: fmt.Sprintf("host%d", n), Version: 1,
			Traits: traits, Aggregates: aggregates,
			Inventories: []Inventory{stocked("MEMORY_MB", 1024, 0), stocked("VCPU", vcpu, used)}}
	}
	w := NewWorld(cloudNames, []Provider{
		host(0, 8, 8, []string{aggregate}, "HW_CPU_X86_AVX"),
		host(1, 8, 6, []string{aggregate}, "HW_CPU_X86_AVX"),
		host(2, 8, 0, []string{aggregate}),
		host(3, 8, 0, nil, "HW_CPU_X86_AVX"),
		host(4, 8, 0, []string{aggregate}, "CUSTOM_RARE", "HW_CPU_X86_AVX"),
		{UUID: uuidOf(5), Name: "disk", Version: 1, Inventories: []Inventory{stocked("DISK_GB", 10, 0)}},
	})
	r := &Request{Unsuffixed: Group{
		Resources:   amounts(Amount{"VCPU", 4}),
		RequiredAll: []string{"HW_CPU_X86_AVX"},
		Forbidden:   []string{"CUSTOM_RARE"},
		MemberOf:    []AggregateFilter{{AnyOf: []string{aggregate}}},
	}}
	want := `considered 6
resources VCPU: -1, 5
resources VCPU:4: -2, 3
memberOf[0].anyOf: -1, 2
forbidden CUSTOM_RARE: -1, 1
required traits of the unsuffixed group: -1, 0
near host2 HW_CPU_X86_AVX
near host1 VCPU:2
near host0 VCPU:4`
	if got := explained(Explain(w, r)); got != want {
		t.Errorf("got\n%s", got)
	}

	groups := &Request{Groups: []Group{
		{Suffix: "_A", Resources: amounts(Amount{"VCPU", 8}), RequiredAny: []string{"CUSTOM_RARE", "HW_CPU_X86_AVX"}},
		{Suffix: "_B", Resources: amounts(Amount{"DISK_GB", 4})},
	}, RootForbidden: []string{"CUSTOM_RARE"}}
	want = `considered 6
groups[0].resources VCPU: -1, 5
groups[0].resources VCPU:8: -2, 3
groups[0].requiredAny: -1, 2
groups[1].resources DISK_GB: -5, 1
groups[1].resources DISK_GB:4: -0, 1
root of the tree: rootRequired, rootForbidden, aggregates, taints: -1, 2
one tree for all groups: -2, 0
near host3 DISK_GB:4
near host1 DISK_GB:4 VCPU:6
near host0 DISK_GB:4 VCPU:8
near host2 DISK_GB:4 CUSTOM_RARE HW_CPU_X86_AVX
near disk VCPU:8 CUSTOM_RARE HW_CPU_X86_AVX`
	if got := explained(Explain(w, groups)); got != want {
		t.Errorf("got\n%s", got)
	}
}

// TestExplainAgreesWithTheAnswer checks that the last step leaves nothing
// exactly when there is no candidate.
func TestExplainAgreesWithTheAnswer(t *testing.T) {
	eachRandom(t, func(t *testing.T, _ *dice, providers []Provider, r *Request) {
		if len(r.Groups) == 0 && len(r.Unsuffixed.Resources) == 0 {
			return
		}
		w := NewWorld(diceNames, providers)
		e := Explain(w, r)
		none := len(every(t, w, r)) == 0
		lost := slices.ContainsFunc(e.Steps, func(s ExplanationStep) bool { return s.Remaining == 0 })
		if none && !lost || !none && e.Steps != nil && lost {
			t.Errorf("none %v\n%s\n%+v\n%+v", none, explained(e), providers, r)
		}
		for _, step := range e.Steps {
			if step.Eliminated < 0 || step.Remaining < 0 || step.Eliminated+step.Remaining > e.Considered {
				t.Errorf("%+v", step)
			}
		}
		if len(e.Nearest) > MaxNearest {
			t.Errorf("%d near misses", len(e.Nearest))
		}
		slices.Reverse(providers)
		if again := explained(Explain(NewWorld(diceNames, providers), r)); again != explained(e) {
			t.Errorf("got\n%s\nand\n%s", explained(e), again)
		}
	})
}

// TestExplainIsByDefinition compares explanations, which are computed from sets
// for all providers and trees together, with the definition. It uses worlds
// that were built in one step and worlds that were changed.
func TestExplainIsByDefinition(t *testing.T) {
	eachRandom(t, func(t *testing.T, d *dice, providers []Provider, r *Request) {
		w := NewWorld(diceNames, providers)
		for range 3 {
			if got, want := explained(Explain(w, r)), explained(ExplainByDefinition(w, r)); got != want {
				t.Errorf("got\n%s\nwant\n%s\n%+v\n%+v", got, want, slices.Collect(w.Providers()), r)
			}
			n := d.roll(len(providers))
			if d.chance(3) {
				w = w.With(Update{Deleted: []string{uuidOf(n)}})
				continue
			}
			p := d.provider(n)
			p.Version = 2
			w = w.With(Update{Providers: []Provider{p}})
		}
	})
}

// TestNearestCountsSharedSupply asks for more than the pool of a cloud has. The
// missing units of a tree are the units that the best provider lacks: its own,
// or one that shares with it.
func TestNearestCountsSharedSupply(t *testing.T) {
	t.Parallel()
	joined := []string{numbered(99)}
	host := func(n int, aggregates []string, disk int32) Provider {
		p := Provider{UUID: uuidOf(n), Name: fmt.Sprintf("host%d", n), Version: 1, Aggregates: aggregates,
			Inventories: []Inventory{stocked("VCPU", 8, 0)}}
		if disk > 0 {
			p.Inventories = append([]Inventory{stocked("DISK_GB", disk, 0)}, p.Inventories...)
		}
		return p
	}
	pool := Provider{UUID: uuidOf(9), Name: "pool", Version: 1, Aggregates: joined, Traits: []string{TraitShares},
		Inventories: []Inventory{stocked("DISK_GB", 100, 0)}}
	taken := pool
	taken.Inventories = []Inventory{stocked("DISK_GB", 100, 40)}
	alone := pool
	alone.Traits = nil
	disk := Group{Suffix: "_DISK", Resources: amounts(Amount{"DISK_GB", 110})}
	for name, c := range map[string]struct {
		pool Provider
		host Provider
		r    Request
		want string
	}{
		"a pool": {pool, host(1, joined, 0),
			Request{Unsuffixed: Group{Resources: amounts(Amount{"DISK_GB", 110}, Amount{"VCPU", 4})}},
			"near host1 DISK_GB:10"},
		"a pool, and a group": {pool, host(1, joined, 0),
			Request{Unsuffixed: Group{Resources: amounts(Amount{"VCPU", 4})}, Groups: []Group{disk}},
			"near host1 DISK_GB:10"},
		"a pool in use": {taken, host(1, joined, 0),
			Request{Unsuffixed: Group{Resources: amounts(Amount{"DISK_GB", 110}, Amount{"VCPU", 9})}},
			"near host1 DISK_GB:50 VCPU:1"},
		"less of its own": {pool, host(1, joined, 70),
			Request{Unsuffixed: Group{Resources: amounts(Amount{"DISK_GB", 110}, Amount{"VCPU", 4})}},
			"near host1 DISK_GB:10"},
		"more of its own": {pool, host(1, joined, 105),
			Request{Unsuffixed: Group{Resources: amounts(Amount{"DISK_GB", 110}, Amount{"VCPU", 4})}},
			"near host1 DISK_GB:5"},
		"in another aggregate": {pool, host(1, []string{numbered(98)}, 70),
			Request{Unsuffixed: Group{Resources: amounts(Amount{"DISK_GB", 110}, Amount{"VCPU", 4})}},
			"near host1 DISK_GB:40"},
		"a pool that does not share": {alone, host(1, joined, 70),
			Request{Unsuffixed: Group{Resources: amounts(Amount{"DISK_GB", 110}, Amount{"VCPU", 4})}},
			"near host1 DISK_GB:40"},
	} {
		w := NewWorld(cloudNames, []Provider{c.host, c.pool})
		if got, _, _ := strings.Cut(strings.TrimPrefix(explained(Explanation{Nearest: Explain(w, &c.r).Nearest}),
			"considered 0\n"), "\n"); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// TestNearestIsThatOfTheOracle compares the nearest trees with the definition,
// provider by provider, also where a sharing provider lacks least. Half of the
// requests ask for much more than their trees have.
func TestNearestIsThatOfTheOracle(t *testing.T) {
	eachRandom(t, func(t *testing.T, d *dice, providers []Provider, r *Request) {
		if len(r.Groups) == 0 && len(r.Unsuffixed.Resources) == 0 {
			return
		}
		if d.chance(2) {
			askForMore(d, r)
		}
		w := NewWorld(diceNames, providers)
		got, want := explained(Explanation{Nearest: Explain(w, r).Nearest}),
			explained(Explanation{Nearest: newOracle(providers).nearest(r)})
		if got != want {
			t.Errorf("got\n%s\nwant\n%s\n%+v\n%+v", got, want, providers, r)
		}
	})
}

// askForMore raises the amounts of a request at random.
func askForMore(d *dice, r *Request) {
	for i := range r.Unsuffixed.Resources {
		r.Unsuffixed.Resources[i].Amount += int64(d.roll(12))
	}
	for _, g := range r.Groups {
		for i := range g.Resources {
			g.Resources[i].Amount += int64(d.roll(12))
		}
	}
}

// TestNearestOfManyAlike compares the nearest trees with the definition where
// many trees lack the same: more trees than firstByUUID sorts, fewer, and
// several amounts of lack.
func TestNearestOfManyAlike(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{3, 6, 300, 330, 1000} {
		for _, sizes := range []int{1, 2, 40} {
			hosts := flatCloud(n)
			for i := range hosts {
				hosts[i].UUID = fmt.Sprintf("%08x-0000-4000-8000-%012x", rng.Uint32(), i)
				for k, v := range hosts[i].Inventories {
					if v.ResourceClass == "VCPU" {
						hosts[i].Inventories[k] = stocked("VCPU", int32(1+rng.IntN(sizes)), 0)
					}
				}
			}
			w, r := NewWorld(cloudNames, hosts), &Request{Unsuffixed: threeClasses(65)}
			if got, want := explained(Explain(w, r)), explained(ExplainByDefinition(w, r)); got != want {
				t.Errorf("%d hosts of %d sizes: got\n%s\nwant\n%s", n, sizes, got, want)
			}
		}
	}
}
