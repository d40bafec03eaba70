package client_test

// The tables of TestEveryFieldArrives. They name the required fields of inputs and
// the fixtures, not the fields under test.

// notWriters are the prefixes of mutations whose input has no fields to store.
// The goldens of place show the fields of its consumers, and the model of syncs
// the fields of their resources.
var notWriters = []string{"place", "apply", "confirm", "setLimits", "updateInventories", "syncResources", "endSync",
	"delete", "unset", "unload", "import", "stage", "unshare", "disassociate"}

// conditions are fields of inputs that are not stored: they state preconditions
// or control how the mutation runs.
var conditions = []string{"revision", "generation", "dryRun", "asFound", "atomic", "mode",
	"deleteKeys", "includeServiceOwned"}

// identities are fields of changes that identify the object to change.
var identities = []string{"object", "association"}

// renames maps fields of inputs to the fields that show them, if the names
// differ.
var renames = map[string][]string{
	"enumLabels":      {"enumMembers", "itemEnumMembers"},
	"items":           {"metadata"},
	"serviceMetadata": {"metadata"},
	"parentName":      {"parent"},
	"providerName":    {"name"},
	"provider":        {"uuid"},
	"resource":        {"uuid"},
	"projectId":       {"project"},
	"inventory":       {"inventories"},
	"rules":           {"defaults"},
	"key":             {"name"},
	"amount":          {"used"},
}

// shownBelow are the selections that show fields of an input in other objects.
var shownBelow = map[string]string{"userModifiable": "metadata { userModifiable }"}

// shownByItself are inputs that have the fields of the noun in the payload.
var shownByItself = map[string]string{"TagInput": "Tag", "ConsumerAllocationsInput": "Consumer",
	"SetInventoriesInput": "ResourceProvider"}

// flat are lists of inputs that a noun shows without a list.
var flat = []string{"resources"}

// fixtures are objects that inputs refer to.
const fixtures = `mutation {
	n: createNamespace(input: { name: "a", properties: [{ name: "p", title: "P", type: STRING }], tags: [{ name: "a" }], objects: [{ name: "a" }] }) { namespace { name } }
	trait: createTrait(input: { name: "CUSTOM_A" }) { trait { name } }
	r: createResource(input: { type: "physical:host", name: "a", uuid: "ffffffff-0000-4000-8000-000000000001" }) { resource { uuid } }
	p: createResourceProvider(input: { name: "a", uuid: "aaaaaaaa-0000-4000-8000-000000000001", inventories: [{ resourceClass: "VCPU", total: 100000 }] }) { resourceProvider { uuid } }
	c: createCapability(input: { resourceType: "physical:host", name: "a", private: false }) { capability { name } }
}`

// candidates are values of scalars to try.
var candidates = map[string][]any{
	"String": {"text", "a", "CUSTOM_A", "a:", "p#"},
	"UUID": {"ffffffff-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000001",
		"bbbbbbbb-0000-4000-8000-00000000#", "cccccccc-0000-4000-8000-00000000#"},
	"Boolean": {true, false},
	"Int":     {3, 1},
	"Int64":   {3},
	"Float":   {2.5, 2},
	"JSON":    {"a", 2, true},
}

