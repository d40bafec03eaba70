package placement

// Refusal is why an inventory cannot take an allocation.
type Refusal int

const (
	// Accepted is no refusal.
	Accepted Refusal = iota
	// NoInventory says that the provider has no inventory of the class.
	NoInventory
	// BelowMinUnit, AboveMaxUnit and OffStep say which rule on single amounts is broken.
	BelowMinUnit
	AboveMaxUnit
	OffStep
	// OverCapacity says that the capacity does not suffice for all.
	OverCapacity
)

func (r Refusal) String() string {
	switch r {
	case Accepted:
		return "accepted"
	case NoInventory:
		return "the provider has no inventory of the class"
	case BelowMinUnit:
		return "the amount is below the inventory's minUnit"
	case AboveMaxUnit:
		return "the amount is above the inventory's maxUnit"
	case OffStep:
		return "the amount is not a multiple of the inventory's stepSize"
	default:
		return "the amount exceeds the inventory's free capacity"
	}
}

// CheckAllocation is the rule of a write: may a consumer that had ownOld units of an inventory (0 if none)
// have amount units instead, when all other consumers have othersUsed? As in the Placement reference, an
// inventory over its capacity accepts what does not raise its use, so that shrinking and repeating work.
// The inventory's Used is not looked at.
func CheckAllocation(inventory Inventory, othersUsed, ownOld, amount int64) Refusal {
	switch {
	case amount < int64(inventory.MinUnit):
		return BelowMinUnit
	case amount > int64(inventory.MaxUnit):
		return AboveMaxUnit
	case inventory.StepSize > 1 && amount%int64(inventory.StepSize) != 0:
		return OffStep
	case amount <= inventory.Capacity-othersUsed:
		return Accepted
	case othersUsed+ownOld > inventory.Capacity && amount <= ownOld:
		return Accepted
	}
	return OverCapacity
}
