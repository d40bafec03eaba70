package graph_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/cadastre-dev/cadastre/graph"
)

// touch is a mutation that does not change the things that are read in a
// family, but has a payload that leads to them.
type touch struct {
	// before and after are mutations that prepare and undo the touch. The field
	// may use an id from before's answer.
	before, field, after string
}

// touches are the mutations with payloads that lead to things. Placeholders are
// ${extra} for the mark of a thing that no test reads, ${n} for a unique
// number, and ${new} for a UUID made of that number.
var touches = map[string]touch{
	"createNamespace": {
		field: `createNamespace(input: {name: "${project} ${n}", visibility: PUBLIC, resourceTypeAssociations: [{resourceType: "${type}"}]})`,
		after: `deleteNamespace(input: {name: "${project} ${n}"})`},
	"updateNamespace":         {field: `updateNamespace(input: {name: "${extra}", description: "${n}"})`},
	"deleteNamespaceContents": {field: `deleteNamespaceContents(input: {namespace: "${extra}", kinds: [OBJECTS]})`},
	"setDefaults":             {field: `setDefaults(input: {namespace: "${extra}", rules: [{resourceType: "${type}", projectId: "none", key: "k", value: "${n}"}]})`},
	"createProperty":          {field: `createProperty(input: {namespace: "${extra}", name: "p${n}", title: "p", type: STRING})`},
	"updateProperty":          {field: `updateProperty(input: {namespace: "${extra}", name: "shared", description: "${n}"})`},
	"deleteProperty": {
		before: `createProperty(input: {namespace: "${extra}", name: "p${n}", title: "p", type: STRING})`,
		field:  `deleteProperty(input: {namespace: "${extra}", name: "p${n}"})`},
	"createObject": {field: `createObject(input: {namespace: "${extra}", name: "o${n}", properties: [{name: "x", title: "x", type: STRING}]})`},
	"updateObject": {
		before: `createObject(input: {namespace: "${extra}", name: "o${n}", properties: [{name: "x", title: "x", type: STRING}]})`,
		field:  `updateObject(input: {namespace: "${extra}", name: "o${n}", description: "x"})`},
	"deleteObject": {
		before: `createObject(input: {namespace: "${extra}", name: "o${n}"})`,
		field:  `deleteObject(input: {namespace: "${extra}", name: "o${n}"})`},
	"setTags": {field: `setTags(input: {namespace: "${extra}", tags: [{name: "t${n}"}], mode: APPEND})`},
	"updateTag": {
		before: `setTags(input: {namespace: "${extra}", tags: [{name: "t${n}"}], mode: APPEND})`,
		field:  `updateTag(input: {namespace: "${extra}", name: "t${n}", newName: "u${n}"})`},
	"deleteTag": {
		before: `setTags(input: {namespace: "${extra}", tags: [{name: "t${n}"}], mode: APPEND})`,
		field:  `deleteTag(input: {namespace: "${extra}", name: "t${n}"})`},
	"updateResourceType":    {field: `updateResourceType(input: {name: "${type}", protected: true})`},
	"associateResourceType": {field: `associateResourceType(input: {namespace: "${extra}", resourceType: "${type}", prefix: "p${n}:"})`},
	"updateResourceTypeAssociation": {
		before: `associateResourceType(input: {namespace: "${extra}", resourceType: "${type}", prefix: "p${n}:"}) { resourceTypeAssociation { id } }`,
		field:  `updateResourceTypeAssociation(input: {id: "${id}", newPrefix: "q${n}:"})`},
	"disassociateResourceType": {
		before: `associateResourceType(input: {namespace: "${extra}", resourceType: "${type}", prefix: "p${n}:"}) { resourceTypeAssociation { id } }`,
		field:  `disassociateResourceType(input: {id: "${id}"})`},
	"shareNamespace": {field: `shareNamespace(input: {namespace: "${extra}", projectId: "p${n}"})`},
	"unshareNamespace": {
		before: `shareNamespace(input: {namespace: "${extra}", projectId: "p${n}"})`,
		field:  `unshareNamespace(input: {namespace: "${extra}", projectId: "p${n}"})`},
	"createResource": {
		field: `createResource(input: {type: "${type}", name: "x", uuid: "${new}", parent: "${resource}"})`,
		after: `deleteResource(input: {uuid: "${new}"})`},
	"createResources": {
		field: `createResources(input: {items: [{type: "${type}", name: "x", uuid: "${new}", parent: "${resource}"}]})`,
		after: `deleteResource(input: {uuid: "${new}"})`},
	"updateResource": {field: `updateResource(input: {uuid: "${extraResource}", newName: "${n}"})`},
	"deleteResource": {
		before: `createResource(input: {type: "${type}", name: "x", uuid: "${new}", parent: "${resource}"})`,
		field:  `deleteResource(input: {uuid: "${new}"})`},
	"setMetadata":            {field: `setMetadata(input: {resource: "${extraResource}", items: [{key: "k", value: "${n}"}]})`},
	"setMetadataOnResources": {field: `setMetadataOnResources(input: {items: [{resource: "${extraResource}", items: [{key: "k", value: "${n}"}]}]})`},
	"replaceMetadata":        {field: `replaceMetadata(input: {resource: "${extraResource}", items: [{key: "k", value: "${n}"}]})`},
	"deleteMetadata": {
		before: `setMetadata(input: {resource: "${extraResource}", items: [{key: "k${n}", value: "x"}]})`,
		field:  `deleteMetadata(input: {resource: "${extraResource}", keys: ["k${n}"]})`},
	"setResourceTags": {field: `setResourceTags(input: {resource: "${extraResource}", tags: ["t${n}"]})`},
	"setCapabilities": {field: `setCapabilities(input: {resource: "${extraResource}", capabilities: [{key: "other", value: "${n}"}]})`},
	"unsetCapabilities": {
		before: `setCapabilities(input: {resource: "${extraResource}", capabilities: [{key: "c${n}", value: "x"}]})`,
		field:  `unsetCapabilities(input: {resource: "${extraResource}", names: ["c${n}"]})`},
	"createCapability": {field: `createCapability(input: {resourceType: "${type}", name: "c${n}"})`},
	"setCapabilityVisibility": {
		before: `createCapability(input: {resourceType: "${type}", name: "c${n}", private: false})`,
		field:  `setCapabilityVisibility(input: {resourceType: "${type}", name: "c${n}", private: true})`},
	"deleteCapability": {
		before: `setCapabilities(input: {resource: "${extraResource}", capabilities: [{key: "c${n}", value: "x"}]})`,
		field:  `deleteCapability(input: {resourceType: "${type}", name: "c${n}", force: true})`},
	"createResourceProvider": {
		field: `createResourceProvider(input: {name: "${new}", uuid: "${new}", parent: "${provider}"})`,
		after: `deleteResourceProvider(input: {provider: "${new}"})`},
	"createResourceProviders": {
		field: `createResourceProviders(input: {items: [{name: "${new}", uuid: "${new}", parent: "${provider}"}]})`,
		after: `deleteResourceProvider(input: {provider: "${new}"})`},
	"updateResourceProvider": {field: `updateResourceProvider(input: {provider: "${extraProvider}", newName: "x${n}"})`},
	"deleteResourceProvider": {
		before: `createResourceProvider(input: {name: "${new}", uuid: "${new}", parent: "${provider}"})`,
		field:  `deleteResourceProvider(input: {provider: "${new}"})`},
	"setInventories": {field: `setInventories(input: {provider: "${extraProvider}", inventories: [{resourceClass: "${extraClass}", total: 1000}, {resourceClass: "VCPU", total: 1000000}]})`},
	"setInventory":   {field: `setInventory(input: {provider: "${extraProvider}", inventory: {resourceClass: "VCPU", total: 1000000}})`},
	"updateInventories": {
		before: `setInventory(input: {provider: "${extraProvider}", inventory: {resourceClass: "VCPU", total: 1000000}})`,
		field:  `updateInventories(input: {filter: {uuids: ["${extraProvider}"]}, resourceClass: "VCPU", allocationRatio: 2})`},
	"deleteInventory": {
		before: `setInventory(input: {provider: "${extraProvider}", inventory: {resourceClass: "DISK_GB", total: 1}})`,
		field:  `deleteInventory(input: {provider: "${extraProvider}", resourceClass: "DISK_GB"})`},
	"setOnResourceProviders": {field: `setOnResourceProviders(input: {items: [{provider: "${extraProvider}", traits: ["HW_CPU_X86_AVX"], aggregates: []}]})`},
	"setProviderTraits":      {field: `setProviderTraits(input: {provider: "${extraProvider}", traits: ["HW_CPU_X86_AVX"]})`},
	"setProviderAggregates":  {field: `setProviderAggregates(input: {provider: "${extraProvider}", aggregates: ["${new}"]})`},
	"setAllocations": {
		before: `setInventory(input: {provider: "${extraProvider}", inventory: {resourceClass: "VCPU", total: 1000000}})`,
		field:  `setAllocations(input: {consumers: [{uuid: "${new}", projectId: "p", userId: "u", allocations: [{provider: "${extraProvider}", resources: [{resourceClass: "VCPU", amount: 1}]}]}]})`,
		after:  `deleteAllocations(input: {consumer: "${new}"})`},
	"place": {
		before: `setInventory(input: {provider: "${extraProvider}", inventory: {resourceClass: "VCPU", total: 1000000}})`,
		field:  `place(input: {consumers: [{uuid: "${new}", projectId: "p", userId: "u"}], request: {inTree: "${extraProvider}", resources: [{resourceClass: "VCPU", amount: 1}]}})`,
		after:  `deleteAllocations(input: {consumer: "${new}"})`},
	"applyPlan": {
		before: `setInventory(input: {provider: "${extraProvider}", inventory: {resourceClass: "VCPU", total: 1000000}}) { __typename }
			b: setAllocations(input: {consumers: [{uuid: "${new}", projectId: "p", userId: "u", allocations: [{provider: "${extraProvider}", resources: [{resourceClass: "VCPU", amount: 1}]}]}]})`,
		field: `applyPlan(input: {moves: [{consumer: "${new}", consumerGeneration: 1, allocations: [{provider: "${extraProvider}", resources: [{resourceClass: "VCPU", amount: 1}]}]}]})`,
		after: `deleteAllocations(input: {consumer: "${new}"})`},
	"confirmAllocations": {
		before: `setInventory(input: {provider: "${extraProvider}", inventory: {resourceClass: "VCPU", total: 1000000}}) { __typename }
			b: place(input: {consumers: [{uuid: "${new}", projectId: "p", userId: "u"}], holdFor: 86400, request: {inTree: "${extraProvider}", resources: [{resourceClass: "VCPU", amount: 1}]}})`,
		field: `confirmAllocations(input: {consumers: ["${new}"]})`,
		after: `deleteAllocations(input: {consumer: "${new}"})`},
	"deleteAllocations": {
		before: `setInventory(input: {provider: "${extraProvider}", inventory: {resourceClass: "VCPU", total: 1000000}}) { __typename }
			b: setAllocations(input: {consumers: [{uuid: "${new}", projectId: "p", userId: "u", allocations: [{provider: "${extraProvider}", resources: [{resourceClass: "VCPU", amount: 1}]}]}]})`,
		field: `deleteAllocations(input: {consumer: "${new}"})`},
	"deleteAllocationsForMany": {
		before: `setInventory(input: {provider: "${extraProvider}", inventory: {resourceClass: "VCPU", total: 1000000}}) { __typename }
			b: setAllocations(input: {consumers: [{uuid: "${new}", projectId: "p", userId: "u", allocations: [{provider: "${extraProvider}", resources: [{resourceClass: "VCPU", amount: 1}]}]}]})`,
		field: `deleteAllocationsForMany(input: {consumers: ["${new}"]})`},
	"reshape": {field: `reshape(input: {inventories: [{provider: "${extraProvider}", inventories: [{resourceClass: "${extraClass}", total: 1000}, {resourceClass: "VCPU", total: 1000000}]}], consumers: []})`},
}