// bases are inputs to which the test adds a field. There are several if a field
// needs another kind of object. Each # is replaced by a unique number; before
// is a mutation that creates the object to change.
var bases = map[string][]object{
	"CreateNamespaceInput": {{"name": "n#"}, {"name": "n#", "tags": []any{object{"name": "a"}}}},
	"UpdateNamespaceInput": {{"name": "n#",
		"before": `m: createNamespace(input: { name: "n#" }) { namespace { name } }`}},
	"PropertyInput":       kinds(object{"name": "q#", "title": "Q"}),
	"CreatePropertyInput": kinds(object{"namespace": "a", "name": "q#", "title": "Q"}),
	"UpdatePropertyInput": changedKinds(),
	"EnumLabelInput":      {{"value": "a", "label": "text"}},
	"ObjectInput": {{"name": "o#"},
		{"name": "o#", "properties": []any{object{"name": "a", "title": "A", "type": "STRING"}}}},
	"CreateObjectInput": {{"namespace": "a", "name": "o#"},
		{"namespace": "a", "name": "o#", "properties": []any{object{"name": "a", "title": "A", "type": "STRING"}}}},
	"UpdateObjectInput": {{"namespace": "a", "name": "o#",
		"before": `m: createObject(input: { namespace: "a", name: "o#", properties: [{ name: "a", title: "A", type: STRING }] }) { objectDefinition { name } }`}},
	"TagInput":     {{"name": "t#"}},
	"SetTagsInput": {{"namespace": "a", "mode": "APPEND"}},
	"UpdateTagInput": {{"namespace": "a", "name": "t#",
		"before": `m: setTags(input: { namespace: "a", tags: [{ name: "t#" }], mode: APPEND }) { tags { name } }`}},
	"CreateResourceTypeInput": {{"name": "T#"}},
	"UpdateResourceTypeInput": {{"name": "T#",
		"before": `m: createResourceType(input: { name: "T#" }) { resourceType { name } }`}},
	"ResourceTypeAssociationInput": {{"resourceType": "X::#"}},
	"AssociateResourceTypeInput":   {{"namespace": "a", "resourceType": "X::#"}},
	"UpdateResourceTypeAssociationInput": {{"id": "",
		"before": `m: associateResourceType(input: { namespace: "a", resourceType: "X::#" }) { resourceTypeAssociation { id } }`}},
	"SetDefaultsInput": {{"namespace": "n#", "rules": []any{},
		"before": `m: createNamespace(input: { name: "n#" }) { namespace { name } }`}},
	"DefaultRuleInput": {{"resourceType": "physical:host", "key": "a", "value": "text"},
		{"resourceType": "physical:host", "key": "a", "value": "text", "hasKey": "a", "hasValue": "a"}},
	"ShareNamespaceInput": {{"namespace": "a", "projectId": "project-#"}},

	"KeyValueInput":        {{"key": "a", "value": "text"}},
	"CreateResourceInput":  {{"type": "physical:host", "name": "r#"}},
	"CreateResourcesInput": {{}},
	"UpdateResourceInput":  {{"uuid": "cccccccc-0000-4000-8000-00000000#", "before": newResource}},
	"SetMetadataInput": {{"resource": "cccccccc-0000-4000-8000-00000000#",
		"items": []any{object{"key": "a", "value": "text"}}, "before": newResource}},
	"SetMetadataOnResourcesInput": {{"before": newResource}},
	"ReplaceMetadataInput": {{"resource": "cccccccc-0000-4000-8000-00000000#",
		"items": []any{object{"key": "a", "value": "text"}}, "before": newResource}},
	"SetResourceTagsInput":  {{"resource": "cccccccc-0000-4000-8000-00000000#", "before": newResource}},
	"SetCapabilitiesInput":  {{"resource": "cccccccc-0000-4000-8000-00000000#", "before": newResource}},
	"CreateCapabilityInput": {{"resourceType": "physical:host", "name": "c#"}},
	"SetCapabilityVisibilityInput": {{"resourceType": "physical:host", "name": "c#",
		"before": `m: createCapability(input: { resourceType: "physical:host", name: "c#" }) { capability { name } }`}},

	"InventoryInput":               {{"resourceClass": "VCPU", "total": 64}},
	"CreateResourceProviderInput":  {{"name": "p#"}, {"name": "p#", "before": newResource}},
	"CreateResourceProvidersInput": {{"before": newResource}},
	"UpdateResourceProviderInput": {{"provider": "dddddddd-0000-4000-8000-00000000#",
		"before": newProvider + " r: " + newResource[3:]}},
	"SetInventoriesInput": {{"provider": "dddddddd-0000-4000-8000-00000000#",
		"inventories": []any{}, "before": newProvider}},
	"SetInventoryInput":           {{"provider": "dddddddd-0000-4000-8000-00000000#", "before": newProvider}},
	"SetProviderTraitsInput":      {{"provider": "dddddddd-0000-4000-8000-00000000#", "before": newProvider}},
	"SetProviderAggregatesInput":  {{"provider": "dddddddd-0000-4000-8000-00000000#", "before": newProvider}},
	"SetOnResourceProviderInput":  {{"provider": "dddddddd-0000-4000-8000-00000000#"}, {}},
	"SetOnResourceProvidersInput": {{"before": newProvider}},
	"SetAllocationsInput":         {{}},
	"ConsumerAllocationsInput": {{"uuid": "eeeeeeee-0000-4000-8000-00000000#", "projectId": "a",
		"userId": "a", "allocations": []any{allocation}}},
	"ProviderAllocationInput":  {allocation},
	"ResourceAmountInput":      {{"resourceClass": "VCPU", "amount": 1}},
	"GroupMappingInput":        {{"suffix": "a", "providers": []any{"aaaaaaaa-0000-4000-8000-000000000001"}}},
	"ReshapeInput":             {{"inventories": []any{object{"provider": "dddddddd-0000-4000-8000-00000000#", "inventories": []any{}}}, "before": newProvider}},
	"CreateTraitInput":         {{"name": "CUSTOM_T#"}},
	"EnsureTraitsInput":        {{"names": []any{"CUSTOM_T#"}}},
	"CreateResourceClassInput": {{"name": "CUSTOM_C#"}},
}

var allocation = object{"provider": "aaaaaaaa-0000-4000-8000-000000000001",
	"resources": []any{object{"resourceClass": "VCPU", "amount": 1}}}

const (
	newResource = `m: createResource(input: { type: "physical:host", name: "r#", uuid: "cccccccc-0000-4000-8000-00000000#" }) { resource { uuid } }`
	newProvider = `m: createResourceProvider(input: { name: "p#", uuid: "dddddddd-0000-4000-8000-00000000#" }) { resourceProvider { uuid } }`
)

// kinds returns an input of a property with each kind of type, and with the
// operands of other keywords.
func kinds(base object) []object {
	var all []object
	for _, more := range []object{{"type": "STRING"}, {"type": "STRING", "enum": []any{"a", "b"}}, {"type": "NUMBER"},
		{"type": "INTEGER"}, {"type": "BOOLEAN"}, {"type": "ARRAY", "itemType": "STRING"}} {
		made := copied(base).(object)
		for key, value := range more {
			made[key] = value
		}
		all = append(all, made)
	}
	return all
}

// changedKinds returns changes of a property of each kind.
func changedKinds() []object {
	var all []object
	for _, more := range []string{`STRING`, `STRING, enum: ["a", "b"]`, `NUMBER`,
		`INTEGER`, `ARRAY, itemType: STRING`} {
		all = append(all, object{"namespace": "a", "name": "q#",
			"before": `m: createProperty(input: { namespace: "a", name: "q#", title: "Q", type: ` + more +
				` }) { propertyDefinition { name } }`})
	}
	return all
}
