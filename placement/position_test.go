package placement_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/cadastre-dev/cadastre/placement"
)

func TestPositionGoesOnAfterRowsVanish(t *testing.T) {
	t.Parallel()
	w := NewWorld(cloudNames, nestedCloud(3))
	r := &Request{Groups: []Group{
		{Suffix: "_A", Resources: amounts(Amount{"VGPU", 1})},
		{Suffix: "_B", Resources: amounts(Amount{"VCPU", 1})},
	}}
	all := every(t, w, r)
	for cut := range all {
		page, err := Candidates(w, r, nil, cut+1)
		if err != nil {
			t.Fatal(err)
		}
		last := page.Candidates[cut]
		// Everything that the last candidate of the page names is deleted
		// before the next page is requested.
		var gone []string
		for _, allocation := range last.Allocations {
			gone = append(gone, allocation.Provider)
		}
		smaller := w.With(Update{Deleted: gone})
		rest, err := Candidates(smaller, r, &page.Positions[cut], 1000)
		if err != nil {
			t.Fatal(err)
		}
		var want []Candidate
		for _, c := range all[cut+1:] {
			if !slices.ContainsFunc(c.Allocations, func(a ProviderAllocation) bool {
				return slices.Contains(gone, a.Provider)
			}) {
				want = append(want, c)
			}
		}
		// Children of a deleted provider are roots now and no longer part of
		// these trees.
		got := slices.DeleteFunc(rest.Candidates, func(c Candidate) bool { return !keys(all)[render([]Candidate{c})] })
		for _, c := range want {
			if before := keys(every(t, smaller, r)); before[render([]Candidate{c})] &&
				!keys(got)[render([]Candidate{c})] {
				t.Errorf("after %d: lost %s", cut, render([]Candidate{c}))
			}
		}
		for _, c := range got {
			if keys(all[:cut+1])[render([]Candidate{c})] {
				t.Errorf("after %d: repeated %s", cut, render([]Candidate{c}))
			}
		}
	}
}

