package placement_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/cadastre-dev/cadastre/placement"
)

// taintedCloud has three hosts with a card each: one without taints, one whose
// card has a taint, and one that has a taint itself.
func taintedCloud() *World {
	names := Names{Traits: []string{"CUSTOM_TAINT_BROKEN", "CUSTOM_TAINT_MAINTENANCE"},
		ResourceClasses: []string{"VCPU", "VGPU"}}
	var providers []Provider
	for i, name := range []string{"free", "card", "host"} {
		host := Provider{UUID: numbered(2*i + 1), Name: name, Version: 1,
			Inventories: []Inventory{stocked("VCPU", 8, 0)}}
		card := Provider{UUID: numbered(2*i + 2), Name: name + "-0", Version: 1, Parent: host.UUID,
			Inventories: []Inventory{stocked("VGPU", 2, 0)}}
		switch name {
		case "card":
			card.Traits = []string{"CUSTOM_TAINT_BROKEN"}
		case "host":
			host.Traits = []string{"CUSTOM_TAINT_MAINTENANCE"}
		}
		providers = append(providers, host, card)
	}
	return NewWorld(names, providers)
}

// rootNames returns the names of the roots of all candidates, sorted.
func rootNames(t *testing.T, w *World, r *Request) string {
	t.Helper()
	var names []string
	for _, c := range every(t, w, r) {
		root, _ := w.Provider(c.Root)
		names = append(names, root.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestTaintsRepelRequestsThatDoNotTolerateThem(t *testing.T) {
	t.Parallel()
	w := taintedCloud()
	cpu := Group{Resources: amounts(Amount{"VCPU", 1})}
	gpu := Group{Suffix: "_GPU", Resources: amounts(Amount{"VGPU", 1})}
	broken := gpu
	broken.RequiredAny = []string{"CUSTOM_TAINT_BROKEN"}
	alternatives := cpu
	alternatives.FirstOf = []Alternative{{RequiredAll: []string{"CUSTOM_TAINT_MAINTENANCE"}},
		{Resources: amounts(Amount{"VGPU", 1})}}
	for name, c := range map[string]struct {
		request Request
		want    string
	}{
		"a taint of a child repels from the child alone": {Request{Unsuffixed: cpu}, "card free"},
		"a taint of a root repels from its tree":         {Request{Groups: []Group{gpu}}, "free"},
		"one tolerated": {Request{Groups: []Group{gpu},
			Tolerates: []string{"CUSTOM_TAINT_BROKEN"}}, "card free"},
		"the other tolerated": {Request{Groups: []Group{gpu},
			Tolerates: []string{"CUSTOM_TAINT_MAINTENANCE"}}, "free host"},
		"a required taint": {Request{Groups: []Group{broken}}, "card"},
		"a required taint of the root": {Request{Unsuffixed: cpu,
			RootRequired: []string{"CUSTOM_TAINT_MAINTENANCE"}}, "host"},
		"a tree named by the request": {Request{Unsuffixed: Group{Resources: cpu.Resources, InTree: numbered(5)}}, ""},
		"alternatives, each alone":    {Request{Unsuffixed: alternatives}, "free host"},
	} {
		if problems := Validate(w, &c.request); len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
		if got := rootNames(t, w, &c.request); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
		if fit := Fits(w, &c.request); c.request.Unsuffixed.FirstOf == nil && (fit.AtLeast > 0) != (c.want != "") {
			t.Errorf("%s: %d fit", name, fit.AtLeast)
		}
	}
}

// TestDrainsMoveNothingToTaintedHosts drains two hosts: nothing moves to the
// third, which has room but a taint.
func TestDrainsMoveNothingToTaintedHosts(t *testing.T) {
	t.Parallel()
	held := []*Allocation{{Consumer: numbered(50), Provider: numbered(1), ResourceClass: "VCPU", Used: 8}}
	plan, err := (&Draining{Providers: []string{numbered(1), numbered(3)}, MovesPerHost: 1}).Plan(taintedCloud(), held)
	if err != nil || len(plan.Moves) != 0 || len(plan.Unplaced) != 1 {
		t.Errorf("%+v, %v", plan, err)
	}
}

func TestExplanationNamesTaints(t *testing.T) {
	t.Parallel()
	w := taintedCloud()
	r := &Request{Groups: []Group{{Suffix: "_GPU", Resources: amounts(Amount{"VGPU", 3})}}}
	want := `considered 6
tolerates CUSTOM_TAINT_BROKEN: -1, 5
tolerates CUSTOM_TAINT_MAINTENANCE: -2, 3
groups[0].resources VGPU: -2, 1
groups[0].resources VGPU:3: -1, 0
near free VGPU:1
near card VGPU:3`
	if got := explained(Explain(w, r)); got != want {
		t.Errorf("got\n%s", got)
	}

	var update Update
	for n := range 40 {
		taint := fmt.Sprintf("CUSTOM_TAINT_%02d", n)
		update.Added.Traits = append(update.Added.Traits, taint)
		update.Providers = append(update.Providers,
			Provider{UUID: numbered(100 + n), Name: taint, Version: 1, Traits: []string{taint}})
	}
	steps := Explain(w.With(update), r).Steps
	taints := slices.IndexFunc(steps, func(s ExplanationStep) bool { return s.Kind != ConstraintTaint })
	if taints != 17 || steps[16].Constraint != "tolerates" || steps[16].Remaining != 3 {
		t.Errorf("%d steps: %+v", taints, steps)
	}
}

func TestToleratesIsCheckedAndBelongsToTheCursor(t *testing.T) {
	t.Parallel()
	w, r := taintedCloud(), Request{Unsuffixed: Group{Resources: amounts(Amount{"VCPU", 1})}}
	r.Tolerates = []string{"VCPU", "CUSTOM_TAINT_NONE", "CUSTOM_TAINT_BROKEN", "MISC_SHARES_VIA_AGGREGATE"}
	var paths []string
	for _, p := range Validate(w, &r) {
		paths = append(paths, p.Path)
	}
	if want := "[tolerates[0] tolerates[1] tolerates[3]]"; fmt.Sprint(paths) != want {
		t.Errorf("got %v, want %s", paths, want)
	}

	r.Tolerates = []string{"CUSTOM_TAINT_MAINTENANCE", "CUSTOM_TAINT_BROKEN"}
	page, _ := Candidates(w, &r, nil, 1)
	for _, tolerates := range [][]string{nil, {"CUSTOM_TAINT_BROKEN"}} {
		other := r
		other.Tolerates = tolerates
		if _, err := Candidates(w, &other, &page.Positions[0], 1); err != ErrPositionMismatch {
			t.Errorf("%v: %v", tolerates, err)
		}
	}
	r.Tolerates = []string{"CUSTOM_TAINT_BROKEN", "CUSTOM_TAINT_MAINTENANCE", "CUSTOM_TAINT_BROKEN"}
	if _, err := Candidates(w, &r, &page.Positions[0], 1); err != nil {
		t.Errorf("%v", err)
	}
}
