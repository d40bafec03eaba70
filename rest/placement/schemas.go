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
	custom  = closed([]string{"name"}, map[string]*rest.Schema{"name": {Type: "string", Pattern: customPattern, MaxSize: placement.MaxNameLength}})
	uuidSet = &rest.Schema{Type: "array", Items: uuid, Unique: true}
)

// closed returns the schema of an object without other members.
func closed(required []string, properties map[string]*rest.Schema) *rest.Schema {
	return &rest.Schema{Type: "object", Required: required, Properties: properties}
}

// each returns the schema of an object whose names match a pattern.
func each(pattern string, of *rest.Schema, minSize int) *rest.Schema {
	return &rest.Schema{Type: "object", Patterns: map[string]*rest.Schema{pattern: of}, MinSize: minSize}
}

// inventorySchema returns the schema of an inventory with some members that it
// requires besides.
func inventorySchema(required ...string) *rest.Schema {
	from := func(minimum float64) *rest.Schema {
		return &rest.Schema{Type: "integer", Bounded: true, Minimum: minimum, Maximum: placement.MaxAmount}
	}
	return closed(append([]string{"total"}, required...), map[string]*rest.Schema{
		"resource_provider_generation": integer, "total": from(1), "reserved": from(0), "min_unit": from(1), "max_unit": from(1), "step_size": from(1),
		"allocation_ratio": {Type: "number", Bounded: true, Minimum: -placement.MaxAllocationRatio, Maximum: placement.MaxAllocationRatio},
	})
}

// inventoriesSchema is the schema of all inventories of a provider.
func inventoriesSchema() *rest.Schema {
	list := each(namePattern, inventorySchema(), 0)
	list.Open = true
	return closed([]string{"resource_provider_generation", "inventories"}, map[string]*rest.Schema{"resource_provider_generation": integer, "inventories": list})
}

// allocationSchema returns the schema of the allocations of a consumer in a
// minor version; alone means that a PUT of one consumer has it.
func allocationSchema(version int, alone bool) *rest.Schema {
	resources := each(namePattern, &rest.Schema{Type: "integer", Bounded: true, Minimum: 1, Maximum: maxWhole}, 1)
	if version < 12 {
		named := closed([]string{"uuid"}, map[string]*rest.Schema{"uuid": uuid})
		one := closed([]string{"resource_provider", "resources"}, map[string]*rest.Schema{"resource_provider": named, "resources": resources})
		schema := closed([]string{"allocations"}, map[string]*rest.Schema{"allocations": {Type: "array", MinSize: 1, Items: one}})
		if version >= 8 {
			withOwners(schema)
		}
		return schema
	}
	one := closed([]string{"resources"}, map[string]*rest.Schema{"generation": integer, "resources": resources})
	list := each(uuidPattern, one, 0)
	if alone && version < 28 {
		list.MinSize = 1
	}
	schema := withOwners(closed([]string{"allocations"}, map[string]*rest.Schema{"allocations": list}))
	if version >= 28 {
		schema.Properties["consumer_generation"] = &rest.Schema{Type: "integer", Null: true}
		schema.Required = append(schema.Required, "consumer_generation")
	}
	if version >= 34 {
		mappings := each(suffixed, &rest.Schema{Type: "array", MinSize: 1, Items: uuid}, 1)
		mappings.Open = true
		schema.Properties["mappings"] = mappings
	}
	if version >= 38 {
		schema.Properties["consumer_type"] = &rest.Schema{Type: "string", Pattern: namePattern, MinSize: 1, MaxSize: placement.MaxNameLength}
		schema.Required = append(schema.Required, "consumer_type")
	}
	return schema
}

func withOwners(schema *rest.Schema) *rest.Schema {
	schema.Properties["project_id"], schema.Properties["user_id"] = owner, owner
	schema.Required = append(schema.Required, "project_id", "user_id")
	return schema
}

// candidatesSchema returns the schema of the query of candidates.
func candidatesSchema(version int) *rest.Schema {
	schema := &rest.Schema{Type: "object", Properties: map[string]*rest.Schema{}}
	add := func(since int, name string, of *rest.Schema) {
		if version >= since {
			schema.Properties[name] = of
		}
	}
	add(16, "limit", &rest.Schema{Type: "string", Pattern: "^[1-9][0-9]*$", MinSize: 1})
	add(25, "group_policy", &rest.Schema{Type: "string", Enum: []string{"none", "isolate"}})
	add(35, "root_required", text)
	add(36, "same_subtree", text)
	if version < 25 {
		schema.Required = []string{"resources"}
		add(10, "resources", text)
		add(17, "required", text)
		add(21, "member_of", text)
		return schema
	}
	suffix := numbered
	if version >= 33 {
		suffix = suffixed
	}
	schema.Patterns = map[string]*rest.Schema{}
	for _, name := range groupKeys(version) {
		schema.Patterns["^"+name+"("+suffix+")?$"] = text
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
