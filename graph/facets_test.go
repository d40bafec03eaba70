package graph_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// The fixture of the lost-update tests: families of three things of each kind,
// linked with each other but not with other families. Each thing has a number
// in each facet, 1 at first, and a mark that identifies it.

// thingsOfFamily is the number of things of each kind in a family. Providers
// and resources form chains; namespaces and consumers have no parents.
const thingsOfFamily = 3

// thing is one of the things of a family, of any kind.
type thing struct{ family, index int }

func (t thing) mark() string      { return fmt.Sprintf("F%dT%d", t.family, t.index) }
func (t thing) text(n int) string { return fmt.Sprintf("%s n%d", t.mark(), n) }
func (t thing) class() string     { return "CUSTOM_" + t.mark() }
func (t thing) uuid(kind string) string {
	return fmt.Sprintf("%s-0000-4000-8000-%06d%06d", kind, t.family, t.index)
}
func (t thing) provider() string { return t.uuid("99999999") }
func (t thing) resource() string { return t.uuid("eeeeeeee") }
func (t thing) consumer() string { return t.resource() } // the resource is also the consumer
func (t thing) aggregate(n int) string {
	return fmt.Sprintf("aaaaaaaa-%04d-4%03d-8000-%012d", t.family, t.index, n)
}
func (t thing) resourceType() string { return fmt.Sprintf("X::F%d", t.family) }
func (t thing) otherType() string    { return fmt.Sprintf("Y::F%d", t.family) }
func (t thing) prefix(n int) string  { return fmt.Sprintf("%sn%d:", t.mark(), n) }
func (t thing) suffix(n int) string  { return fmt.Sprintf("%sn%d", t.mark(), n) }
func (t thing) project() string      { return fmt.Sprintf("F%d", t.family) }
func (t thing) trait(bit int) string { return fmt.Sprintf("CUSTOM_%s_B%d", t.mark(), bit) }
func (t thing) up() thing            { return thing{t.family, min(t.index, thingsOfFamily) - 1} }
func (t thing) traits(n int) (out []string) {
	out = []string{"CUSTOM_" + t.mark()}
	for bit := range traitBits {
		if n>>bit&1 == 1 {
			out = append(out, t.trait(bit))
		}
	}
	return out
}

// traitBits is the number of traits that encode the number of a provider.
const traitBits = 17

// baseTotal is the total of an inventory minus its number.
const baseTotal = 1_000_000

// familiesOf returns the content of a number of families.
func familiesOf(families int) store.Content {
	var content store.Content
	for family := range families {
		for index := range thingsOfFamily {
			thing{family, index}.addTo(&content)
		}
		extra(family).addTo(&content)
	}
	return content
}

// addTo adds one thing of each kind.
func (t thing) addTo(content *store.Content) {
	content.Definitions = append(content.Definitions, fmt.Sprintf(`{"namespace": %q, "display_name": %q, "visibility": "public", "owner": "operations",
		"properties": {"shared": {"title": %[1]q, "type": "integer", "maximum": 1}},
		"objects": [{"name": "group", "description": %[2]q, "properties": {"inner": {"title": "inner", "type": "string"}}}],
		"tags": [{"name": %[2]q}, {"name": "%[1]s below", "parent": %[2]q}],
		"resource_type_associations": [{"name": %[3]q}, {"name": %[4]q, "prefix": %[5]q}]}`,
		t.mark(), t.text(1), t.resourceType(), t.otherType(), t.prefix(1)))
	if t.index == 0 {
		content.Capabilities = append(content.Capabilities,
			store.CapabilityRecord{ResourceType: t.resourceType(), Name: "cap"})
	}
	record := store.ResourceRecord{UUID: t.resource(), Type: t.resourceType(), Name: t.mark(),
		Description: t.text(1), ProjectID: "operations",
		Visibility: access.Public,
		Metadata: []resource.MetadataItem{{Key: "inner", Value: "x", UserModifiable: true},
			{Key: "resources:" + t.class(), Value: "1", UserModifiable: true},
			{Key: "shared", Value: t.text(1), UserModifiable: true}},
		Capabilities: []metadef.KeyValue{{Key: "cap", Value: t.text(1)}}, Tags: []string{t.text(1)}}
	provider := placement.Provider{UUID: t.provider(), Name: t.mark(), Resource: t.resource(), Traits: t.traits(1),
		Aggregates: []string{t.aggregate(1)},
		Inventories: []placement.Inventory{{ResourceClass: t.class(), Total: baseTotal + 1,
			MinUnit: 1, MaxUnit: 2147483647, StepSize: 1,
			AllocationRatio: 1, Capacity: baseTotal + 1}}}
	if t.index > 0 {
		record.Parent, provider.Parent = t.up().resource(), t.up().provider()
	}
	content.Resources = append(content.Resources, record)
	content.Traits = append(content.Traits, "CUSTOM_"+t.mark())
	for bit := range traitBits {
		content.Traits = append(content.Traits, t.trait(bit))
	}
	content.ResourceClasses = append(content.ResourceClasses, t.class())
	content.Providers = append(content.Providers, provider)
	content.Claims = append(content.Claims,
		placement.Claim{Consumers: []placement.ConsumerClaim{{UUID: t.consumer(),
			ProjectID: t.project(), UserID: t.text(1),
			Allocations: []placement.ProviderAllocation{{Provider: t.provider(),
				Resources: []placement.Amount{{ResourceClass: t.class(), Amount: 1}}}},
			Mappings: []placement.Mapping{{Suffix: t.suffix(1), Providers: []string{t.provider()}}}}}})
}

