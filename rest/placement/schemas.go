package placement

import (
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/rest"
)

// maxWhole bounds amounts to whole numbers that a float64 holds exactly.
const maxWhole = 1 << 53

// Patterns of names, uuids and suffixes.
const (
	namePattern   = "^[A-Z0-9_]+$"
	customPattern = "^CUSTOM_[A-Z0-9_]+$"
	uuidPattern   = "^[0-9a-fA-F-]{36}$"
	suffixed      = "[a-zA-Z0-9_-]{1,64}"
)

var (
	uuid    = &rest.Schema{Type: "string", UUID: true}
	text    = &rest.Schema{Type: "string"}
	integer = &rest.Schema{Type: "integer"}
	owner   = &rest.Schema{Type: "string", MinSize: 1, MaxSize: placement.MaxNameLength}
	custom  = rest.Members(0, rest.Must(0, "name",
		&rest.Schema{Type: "string", Pattern: customPattern, MaxSize: placement.MaxNameLength}))
	name    = &rest.Schema{Type: "string", Pattern: namePattern, MinSize: 1, MaxSize: placement.MaxNameLength}
	uuidSet = &rest.Schema{Type: "array", Items: uuid, Unique: true}
)

// generation is the required member with the generation that a request expects.
var generation = rest.Must(0, generationName, integer)

const generationName = "resource_provider_generation"

// providerSchema returns the schema of a provider with additional members.
func providerSchema(version int, more ...rest.Member) *rest.Schema {
	name := &rest.Schema{Type: "string", MaxSize: placement.MaxProviderNameLength}
	parent := &rest.Schema{Type: "string", UUID: true, Null: true}
	more = append(more, rest.Must(0, "name", name), rest.May(14, "parent_provider_uuid", parent))
	return rest.Members(version, more...)
}

// inventorySchema returns the schema of an inventory with additional members.
func inventorySchema(more ...rest.Member) *rest.Schema {
	from := func(minimum float64) *rest.Schema {
		return &rest.Schema{Type: "integer", Bounded: true, Minimum: minimum, Maximum: placement.MaxAmount}
	}
	const limit = placement.MaxAllocationRatio
	return rest.Members(0, append([]rest.Member{
		rest.Must(0, "total", from(1)), rest.May(0, "reserved", from(0)), rest.May(0, "min_unit", from(1)),
		rest.May(0, "max_unit", from(1)), rest.May(0, "step_size", from(1)),
		rest.May(0, "allocation_ratio", &rest.Schema{Type: "number", Bounded: true, Minimum: -limit, Maximum: limit}),
		rest.May(0, generationName, integer),
	}, more...)...)
}

// inventoriesSchema is the schema of all inventories of a provider.
func inventoriesSchema() *rest.Schema {
	return rest.Members(0, generation, rest.Must(0, "inventories", among(namePattern, inventorySchema(), 0)))
}

// allocationSchema returns the schema of the allocations of a consumer in a
// minor version. alone means that they are the body of a PUT of one consumer.
func allocationSchema(version int, alone bool) *rest.Schema {
	amount := &rest.Schema{Type: "integer", Bounded: true, Minimum: 1, Maximum: maxWhole}
	resources := rest.Must(0, "resources", rest.Each(namePattern, amount, 1))
	list := rest.Each(uuidPattern, rest.Members(version, rest.May(0, "generation", integer), resources), 0)
	switch {
	case version < 12:
		provider := rest.Members(version, rest.Must(0, "uuid", uuid))
		one := rest.Members(version, rest.Must(0, "resource_provider", provider), resources)
		list = &rest.Schema{Type: "array", MinSize: 1, Items: one}
	case version < 28 && alone:
		list.MinSize = 1
	}
	return rest.Members(version,
		rest.Must(0, "allocations", list), rest.Must(8, "project_id", owner), rest.Must(8, "user_id", owner),
		rest.Must(28, "consumer_generation", &rest.Schema{Type: "integer", Null: true}),
		rest.May(34, "mappings", among(suffixed, &rest.Schema{Type: "array", MinSize: 1, Items: uuid}, 1)),
		rest.Must(38, "consumer_type", name))
}

// among is rest.Each for an object that has other members, too.
func among(pattern string, of *rest.Schema, minSize int) *rest.Schema {
	schema := rest.Each(pattern, of, minSize)
	schema.Open = true
	return schema
}
