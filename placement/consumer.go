package placement

import "time"

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

// UsageGroup is what the consumers of one type use between them.
type UsageGroup struct {
	ConsumerType  *string
	ConsumerCount int
	Usages        []ResourceUsage // by class
}

// ResourceUsage is how much of a class is used.
type ResourceUsage struct {
	ResourceClass string
	Used          int64
}

// ConsumerFilter selects consumers; all fields that are not nil must hold.
type ConsumerFilter struct {
	ProjectID *string
	UserID    *string
	Type      *string
	Provider  *string // uuid of a provider it has an allocation on
}

// TraitFilter selects traits; all fields that are not nil must hold.
type TraitFilter struct {
	StartsWith *string
	Names      []string // nil is no constraint, an empty list selects nothing
	Associated *bool    // with some provider
	Custom     *bool
}

// Validate names everything that is wrong with the filter, each problem below path.
func (f TraitFilter) Validate(path string) []Problem {
	var found problems
	found.tooMany(under(path, "names"), len(f.Names), MaxFilterList)
	return found
}

// ResourceClassFilter selects resource classes; all fields that are not nil must hold.
type ResourceClassFilter struct {
	Names  []string // nil is no constraint, an empty list selects nothing
	Custom *bool
}

// Validate names everything that is wrong with the filter, each problem below path.
func (f ResourceClassFilter) Validate(path string) []Problem {
	var found problems
	found.tooMany(under(path, "names"), len(f.Names), MaxFilterList)
	return found
}