// variable returns the value of a placeholder in familyArguments.
func (t thing) variable(name string) string {
	switch name {
	case "mark":
		return t.mark()
	case "tag":
		return t.mark() + " below"
	case "class":
		return t.class()
	case "provider":
		return t.provider()
	case "consumer":
		return t.consumer()
	case "resource":
		return t.resource()
	case "type":
		return t.resourceType()
	case "other":
		return t.otherType()
	case "project":
		return t.project()
	}
	return "$" + name
}

// familyArguments are arguments that lead a field to a family, with
// alternatives. A field without an entry takes no arguments.
var familyArguments = map[string][]string{
	"Query.node":  {`(id: "${id}")`},
	"Query.nodes": {`(ids: ["${id}", "${id}"])`},
	"Query.namespaces": {`(filter: {resourceTypes: ["${type}"]})`,
		`(filter: {search: "${mark}"}, last: 3)`},
	"Query.namespace":        {`(name: "${mark}")`},
	"Query.resourceTypes":    {`(filter: {names: ["${type}", "${other}"]})`},
	"Query.resourceType":     {`(name: "${type}")`},
	"Query.tags":             {`(search: "${mark}")`},
	"Query.definitions":      {`(resourceType: "${type}")`, `(resourceType: "${other}")`},
	"Query.validateMetadata": {`(resourceType: "${type}", values: [{key: "shared", value: "1"}, {key: "inner", value: "x"}])`, `(resource: "${resource}", values: [{key: "inner", value: "x"}])`},
	"Query.exportNamespaces": {`(names: ["${mark}"])`, `(resourceTypes: ["${type}"])`},
	"Query.resources": {`(filter: {types: ["${type}"]})`,
		`(filter: {uuids: ["${resource}"]}, last: 2)`},
	"Query.resource":          {`(uuid: "${resource}")`},
	"Query.explainResources":  {`(filter: {types: ["${type}"]})`},
	"Query.resourceProviders": {`(filter: {inTree: "${provider}"})`, `(filter: {name: "${mark}"})`},
	"Query.resourceProvider":  {`(name: "${mark}")`, `(uuid: "${provider}")`},
	"Query.capacity":          {`(groupBy: ROOT, filter: {uuids: ["${provider}"]})`},
	"Query.allocationCandidates": {`(resources: [{resourceClass: "${class}", amount: 1}], inTree: "${provider}")`,
		`(resources: [{resourceClass: "${class}", amount: 2000000000}], inTree: "${provider}")`},
	"Query.drainPlan":     {`(providers: ["${provider}"])`},
	"Query.rebalancePlan": {`(requests: [{request: {resources: [{resourceClass: "${class}", amount: 2}]}}], providers: ["${provider}"])`},
	"Query.survives":      {`(filter: {uuids: ["${provider}"]})`},
	"Query.whatIf":        {`(changes: [])`},
	"WhatIf.allocationCandidates": {`(resources: [{resourceClass: "${class}", amount: 1}], inTree: "${provider}")`,
		`(resources: [{resourceClass: "${class}", amount: 2000000000}], inTree: "${provider}")`},
	"WhatIf.capacity":  {`(groupBy: ROOT, filter: {uuids: ["${provider}"]})`},
	"WhatIf.drainPlan": {`(providers: ["${provider}"])`},
	"WhatIf.rebalancePlan": {
		`(requests: [{request: {resources: [{resourceClass: "${class}", amount: 2}]}}], providers: ["${provider}"])`},
	"Query.consumer": {`(uuid: "${consumer}")`},
	"Query.consumers": {`(filter: {projectId: "${project}"})`,
		`(filter: {provider: "${provider}"}, last: 1)`},
	"Query.lastRefusal":                 {`(consumer: "${consumer}")`},
	"Query.usages":                      {`(projectId: "${project}")`},
	"Query.limits":                      {`(projectId: "${project}")`},
	"Namespace.property":                {`(name: "shared")`, `(name: "shared", resourceType: "${type}")`},
	"Namespace.properties":              {``, `(resourceType: "${other}")`},
	"Namespace.object":                  {`(name: "group")`},
	"Namespace.objects":                 {``, `(resourceType: "${type}")`},
	"Namespace.tag":                     {`(name: "${tag}")`},
	"ResourceType.capability":           {`(name: "cap")`},
	"ResourceType.capabilities":         {`(includePrivate: true)`},
	"Resource.capabilities":             {`(includePrivate: true)`},
	"Resource.metadata":                 {``, `(keys: ["shared"])`},
	"Resource.metadataItem":             {`(key: "shared")`},
	"ResourceConnection.metadataFacets": {`(keys: ["shared"])`},
	"ResourceConnection.facets": {`(of: [{by: METADATA_VALUE, key: "shared"}])`,
		`(of: [{by: TAG, includeUnused: true}, {by: TYPE}])`},
	"ResourceProvider.inventory":   {`(resourceClass: "${class}")`},
	"ResourceProvider.allocations": {``, `(first: 3)`, `(last: 3)`},
}

