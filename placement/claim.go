package placement

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

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

// MaxDeleted is the maximum number of providers that are deleted together.
const MaxDeleted = 1000

// TreeDeletion deletes a provider. It follows `DeleteResourceProviderInput`.
type TreeDeletion struct {
	Provider string // uuid
	// WithDescendants means that the whole subtree is deleted, or nothing.
	WithDescendants bool
	DryRun          bool
}

// Deletion deletes all allocations of consumers. It follows
// `DeleteAllocationsForManyInput`.
type Deletion struct {
	Consumers []string // uuids
	// Atomic means that either all allocations are deleted or none.
	Atomic bool
	DryRun bool
}

// Validate returns every problem of the deletion's form, each at its path below
// path ("input"). It does not check existence.
func (d *Deletion) Validate(path string) []Problem { return validateConsumers(d.Consumers, path) }

// Delete releases the consumers of a valid deletion. It returns a refusal for
// each consumer without allocations and nil for the others, in the order of the
// input, each at its path below path ("input"). An atomic deletion with a
// refusal releases no consumer.
func (l *Ledger) Delete(deletion *Deletion, path string) []*Refusal {
	refused, found := make([]*Refusal, len(deletion.Consumers)), false
	path = under(path, "consumers")
	for i, uuid := range deletion.Consumers {
		if l.Consumer(uuid).Generation == 0 {
			found = true
			refused[i] = &Refusal{Kind: NotHeld,
				Problem: Problem{Path: at(path, i), Message: fmt.Sprintf("consumer %s has no allocations", uuid)}}
		}
	}
	for i, uuid := range deletion.Consumers {
		if refused[i] == nil && !(found && deletion.Atomic) {
			l.Release(uuid)
		}
	}
	return refused
}

// MaxHold is the maximum number of seconds of a hold.
const MaxHold = 24 * 60 * 60

// Confirmation ends the holds of consumers, which keep their allocations. It
// follows `ConfirmAllocationsInput`.
type Confirmation struct {
	Consumers []string // uuids
	DryRun    bool
}

// Validate returns every problem of the confirmation's form, each at its path
// below path ("input").
func (c *Confirmation) Validate(path string) []Problem {
	return validateConsumers(c.Consumers, path)
}

// validateConsumers returns the problems of a list of uuids of consumers, each at
// its path below path.
func validateConsumers(uuids []string, path string) []Problem {
	var v validator
	path = under(path, "consumers")
	v.require(len(uuids) > 0, path, "must name at least one consumer")
	v.atMost(MaxConsumers, path, len(uuids))
	seen := map[string]bool{}
	for i, uuid := range uuids {
		v.checkDistinctUUID(seen, at(path, i), uuid)
	}
	return v.problems
}

// Confirm ends the holds of all consumers of a valid confirmation and returns
// nil, or returns why it is refused and leaves the ledger unchanged. A consumer
// without a hold stays as it is. The refusals are in the order of the input,
// each at its path below path ("input").
func (l *Ledger) Confirm(confirmation *Confirmation, path string) []Refusal {
	var found refusals
	path = under(path, "consumers")
	for i, uuid := range confirmation.Consumers {
		switch consumer := l.Consumer(uuid); {
		case consumer.Generation == 0:
			found.add(NotHeld, at(path, i), "consumer %s has no allocations", uuid)
		case consumer.HasEnded:
			found.add(NotHeld, at(path, i), "the hold of consumer %s has ended", uuid)
		}
	}
	if len(found) > 0 {
		return found
	}
	for _, uuid := range confirmation.Consumers {
		consumer := l.Consumer(uuid)
		consumer.ExpiresAt = nil
		l.consumers[uuid] = &consumer
	}
	return nil
}

// ReleaseEnded is Release for a consumer whose hold has ended. It reports false
// for any other consumer.
func (l *Ledger) ReleaseEnded(uuid string) bool {
	return l.Consumer(uuid).HasEnded && l.Release(uuid)
}

// Mapping names the providers that serve a request group; the suffix of the
// unsuffixed group is "".
type Mapping struct {
	Suffix    string
	Providers []string // uuids
}

// MaxMappedProviders is the maximum number of providers in the mappings of a
// consumer. A provider counts each time that it is listed, in one group or in
// several. A candidate has at most MaxResources providers for the unsuffixed
// group and one for each other group.
const MaxMappedProviders = 1000

func (v *validator) checkMappings(path string, mappings []Mapping) {
	v.require(mappings == nil || len(mappings) > 0, path, "must name at least one group")
	v.atMost(MaxGroups+1, path, len(mappings))
	seen := map[string]bool{}
	named := 0
	for i, mapping := range mappings {
		path := at(path, i)
		if mapping.Suffix != "" && !isSuffix(mapping.Suffix) {
			v.add(under(path, "suffix"), "must be empty or 1 to 64 of A-Z, a-z, 0-9, _ and -")
		} else {
			v.duplicate(seen, under(path, "suffix"), "duplicate suffix %q", mapping.Suffix)
		}
		path = under(path, "providers")
		v.require(len(mapping.Providers) > 0, path, "must name at least one provider")
		for k, provider := range mapping.Providers {
			v.checkUUID(at(path, k), provider)
		}
		named += len(mapping.Providers)
	}
	if named > MaxMappedProviders {
		v.add(path, "has %d providers, at most %d are allowed", named, MaxMappedProviders)
	}
}

// SortedMappings returns mappings in the order of candidates: the unsuffixed
// group first, then by suffix. The providers of each are sorted by uuid,
// without duplicates.
func SortedMappings(mappings []Mapping) []Mapping {
	sorted := make([]Mapping, len(mappings))
	for i, mapping := range mappings {
		providers := slices.Sorted(slices.Values(mapping.Providers))
		sorted[i] = Mapping{Suffix: mapping.Suffix, Providers: slices.Compact(providers)}
	}
	slices.SortFunc(sorted, func(a, b Mapping) int { return cmp.Compare(a.Suffix, b.Suffix) })
	return sorted
}

// checkMapped refuses mappings that name a provider that does not exist.
func (c *claimCheck) checkMapped(mappings []Mapping, path string) {
	for i, mapping := range mappings {
		for k, provider := range mapping.Providers {
			if c.providers[provider] == nil && !c.known.Provider(provider) {
				c.refusals.add(UnknownReference, at(under(at(path, i), "providers"), k),
					"resource provider %s does not exist", provider)
			}
		}
	}
}
