package placement_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/placement/placementtest"
)

// differenceOf returns the first difference between two worlds, or the first
// inconsistency inside one of them; "" if there is none.
func differenceOf(a, b *World) string {
	return cmp.Or(placementtest.Difference(a, b), a.Inconsistency(), b.Inconsistency())
}

func named(providers []*Provider) string {
	var names []string
	for _, p := range providers {
		names = append(names, p.Name)
	}
	return strings.Join(names, " ")
}

// family is a tree of two levels below a root, listed children first, and a
// single provider.
func family() []Provider {
	return []Provider{
		{UUID: uuidOf(3), Name: "grandchild", Parent: uuidOf(1), Version: 1},
		{UUID: uuidOf(1), Name: "child1", Parent: uuidOf(0), Version: 1},
		{UUID: uuidOf(2), Name: "child2", Parent: uuidOf(0), Version: 1},
		{UUID: uuidOf(0), Name: "root", Version: 1},
		{UUID: uuidOf(4), Name: "alone", Version: 1},
	}
}

func TestWorldAnswersLookups(t *testing.T) {
	t.Parallel()
	w := NewWorld(Names{Traits: []string{"CUSTOM_B", "CUSTOM_A"}, ResourceClasses: []string{"VCPU"}}, family())
	if p, ok := w.Provider(uuidOf(3)); !ok || p.Name != "grandchild" || p.Root != uuidOf(0) {
		t.Errorf("%+v", p)
	}
	if _, ok := w.Provider(uuidOf(9)); ok {
		t.Error("found nobody")
	}
	if p, ok := w.ProviderNamed("child2"); !ok || p.UUID != uuidOf(2) {
		t.Errorf("%+v", p)
	}
	if _, ok := w.ProviderNamed("CHILD2"); ok {
		t.Error("names differ by case")
	}
	if got := w.Names(); !slices.Equal(got.Traits, []string{"CUSTOM_A", "CUSTOM_B"}) ||
		!w.HasResourceClass("VCPU") || w.HasTrait("VCPU") {
		t.Errorf("%+v", got)
	}
}

func TestWorldKnowsTrees(t *testing.T) {
	t.Parallel()
	w := NewWorld(Names{}, family())
	// uuidOf(2) sorts before uuidOf(1).
	if got := named(w.Children(uuidOf(0))); got != "child2 child1" {
		t.Errorf("children %s", got)
	}
	if got := named(w.Tree(uuidOf(3))); got != "root child2 child1 grandchild" {
		t.Errorf("tree %s", got)
	}
	if w.Children(uuidOf(9)) != nil || w.Tree(uuidOf(9)) != nil {
		t.Error("nobody has a family")
	}
	if got := named(slices.Collect(w.Providers())); got != "alone child1 child2 grandchild root" {
		t.Errorf("providers %s", got)
	}
	for _, p := range slices.Collect(w.Providers()) {
		if want := p.Name == "child1" || p.Name == "grandchild"; w.IsDescendant(p.UUID, uuidOf(1)) != want {
			t.Errorf("IsDescendant(%s)", p.Name)
		}
	}
}

func TestMoveTakesTheSubtreeAlong(t *testing.T) {
	t.Parallel()
	w := NewWorld(Names{}, family())
	moved := w.With(Update{Providers: []Provider{{UUID: uuidOf(1), Name: "child1", Parent: uuidOf(4), Version: 2}}})
	if got := named(moved.Tree(uuidOf(4))); got != "alone child1 grandchild" {
		t.Errorf("tree %s", got)
	}
	if p, _ := moved.Provider(uuidOf(3)); p.Root != uuidOf(4) {
		t.Errorf("root %s", p.Root)
	}
	if got := named(w.Tree(uuidOf(0))); got != "root child2 child1 grandchild" {
		t.Errorf("the old world has the tree %s", got)
	}
}

func TestOlderStateIsIgnored(t *testing.T) {
	t.Parallel()
	w := NewWorld(Names{}, family())
	w = w.With(Update{Providers: []Provider{{UUID: uuidOf(4), Name: "renamed", Version: 3}}})
	w = w.With(Update{Providers: []Provider{{UUID: uuidOf(4), Name: "old", Version: 2}}})
	if p, _ := w.Provider(uuidOf(4)); p.Name != "renamed" {
		t.Errorf("%+v", p)
	}
	w = w.With(Update{Providers: []Provider{{UUID: uuidOf(4), Name: "again", Version: 3}}})
	if p, _ := w.Provider(uuidOf(4)); p.Name != "again" {
		t.Errorf("%+v", p)
	}
}

