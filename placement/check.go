package placement

// AllocationCheck is why an inventory cannot take an allocation.
type AllocationCheck int

const (
	// AllocationFits is no refusal.
	AllocationFits AllocationCheck = iota
	// NoInventory says that the provider has no inventory of the class.
	NoInventory
	// BelowMinUnit, AboveMaxUnit and NotStepMultiple say which rule on single amounts is broken.
	BelowMinUnit
	AboveMaxUnit
	NotStepMultiple
	// InsufficientCapacity says that the capacity does not suffice for all.
	InsufficientCapacity
)

func (r AllocationCheck) String() string {
	switch r {
	case AllocationFits:
		return "accepted"
	case NoInventory:
		return "the provider has no inventory of the class"
	case BelowMinUnit:
		return "the amount is below the inventory's minUnit"
	case AboveMaxUnit:
		return "the amount is above the inventory's maxUnit"
	case NotStepMultiple:
		return "the amount is not a multiple of the inventory's stepSize"
	default:
		return "the amount exceeds the inventory's free capacity"
	}
}

// CheckAllocation is the rule of a write: may a consumer that had ownOld units of an inventory (0 if none)
// have amount units instead, when all other consumers have othersUsed? As in the Placement reference, an
// inventory over its capacity accepts what does not raise its use, so that shrinking and repeating work.
// The inventory's Used is not looked at.
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