func TestPositionOfAnotherRequestIsRefused(t *testing.T) {
	t.Parallel()
	w := NewWorld(cloudNames, flatCloud(5))
	r := &Request{Unsuffixed: threeClasses(1)}
	page, err := Candidates(w, r, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	other := &Request{Unsuffixed: threeClasses(2)}
	if _, err := Candidates(w, other, &page.Positions[0], 1); !errors.Is(err, ErrPositionMismatch) {
		t.Errorf("got %v", err)
	}
	for name, change := range map[string]func(r *Request){
		"forbidden":   func(r *Request) { r.Unsuffixed.Forbidden = []string{"CUSTOM_RARE"} },
		"requiredAll": func(r *Request) { r.Unsuffixed.RequiredAll = []string{"CUSTOM_RARE"} },
		"memberOf":    func(r *Request) { r.Unsuffixed.MemberOf = []AggregateFilter{{AnyOf: []string{numbered(1)}}} },
		"noneOf":      func(r *Request) { r.Unsuffixed.MemberOf = []AggregateFilter{{NoneOf: []string{numbered(1)}}} },
		"inTree":      func(r *Request) { r.Unsuffixed.InTree = numbered(1) },
		"groups":      func(r *Request) { r.Groups = []Group{{Suffix: "1"}} },
		"subtree":     func(r *Request) { r.SameSubtree = []Subtree{{Suffixes: []string{"1"}}} },
		"policy":      func(r *Request) { r.Policy = GroupPolicyIsolate },
		"root":        func(r *Request) { r.RootRequired = []string{"CUSTOM_RARE"} },
		"order":       func(r *Request) { r.Order = BreadthFirst },
		"rootNot":     func(r *Request) { r.RootForbidden = []string{"CUSTOM_RARE"} },
	} {
		other := *r
		change(&other)
		if _, err := Candidates(w, &other, &page.Positions[0], 1); !errors.Is(err, ErrPositionMismatch) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestPositionTextIsShortAndSafe(t *testing.T) {
	t.Parallel()
	w := NewWorld(cloudNames, devices(21))
	page, err := Candidates(w, deviceGroups(21, GroupPolicyIsolate), nil, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, position := range page.Positions {
		text := position.String()
		if len(text) > 600 || strings.ContainsAny(text, "+/= ") {
			t.Errorf("%d characters: %s", len(text), text)
		}
		again, err := ParsePosition(text)
		if err != nil || again.String() != text {
			t.Errorf("%v", err)
		}
		for i := range text { // a shortened string must be refused
			if _, err := ParsePosition(text[:i]); err == nil {
				t.Errorf("the first %d characters pass", i)
			}
		}
	}
}

// TestPositionInDeepTreesIsShort pages through trees of any depth. Positions
// have fewer than 500 characters, and remain valid after their provider and its
// parent are deleted.
func TestPositionInDeepTreesIsShort(t *testing.T) {
	t.Parallel()
	for _, depth := range []int{1, 3, 20, 21, 22, 40, 300} {
		var providers []Provider
		for i := range depth {
			p := Provider{UUID: numbered(i), Name: fmt.Sprint("level ", i), Version: 1,
				Inventories: []Inventory{stocked("VCPU", 3, 0)}}
			if i > 0 {
				p.Parent = numbered(i - 1)
			}
			providers = append(providers, p)
		}
		w := NewWorld(cloudNames, providers)
		for _, slots := range []int{1, 2, 3} {
			r := &Request{}
			for i := range slots {
				r.Groups = append(r.Groups, Group{Suffix: fmt.Sprint(i), Resources: amounts(Amount{"VCPU", 1})})
			}
			goesOn(t, w, r, depth)
		}
		if depth == 300 {
			outlivesProviders(t, w, depth)
		}
	}
}

// goesOn continues after each position of a page, and checks that it is short.
func goesOn(t *testing.T, w *World, r *Request, depth int) {
	t.Helper()
	first, err := Candidates(w, r, nil, 2*depth+1)
	if err != nil {
		t.Fatal(err)
	}
	for cut := 0; cut < len(first.Positions); cut += 1 + depth/7 {
		text := first.Positions[cut].String()
		if len(text) >= 500 {
			t.Fatalf("%d characters for %d slots at depth %d", len(text), len(r.Groups), depth)
		}
		position, err := ParsePosition(text)
		if err != nil {
			t.Fatal(err)
		}
		rest, err := Candidates(w, r, &position, len(first.Candidates)-cut-1)
		if err != nil || render(rest.Candidates) != render(first.Candidates[cut+1:]) {
			t.Fatalf("%d slots at depth %d go on elsewhere after %d: %v", len(r.Groups), depth, cut, err)
		}
	}
}

// outlivesProviders continues after a position while its provider and then its
// ancestors are deleted, one after the other.
func outlivesProviders(t *testing.T, w *World, depth int) {
	t.Helper()
	r := &Request{Groups: []Group{{Suffix: "1", Resources: amounts(Amount{"VCPU", 1})}}}
	page, err := Candidates(w, r, nil, depth)
	if err != nil {
		t.Fatal(err)
	}
	last, err := ParsePosition(page.Positions[depth-1].String())
	if err != nil {
		t.Fatal(err)
	}
	gone := w
	for i := 1; i < 40; i++ {
		gone = gone.With(Update{Deleted: []string{numbered(depth - i)}})
		rest, err := Candidates(gone, r, &last, depth)
		if errors.Is(err, ErrPositionGone) && i > 10 {
			break
		}
		if err != nil || len(rest.Candidates) > 0 {
			t.Fatalf("%d providers are gone: %d candidates, %v", i, len(rest.Candidates), err)
		}
	}
}

func FuzzParsePosition(f *testing.F) {
	w := NewWorld(cloudNames, nestedCloud(2))
	r := &Request{Unsuffixed: threeClasses(1)}
	page, err := Candidates(w, r, nil, 10)
	if err != nil {
		f.Fatal(err)
	}
	for _, position := range page.Positions {
		f.Add(position.String())
	}
	f.Add("")
	f.Add("AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		position, err := ParsePosition(text)
		if err != nil {
			if !errors.Is(err, ErrInvalidPosition) {
				t.Fatal(err)
			}
			return
		}
		if _, err := Candidates(w, r, &position, 10); err != nil &&
			!errors.Is(err, ErrPositionMismatch) && !errors.Is(err, ErrPositionGone) {
			t.Fatal(err)
		}
	})
}
