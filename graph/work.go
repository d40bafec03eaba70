package graph

import (
	"encoding/json"
	"slices"

	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/page"
)

// The tables whose sizes prices are made of.
const (
	tableAuditEvents     = "audit_events"
	tableChanges         = "changes"
	tableNamespaces      = "namespaces"
	tableMembers         = "namespace_members"
	tableProperties      = "property_definitions"
	tableObjects         = "object_definitions"
	tableTags            = "tags"
	tableAssociations    = "resource_type_associations"
	tableResourceTypes   = "resource_types"
	tableCapabilities    = "capabilities"
	tableCapabilityItems = "capability_members"
	tableCapabilityOf    = "capability_values"
	tableCapabilityUse   = "capability_counts"
	tableResources       = "resources"
	tableMetadataItems   = "metadata_items"
	tableResourceTags    = "resource_tags"
	tableProviders       = "resource_providers"
	tableInventories     = "inventories"
	tableProviderTraits  = "provider_traits"
	tableTraits          = "traits"
	tableResourceClasses = "resource_classes"
	tableConsumers       = "consumers"
	tableAllocations     = "allocations"
)

// works returns what each field does besides writing its answer. A field that
// is not here does nothing: it is a member of its object, or comes from the
// world that its object is of. Fields of Mutation run a transaction of their own;
// of those only what dry runs judge is here.
func works() document.Works {
	of := tables()
	nodes := func(c document.Call) document.Work { return nodesWork(of, c) }
	all := document.Works{
		"Query.node":     {Given: nodes},
		"Query.nodes":    {Given: nodes},
		"Query.consumer": {Statements: 1, Given: one(tableConsumers)},
		"Query.usages":   {Statements: 1, Given: usagesWork},

		"Query.resourceProviders":    {World: true, Given: providersWork},
		"Query.resourceProvider":     {World: true},
		"Query.capacity":             {World: true, Given: capacityWork},
		"Query.allocationCandidates": {World: true, Given: candidatesWork},
		"CapacityChange.capacity":    {World: true, Given: capacityWork},
		"Query.placementRequest":     {Statements: 4, World: true, Given: requestWork},

		"ResourceChange.resource":   {Statements: 1, Given: one(tableResources)},
		"NamespaceChange.namespace": {Statements: 1, Given: one(tableNamespaces)},
		// As of an instant after the change, to which the world is brought.
		"ResourceProviderChange.resourceProvider":         {Statements: 1, World: true},
		"AllocationCandidatesChange.allocationCandidates": {World: true, Given: candidatesWork},
		"Resource.allocationCandidates":                   {Statements: 4, World: true, Given: candidatesOfEachWork},

		"AllocationCandidateConnection.totalCount":        {Given: ofList(candidateCountWork)},
		"AllocationCandidateConnection.explain":           {Given: ofList(explanationWork)},
		"AllocationCandidateConnection.providerSummaries": {Given: ofList(summariesWork)},
		"AllocationCandidate.allocations":                 {Given: ofRequest(func(r requestSize) int64 { return r.providers })},
		"AllocationCandidate.mappings":                    {Given: ofRequest(func(r requestSize) int64 { return r.groups })},
		"CandidateClaim.allocations":                      {Given: ofRequest(func(r requestSize) int64 { return r.providers })},
		"CandidateClaim.mappings":                         {Given: ofRequest(func(r requestSize) int64 { return r.groups })},
		"ProviderAllocation.resources":                    {Given: ofRequest(func(r requestSize) int64 { return divide(r.amounts, r.providers) })},
		"ClaimMapping.providers":                          {Given: ofRequest(func(r requestSize) int64 { return divide(r.providers, r.groups) })},
		"CandidateAllocation.resources":                   {Given: ofRequest(func(r requestSize) int64 { return divide(r.amounts, r.providers) })},
		"GroupMapping.providers":                          {Given: ofRequest(func(r requestSize) int64 { return divide(r.providers, r.groups) })},
		"Consumer.mappings":                               {Statements: 1, World: true, Held: true, Given: mappingsWork},
		"ProviderSummary.inventories":                     {Given: ofProvider(tableInventories)},
		"ResourceProvider.inventories":                    {Given: ofProvider(tableInventories)},
		"ProviderSummary.traits":                          {Given: ofProvider(tableProviderTraits)},
		"ResourceProvider.treeCapacity":                   {Given: treeCapacityWork},
		"ResourceProvider.traits":                         {Given: ofProvider(tableProviderTraits)},
		"ResourceProvider.resource":                       {Statements: 1, Given: one(tableResources)},
		"Trait.viewerCanDelete":                           {World: true, Given: usedWork},
		"ResourceClass.viewerCanDelete":                   {World: true, Given: usedWork},
		"Allocation.provider":                             {Statements: 1, World: true, Held: true},
		"Allocation.consumer":                             {Statements: 1, Held: true, Given: one(tableConsumers)},
		"Consumer.resource":                               {Statements: 1, Given: one(tableResources)},
		"Resource.consumer":                               {Statements: 1, Given: one(tableConsumers)},
		"Resource.allocations":                            {Statements: 1, Given: many(tableAllocations, tableConsumers)},
		"Consumer.allocations":                            {Statements: 1, Held: true, Given: many(tableAllocations, tableConsumers)},
		"Mutation.setAllocations":                         {Joins: true},
		"Mutation.deleteAllocations":                      {Joins: true},
		"SetAllocationsPayload.consumers":                 {Hands: true},
		"DeleteAllocationsPayload.consumer":               {Hands: true},
	}
	for _, some := range []document.Works{metadefWorks(), bulkWorks(), resourceWorks(), problemWorks(), listWorks(), changeWorks()} {
		for name, work := range some {
			all[name] = work
		}
	}
	return withNames(all)
}

