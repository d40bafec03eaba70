package placement

import (
	"maps"
	"slices"
)

// Reshape moves inventories and the allocations against them in one step. It
// follows `ReshapeInput`.
type Reshape struct {
	Inventories []ProviderInventories
	Consumers   []ConsumerClaim
	// BeyondLimits means that no limit of a project refuses the reshape.
	BeyondLimits bool
	DryRun       bool
}

// Validate returns every problem of the reshape's form, each at its path below
// path ("input"). It does not check existence, capacity or generations.
func (r *Reshape) Validate(path string) []Problem {
	var v validator
	list := under(path, "inventories")
	v.require(len(r.Inventories) > 0, list, "must name at least one provider")
	v.atMost(MaxAllocations, list, len(r.Inventories))
	seen := map[string]bool{}
	for i, target := range r.Inventories {
		v.checkDistinctUUID(seen, under(at(list, i), "provider"), target.Provider)
		v.checkInventories(under(at(list, i), "inventories"), target.Inventories)
	}
	v.checkConsumers(under(path, "consumers"), r.Consumers)
	return v.problems
}

// Reshape applies a valid reshape and returns nil, or returns why it is
// refused. After a refusal the ledger must not be used any more. The claims are
// checked against the old and the new inventories together; then every listed
// provider keeps only its new ones. The refusals are of one kind, in the order
// of the input, each at its path below path ("input").
func (l *Ledger) Reshape(reshape *Reshape, path string, known Known) []Refusal {
	var found refusals
	list := under(path, "inventories")
	for i, target := range reshape.Inventories {
		l.addInventories(target, at(list, i), known, &found)
	}
	if len(found) > 0 {
		return found.ofLowestKind()
	}
	if refused := l.apply(&Claim{Consumers: reshape.Consumers, BeyondLimits: reshape.BeyondLimits},
		under(path, "consumers"), known); len(refused) > 0 {
		return refused
	}
	for i, target := range reshape.Inventories {
		l.removeInventories(target, under(at(list, i), "inventories"), &found)
	}
	return found
}

// addInventories adds the new inventories of a provider to the old ones. It
// replaces an old inventory of the same class.
func (l *Ledger) addInventories(target ProviderInventories, path string, known Known, found *refusals) {
	provider := l.providers[target.Provider]
	if provider == nil {
		found.add(UnknownReference, under(path, "provider"), "resource provider %s does not exist", target.Provider)
		return
	}
	if target.Generation != nil && *target.Generation != provider.Generation {
		found.add(GenerationConflict, under(path, "generation"), "resource provider %s has generation %d, not %d",
			target.Provider, provider.Generation, *target.Generation)
	}
	for i, inventory := range target.Inventories {
		class := inventory.ResourceClass
		if !known.ResourceClass(class) {
			found.addUnknown(UnknownClass(under(at(under(path, "inventories"), i), "resourceClass"), class))
		}
		inventory.Used = provider.Inventories[class].Used
		inventory.Capacity = Capacity(inventory.Total, inventory.Reserved, inventory.AllocationRatio)
		provider.Inventories[class] = inventory
	}
	if len(target.Inventories) > 0 {
		provider.Increments++
	}
}

// removeInventories removes the inventories of a provider that are not among
// the new ones. It adds a refusal for each that still has allocations.
func (l *Ledger) removeInventories(target ProviderInventories, path string, found *refusals) {
	provider := l.providers[target.Provider]
	kept := map[string]bool{}
	for _, inventory := range target.Inventories {
		kept[inventory.ResourceClass] = true
	}
	for _, class := range slices.Sorted(maps.Keys(provider.Inventories)) {
		if kept[class] {
			continue
		}
		if provider.Inventories[class].Used > 0 {
			found.add(InventoryInUse, path, "resource provider %s still has allocations of %s", target.Provider, class)
		}
		delete(provider.Inventories, class)
	}
	provider.Increments++
}
