package placement

import (
	"cmp"
	"slices"
)

// MaxReplacements is the maximum number of replacements in one request.
const MaxReplacements = 1000

// Replacement replaces all inventories, all traits or all aggregates of an
// existing provider, or several of the three. It follows
// `SetOnResourceProviderInput`.
type Replacement struct {
	// Provider is the uuid of the provider, ProviderName its name; set one of
	// them.
	Provider, ProviderName *string
	// Generation nil accepts any generation.
	Generation *int64
	// Nil lists stay unchanged.
	Inventories []Inventory
	Traits      []string
	Aggregates  []string
}

// Replacements are replacements to apply together, each to a different
// provider. It follows `SetOnResourceProvidersInput`.
type Replacements struct {
	Items []Replacement
	// Atomic means that either all of them are applied or none.
	Atomic bool
	DryRun bool
}

// KnownNames are the traits and resource classes that an input names and that
// exist.
type KnownNames struct{ Traits, ResourceClasses map[string]bool }

// Validate returns every problem of the replacement, each at its path below
// path ("input"): of its form, and traits and classes that do not exist. It
// does not look up the provider. Duplicate traits count toward the maximum.
func (r *Replacement) Validate(path string, known KnownNames) []Problem {
	var v validator
	switch {
	case r.Provider == nil && r.ProviderName == nil:
		v.add(under(path, "provider"), "is required without providerName")
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

// On applies the replacement to a provider. It returns the provider afterwards,
// whether its generation moves, and the classes with allocations that the
// replacement would remove; if there are any, the caller must refuse it.
// Replacing inventories or aggregates always moves the generation, replacing
// traits only if they change. Use is kept.
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

// replaceInventories returns the wanted inventories with the use of the present
// inventories of their classes. It also returns the classes in use that are not
// wanted.
func replaceInventories(before, wanted []Inventory) (after []Inventory, inUse []string) {
	after = slices.Clone(wanted)
	slices.SortFunc(after, func(a, b Inventory) int { return cmp.Compare(a.ResourceClass, b.ResourceClass) })
	for i := range after {
		of := &after[i]
		of.Capacity, of.Used = Capacity(of.Total, of.Reserved, of.AllocationRatio), 0
	}
	for _, held := range before {
		i, stays := slices.BinarySearchFunc(after, held.ResourceClass, func(i Inventory, class string) int {
			return cmp.Compare(i.ResourceClass, class)
		})
		switch {
		case stays:
			after[i].Used = held.Used
		case held.Used > 0:
			inUse = append(inUse, held.ResourceClass)
		}
	}
	return after, inUse
}
