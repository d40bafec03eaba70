package placement

import (
	"cmp"
	"slices"
)

// MaxReplacements is how many providers have parts replaced at once.
const MaxReplacements = 1000

// Replacement is what is to be replaced of a provider that exists: all
// inventories, all traits and all aggregates, or some of the three. It follows
// `SetOnResourceProviderInput`.
type Replacement struct {
	// Provider is the uuid, or ProviderName the name.
	Provider, ProviderName *string
	// Generation nil is unconditional.
	Generation *int64
	// What is nil stays.
	Inventories []Inventory
	Traits      []string
	Aggregates  []string
}

// Replacements are replacements that are made together, each of another provider.
// It follows `SetOnResourceProvidersInput`.
type Replacements struct {
	Items []Replacement
	// Atomic says that all of them are made or none.
	Atomic bool
}

// KnownNames are the traits and resource classes that exist, of those that are
// named.
type KnownNames struct{ Traits, ResourceClasses map[string]bool }

// Validate returns every problem of the replacement but for those of the provider,
// each at its path below path ("input"): of its form, and of traits and classes
// that do not exist. A trait that stands there twice counts once.
func (r *Replacement) Validate(path string, known KnownNames) []Problem {
	var v validator
	switch {
	case r.Provider == nil && r.ProviderName == nil:
		v.add(under(path, "provider"), "is required where no providerName is given")
	case r.Provider != nil && r.ProviderName != nil:
		v.add(under(path, "providerName"), "cannot be combined with provider")
	}
	v.checkInventories(under(path, "inventories"), r.Inventories)
	traits, aggregates := ProviderTraits{Traits: r.Traits}, ProviderAggregates{Aggregates: r.Aggregates}
	v.problems = slices.Concat(v.problems, traits.Validate(path), aggregates.Validate(path))
	v.checkKnown(path, r.Inventories, r.Traits, known)
	return v.problems
}

// checkKnown checks that the traits and the classes of inventories exist.
func (v *validator) checkKnown(path string, inventories []Inventory, traits []string, known KnownNames) {
	for i, name := range traits {
		if isName(name) && !known.Traits[name] {
			v.problems = append(v.problems, UnknownTrait(at(under(path, "traits"), i), name))
		}
	}
	for i, inventory := range inventories {
		if isName(inventory.ResourceClass) && !known.ResourceClasses[inventory.ResourceClass] {
			v.unknownClass(under(at(under(path, "inventories"), i), "resourceClass"), inventory.ResourceClass)
		}
	}
}

// On returns a provider as the replacement leaves it, whether that moves its
// generation, and the classes in use that it would take away: then it is refused.
// Inventories and aggregates move the generation even when they stay the same,
// traits only when they do not. What is used stays used.
func (r *Replacement) On(provider *Provider) (after Provider, moves bool, inUse []string) {
	after = *provider
	if r.Inventories != nil {
		moves = true
		after.Inventories, inUse = replaceInventories(provider.Inventories, r.Inventories)
	}
	if r.Traits != nil {
		after.Traits = sortedSet(r.Traits)
		moves = moves || !slices.Equal(after.Traits, provider.Traits)
	}
	if r.Aggregates != nil {
		moves = true
		after.Aggregates = sortedSet(r.Aggregates)
	}
	after.Version++
	if moves {
		after.Generation++
	}
	return after, moves, inUse
}

// replaceInventories returns inventories with the use that those before them have,
// by class, and the classes in use that are not among them.
func replaceInventories(before, wanted []Inventory) (after []Inventory, inUse []string) {
	after = slices.Clone(wanted)
	slices.SortFunc(after, func(a, b Inventory) int { return cmp.Compare(a.ResourceClass, b.ResourceClass) })
	for i := range after {
		of := &after[i]
		of.Capacity, of.Used = Capacity(of.Total, of.Reserved, of.AllocationRatio), 0
	}
	for _, held := range before {
		i, stays := slices.BinarySearchFunc(after, held.ResourceClass, func(i Inventory, class string) int { return cmp.Compare(i.ResourceClass, class) })
		switch {
		case stays:
			after[i].Used = held.Used
		case held.Used > 0:
			inUse = append(inUse, held.ResourceClass)
		}
	}
	return after, inUse
}
