package placement_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	. "github.com/cadastre-dev/cadastre/placement"
)

// packing returns a world with one tree of devices, each with the given units,
// and a request with one group for each amount.
func packing(units []int32, amounts []int64) (*World, *Request) {
	root := Provider{UUID: numbered(0), Name: "host", Version: 1}
	providers := []Provider{root}
	for i, total := range units {
		providers = append(providers,
			Provider{UUID: numbered(i + 1), Name: fmt.Sprint("device ", i), Parent: root.UUID, Version: 1,
				Inventories: []Inventory{stocked("PGPU", total, 0)}})
	}
	r := &Request{}
	for i, amount := range amounts {
		r.Groups = append(r.Groups, Group{Suffix: fmt.Sprintf("%03d", i), Resources: []Amount{{"PGPU", amount}}})
	}
	return NewWorld(cloudNames, providers), r
}

func repeated[V any](value V, times int) []V { return slices.Repeat([]V{value}, times) }

// TestGroupsThatFillTheDevicesAreFound packs amounts that fit exactly, and
// amounts that exceed the room by one unit. It must decide in few steps, in any
// order of the amounts.
func TestGroupsThatFillTheDevicesAreFound(t *testing.T) {
	t.Parallel()
	all := slices.Concat(repeated(int64(5), 12), repeated(int64(3), 12), repeated(int64(2), 12))
	for round := range uint64(20) {
		amounts := slices.Clone(all)
		if chance := rand.New(rand.NewPCG(round, 9)); round > 0 {
			chance.Shuffle(len(amounts), func(i, k int) { amounts[i], amounts[k] = amounts[k], amounts[i] })
		}
		w, r := packing(repeated(int32(10), 12), amounts)
		packsExactly(t, w, r)
	}
	// The sums fit, but no device holds three amounts of 4.
	w, r := packing(repeated(int32(10), 12), slices.Concat(repeated(int64(4), 25), repeated(int64(1), 20)))
	if page, err := Candidates(w, r, nil, 50); err != nil || len(page.Candidates) != 0 || page.Steps > 50_000 {
		t.Errorf("25 of 4 on 12 of 10: %d candidates in %d steps, %v", len(page.Candidates), page.Steps, err)
	}
}

// packsExactly checks that a request that fits exactly has candidates, and that
// the request for one unit more has none.
func packsExactly(t *testing.T, w *World, r *Request) {
	t.Helper()
	page, err := Candidates(w, r, nil, 50)
	if err != nil || len(page.Candidates) != 50 || page.Steps > 500_000 {
		t.Fatalf("%d candidates in %d steps, %v: %v", len(page.Candidates), page.Steps, err, r.Groups)
	}
	for _, c := range page.Candidates {
		if err := Check(w, r, c); err != nil {
			t.Fatal(err)
		}
	}
	next, err := Candidates(w, r, &page.Positions[49], 50)
	if err != nil || len(next.Candidates) != 50 {
		t.Fatalf("the next page has %d candidates, %v", len(next.Candidates), err)
	}
	if n, exact, err := Count(w, r, 1000); n != 1000 || exact || err != nil {
		t.Errorf("Count says %d, %v, %v", n, exact, err)
	}
	two := slices.IndexFunc(r.Groups, func(g Group) bool { return g.Resources[0].Amount == 2 })
	r.Groups[two].Resources[0].Amount = 3 // exceeds the room by one unit
	if page, err := Candidates(w, r, nil, 50); err != nil || len(page.Candidates) != 0 || page.Steps > 5000 {
		t.Errorf("a unit too many: %d candidates in %d steps, %v", len(page.Candidates), page.Steps, err)
	}
}

// TestPackingNeverLosesCandidates compares the answer with the definitions, for
// different amounts on different devices. Some devices are open to a few groups
// only.
func TestPackingNeverLosesCandidates(t *testing.T) {
	t.Parallel()
	full := 0
	for seed := range uint64(400) {
		chance := rand.New(rand.NewPCG(seed, 3))
		units := make([]int32, 2+chance.IntN(3))
		for i := range units {
			units[i] = int32(2 + chance.IntN(8))
		}
		amounts := make([]int64, 2+chance.IntN(5))
		for i := range amounts {
			amounts[i] = int64(1 + chance.IntN(5))
		}
		_, r := packing(units, amounts)
		providers := []Provider{{UUID: numbered(0), Name: "host", Version: 1}}
		for i, total := range units {
			p := Provider{UUID: numbered(i + 1), Name: fmt.Sprint("device ", i), Parent: numbered(0), Version: 1,
				Inventories: []Inventory{stocked("PGPU", total, int64(chance.IntN(2)))}}
			if chance.IntN(3) == 0 {
				p.Traits = []string{"CUSTOM_RARE"}
			}
			providers = append(providers, p)
		}
		for i := range r.Groups {
			if chance.IntN(4) == 0 {
				r.Groups[i].Forbidden = []string{"CUSTOM_RARE"}
			}
		}
		want := newOracle(providers).candidates(r)
		if got := render(every(t, NewWorld(cloudNames, providers), r)); got != render(want) {
			t.Fatalf("seed %d: got\n%s\nwant\n%s", seed, got, render(want))
		}
		if len(want) > 0 {
			full++
		}
	}
	if full < 50 {
		t.Errorf("%d requests of 400 have candidates", full)
	}
}

// TestPackingOfManySizesIsBounded requests as many different amounts as there
// may be groups. The answer may be ErrTooComplex, but must come within
// MaxSteps.
func TestPackingOfManySizesIsBounded(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		chance := rand.New(rand.NewPCG(seed, 64))
		var amounts []int64
		var sum int64
		for range MaxGroups {
			amounts = append(amounts, int64(100+chance.IntN(900)))
			sum += amounts[len(amounts)-1]
		}
		w, r := packing(repeated(int32(sum/16)+1, 16), amounts)
		if _, err := Candidates(w, r, nil, 1); err != nil && !errors.Is(err, ErrTooComplex) {
			t.Error(err)
		}
	}
}
