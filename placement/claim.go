package placement

import "time"

// Consumer is an entity that uses resources, for example a server. It exists
// while it has allocations.
type Consumer struct {
	UUID       string
	ProjectID  string
	UserID     string
	Type       *string
	Generation int64
	CreatedAt  time.Time
	UpdatedAt  time.Time
	// ExpiresAt is the end of a hold; nil for a consumer that is not held.
	ExpiresAt *time.Time
	// Held are the consumer's allocations if they were read together with the
	// consumer, else nil. A transaction that returns a consumer sets Held to the
	// allocations afterwards or, if it deleted the consumer, to the deleted ones.
	Held []*Allocation
	// Mappings are sorted by suffix. They are valid only if Held is not nil.
	Mappings []Mapping
}

// Allocation is an amount of a resource class that a consumer uses on a
// provider.
type Allocation struct {
	Consumer      string // uuid
	Provider      string // uuid
	ResourceClass string
	Used          int64
	// Holder is the consumer if it was read together with the allocation, else
	// nil.
	Holder *Consumer `json:"-"`
}

// ConsumerFilter selects consumers; all fields that are not nil must hold.
type ConsumerFilter struct {
	ProjectID *string
	UserID    *string
	Type      *string
	Provider  *string // uuid of a provider that the consumer has an allocation on
	// WithoutResource true selects consumers for whose uuid the viewer sees no
	// resource, false selects all others.
	WithoutResource *bool
	OlderThan       *time.Time // created before this time
	Held            *bool      // whether the consumer is held
}

// UsageGrouping selects by which attribute consumers are grouped.
type UsageGrouping string

// The groupings.
const (
	UsagesByProject UsageGrouping = "PROJECT"
	UsagesByUser    UsageGrouping = "USER"
	UsagesByType    UsageGrouping = "TYPE"
)

// UsageFilter selects the consumers whose use is summed. A nil field is no
// condition.
type UsageFilter struct {
	ProjectID    *string
	UserID       *string
	ConsumerType *string
	By           UsageGrouping
	// After restricts the result to groups after this key: a project, a user or
	// a type. Nil means all groups.
	After *string
}

// UsageGroup is the total use of the selected consumers of one project, user or
// type. Only that key is set. All keys are nil for consumers without a type.
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
	Held          int64 // the part of Used that held consumers use
}

// Claim replaces the allocations of consumers, all of them or none. It follows
// `SetAllocationsInput`.
type Claim struct {
	Consumers []ConsumerClaim
	// BeyondLimits means that no limit of a project refuses the claim.
	BeyondLimits bool
	// AsFound means that the amounts are copied from another system. Neither
	// limits nor the capacity and units of inventories refuse the claim.
	AsFound bool
	DryRun  bool
}

// ConsumerClaim is the complete set of allocations that a consumer will have.
type ConsumerClaim struct {
	UUID      string
	ProjectID string
	UserID    string
	// Type nil keeps the stored type.
	Type *string
	// Generation nil means that the consumer must have no allocations yet.
	Generation *int64
	// AnyGeneration skips the check of the generation, as the Placement API before
	// 1.28 does.
	AnyGeneration bool
	// Allocations empty removes all allocations of the consumer.
	Allocations []ProviderAllocation
	// Mappings nil means that the groups are unknown; stored mappings are
	// removed.
	Mappings []Mapping
	// ExpiresAt is the end of the hold. Nil means no hold and ends an earlier one.
	ExpiresAt *time.Time
}

// ProviderAllocation is the amounts allocated on one provider.
type ProviderAllocation struct {
	Provider  string // uuid
	Resources []Amount
}

// Validate returns every problem of the claim's form, each at its path below
// path ("input"). It does not check existence, capacity or generations.
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
