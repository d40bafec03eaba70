package placement_test

import (
	"slices"
	"testing"

	"github.com/cadastre-dev/cadastre/placement"
)

// TestAReplacementOfAProvider replaces parts of a provider. Absent parts stay
// unchanged, use stays with its class, a class in use cannot be removed, and
// the generation moves once.
func TestAReplacementOfAProvider(t *testing.T) {
	vcpu := placement.Inventory{ResourceClass: "VCPU", Total: 8, AllocationRatio: 2, Capacity: 16, Used: 3}
	disk := placement.Inventory{ResourceClass: "DISK_GB", Total: 9, AllocationRatio: 1, Capacity: 9}
	before := placement.Provider{UUID: "u", Generation: 4, Version: 9, Inventories: []placement.Inventory{disk, vcpu},
		Traits: []string{"A", "B"}, Aggregates: []string{"x"}}
	larger := placement.Inventory{ResourceClass: "VCPU", Total: 10, AllocationRatio: 2, Used: 77}
	for _, test := range []struct {
		name       string
		r          placement.Replacement
		generation int64
		change     func(p *placement.Provider)
		inUse      []string
	}{
		{"nothing", placement.Replacement{}, 4, func(*placement.Provider) {}, nil},
		{"the same traits, one twice", placement.Replacement{Traits: []string{"B", "A", "B"}},
			4, func(*placement.Provider) {}, nil},
		{"no traits", placement.Replacement{Traits: []string{}}, 5, func(p *placement.Provider) {
			p.Traits = nil
		}, nil},
		{"the same aggregates", placement.Replacement{Aggregates: []string{"x"}}, 5, func(*placement.Provider) {}, nil},
		{"inventories", placement.Replacement{Inventories: []placement.Inventory{larger}}, 5,
			func(p *placement.Provider) {
				p.Inventories = []placement.Inventory{{ResourceClass: "VCPU", Total: 10,
					AllocationRatio: 2, Capacity: 20, Used: 3}}
			}, nil},
		{"a used class less", placement.Replacement{Inventories: []placement.Inventory{disk}}, 5,
			func(p *placement.Provider) {
				p.Inventories = []placement.Inventory{disk}
			}, []string{"VCPU"}},
		{"all three", placement.Replacement{Inventories: []placement.Inventory{vcpu}, Traits: []string{"C"},
			Aggregates: []string{}}, 5, func(p *placement.Provider) {
			p.Inventories, p.Traits, p.Aggregates = []placement.Inventory{vcpu}, []string{"C"}, nil
		}, nil},
	} {
		want := before
		test.change(&want)
		after, moves, inUse := test.r.On(&before)
		if moves != (test.generation > 4) || after.Generation != test.generation ||
			after.Version != 10 || !slices.Equal(inUse, test.inUse) ||
			!slices.Equal(after.Inventories, want.Inventories) || !slices.Equal(after.Traits, want.Traits) ||
			!slices.Equal(after.Aggregates, want.Aggregates) {
			t.Errorf("%s: %+v, %v, in use %v", test.name, after, moves, inUse)
		}
	}
	if larger.Used != 77 || before.Inventories[1].Used != 3 {
		t.Error("an argument was changed")
	}
}
