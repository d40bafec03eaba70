package placement

import (
	"fmt"
	"math"
	"slices"
)

// MaxAllocationRatio is the maximum allocation ratio of an inventory, as in the
// Placement reference.
const MaxAllocationRatio = 3.40282e38

// Inventory is a provider's stock of one resource class.
type Inventory struct {
	ResourceClass   string
	Total           int32
	Reserved        int32
	MinUnit         int32
	MaxUnit         int32
	StepSize        int32
	AllocationRatio float64

	// Capacity is Capacity(Total, Reserved, AllocationRatio). The code that
	// makes an Inventory computes it once, so that the database and the World
	// agree to the unit. Used is the sum of all allocations; it may exceed
	// Capacity after the inventory shrank or after a claim with AsFound.
	Capacity int64
	Used     int64
}

// Free returns the amount that can still be allocated. It is negative if use
// exceeds the capacity.
func (i Inventory) Free() int64 { return i.Capacity - i.Used }

// Capacity returns (total - reserved) × allocationRatio without its fraction,
// in units of the class. Like the Placement reference it multiplies in float64.
// A product beyond int64 counts as the nearest int64, NaN as 0. The reference
// compares used + amount with the product itself. Amounts are whole, so
// comparing with the whole part decides the same: for every x that is not
// negative, n <= x exactly when n <= trunc(x).
func Capacity(total, reserved int32, allocationRatio float64) int64 {
	product := float64(int64(total)-int64(reserved)) * allocationRatio
	switch {
	case math.IsNaN(product):
		return 0
	case product >= math.MaxInt64:
		return math.MaxInt64
	case product <= math.MinInt64:
		return math.MinInt64
	}
	return int64(product)
}

// AllocationCheck is the result of CheckAllocation: a message for the user that
// says why an inventory cannot take an allocation, or AllocationFits.
type AllocationCheck string

// The results of CheckAllocation, and NoInventory for callers without an
// inventory.
const (
	AllocationFits       AllocationCheck = ""
	NoInventory          AllocationCheck = "the provider has no inventory of the class"
	BelowMinUnit         AllocationCheck = "the amount is below the inventory's minUnit"
	AboveMaxUnit         AllocationCheck = "the amount is above the inventory's maxUnit"
	NotStepMultiple      AllocationCheck = "the amount is not a multiple of the inventory's stepSize"
	InsufficientCapacity AllocationCheck = "the amount exceeds the inventory's free capacity"
)

// CheckAllocation checks whether a consumer that had ownOld units of an
// inventory may have amount units instead. All other consumers together have
// othersUsed units. As in the Placement reference, an inventory over its
// capacity accepts an amount that does not raise its use, so that a consumer
// can shrink or repeat its claim. CheckAllocation does not read the inventory's
// Used.
func CheckAllocation(inventory Inventory, othersUsed, ownOld, amount int64) AllocationCheck {
	switch {
	case amount < int64(inventory.MinUnit):
		return BelowMinUnit
	case amount > int64(inventory.MaxUnit):
		return AboveMaxUnit
	case inventory.StepSize > 1 && amount%int64(inventory.StepSize) != 0:
		return NotStepMultiple
	case amount <= inventory.Capacity-othersUsed:
		return AllocationFits
	case othersUsed+ownOld > inventory.Capacity && amount <= ownOld:
		return AllocationFits
	}
	return InsufficientCapacity
}

// ProviderInventories is the complete set of inventories that a provider will
// have.
type ProviderInventories struct {
	Provider string // uuid
	// Generation nil accepts any generation.
	Generation  *int64
	Inventories []Inventory
}

// InventoryChange is one inventory to create or replace. It follows
// `SetInventoryInput`.
type InventoryChange struct {
	Provider string // uuid
	// Generation nil accepts any generation.
	Generation *int64
	Inventory  Inventory
	DryRun     bool
}

// InventoryDeletion names one inventory of a provider. It follows
// `DeleteInventoryInput`.
type InventoryDeletion struct {
	Provider string // uuid
	// Generation nil accepts any generation.
	Generation    *int64
	ResourceClass string
	DryRun        bool
}

// ValidateInventories returns every problem of the inventories of one provider:
// too many inventories, the problems of each, and duplicate resource classes.
// It does not check whether the classes exist.
func ValidateInventories(path string, inventories []Inventory) []Problem {
	var v validator
	v.checkInventories(path, inventories)
	return v.problems
}

// ValidateInventory returns every problem of one inventory: a malformed class,
// a value out of its bounds, or a capacity that is negative or 2^63 or more.
// MinUnit may exceed MaxUnit, and StepSize and MaxUnit may exceed the total, as
// in the Placement reference. It does not check whether the class exists.
func ValidateInventory(path string, inventory Inventory) []Problem {
	var v validator
	v.checkInventory(path, inventory)
	return v.problems
}

func (v *validator) checkInventories(path string, inventories []Inventory) {
	v.atMost(MaxInventories, path, len(inventories))
	seen := map[string]bool{}
	for i, inventory := range inventories {
		v.checkInventory(at(path, i), inventory)
		v.duplicate(seen, under(at(path, i), "resourceClass"), "duplicate resource class %q", inventory.ResourceClass)
	}
}

func (v *validator) checkInventory(path string, inventory Inventory) {
	v.require(isName(inventory.ResourceClass), under(path, "resourceClass"), nameRule)
	v.atLeast(1, under(path, "total"), inventory.Total)
	v.atLeast(0, under(path, "reserved"), inventory.Reserved)
	v.atLeast(1, under(path, "minUnit"), inventory.MinUnit)
	v.atLeast(1, under(path, "maxUnit"), inventory.MaxUnit)
	v.atLeast(1, under(path, "stepSize"), inventory.StepSize)
	ratio := inventory.AllocationRatio
	if !v.checkRatio(under(path, "allocationRatio"), ratio) {
		return
	}
	if product := float64(int64(inventory.Total)-int64(inventory.Reserved)) * ratio; product >= math.MaxInt64 {
		v.add(under(path, "allocationRatio"), "must leave a capacity below 2^63")
	} else if Capacity(inventory.Total, inventory.Reserved, ratio) < 0 {
		v.add(under(path, "reserved"), "must not leave a negative capacity")
	}
}

// checkRatio checks an allocation ratio, and reports whether it is valid.
func (v *validator) checkRatio(path string, ratio float64) bool {
	valid := ratio >= 0 && ratio <= MaxAllocationRatio // NaN is not
	v.require(valid, path, "must be between 0 and 3.40282e38")
	return valid
}

// atLeast checks the lower bound of a 32-bit value.
func (v *validator) atLeast(bound int32, path string, value int32) {
	if value < bound {
		v.add(path, "must be between %d and 2147483647", bound)
	}
}

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
