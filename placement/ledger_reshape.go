package placement

import (
	"fmt"
	"maps"
	"slices"
)

// Reshape applies a valid reshape to the ledger: the claims are judged against the old and the new
// inventories together, and then every listed provider keeps only its new ones. Knows says whether a class
// exists. Where it gives objections the ledger is of no more use. Objections are those of the first kind
// only, in the order of the input, each below path ("input").
func (l *Ledger) Reshape(reshape *Reshape, path string, knows func(class string) bool) []Refusal {
	j := &judgement{Ledger: l}
	for i, listed := range reshape.Inventories {
		j.interim(listed, at(under(path, "inventories"), i), knows)
	}
	if len(j.objections) > 0 {
		return j.firstKind()
	}
	if objections := l.apply(reshape.Consumers, under(path, "consumers"), knows); len(objections) > 0 {
		return objections
	}
	for i, listed := range reshape.Inventories {
		j.final(listed, at(under(path, "inventories"), i))
	}
	return j.objections
}

// interim puts the new inventories beside the old ones.
func (j *judgement) interim(listed ProviderInventories, path string, knows func(class string) bool) {
	stall := j.providers[listed.Provider]
	switch {
	case stall == nil:
		j.object(UnknownProvider, under(path, "provider"), fmt.Sprintf("there is no resource provider %s", listed.Provider))
		return
	case listed.Generation != nil && *listed.Generation != stall.Generation:
		j.object(GenerationConflict, under(path, "generation"), fmt.Sprintf("resource provider %s has generation %d, not %d", listed.Provider, stall.Generation, *listed.Generation))
	}
	for i, inventory := range listed.Inventories {
		if !knows(inventory.ResourceClass) {
			j.object(UnknownResourceClass, under(at(under(path, "inventories"), i), "resourceClass"), fmt.Sprintf("must be an existing resource class, %s is none", inventory.ResourceClass))
		}
		inventory.Used = stall.Inventories[inventory.ResourceClass].Used
		inventory.Capacity = Capacity(inventory.Total, inventory.Reserved, inventory.AllocationRatio)
		stall.Inventories[inventory.ResourceClass] = inventory
	}
	if len(listed.Inventories) > 0 {
		stall.Increments++
	}
}

// final takes away what is not among the new inventories.
func (j *judgement) final(listed ProviderInventories, path string) {
	stall := j.providers[listed.Provider]
	kept := map[string]bool{}
	for _, inventory := range listed.Inventories {
		kept[inventory.ResourceClass] = true
	}
	for _, class := range slices.Sorted(maps.Keys(stall.Inventories)) {
		if kept[class] {
			continue
		}
		if stall.Inventories[class].Used > 0 {
			j.object(InventoryInUse, under(path, "inventories"), fmt.Sprintf("resource provider %s still has allocations of %s", listed.Provider, class))
		}
		delete(stall.Inventories, class)
	}
	stall.Increments++
}
