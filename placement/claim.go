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
	// Mappings nil says nothing of groups.
	Mappings []Mapping
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

// Validate names everything that is wrong with the claim's shape, each problem below path ("input"). What
// exists, fits and has which generation is for the database to say.
func (c *Claim) Validate(path string) []Problem {
	var found problems
	if len(c.Consumers) == 0 {
		found.add(under(path, "consumers"), "must name at least one consumer")
	}
	validateConsumers(&found, under(path, "consumers"), c.Consumers)
	return found
}

// Validate names everything that is wrong with the reshape's form, each problem below path ("input").
func (r *Reshape) Validate(path string) []Problem {
	var found problems
	here := under(path, "inventories")
	if len(r.Inventories) == 0 {
		found.add(here, "must name at least one provider")
	}
	found.tooMany(here, len(r.Inventories), MaxAllocations)
	seen := map[string]bool{}
	for i, inventories := range r.Inventories {
		validateOnce(&found, under(at(here, i), "provider"), inventories.Provider, seen)
		found = append(found, ValidateInventories(under(at(here, i), "inventories"), inventories.Inventories)...)
	}
	validateConsumers(&found, under(path, "consumers"), r.Consumers)
	return found
}

func validateConsumers(found *problems, path string, consumers []ConsumerClaim) {
	found.tooMany(path, len(consumers), MaxConsumers)
	seen := map[string]bool{}
	for i := range consumers {
		here, c := at(path, i), &consumers[i]
		validateOnce(found, under(here, "uuid"), c.UUID, seen)
		validateID(found, under(here, "projectId"), c.ProjectID)
		validateID(found, under(here, "userId"), c.UserID)
		if c.Type != nil {
			*found = append(*found, ValidateName(under(here, "type"), *c.Type)...)
		}
		validateAllocations(found, under(here, "allocations"), c.Allocations)
		validateMappings(found, under(here, "mappings"), c.Mappings)
	}
}

func validateAllocations(found *problems, path string, allocations []ProviderAllocation) {
	found.tooMany(path, len(allocations), MaxAllocations)
	seen := map[string]bool{}
	for i, allocation := range allocations {
		here := at(path, i)
		validateOnce(found, under(here, "provider"), allocation.Provider, seen)
		if len(allocation.Resources) == 0 {
			found.add(under(here, "resources"), "must name at least one amount")
		}
		validateAmounts(found, under(here, "resources"), allocation.Resources, nil)
	}
}

func validateMappings(found *problems, path string, mappings []Mapping) {
	if mappings != nil && len(mappings) == 0 {
		found.add(path, "must name at least one group when given")
	}
	found.tooMany(path, len(mappings), MaxGroups+1)
	seen := map[string]bool{}
	for i, mapping := range mappings {
		here := at(path, i)
		switch {
		case mapping.Suffix != "" && !isSuffix(mapping.Suffix):
			found.add(under(here, "suffix"), "must be empty or 1 to 64 of A-Z, a-z, 0-9, _ and -")
		case seen[mapping.Suffix]:
			found.add(under(here, "suffix"), "must not repeat the suffix %s", mapping.Suffix)
		}
		seen[mapping.Suffix] = true
		if len(mapping.Providers) == 0 {
			found.add(under(here, "providers"), "must name at least one provider")
		}
		found.tooMany(under(here, "providers"), len(mapping.Providers), MaxAllocations)
		for k, uuid := range mapping.Providers {
			validateUUID(found, at(under(here, "providers"), k), uuid)
		}
	}
}

// validateID checks the id of a project or user, which are any text.
func validateID(found *problems, path, id string) {
	if !isText(id, MaxNameLength) {
		found.add(path, "must be 1 to 255 characters of valid text")
	}
}

// validateOnce checks a uuid and that no earlier entry is the same one in any spelling.
func validateOnce(found *problems, path, uuid string, seen map[string]bool) {
	canonical, ok := CanonicalUUID(uuid)
	switch {
	case !ok:
		found.add(path, uuidRule)
	case seen[canonical]:
		found.add(path, "must not repeat the uuid %s", canonical)
	}
	seen[canonical] = true
}
