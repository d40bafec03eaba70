package placement

import (
	"slices"
	"time"
)

// MaxProviderNameLength is the maximum length of the name of a provider, in
// code points, as in the Placement reference.
const MaxProviderNameLength = 200

// MaxProviderTraits is the maximum number of traits of one provider.
const MaxProviderTraits = 1000

// Provider is one resource provider with all its data in placement. UUIDs are
// canonical (see CanonicalUUID). A Provider that a World holds or returns is
// never changed; copy before editing.
type Provider struct {
	UUID string
	Name string

	// Generation is the public counter that clients compare and set.
	Generation int64
	// Version grows with every write of the provider or of its allocations. A
	// World ignores a state older than the one it holds.
	Version int64
	// Row is the id of the provider's row in a store. If a uuid is used again,
	// the later provider has the greater row id.
	Row int64

	// Parent is the uuid of the parent provider, "" for a root. Root is the
	// uuid of the tree's root; the World fills it in.
	Parent string
	Root   string
	// Resource is the uuid of the linked resource, "" for none. ResourceRow is
	// the id of that resource's row in a store, 0 for none.
	Resource    string
	ResourceRow int64

	CreatedAt time.Time
	UpdatedAt time.Time

	Inventories []Inventory // sorted by resource class
	Traits      []string    // sorted names
	Aggregates  []string    // sorted uuids
}

// NewProvider is a provider to create. It follows
// `CreateResourceProviderInput`.
type NewProvider struct {
	Name string
	// UUID nil means that one is generated.
	UUID *string
	// Parent and Resource are uuids, nil for none.
	Parent   *string
	Resource *string
	// ParentName is the name of the parent, as an alternative to Parent.
	ParentName  *string
	Inventories []Inventory
	Traits      []string
	Aggregates  []string
}

// Provider returns the new provider, whose UUID must be set, in its initial
// state. The caller looks up the parent and sets the times and the rows.
func (n *NewProvider) Provider() Provider {
	created := Provider{UUID: *n.UUID, Name: n.Name,
		Inventories: slices.Clone(n.Inventories), Traits: slices.Clone(n.Traits),
		Aggregates: slices.Clone(n.Aggregates)}
	assign(&created.Resource, n.Resource)
	slices.Sort(created.Traits)
	created.Traits = slices.Compact(created.Traits)
	for i := range created.Inventories {
		of := &created.Inventories[i]
		of.Capacity, of.Used = Capacity(of.Total, of.Reserved, of.AllocationRatio), 0
	}
	return created
}

// Validate returns every problem of the new provider's form, each at its path
// below path ("input"). It does not check whether the things that the provider
// refers to exist.
func (n *NewProvider) Validate(path string) []Problem {
	var v validator
	v.require(IsProviderName(n.Name), under(path, "name"), providerNameRule)
	if n.UUID != nil && n.Parent != nil {
		v.require(*n.UUID != *n.Parent, under(path, "parent"), ownParentRule)
	}
	if n.ParentName != nil {
		v.require(n.Parent == nil, under(path, "parentName"), "cannot be combined with parent")
		v.require(*n.ParentName != n.Name, under(path, "parentName"), ownParentRule)
		v.require(IsProviderName(*n.ParentName), under(path, "parentName"), providerNameRule)
	}
	v.checkInventories(under(path, "inventories"), n.Inventories)
	traits, aggregates := ProviderTraits{Traits: n.Traits}, ProviderAggregates{Aggregates: n.Aggregates}
	return slices.Concat(v.problems, traits.Validate(path), aggregates.Validate(path))
}

// ProviderPatch is a change of a provider. A nil field stays unchanged; an
// empty Parent or Resource removes the link. It follows
// `UpdateResourceProviderInput`.
type ProviderPatch struct {
	Provider string // uuid
	NewName  *string
	Parent   *string // uuid
	Resource *string // uuid
}

// ApplyTo applies the patch to a provider.
func (p *ProviderPatch) ApplyTo(provider *Provider) {
	assign(&provider.Name, p.NewName)
	assign(&provider.Parent, p.Parent)
	assign(&provider.Resource, p.Resource)
}

// assign sets a field to a value, unless the value is nil.
func assign[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// IsProviderName reports whether a string is a valid name of a provider.
func IsProviderName(name string) bool { return isText(name, MaxProviderNameLength) }

const ownParentRule = "must not be the provider itself"

// Validate returns every problem of the patch's form, each at its path below
// path ("input").
func (p *ProviderPatch) Validate(path string) []Problem {
	var v validator
	if p.NewName != nil {
		v.require(IsProviderName(*p.NewName), under(path, "newName"), providerNameRule)
	}
	if p.Parent != nil {
		v.require(*p.Parent != p.Provider, under(path, "parent"), ownParentRule)
	}
	return v.problems
}

// ProviderTraits is the complete set of traits that a provider will have. It
// follows `SetProviderTraitsInput`.
type ProviderTraits struct {
	Provider string // uuid
	// Generation nil accepts any generation.
	Generation *int64
	Traits     []string
	DryRun     bool
}

// Validate returns every problem of the form of the names, each at its path
// below path ("input"). It does not check whether the traits exist. Duplicates
// are allowed, and count toward MaxProviderTraits.
func (p *ProviderTraits) Validate(path string) []Problem {
	var v validator
	path = under(path, "traits")
	v.atMost(MaxProviderTraits, path, len(p.Traits))
	for i, name := range p.Traits {
		v.require(isName(name), at(path, i), nameRule)
	}
	return v.problems
}

// ProviderAggregates is the complete set of aggregates that a provider will be
// a member of. It follows `SetProviderAggregatesInput`.
type ProviderAggregates struct {
	Provider string // uuid
	// Generation nil accepts any generation.
	Generation *int64
	Aggregates []string
	DryRun     bool
}

// Validate returns every problem of the aggregates, each at its path below path
// ("input"): too many, strings that are not UUIDs, and duplicates.
func (p *ProviderAggregates) Validate(path string) []Problem {
	var v validator
	path = under(path, "aggregates")
	v.atMost(MaxAggregates, path, len(p.Aggregates))
	seen := map[string]bool{}
	for i, aggregate := range p.Aggregates {
		v.checkDistinctUUID(seen, at(path, i), aggregate)
	}
	return v.problems
}