// facet is a part of things of a type that contains a number.
type facet struct {
	name string
	of   string // a type with a counter
	// shows are the types of the schema that show the number.
	shows []shown
	// writes are the mutations that write the number. They get the counter that
	// the thing must have. They are fields without a selection.
	writes []numberWrite
}

type shown struct {
	of     string // the type that shows the number
	leaves string // the selection that shows it
	read   func(object map[string]any) []numbered
}

// numbered is a number of a thing.
type numbered struct {
	thing thing
	n     int
}

type numberWrite struct {
	mutation string
	by       int // the increment of the counter
	field    func(of thing, counter, n int) string
}

var marked = regexp.MustCompile(`F(\d+)T(\d+)(?: ?n(\d+))?`)

// numbersIn reads strings with a mark and a number.
func numbersIn(value any) []numbered {
	switch value := value.(type) {
	case []any:
		var out []numbered
		for _, member := range value {
			out = append(out, numbersIn(member)...)
		}
		return out
	case string:
		if found := marked.FindStringSubmatch(value); found != nil && found[3] != "" {
			return []numbered{{thing{atoi(found[1]), atoi(found[2])}, atoi(found[3])}}
		}
	}
	return nil
}

func atoi(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

// thingMarked returns the thing with the mark in a string.
func thingMarked(value any) (thing, bool) {
	text, _ := value.(string)
	found := marked.FindStringSubmatch(text)
	if found == nil {
		return thing{}, false
	}
	return thing{atoi(found[1]), atoi(found[2])}, true
}

func intOf(value any) int {
	number, ok := value.(json.Number)
	if !ok {
		return 0
	}
	n, _ := number.Int64()
	return int(n)
}

// textIn shows a number in a string field.
func textIn(of, field string) shown {
	return shown{of, field, func(object map[string]any) []numbered { return numbersIn(object[field]) }}
}

// amountIn shows a number as an amount, in an object with a mark.
func amountIn(of, mark, fields string, amount func(object map[string]any) int) shown {
	return shown{of, mark + " " + fields, func(object map[string]any) []numbered {
		t, ok := thingMarked(object[mark])
		if n := amount(object); ok && n > 0 {
			return []numbered{{t, n}}
		}
		return nil
	}}
}

// field returns the number in a field minus an offset.
func field(name string, less int) func(map[string]any) int {
	return func(object map[string]any) int { return intOf(object[name]) - less }
}

var (
	traitBit       = regexp.MustCompile(`_B(\d+)$`)
	aggregateUUID  = regexp.MustCompile(`^aaaaaaaa-(\d+)-4(\d+)-8000-(\d+)$`)
	schemaMaximum  = regexp.MustCompile(`"maximum":\s*(\d+)`)
	exportedNumber = regexp.MustCompile(`(?s)"namespace":\s*"([^"]*)".*"maximum":\s*(\d+)`)
)

func traitNumber(object map[string]any) []numbered {
	traits, _ := object["traits"].([]any)
	var out []numbered
	for _, trait := range traits {
		of, ok := thingMarked(trait)
		if !ok {
			continue
		}
		if out == nil {
			out = []numbered{{thing: of}}
		}
		if bit := traitBit.FindStringSubmatch(trait.(string)); bit != nil {
			out[0].n |= 1 << atoi(bit[1])
		}
	}
	return out
}

func aggregateNumber(object map[string]any) []numbered {
	aggregates, _ := object["aggregates"].([]any)
	for _, aggregate := range aggregates {
		if found := aggregateUUID.FindStringSubmatch(fmt.Sprint(aggregate)); found != nil {
			return []numbered{{thing{atoi(found[1]), atoi(found[2])}, atoi(found[3])}}
		}
	}
	return nil
}

func schemaNumber(object map[string]any) []numbered {
	of, ok := thingMarked(object["title"])
	text, _ := json.Marshal(object["jsonSchema"])
	if found := schemaMaximum.FindSubmatch(text); ok && found != nil {
		return []numbered{{of, atoi(string(found[1]))}}
	}
	return nil
}

func exportedNumbers(object map[string]any) []numbered {
	files, _ := object["exportNamespaces"].([]any)
	var out []numbered
	for _, file := range files {
		found := exportedNumber.FindStringSubmatch(fmt.Sprint(file))
		if found == nil {
			continue
		}
		if of, ok := thingMarked(found[1]); ok {
			out = append(out, numbered{of, atoi(found[2])})
		}
	}
	return out
}

// consumerClaim returns a claim with the allocations of a consumer. Its
// mappings encode the user's number.
func consumerClaim(of thing, generation, amount, user int) string {
	return fmt.Sprintf(`{uuid: %q, projectId: %q, userId: %q, generation: %d, allocations: [{provider: %q, resources: [{resourceClass: %q, amount: %d}]}], mappings: [{suffix: %q, providers: [%[5]q]}]}`,
		of.consumer(), of.project(), of.text(user), generation, of.provider(), of.class(), amount, of.suffix(user))
}

// quoted returns strings as a JSON list.
func quoted(texts []string) string {
	list, _ := json.Marshal(texts)
	return string(list)
}

// facetsOf returns all facets. AssociationOf returns the id of a namespace's
// association that has a prefix.
func facetsOf(associationOf func(thing) string) []facet {
	inventoryOf := func(of thing, n int) string {
		return fmt.Sprintf(`{resourceClass: %q, total: %d}`, of.class(), baseTotal+n)
	}
	return []facet{
		{name: "used", of: "Consumer",
			shows: []shown{
				amountIn("Allocation", "resourceClass", "used", field("used", 0)),
				amountIn("Inventory", "resourceClass", "used", field("used", 0)),
				amountIn("Inventory", "resourceClass", "capacity free", func(i map[string]any) int {
					return intOf(i["capacity"]) - intOf(i["free"])
				}),
				amountIn("ResourceUsage", "resourceClass", "used", field("used", 0)),
			},
			writes: []numberWrite{
				{"setAllocations", 1, func(of thing, counter, n int) string {
					return `setAllocations(input: {consumers: [` + consumerClaim(of, counter, n, 1) + `]})`
				}},
				{"reshape", 1, func(of thing, counter, n int) string {
					return fmt.Sprintf(`reshape(input: {inventories: [{provider: %q, inventories: [%s]}], consumers: [%s]})`,
						of.provider(), inventoryOf(of, 1), consumerClaim(of, counter, n, 1))
				}},
			}},
		{name: "user", of: "Consumer", shows: []shown{textIn("Consumer", "userId"), textIn("GroupMapping", "suffix")},
			writes: []numberWrite{{"setAllocations", 1, func(of thing, counter, n int) string {
				return `setAllocations(input: {consumers: [` + consumerClaim(of, counter, 1, n) + `]})`
			}}}},
		{name: "total", of: "ResourceProvider",
			shows: []shown{
				amountIn("Inventory", "resourceClass", "total", field("total", baseTotal)),
				amountIn("Inventory", "resourceClass", "capacity", field("capacity", baseTotal)),
				amountIn("Inventory", "resourceClass", "free", field("free", baseTotal-1)), // minus the allocated 1
			},
			writes: []numberWrite{
				{"setInventory", 1, func(of thing, counter, n int) string {
					return fmt.Sprintf(`setInventory(input: {provider: %q, generation: %d, inventory: %s})`,
						of.provider(), counter, inventoryOf(of, n))
				}},
				{"setInventories", 1, func(of thing, counter, n int) string {
					return fmt.Sprintf(`setInventories(input: {provider: %q, generation: %d, inventories: [%s]})`,
						of.provider(), counter, inventoryOf(of, n))
				}},
				{"setOnResourceProviders", 1, func(of thing, counter, n int) string {
					return fmt.Sprintf(`setOnResourceProviders(input: {items: [{provider: %q, generation: %d, inventories: [%s]}]})`, of.provider(), counter, inventoryOf(of, n))
				}},
				{"reshape", 2, func(of thing, counter, n int) string {
					return fmt.Sprintf(`reshape(input: {inventories: [{provider: %q, generation: %d, inventories: [%s]}]})`, of.provider(), counter, inventoryOf(of, n))
				}},
			}},
		{name: "traits", of: "ResourceProvider",
			shows: []shown{{"ResourceProvider", "traits", traitNumber}, {"ProviderSummary", "traits", traitNumber}},
			writes: []numberWrite{{"setProviderTraits", 1, func(of thing, counter, n int) string {
				return fmt.Sprintf(`setProviderTraits(input: {provider: %q, generation: %d, traits: %s})`,
					of.provider(), counter, quoted(of.traits(n)))
			}}}},
		{name: "aggregates", of: "ResourceProvider",
			shows: []shown{{"ResourceProvider", "aggregates", aggregateNumber}},
			writes: []numberWrite{{"setProviderAggregates", 1, func(of thing, counter, n int) string {
				return fmt.Sprintf(`setProviderAggregates(input: {provider: %q, generation: %d, aggregates: [%q]})`,
					of.provider(), counter, of.aggregate(n))
			}}}},
		{name: "item", of: "Resource", shows: []shown{textIn("MetadataItem", "value"),
			textIn("MetadataFacetValue", "value"), textIn("MetadataReportItem", "values")},
			writes: []numberWrite{
				{"setMetadata", 1, func(of thing, counter, n int) string {
					return fmt.Sprintf(`setMetadata(input: {resource: %q, revision: %d, items: [{key: "shared", value: %q}]})`, of.resource(), counter, of.text(n))
				}},
				{"replaceMetadata", 1, func(of thing, counter, n int) string {
					return fmt.Sprintf(`replaceMetadata(input: {resource: %q, revision: %d, items: [{key: "inner", value: "x"}, {key: "resources:%s", value: "1"}, {key: "shared", value: %q}]})`, of.resource(), counter, of.class(), of.text(n))
				}},
				{"setMetadataOnResources", 1, func(of thing, counter, n int) string {
					return fmt.Sprintf(`setMetadataOnResources(input: {items: [{resource: %q, revision: %d, items: [{key: "shared", value: %q}]}]})`, of.resource(), counter, of.text(n))
				}},
			}},
		{name: "description", of: "Resource", shows: []shown{textIn("Resource", "description")},
			writes: []numberWrite{{"updateResource", 1, func(of thing, counter, n int) string {
				return fmt.Sprintf(`updateResource(input: {uuid: %q, revision: %d, description: %q})`, of.resource(),
					counter, of.text(n))
			}}}},
		{name: "capability", of: "Resource",
			shows: []shown{textIn("ResourceCapability", "value"), textIn("CapabilityValue", "value")},
			writes: []numberWrite{{"setCapabilities", 1, func(of thing, counter, n int) string {
				return fmt.Sprintf(`setCapabilities(input: {resource: %q, revision: %d, capabilities: [{key: "cap", value: %q}]})`, of.resource(), counter, of.text(n))
			}}}},
		{name: "tags", of: "Resource", shows: []shown{textIn("Resource", "tags")},
			writes: []numberWrite{{"setResourceTags", 1, func(of thing, counter, n int) string {
				return fmt.Sprintf(`setResourceTags(input: {resource: %q, revision: %d, tags: [%q]})`, of.resource(),
					counter, of.text(n))
			}}}},
		{name: "displayName", of: "Namespace", shows: []shown{textIn("Namespace", "displayName")},
			writes: []numberWrite{{"updateNamespace", 1, func(of thing, counter, n int) string {
				return fmt.Sprintf(`updateNamespace(input: {name: %q, revision: %d, displayName: %q})`, of.mark(),
					counter, of.text(n))
			}}}},
		{name: "maximum", of: "Namespace",
			shows: []shown{
				amountIn("PropertyDefinition", "title", "maximum", field("maximum", 0)),
				{"PropertyDefinition", "title jsonSchema", schemaNumber},
				{"Query", "exportNamespaces", exportedNumbers},
			},
			writes: []numberWrite{{"updateProperty", 1, func(of thing, counter, n int) string {
				return fmt.Sprintf(`updateProperty(input: {namespace: %q, revision: %d, name: "shared", maximum: %d})`,
					of.mark(), counter, n)
			}}}},
		{name: "object", of: "Namespace", shows: []shown{textIn("ObjectDefinition", "description")},
			writes: []numberWrite{{"updateObject", 1, func(of thing, counter, n int) string {
				return fmt.Sprintf(`updateObject(input: {namespace: %q, revision: %d, name: "group", description: %q})`,
					of.mark(), counter, of.text(n))
			}}}},
		{name: "tag", of: "Namespace", shows: []shown{textIn("Tag", "name")},
			writes: []numberWrite{{"setTags", 1, func(of thing, counter, n int) string {
				return fmt.Sprintf(`setTags(input: {namespace: %q, revision: %d, tags: [{name: %q}, {name: "%s below", parent: %[3]q}]})`, of.mark(), counter, of.text(n), of.mark())
			}}}},
		{name: "prefix", of: "Namespace",
			shows: []shown{textIn("ResourceTypeAssociation", "prefix"), textIn("PropertyDefinition", "name")},
			writes: []numberWrite{{"updateResourceTypeAssociation", 1, func(of thing, counter, n int) string {
				return fmt.Sprintf(`updateResourceTypeAssociation(input: {id: %q, revision: %d, newPrefix: %q})`,
					associationOf(of), counter, of.prefix(n))
			}}}},
	}
}

// withoutNumber are the mutations that take a counter but write no number: they
// create, delete or share, or write rules, which the fixture does not have.
var withoutNumber = strings.Fields(`associateResourceType createObject createProperty deleteInventory deleteMetadata deleteNamespace
	deleteNamespaceContents deleteObject deleteProperty deleteResource deleteTag disassociateResourceType setDefaults shareNamespace
	unsetCapabilities unshareNamespace updateTag`)

// openFamilies opens servers on a database with families.
func openFamilies(t *testing.T, url string, servers, families int) []*graph.Executor {
	t.Helper()
	first := storetest.Open(t, url)
	if err := first.FillEmpty(access.WithViewer(t.Context(), viewers["admin"]), familiesOf(families)); err != nil {
		t.Fatal(err)
	}
	err := first.Execute(t.Context(), first.Pool,
		`UPDATE metadata_items SET derived_from = (SELECT n.id FROM namespaces n JOIN resources r ON r.name = n.name
		WHERE r.id = metadata_items.resource_id)`) // the way from an item to a namespace
	if err != nil {
		t.Fatal(err)
	}
	executors := []*graph.Executor{executorOf(t, first)}
	for len(executors) < servers {
		executors = append(executors, executorOf(t, storetest.Open(t, url)))
	}
	return executors
}