// nothingToRead are the mutations with payloads that lead to no existing thing.
var nothingToRead = []string{"createResourceType", "deleteNamespace", "deleteResourceType", "importNamespaces"}

// extra returns the thing of a family that touches write.
func extra(family int) thing { return thing{family, 9} }

// filled returns a part of a touch with its placeholders replaced.
func filled(text string, of thing, n int, id string) string {
	return os.Expand(text, func(name string) string {
		switch name {
		case "extra":
			return extra(of.family).mark()
		case "extraResource":
			return extra(of.family).resource()
		case "extraProvider":
			return extra(of.family).provider()
		case "extraClass":
			return extra(of.family).class()
		case "n":
			return fmt.Sprint(n)
		case "new":
			return fmt.Sprintf("dddddddd-0000-4000-8000-%012d", n)
		case "id":
			return id
		}
		return of.variable(name)
	})
}

// selected adds a selection to a mutation that has none.
func selected(text string) string {
	if text[len(text)-1] == '}' {
		return text
	}
	return text + " { __typename }"
}

// idIn returns the first id in an answer.
func idIn(value any) string {
	switch value := value.(type) {
	case map[string]any:
		if id, ok := value["id"].(string); ok {
			return id
		}
		for _, member := range value {
			if id := idIn(member); id != "" {
				return id
			}
		}
	}
	return ""
}

