package placement_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/soak"
	. "github.com/cadastre-dev/cadastre/placement"
)

// dice turns bytes into choices. After the last byte, every choice is the
// first.
type dice struct{ bytes []byte }

func (d *dice) roll(sides int) int {
	if len(d.bytes) == 0 {
		return 0
	}
	b := int(d.bytes[0])
	d.bytes = d.bytes[1:]
	return b % sides
}

func (d *dice) chance(oneIn int) bool { return d.roll(oneIn) == 1%oneIn }

var (
	diceTraits  = []string{"CUSTOM_A", "CUSTOM_B", "CUSTOM_C"}
	diceClasses = []string{"DISK_GB", "MEMORY_MB", "VCPU"}
	diceTaints  = []string{"CUSTOM_TAINT_A", "CUSTOM_TAINT_B"}
	diceNames   = Names{Traits: slices.Concat([]string{TraitShares}, diceTraits, diceTaints),
		ResourceClasses: diceClasses}
)

// uuidOf numbers uuids so that neighboring numbers are not neighbors in the
// order of uuids.
func uuidOf(n int) string {
	return fmt.Sprintf("%02x0000%02x-0000-4000-8000-0000000000%02x", (n*167+13)%256, n%256, n%256)
}

// rowOf numbers rows in a different order than uuids.
func rowOf(n int) int64 { return int64(1000 - 7*n) }

// linkOf is the row of the resource that provider n is linked to.
func linkOf(n int) int64 { return int64(11 * (n + 1)) }

func aggregateOf(n int) string { return fmt.Sprintf("aaaaaaaa-0000-4000-8000-0000000000%02x", n) }

func (d *dice) subset(of []string, oneIn int) []string {
	var some []string
	for _, each := range of {
		if d.chance(oneIn) {
			some = append(some, each)
		}
	}
	return some
}

func (d *dice) aggregates(oneIn int) []string {
	return d.subset([]string{aggregateOf(0), aggregateOf(1), aggregateOf(2)}, oneIn)
}

func (d *dice) provider(n int) Provider {
	p := Provider{UUID: uuidOf(n), Name: fmt.Sprintf("p%d", n), Version: 1, Row: rowOf(n), ResourceRow: linkOf(n)}
	if n > 0 && !d.chance(3) {
		p.Parent = uuidOf(d.roll(n))
	}
	return d.content(p)
}

func (d *dice) content(p Provider) Provider {
	p.Inventories, p.Traits, p.Aggregates = nil, nil, nil
	for _, class := range diceClasses {
		if !d.chance(3) {
			inventory := Inventory{
				ResourceClass: class, Total: int32(1 + d.roll(8)), Reserved: int32(d.roll(6) / 5),
				MinUnit: int32(1 + d.roll(8)/7), MaxUnit: int32(1 + d.roll(8)), StepSize: int32(1 + d.roll(8)/7),
				AllocationRatio: []float64{1, 1.5, 1, 2, 1, 0.5}[d.roll(6)], Used: int64(d.roll(8) / 5),
			}
			inventory.Capacity = Capacity(inventory.Total, inventory.Reserved, inventory.AllocationRatio)
			p.Inventories = append(p.Inventories, inventory)
		}
	}
	p.Traits = append(d.subset(diceTraits, 3), d.subset(diceTaints, 16)...)
	if d.chance(4) {
		p.Traits = append(p.Traits, TraitShares)
	}
	p.Aggregates = d.aggregates(4)
	if d.chance(6) {
		p.ResourceRow = 0 // no longer linked
	}
	return p
}

func (d *dice) providers() []Provider {
	providers := make([]Provider, 1+d.roll(9))
	for n := range providers {
		providers[n] = d.provider(n)
	}
	return providers
}

func (d *dice) group(suffix string, providers int) Group {
	g := Group{Suffix: suffix}
	for _, class := range diceClasses {
		if d.chance(2) {
			g.Resources = append(g.Resources, Amount{ResourceClass: class, Amount: int64(1 + d.roll(8)/5)})
		}
	}
	if d.chance(8) {
		g.RequiredAll = append(d.subset(diceTraits, 4), d.subset(diceTaints, 3)...)
	}
	if d.chance(5) {
		g.RequiredAny = d.subset(diceTraits, 2)
	}
	if d.chance(8) {
		if set := d.subset(diceTraits, 2); len(set) > 0 {
			g.RequiredAnySets = []TraitSet{{AnyOf: set}}
		}
	}
	if d.chance(6) {
		g.Forbidden = d.subset(diceTraits, 4)
	}
	for range d.roll(12) / 10 {
		g.MemberOf = append(g.MemberOf, AggregateFilter{AnyOf: d.aggregates(2), NoneOf: d.aggregates(5)})
	}
	if d.chance(16) {
		g.InTree = uuidOf(d.roll(providers + 1))
	}
	return g
}

