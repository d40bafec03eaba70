package placement

// Claim replaces the allocations of consumers, all of them or none. It follows `SetAllocationsInput`.
type Claim struct {
	Consumers []ConsumerClaim
}

// ConsumerClaim is the whole set of allocations one consumer shall have.
type ConsumerClaim struct {
	UUID      string
	ProjectID string
	UserID    string
	// Type nil keeps the stored type.
	Type *string
	// Generation nil means that the consumer must have no allocations yet.
	Generation *int64
	// Allocations empty clears the consumer.
	Allocations []ProviderAllocation
	Mappings    []Mapping
}

// ProviderAllocation is what one provider gives.
type ProviderAllocation struct {
	Provider  string // uuid
	Resources []Amount
}

// Mapping names the providers that serve a request group; the suffix of the unsuffixed group is "".
type Mapping struct {
	Suffix    string
	Providers []string // uuids
}

// Reshape moves inventories and the allocations against them in one step. It follows `ReshapeInput`.
type Reshape struct {
	Inventories []ProviderInventories
	Consumers   []ConsumerClaim
}

// ProviderInventories is the whole set of inventories one provider shall have.
type ProviderInventories struct {
	Provider string // uuid
	// Generation nil is unconditional.
	Generation  *int64
	Inventories []Inventory
}