// prepared sends the preparation of a touch, and returns its field.
func (m touch) prepared(t *testing.T, executor *graph.Executor, of thing, n int) string {
	id := ""
	if m.before != "" {
		answer := interrupted(executor, "mutation { "+selected(filled(m.before, of, n, ""))+" }", never, nil)
		if len(answer.errors) > 0 {
			t.Errorf("before %s: %v", m.field, answer.errors)
		}
		id = idIn(answer.data)
	}
	return filled(m.field, of, n, id)
}

// undo sends the mutation after a touch.
func (m touch) undo(t *testing.T, executor *graph.Executor, of thing, n int) {
	if m.after == "" {
		return
	}
	if answer := interrupted(executor, "mutation { "+selected(filled(m.after, of, n, ""))+" }",
		never, nil); len(answer.errors) > 0 {
		t.Errorf("after %s: %v", m.field, answer.errors)
	}
}

// partsOf are the types that a payload shows as the mutation left them, by the
// type of the changed thing. Data beyond them is of one later instant.
var partsOf = map[string][]string{
	"Consumer":                {"Consumer", "Allocation"},
	"ResourceProvider":        {"Inventory"},
	"Resource":                {"MetadataItem", "ResourceCapability"},
	"PropertyDefinition":      {"Namespace"},
	"ObjectDefinition":        {"Namespace"},
	"Tag":                     {"Namespace"},
	"ResourceTypeAssociation": {"Namespace"},
}

// isOwn reports whether a path from a field of Mutation stays within the thing
// that the mutation changed.
func isOwn(p path) bool {
	if len(p) < 2 {
		return false
	}
	parts := partsOf[p[1].on]
	return !slices.ContainsFunc(p[2:], func(s step) bool { return !slices.Contains(parts, s.on) }) && len(p) < 5
}

// TestEveryPayloadIsRead checks that the mutations with payloads that lead to a
// type with a counter are those in touches and nothingToRead.
func TestEveryPayloadIsRead(t *testing.T) {
	t.Parallel()
	schema := schemaOf()
	leading := map[string]bool{}
	for _, of := range countedTypes(schema) {
		for _, p := range pathsTo(schema, "Mutation", of) {
			leading[p[0].field] = true
		}
	}
	known := slices.Clone(nothingToRead)
	for mutation := range touches {
		known = append(known, mutation)
	}
	slices.Sort(known)
	var wanted []string
	for mutation := range leading {
		wanted = append(wanted, mutation)
	}
	slices.Sort(wanted)
	if !slices.Equal(known, wanted) {
		t.Errorf("mutations that lead to a counter are\n%v, touches and nothingToRead have\n%v", wanted, known)
	}
}
