package placement

import (
	"fmt"
	"math"
	"time"
)

// Provider is one resource provider with everything placement knows of it. UUIDs are canonical (see
// CanonicalUUID). A Provider that a World holds or returns is never changed; copy before editing.
type Provider struct {
	UUID string
	Name string

	// Generation is the public counter that clients compare-and-set; see the store for what moves it.
	Generation int64
	// Version grows with every write of anything below. A World ignores a state older than the one it holds.
	Version int64

	// Parent is the uuid of the parent provider, "" for a root. Root is the uuid of the tree's root;
	// the World fills it in.
	Parent string
	Root   string
	// Resource is the uuid of the linked resource, "" for none.
	Resource string

	CreatedAt time.Time
	UpdatedAt time.Time

	Inventories []Inventory // sorted by resource class
	Traits      []string    // sorted names
	Aggregates  []string    // sorted uuids
}

// Inventory is what a provider has of one resource class.
type Inventory struct {
	ResourceClass   string
	Total           int32
	Reserved        int32
	MinUnit         int32
	MaxUnit         int32
	StepSize        int32
	AllocationRatio float64

	// Capacity is Capacity(Total, Reserved, AllocationRatio), computed by whoever makes the Inventory and
	// kept with it, so that the database and the World agree to the unit. Used is the sum of all
	// allocations. Used may exceed Capacity after an inventory shrank.
	Capacity int64
	Used     int64
}

// Free is the amount still to be had; negative when more is used than the inventory now holds.
func (i Inventory) Free() int64 { return i.Capacity - i.Used }

// Capacity is (total - reserved) × allocationRatio without its fraction, in units of the class. The product
// is taken in float64 as the Placement reference does, and a product beyond int64 counts as the largest
// int64. The reference compares used + amount with the product itself; amounts being whole, the comparison
// with its whole part decides the same: n <= x exactly when n <= trunc(x), for every x that is not negative.
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

// Bounds of an inventory and of its provider, as the Placement reference has them.
const (
	MaxProviderNameLength = 200
	MaxAllocationRatio    = 3.40282e38
)

// ValidateInventories checks the inventories given for one provider: every bound, a capacity that is not
// negative, no class twice. That MinUnit may exceed MaxUnit, or StepSize or MaxUnit the total, is the
// reference's rule. Whether the classes exist is for the one who knows them.
func ValidateInventories(path string, inventories []Inventory) []Problem {
	var found problems
	found.tooMany(path, len(inventories), MaxInventories)
	seen := map[string]bool{}
	for i, inventory := range inventories {
		here := at(path, i)
		found = append(found, ValidateInventory(here, inventory)...)
		if seen[inventory.ResourceClass] {
			found.add(under(here, "resourceClass"), "must not repeat the class %s", inventory.ResourceClass)
		}
		seen[inventory.ResourceClass] = true
	}
	return found
}

// ValidateInventory checks one inventory's bounds; path is where it stands in the input.
func ValidateInventory(path string, inventory Inventory) []Problem {
	var found problems
	if !isName(inventory.ResourceClass) {
		found.add(under(path, "resourceClass"), nameRule)
	}
	atLeast := func(field string, value, least int32) {
		if value < least {
			found.add(under(path, field), fmt.Sprintf("must be between %d and 2147483647", least))
		}
	}
	atLeast("total", inventory.Total, 1)
	atLeast("reserved", inventory.Reserved, 0)
	atLeast("minUnit", inventory.MinUnit, 1)
	atLeast("maxUnit", inventory.MaxUnit, 1)
	atLeast("stepSize", inventory.StepSize, 1)

	ratio := inventory.AllocationRatio
	switch {
	case math.IsNaN(ratio) || ratio < 0 || ratio > MaxAllocationRatio:
		found.add(under(path, "allocationRatio"), "must be between 0 and 3.40282e38")
	case Capacity(inventory.Total, inventory.Reserved, ratio) < 0:
		found.add(under(path, "reserved"), "must not leave a negative capacity")
	}
	return found
}