func (d *dice) request(providers int) *Request {
	r := &Request{Unsuffixed: d.group("", providers)}
	if len(r.Unsuffixed.Resources) == 0 {
		r.Unsuffixed = Group{}
	}
	for n := range d.roll(4) {
		r.Groups = append(r.Groups, d.group([]string{"_b", "1", "A", "a"}[n], providers))
	}
	r.Policy = GroupPolicy(d.roll(2))
	if len(r.Groups) > 1 && d.chance(2) {
		var subtree Subtree
		for _, g := range r.Groups {
			if !d.chance(3) {
				subtree.Suffixes = append(subtree.Suffixes, g.Suffix)
			}
		}
		if len(subtree.Suffixes) > 0 {
			r.SameSubtree = append(r.SameSubtree, subtree)
		}
	}
	if d.chance(6) {
		r.RootRequired = d.subset(diceTraits, 3)
	}
	if d.chance(6) {
		r.RootForbidden = d.subset(diceTraits, 3)
	}
	r.Tolerates = d.subset(diceTaints, 3)
	if d.chance(5) {
		r.Hosts = &Hosts{Filter: "some"}
		for n := range providers + 1 { // including one that does not exist
			if !d.chance(3) {
				r.Hosts.Resources = append(r.Hosts.Resources, linkOf(n))
			}
		}
	}
	return r
}

// compareWithOracle compares the solver with the oracle on one world and
// request: the list, its order, pages of several sizes, the count, and Check.
func compareWithOracle(t *testing.T, bytes []byte) {
	t.Helper()
	d := &dice{bytes: bytes}
	providers := d.providers()
	r := d.request(len(providers))
	w := NewWorld(diceNames, providers)
	describe := func() string { return fmt.Sprintf("bytes %#v\nproviders %+v\nrequest %+v", bytes, providers, r) }

	want := newOracle(providers).candidates(r)
	page, err := Candidates(w, r, nil, 1<<30)
	if err != nil {
		t.Fatalf("%v\n%s", err, describe())
	}
	if got := render(page.Candidates); got != render(want) {
		t.Fatalf("%s\nsolver:\n%s\noracle:\n%s", describe(), got, render(want))
	}
	if n, exact, err := Count(w, r, 1<<30); n != len(want) || !exact || err != nil {
		t.Fatalf("Count says %d, %v, %v; there are %d\n%s", n, exact, err, len(want), describe())
	}
	if n, exact, err := Count(w, r, len(want)/2); n != len(want)/2 ||
		exact != (len(want)/2 == len(want)) || err != nil {
		t.Fatalf("Count up to %d says %d, %v, %v\n%s", len(want)/2, n, exact, err, describe())
	}
	size := 1 + d.roll(5) + len(want)/50
	if got := render(everyPage(t, w, r, size)); got != render(want) {
		t.Fatalf("pages of %d: %s\npages:\n%s\noracle:\n%s", size, describe(), got, render(want))
	}
	r.Order = BreadthFirst
	want = newOracle(providers).breadthFirst(r)
	for _, size := range []int{size, len(want) + 1} {
		if got := render(everyPage(t, w, r, size)); got != render(want) {
			t.Fatalf("pages of %d, breadth first: %s\npages:\n%s\noracle:\n%s", size, describe(), got, render(want))
		}
	}
}

// soaks returns how long the random tests run: briefly, or for the duration
// CADASTRE_SOAK.
func soaks(t *testing.T) time.Duration {
	text := os.Getenv("CADASTRE_SOAK")
	if text == "" {
		return 1500 * time.Millisecond
	}
	duration, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("CADASTRE_SOAK: %v", err)
	}
	return duration
}

func TestCandidatesAreThoseOfTheDefinitions(t *testing.T) {
	t.Parallel()
	workers := runtime.GOMAXPROCS(0)
	for worker := range workers {
		t.Run(fmt.Sprint(worker), func(t *testing.T) {
			t.Parallel()
			duration, start := soaks(t), time.Now()
			tried := 0
			for seed := soak.Seed(t) + uint64(worker); time.Since(start) < duration; seed += uint64(workers) {
				compareWithOracle(t, randomBytes(seed, 400))
				tried++
			}
			t.Logf("%d worlds", tried)
		})
	}
}

func FuzzCandidatesAreThoseOfTheDefinitions(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(randomBytes(seed, 400))
	}
	f.Fuzz(compareWithOracle)
}

// randomBytes returns n bytes that depend on the seed alone.
func randomBytes(seed uint64, n int) []byte {
	bytes := make([]byte, n)
	x := seed*0x9E3779B97F4A7C15 + 1
	for i := range bytes {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		bytes[i] = byte(x >> 32)
	}
	return bytes
}

// renderCandidate writes a candidate as `"" a=VCPU:1,b=DISK_GB:2; "_1" c=...`:
// allocations, then mappings.
func renderCandidate(c Candidate, name func(string) string) string {
	var allocations, mappings []string
	for _, allocation := range c.Allocations {
		var amounts []string
		for _, amount := range allocation.Resources {
			amounts = append(amounts, fmt.Sprintf("%s:%d", amount.ResourceClass, amount.Amount))
		}
		allocations = append(allocations, name(allocation.Provider)+" "+strings.Join(amounts, ","))
	}
	for _, mapping := range c.Mappings {
		var names []string
		for _, uuid := range mapping.Providers {
			names = append(names, name(uuid))
		}
		slices.Sort(names)
		mappings = append(mappings, mapping.Suffix+"="+strings.Join(names, "+"))
	}
	return strings.Join(allocations, "; ") + " | " + strings.Join(mappings, " ")
}