// ofList returns the work of a field that reads what the field above it is a
// page of.
func ofList(read func(document.Call) document.Work) func(document.Call) document.Work {
	return func(c document.Call) document.Work {
		list, ok := c.Parent()
		if !ok {
			return document.Work{}
		}
		return read(list)
	}
}

// atMost returns a number of rows of a table, no more than it has.
func atMost(c document.Call, rows int64, table string) int64 { return min(rows, c.Size(table)) }

// Small tables are read whole, whatever is wanted of them, and larger ones where
// a good part of their rows is wanted.
const (
	wholeRows = 1024
	wholePart = 16
)

// readOf is the work of reading some rows of a table, no more than it has, by an
// index or by reading all of it.
func readOf(c document.Call, rows int64, table string) document.Work {
	size := c.Size(table)
	work := document.Work{Read: min(rows, size)}
	if size <= wholeRows || work.Read*wholePart >= size {
		work.Scanned = size - work.Read
	}
	return work
}

// usual is how many children an object has where tables say fewer.
const usual = 10

// average returns how many rows of a table there are for each row of another.
func average(c document.Call, table, parents string) int64 {
	return max(usual, divide(c.Size(table), c.Size(parents)))
}

// divide returns a quotient, rounded up.
func divide(a, b int64) int64 { return (a + max(b, 1) - 1) / max(b, 1) }

// one is the work of a field that refers to one row of a table.
func one(table string) func(document.Call) document.Work {
	return func(c document.Call) document.Work { return readOf(c, c.Objects(), table) }
}

// chosen is the work of a field that reads the rows of a table that belong to
// its objects, which are of another, and has what it finds among them.
func chosen(table, parents string) func(document.Call) document.Work {
	return func(c document.Call) document.Work {
		return readOf(c, c.Objects()*average(c, table, parents), table)
	}
}

// many is chosen for a field that has all of the rows.
func many(table, parents string) func(document.Call) document.Work {
	read := chosen(table, parents)
	return func(c document.Call) document.Work {
		work := read(c)
		work.Length = average(c, table, parents)
		return work
	}
}

// ofProvider is a list of a provider, which is in memory, by the table that it
// came from.
func ofProvider(table string) func(document.Call) document.Work {
	return func(c document.Call) document.Work {
		return document.Work{Length: divide(c.Size(table), c.Size(tableProviders))}
	}
}

// tables returns the tables that nodes of each kind are rows of.
func tables() map[page.Kind]string {
	return map[page.Kind]string{
		page.KindAuditEvent: tableAuditEvents, page.KindNamespace: tableNamespaces, page.KindPropertyDefinition: tableProperties,
		page.KindObjectDefinition: tableObjects, page.KindTag: tableTags, page.KindResourceType: tableResourceTypes,
		page.KindResourceTypeAssociation: tableAssociations, page.KindResourceProvider: tableProviders, page.KindConsumer: tableConsumers,
		page.KindResource: tableResources, page.KindMetadataItem: tableMetadataItems, page.KindCapability: tableCapabilities,
	}
}

// nodesWork is a statement for each kind among the ids, and for the associations
// through which definitions are seen.
func nodesWork(of map[page.Kind]string, c document.Call) document.Work {
	ids := listOf(c.Argument("ids"))
	if id := c.Argument("id"); id != nil {
		ids = []any{id}
	}
	var kinds []page.Kind
	for _, id := range ids[:min(len(ids), maxNodes)] {
		text, _ := id.(string)
		node, ok := page.ParseNodeID(text)
		if !ok {
			continue
		}
		kinds = append(kinds, node.Kind)
		if association, ok := associationOf(node); ok {
			kinds = append(kinds, association.Kind)
		}
	}
	work := document.Work{World: slices.Contains(kinds, page.KindResourceProvider)}
	for _, kind := range kinds {
		more := readOf(c, 1, of[kind])
		work.Read, work.Scanned = work.Read+more.Read, work.Scanned+more.Scanned
	}
	slices.Sort(kinds)
	kinds = slices.Compact(kinds)
	work.Statements = len(kinds)
	if slices.Contains(kinds, page.KindPropertyDefinition) {
		work.Statements++ // the objects that properties are of
		work.Scanned += readOf(c, 1, tableObjects).Scanned
	}
	return work
}

// listOf returns a value as a list: one value stands for a list of it.
func listOf(value any) []any {
	switch value := value.(type) {
	case nil:
		return nil
	case []any:
		return value
	}
	return []any{value}
}

// numberOf returns how many of something a request wants, and false for what is
// not a number. A negative number, which the field refuses, counts as 0.
func numberOf(value any) (int64, bool) {
	switch value := value.(type) {
	case int64:
		return max(value, 0), true
	case int:
		return int64(max(value, 0)), true
	case json.Number:
		number, err := value.Int64()
		return max(number, 0), err == nil
	}
	return 0, false
}

func lengthOf(value any) int64 { return int64(len(listOf(value))) }

// objectOf returns an input object, nil for none.
func objectOf(value any) map[string]any {
	object, _ := value.(map[string]any)
	return object
}