func TestNamesMayBeSwapped(t *testing.T) {
	t.Parallel()
	w := NewWorld(Names{}, family()).With(Update{Providers: []Provider{
		{UUID: uuidOf(1), Name: "child2", Parent: uuidOf(0), Version: 2},
		{UUID: uuidOf(2), Name: "child1", Parent: uuidOf(0), Version: 2},
	}})
	for name, uuid := range map[string]string{"child1": uuidOf(2), "child2": uuidOf(1)} {
		if p, ok := w.ProviderNamed(name); !ok || p.UUID != uuid {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// TestBrokenUpdatesDoNoHarm applies updates with missing and late parents, and
// with loops, which no database should contain.
func TestBrokenUpdatesDoNoHarm(t *testing.T) {
	t.Parallel()
	w := NewWorld(Names{}, nil)
	for _, p := range family() {
		w = w.With(Update{Providers: []Provider{p}})
	}
	if difference := differenceOf(w, NewWorld(Names{}, family())); difference != "" {
		t.Error(difference)
	}
	loop := []Provider{
		{UUID: uuidOf(1), Name: "a", Parent: uuidOf(2), Version: 1},
		{UUID: uuidOf(2), Name: "b", Parent: uuidOf(1), Version: 1},
		{UUID: uuidOf(3), Name: "c", Parent: uuidOf(3), Version: 1},
	}
	looped := NewWorld(Names{}, loop)
	if got := named(looped.Tree(uuidOf(1))); got != "b a" {
		t.Errorf("tree %s", got)
	}
	healed := looped.With(Update{Providers: []Provider{{UUID: uuidOf(1), Name: "a", Version: 2},
		{UUID: uuidOf(3), Name: "c", Parent: uuidOf(2), Version: 2}}})
	if got := named(healed.Tree(uuidOf(1))); got != "a b c" {
		t.Errorf("tree %s", got)
	}
}

// TestLargeWorldStaysEqualToOneBuiltAnew makes the persistent lists split,
// shrink and join.
func TestLargeWorldStaysEqualToOneBuiltAnew(t *testing.T) {
	t.Parallel()
	providers := nestedCloud(300)
	for i := range providers {
		providers[i].Aggregates = []string{numbered(2_000_000 + i%700)}
	}
	random := rand.New(rand.NewPCG(1, 2))
	w := NewWorld(cloudNames, nil)
	for _, batch := range slices.Collect(slices.Chunk(providers, 250)) {
		w = w.With(Update{Providers: batch})
	}
	if difference := differenceOf(w, NewWorld(cloudNames, providers)); difference != "" {
		t.Fatal(difference)
	}
	// Whole hosts are deleted, in random order, until few are left; then some
	// return.
	hosts := slices.Collect(slices.Chunk(slices.Clone(providers), 11))
	random.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
	for _, host := range hosts[:280] {
		var gone []string
		for _, p := range host {
			gone = append(gone, p.UUID)
		}
		w = w.With(Update{Deleted: gone})
	}
	left := slices.Concat(hosts[280:]...)
	if difference := differenceOf(w, NewWorld(cloudNames, left)); difference != "" {
		t.Fatal(difference)
	}
	for _, host := range hosts[:100] {
		left = append(left, host...)
		w = w.With(Update{Providers: host})
	}
	if difference := differenceOf(w, NewWorld(cloudNames, left)); difference != "" {
		t.Fatal(difference)
	}
}

func TestDifferenceNamesWhatDiffers(t *testing.T) {
	t.Parallel()
	base := Provider{UUID: uuidOf(0), Name: "a", Version: 1, CreatedAt: time.Unix(1, 0), Traits: []string{"CUSTOM_A"}}
	w := NewWorld(diceNames, []Provider{base})
	for want, change := range map[string]func(p *Provider){
		"Name":        func(p *Provider) { p.Name = "b" },
		"Generation":  func(p *Provider) { p.Generation = 7 },
		"Version":     func(p *Provider) { p.Version = 7 },
		"Row":         func(p *Provider) { p.Row = 7 },
		"Resource is": func(p *Provider) { p.Resource = uuidOf(5) },
		"ResourceRow": func(p *Provider) { p.ResourceRow = 7 },
		"created":     func(p *Provider) { p.CreatedAt = time.Unix(2, 0) },
		"Inventor":    func(p *Provider) { p.Inventories = []Inventory{stocked("VCPU", 1, 0)} },
		"Traits":      func(p *Provider) { p.Traits = nil },
		"Aggregates":  func(p *Provider) { p.Aggregates = []string{aggregateOf(1)} },
		"uuids":       func(p *Provider) { p.UUID = uuidOf(1) },
	} {
		other := base
		change(&other)
		if got := differenceOf(w, NewWorld(diceNames, []Provider{other})); !strings.Contains(strings.ToLower(got),
			strings.ToLower(want)) {
			t.Errorf("%s: %q", want, got)
		}
	}
	same := base
	same.CreatedAt, same.Aggregates = time.Unix(1, 0).UTC(), []string{}
	if got := differenceOf(w, NewWorld(diceNames, []Provider{same})); got != "" {
		t.Errorf("the same: %q", got)
	}
	for _, names := range []Names{{Traits: diceNames.Traits}, {ResourceClasses: diceNames.ResourceClasses}} {
		if got := differenceOf(w, NewWorld(names, []Provider{base})); got == "" {
			t.Errorf("names %+v are not missed", names)
		}
	}
}

func TestFilterByNameAndUUID(t *testing.T) {
	t.Parallel()
	w := NewWorld(diceNames, family())
	root, nobody := "root", "nobody"
	for _, c := range []struct {
		filter ProviderFilter
		want   string
	}{
		{ProviderFilter{}, "alone child1 child2 grandchild root"},
		{ProviderFilter{Name: &root}, "root"},
		{ProviderFilter{Name: &nobody}, ""},
		{ProviderFilter{Name: &root, UUIDs: []string{uuidOf(1)}}, ""},
		{ProviderFilter{UUIDs: []string{strings.ToUpper(uuidOf(3)), uuidOf(0), uuidOf(0), uuidOf(9)}},
			"grandchild root"},
		{ProviderFilter{UUIDs: []string{}}, ""},
		{ProviderFilter{InTree: uuidOf(3)}, "child1 child2 grandchild root"},
		{ProviderFilter{InTree: uuidOf(3), UUIDs: []string{uuidOf(3), uuidOf(4)}}, "grandchild"},
	} {
		if got := named(w.Filter(c.filter)); got != c.want {
			t.Errorf("%+v: %s, want %s", c.filter, got, c.want)
		}
	}
	bad := ProviderFilter{UUIDs: []string{"x"}}
	if got := texts(bad.Validate(w, "filter")); !slices.Equal(got, []string{"filter.uuids[0]: must be a UUID"}) {
		t.Errorf("%q", got)
	}
}

// TestFilterSelectsEachProviderByItself compares filters with the definitions:
// a filter is a suffixed group without sharing.
func TestFilterSelectsEachProviderByItself(t *testing.T) {
	eachRandom(t, func(t *testing.T, d *dice, providers []Provider, _ *Request) {
		g := d.group("", len(providers))
		o := newOracle(providers)
		var hosts *Hosts
		if d.chance(3) {
			hosts = &Hosts{Resources: []int64{linkOf(d.roll(5)), linkOf(d.roll(5)), 99}}
		}
		var want []string
		for _, p := range providers {
			if o.servesGroup(p.UUID, o.root(p.UUID), &g) &&
				(hosts == nil || slices.Contains(hosts.Resources, o.providers[o.root(p.UUID)].ResourceRow)) {
				want = append(want, p.Name)
			}
		}
		slices.Sort(want)
		f := filterOf(&g)
		f.Hosts = hosts
		world := NewWorld(diceNames, providers)
		if got := named(world.Filter(f)); got != strings.Join(want, " ") {
			t.Errorf("got %s, want %v: %+v", got, want, f)
		}
		first := providers[d.roll(len(providers))].Name
		from, _ := slices.BinarySearch(want, first)
		if got := named(slices.Collect(world.FilterFrom(f, first))); got != strings.Join(want[from:], " ") {
			t.Errorf("from %s: got %s, want %v: %+v", first, got, want[from:], f)
		}
	})
}

func TestRefusalsSayWhy(t *testing.T) {
	t.Parallel()
	seen := map[AllocationCheck]bool{AllocationFits: true}
	for _, check := range []AllocationCheck{NoInventory, BelowMinUnit, AboveMaxUnit,
		NotStepMultiple, InsufficientCapacity} {
		if seen[check] {
			t.Errorf("%q is the text of two", check)
		}
		seen[check] = true
	}
}
