package placement

import "time"

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
func (n *NewProvider) Validate(path string) []Violation {
	found := violations(ValidateProviderName(under(path, "name"), n.Name))
	if n.UUID != nil && n.Parent != nil && *n.UUID == *n.Parent {
		found.add(under(path, "parent"), "must not be the provider itself")
	}
	return found
}

// Validate names everything that is wrong with the form of the names, each problem below path ("input").
// Whether the traits exist is for the one who knows them; a name twice counts once.
func (p *ProviderTraits) Validate(path string) []Violation {
	var found violations
	path = under(path, "traits")
	found.tooMany(path, len(p.Traits), MaxProviderTraits)
	for i, name := range p.Traits {
		found = append(found, ValidateName(at(path, i), name)...)
	}
	return found
}

// Validate names everything that is wrong with the aggregates, each problem below path ("input"): each is a
// uuid and stands there once.
func (p *ProviderAggregates) Validate(path string) []Violation {
	var found violations
	path = under(path, "aggregates")
	found.tooMany(path, len(p.Aggregates), MaxAggregates)
	seen := map[string]bool{}
	for i, uuid := range p.Aggregates {
		validateOnce(&found, at(path, i), uuid, seen)
	}
	return found
}

// ValidateName checks what every name of a trait or resource class is made of.
func ValidateName(path, name string) []Violation {
	if isName(name) {
		return nil
	}
	return []Violation{{Path: path, Rule: nameRule}}
}

// ProviderTraits is the whole set of traits one provider shall have. It follows `SetProviderTraitsInput`.
type ProviderTraits struct {
	Provider string // uuid
	// Generation nil is unconditional.
	Generation *int64
	Traits     []string
}

// ProviderAggregates is the whole set of aggregates one provider shall be in. It follows
// `SetProviderAggregatesInput`.
type ProviderAggregates struct {
	Provider string // uuid
	// Generation nil is unconditional.
	Generation *int64
	Aggregates []string
}

// Consumer is who uses resources. It exists while it has allocations.
type Consumer struct {
	UUID       string
	ProjectID  string
	UserID     string
	Type       *string
	Generation int64
	CreatedAt  time.Time
	UpdatedAt  time.Time
	// Released is what a consumer used until it was deleted; nil for one that is there.
	Released []*Allocation
}

// Allocation is what a consumer uses of a class on a provider.
type Allocation struct {
	Consumer      string // uuid
	Provider      string // uuid
	ResourceClass string
	Used          int64
}

// Trait is a quality that a provider has or has not.
type Trait struct {
	Name   string
	Custom bool
}

// ResourceClass is a kind of inventory.
type ResourceClass struct {
	Name   string
	Custom bool
}
