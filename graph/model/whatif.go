package model

import "github.com/cadastre-dev/cadastre/placement"

// WhatIf is a world with changes that are not stored.
type WhatIf struct{ *placement.Foreseen }

// CapacityDifference is a sum of capacity before and after the changes of a
// what-if. Now or Then is nil if no provider has the class and group.
type CapacityDifference struct{ Now, Then *Capacity }

// Difference returns the first sums that the changes change, at most most.
func (w *WhatIf) Difference(by placement.CapacityGrouping, most int) []*CapacityDifference {
	found := w.Foreseen.Difference(by)
	differences := make([]*CapacityDifference, min(len(found), most))
	for i := range differences {
		differences[i] = &CapacityDifference{capacityIn(w.Before, found[i].Now), capacityIn(w.World, found[i].Then)}
	}
	return differences
}

// DifferenceRoots returns the roots of the trees of all sums.
func DifferenceRoots(differences []*CapacityDifference) []*ResourceProvider {
	var sums []*Capacity
	for _, difference := range differences {
		for _, sum := range []*Capacity{difference.Now, difference.Then} {
			if sum != nil {
				sums = append(sums, sum)
			}
		}
	}
	return rootsAmong(sums)
}
