package placement

import (
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/rest"
)

// maxWhole bounds amounts to whole numbers that JSON can hold exactly.
const maxWhole = 1 << 53

// Forms of names.
const (
	namePattern   = "^[A-Z0-9_]+$"
	customPattern = "^CUSTOM_[A-Z0-9_]+$"
	uuidPattern   = "^[0-9a-fA-F-]{36}$"
	numbered      = "[1-9][0-9]*"
	suffixed      = "[a-zA-Z0-9_-]{1,64}"
)

var (
	text    = &rest.Schema{Type: "string"}
	uuid    = &rest.Schema{Type: "string", UUID: true}
	integer = &rest.Schema{Type: "integer"}
	owner   = &rest.Schema{Type: "string", MinSize: 1, MaxSize: placement.MaxNameLength}
	custom  = members(0, member{name: "name", required: true,
		of: &rest.Schema{Type: "string", Pattern: customPattern, MaxSize: placement.MaxNameLength}})
	name    = &rest.Schema{Type: "string", Pattern: namePattern, MinSize: 1, MaxSize: placement.MaxNameLength}
	uuidSet = &rest.Schema{Type: "array", Items: uuid, Unique: true}
)

// member is a member of an object, or a parameter of a query.
type member struct {
	name     string
	since    int // the minor version that added it
	required bool
	of       *rest.Schema
}

// generation is the generation of a provider that a request was made for.
var generation = member{name: "resource_provider_generation", required: true, of: integer}

// members returns the schema of an object in a minor version. It has no other
// members.
func members(version int, list ...member) *rest.Schema {
	schema := &rest.Schema{Type: "object", Properties: map[string]*rest.Schema{}}
	for _, one := range list {
		if version < one.since {
			continue
		}
		schema.Properties[one.name] = one.of
		if one.required {
			schema.Required = append(schema.Required, one.name)
		}
	}
	return schema
}

// each returns the schema of an object whose names match a pattern.
func each(pattern string, of *rest.Schema, minSize int) *rest.Schema {
	return &rest.Schema{Type: "object", Patterns: map[string]*rest.Schema{pattern: of}, MinSize: minSize}
}

// among is each for an object that has other members, too.
func among(pattern string, of *rest.Schema, minSize int) *rest.Schema {
	schema := each(pattern, of, minSize)
	schema.Open = true
	return schema
}

func providersQuery(version int) *rest.Schema {
	return members(version, member{"name", 0, false, text}, member{"uuid", 0, false, uuid},
		member{"member_of", 3, false, text}, member{"resources", 4, false, text},
		member{"in_tree", 14, false, uuid}, member{"required", 18, false, text})
}

// providerSchema returns the schema of a provider with some members besides.
func providerSchema(version int, more ...member) *rest.Schema {
	name := &rest.Schema{Type: "string", MaxSize: placement.MaxProviderNameLength}
	parent := &rest.Schema{Type: "string", UUID: true, Null: true}
	more = append(more, member{"name", 0, true, name}, member{"parent_provider_uuid", 14, false, parent})
	return members(version, more...)
}

// inventorySchema returns the schema of an inventory with some members besides.
func inventorySchema(more ...member) *rest.Schema {
	from := func(minimum float64) *rest.Schema {
		return &rest.Schema{Type: "integer", Bounded: true, Minimum: minimum, Maximum: placement.MaxAmount}
	}
	const limit = placement.MaxAllocationRatio
	return members(0, append([]member{
		{name: "total", required: true, of: from(1)}, {name: "reserved", of: from(0)},
		{name: "min_unit", of: from(1)}, {name: "max_unit", of: from(1)}, {name: "step_size", of: from(1)},
		{name: "allocation_ratio", of: &rest.Schema{Type: "number", Bounded: true, Minimum: -limit, Maximum: limit}},
		{name: generation.name, of: integer},
	}, more...)...)
}

// inventoriesSchema is the schema of all inventories of a provider.
func inventoriesSchema() *rest.Schema {
	return members(0, generation, member{"inventories", 0, true, among(namePattern, inventorySchema(), 0)})
}

// allocationSchema returns the schema of the allocations of a consumer in a
// minor version; alone means that a PUT of one consumer has it.
func allocationSchema(version int, alone bool) *rest.Schema {
	resources := member{name: "resources", required: true,
		of: each(namePattern, &rest.Schema{Type: "integer", Bounded: true, Minimum: 1, Maximum: maxWhole}, 1)}
	list := each(uuidPattern, members(version, member{name: "generation", of: integer}, resources), 0)
	switch {
	case version < 12:
		provider := members(version, member{name: "uuid", required: true, of: uuid})
		one := members(version, member{name: "resource_provider", required: true, of: provider}, resources)
		list = &rest.Schema{Type: "array", MinSize: 1, Items: one}
	case version < 28 && alone:
		list.MinSize = 1
	}
	return members(version,
		member{"allocations", 0, true, list}, member{"project_id", 8, true, owner}, member{"user_id", 8, true, owner},
		member{"consumer_generation", 28, true, &rest.Schema{Type: "integer", Null: true}},
		member{"mappings", 34, false, among(suffixed, &rest.Schema{Type: "array", MinSize: 1, Items: uuid}, 1)},
		member{"consumer_type", 38, true, name})
}

// candidatesSchema returns the schema of the query of candidates.
func candidatesSchema(version int) *rest.Schema {
	list := []member{
		{"limit", 16, false, &rest.Schema{Type: "string", Pattern: "^[1-9][0-9]*$", MinSize: 1}},
		{"group_policy", 25, false, &rest.Schema{Type: "string", Enum: []string{"none", "isolate"}}},
		{"root_required", 35, false, text}, {"same_subtree", 36, false, text},
	}
	if version < 25 {
		return members(version, append(list, member{"resources", 10, true, text}, member{"required", 17, false, text},
			member{"member_of", 21, false, text})...)
	}
	schema := members(version, list...)
	schema.Patterns = map[string]*rest.Schema{}
	for _, name := range groupKeys(version) {
		schema.Patterns["^"+name+suffixPattern(version)+"$"] = text
	}
	return schema
}

// groupKeys returns the parameters of groups.
func groupKeys(version int) []string {
	keys := []string{"resources", "required", "member_of"}
	if version >= 31 {
		keys = append(keys, "in_tree")
	}
	return keys
}

// suffixPattern matches the suffix of a group, and the absent one.
func suffixPattern(version int) string {
	if version >= 33 {
		return "(" + suffixed + ")?"
	}
	return "(" + numbered + ")?"
}
