package placement

// MaxProviderTraits is how many traits one provider has at most.
const MaxProviderTraits = 1000

// NewProvider is a provider to be created. It follows `CreateResourceProviderInput`.
type NewProvider struct {
	Name string
	// UUID nil asks for a new one.
	UUID *string
	// Parent and Resource are uuids, nil for none.
	Parent   *string
	Resource *string
}

// Validate names everything that is wrong with the new provider's form, each problem below path ("input").
func (n *NewProvider) Validate(path string) []Problem {
	found := problems(ValidateProviderName(under(path, "name"), n.Name))
	if n.UUID != nil && n.Parent != nil && *n.UUID == *n.Parent {
		found.add(under(path, "parent"), "must not be the provider itself")
	}
	return found
}

// ProviderTraits is the whole set of traits one provider shall have. It follows `SetProviderTraitsInput`.
type ProviderTraits struct {
	Provider string // uuid
	// Generation nil is unconditional.
	Generation *int64
	Traits     []string
}

// Validate names everything that is wrong with the form of the names, each problem below path ("input").
// Whether the traits exist is for the one who knows them; a name twice counts once.
func (p *ProviderTraits) Validate(path string) []Problem {
	var found problems
	path = under(path, "traits")
	found.tooMany(path, len(p.Traits), MaxProviderTraits)
	for i, name := range p.Traits {
		found = append(found, ValidateName(at(path, i), name)...)
	}
	return found
}

// ProviderAggregates is the whole set of aggregates one provider shall be in. It follows
// `SetProviderAggregatesInput`.
type ProviderAggregates struct {
	Provider string // uuid
	// Generation nil is unconditional.
	Generation *int64
	Aggregates []string
}

// Validate names everything that is wrong with the aggregates, each problem below path ("input"): each is a
// uuid and stands there once.
func (p *ProviderAggregates) Validate(path string) []Problem {
	var found problems
	path = under(path, "aggregates")
	found.tooMany(path, len(p.Aggregates), MaxAggregates)
	seen := map[string]bool{}
	for i, uuid := range p.Aggregates {
		validateOnce(&found, at(path, i), uuid, seen)
	}
	return found
}

// OneInventory is one inventory that a provider shall have. It follows `SetInventoryInput`.
type OneInventory struct {
	Provider string // uuid
	// Generation nil is unconditional.
	Generation *int64
	Inventory  Inventory
}

// InventoryClass names one inventory of a provider. It follows `DeleteInventoryInput`.
type InventoryClass struct {
	Provider string // uuid
	// Generation nil is unconditional.
	Generation    *int64
	ResourceClass string
}

// ProviderPatch says what shall change about a provider. A nil field stays; an empty Parent or Resource
// makes it have none.
type ProviderPatch struct {
	Provider string // uuid
	NewName  *string
	Parent   *string // uuid
	Resource *string // uuid
}

// Validate names everything that is wrong with the change's form, each problem below path ("input").
func (c *ProviderPatch) Validate(path string) []Problem {
	var found problems
	if c.NewName != nil {
		found = ValidateProviderName(under(path, "newName"), *c.NewName)
	}
	if c.Parent != nil && *c.Parent == c.Provider {
		found.add(under(path, "parent"), "must not be the provider itself")
	}
	return found
}
