package placement

import "time"

// Consumer is a user of resources. It exists while it has allocations.
type Consumer struct {
	UUID       string
	ProjectID  string
	UserID     string
	Type       *string
	Generation int64
	CreatedAt  time.Time
	UpdatedAt  time.Time
	// Held are its allocations, where they were read together with it: as the
	// transaction that returns it left them, or found them if it deleted it. Else
	// nil.
	Held []*Allocation
	// Mappings are by suffix, where Held is not nil.
	Mappings []Mapping
}

// Allocation is what a consumer uses of a resource class on a provider.
type Allocation struct {
	Consumer      string // uuid
	Provider      string // uuid
	ResourceClass string
	Used          int64
	// Holder is the consumer, where the two were read together; else nil.
	Holder *Consumer `json:"-"` // which has the allocation
}

// ConsumerFilter selects consumers; all fields that are not nil must hold.
type ConsumerFilter struct {
	ProjectID *string
	UserID    *string
	Type      *string
	Provider  *string // uuid of a provider it has an allocation on
}

// UsageGrouping is what consumers of a group have in common.
type UsageGrouping string

// The groupings.
const (
	UsagesByProject UsageGrouping = "PROJECT"
	UsagesByUser    UsageGrouping = "USER"
	UsagesByType    UsageGrouping = "TYPE"
)

// UsageFilter says whose use is added up. A nil field is no condition.
type UsageFilter struct {
	ProjectID    *string
	UserID       *string
	ConsumerType *string
	By           UsageGrouping
	// After is the key of a group, a project, a user or a type, that all groups
	// come after; nil for all groups.
	After *string
}

// UsageGroup is what all consumers of one project, user or type use together.
type UsageGroup struct {
	ProjectID     *string
	UserID        *string
	ConsumerType  *string
	ConsumerCount int
	Usages        []ResourceUsage // by class
}

// ResourceUsage is how much of a resource class is used.
type ResourceUsage struct {
	ResourceClass string
	Used          int64
}

// Claim replaces the allocations of consumers, all of them or none. It follows
// `SetAllocationsInput`.
type Claim struct {
	Consumers []ConsumerClaim
}

// ConsumerClaim is the whole set of allocations a consumer is to have.
type ConsumerClaim struct {
	UUID      string
	ProjectID string
	UserID    string
	// Type nil keeps the stored type.
	Type *string
	// Generation nil means that the consumer must have no allocations yet.
	Generation *int64
	// Allocations empty removes all allocations of the consumer.
	Allocations []ProviderAllocation
	// Mappings nil means that the groups are not known: none are kept.
	Mappings []Mapping
}

// ProviderAllocation is what is allocated on one provider.
type ProviderAllocation struct {
	Provider  string // uuid
	Resources []Amount
}

// Validate returns every problem of the claim's form, each at its path below
// path ("input"). It does not ask what exists, fits or has which generation.
func (c *Claim) Validate(path string) []Problem {
	var v validator
	path = under(path, "consumers")
	v.require(len(c.Consumers) > 0, path, "must name at least one consumer")
	v.checkConsumers(path, c.Consumers)
	return v.problems
}

func (v *validator) checkConsumers(path string, consumers []ConsumerClaim) {
	v.atMost(MaxConsumers, path, len(consumers))
	seen := map[string]bool{}
	for i, c := range consumers {
		path := at(path, i)
		v.checkDistinctUUID(seen, under(path, "uuid"), c.UUID)
		v.require(isText(c.ProjectID, MaxNameLength), under(path, "projectId"), idRule)
		v.require(isText(c.UserID, MaxNameLength), under(path, "userId"), idRule)
		if c.Type != nil {
			v.require(isName(*c.Type), under(path, "type"), nameRule)
		}
		v.checkAllocations(under(path, "allocations"), c.Allocations)
		v.checkMappings(under(path, "mappings"), c.Mappings)
	}
}

func (v *validator) checkAllocations(path string, allocations []ProviderAllocation) {
	v.atMost(MaxAllocations, path, len(allocations))
	seen := map[string]bool{}
	for i, allocation := range allocations {
		path := at(path, i)
		v.checkDistinctUUID(seen, under(path, "provider"), allocation.Provider)
		v.require(len(allocation.Resources) > 0, under(path, "resources"), "must name at least one amount")
		v.checkAmounts(under(path, "resources"), allocation.Resources)
	}
}
