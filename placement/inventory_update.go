package placement

import (
	"fmt"
	"slices"
)

// InventoryUpdate changes the inventories of one class of all providers that a
// filter selects. A nil value changes nothing. It follows
// `UpdateInventoriesInput`.
type InventoryUpdate struct {
	Filter        ProviderFilter
	ResourceClass string

	Reserved        *int32
	MinUnit         *int32
	MaxUnit         *int32
	StepSize        *int32
	AllocationRatio *float64
	// Atomic means that either all inventories are changed or none.
	Atomic bool
}

// Validate returns every problem of the class and of each value, or that no
// value is set, each at its path below path ("input"). It does not check the
// filter.
func (u *InventoryUpdate) Validate(w *World, path string) []Problem {
	v := validator{world: w}
	v.checkClass(under(path, "resourceClass"), u.ResourceClass)
	given := u.AllocationRatio != nil
	for _, value := range []struct {
		name  string
		bound int32
		value *int32
	}{{"reserved", 0, u.Reserved}, {"minUnit", 1, u.MinUnit}, {"maxUnit", 1, u.MaxUnit}, {"stepSize", 1, u.StepSize}} {
		if value.value != nil {
			given = true
			v.atLeast(value.bound, under(path, value.name), *value.value)
		}
	}
	if u.AllocationRatio != nil {
		v.checkRatio(under(path, "allocationRatio"), *u.AllocationRatio)
	}
	v.require(given, path, "must set reserved, minUnit, maxUnit, stepSize or allocationRatio")
	return v.problems
}

// On applies the valid update to a copy of a provider with an inventory of the
// class. It returns the copy and whether it differs: then its Version and its
// Generation are higher by 1. The problems are the ones of the inventory with
// the new values, each at its path below path.
func (u *InventoryUpdate) On(provider *Provider, path string) (after Provider, changes bool, problems []Problem) {
	after = *provider
	after.Inventories = slices.Clone(provider.Inventories)
	i := u.index(provider)
	of := &after.Inventories[i]
	assign(&of.Reserved, u.Reserved)
	assign(&of.MinUnit, u.MinUnit)
	assign(&of.MaxUnit, u.MaxUnit)
	assign(&of.StepSize, u.StepSize)
	assign(&of.AllocationRatio, u.AllocationRatio)
	if *of == provider.Inventories[i] {
		return *provider, false, nil
	}
	for _, problem := range ValidateInventory(path, *of) {
		problem.Message += fmt.Sprintf(" on the resource provider %q", provider.Name)
		problems = append(problems, problem)
	}
	of.Capacity = Capacity(of.Total, of.Reserved, of.AllocationRatio)
	after.Version++
	after.Generation++
	return after, true, problems
}

// Lacks reports whether a provider has no inventory of the class.
func (u *InventoryUpdate) Lacks(provider *Provider) bool { return u.index(provider) < 0 }

// IsOverused reports whether a provider with an inventory of the class has more
// of it in use than its capacity.
func (u *InventoryUpdate) IsOverused(provider *Provider) bool {
	of := &provider.Inventories[u.index(provider)]
	return of.Used > of.Capacity
}

// index returns the index of the provider's inventory of the class, -1 for none.
func (u *InventoryUpdate) index(provider *Provider) int {
	return slices.IndexFunc(provider.Inventories, func(of Inventory) bool {
		return of.ResourceClass == u.ResourceClass
	})
}
