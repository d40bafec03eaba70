package graph

import (
	"cmp"
	"slices"

	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/page"
)

// works returns what each field does besides writing its answer. A field that
// is not here does nothing: it is a member of its object, or comes from the
// world that its object is of. Fields of Mutation are not here: each runs a
// transaction of its own.
func works() document.Works {
	all := document.Works{
		"Query.node":                           {Given: nodesWork},
		"Query.nodes":                          {Given: nodesWork},
		"Query.namespace":                      {Statements: 1},
		"Query.resourceType":                   {Statements: 1},
		"Query.definitions":                    {Statements: 4},
		"Query.validateMetadata":               {Statements: 4},
		"Query.exportNamespaces":               {Statements: 5},
		"Query.resource":                       {Statements: 1},
		"Query.explainResources":               {Given: resourcesWork},
		"Query.resourceProviders":              {World: true},
		"Query.resourceProvider":               {World: true},
		"Query.allocationCandidates":           {World: true},
		"Query.consumer":                       {Statements: 1},
		"Query.usages":                         {Statements: 1},
		"Namespace.properties":                 {Given: throughWork},
		"Namespace.property":                   {Given: throughWork},
		"Namespace.propertyConnection":         {Given: throughWork},
		"Namespace.objects":                    {Given: throughWork},
		"Namespace.object":                     {Given: throughWork},
		"Namespace.objectConnection":           {Given: throughWork},
		"Namespace.tags":                       {Statements: 1},
		"Namespace.tag":                        {Statements: 1},
		"Namespace.tagConnection":              {Statements: 1},
		"Namespace.resourceTypeAssociations":   {Statements: 1},
		"Namespace.members":                    {Statements: 1},
		"Namespace.viewerCanUpdate":            {Statements: 1},
		"Namespace.viewerCanDelete":            {Statements: 1},
		"ObjectDefinition.properties":          {Statements: 1},
		"ObjectDefinition.namespace":           {Statements: 1},
		"PropertyDefinition.namespace":         {Statements: 1},
		"PropertyDefinition.object":            {Statements: 1},
		"Tag.parent":                           {Statements: 1},
		"Tag.children":                         {Statements: 1},
		"Tag.descendants":                      {Statements: 1},
		"Tag.namespace":                        {Statements: 1},
		"Tag.resourceCount":                    {Statements: 1},
		"ResourceTypeAssociation.resourceType": {Statements: 1},
		"ResourceTypeAssociation.namespace":    {Statements: 1},
		"ResourceType.capabilities":            {Statements: 1},
		"ResourceType.capability":              {Statements: 1},
		"Capability.resourceType":              {Statements: 1},
		"Capability.values":                    {Statements: 1},
		"Capability.valueCount":                {Statements: 1},
		"Resource.type":                        {Statements: 1},
		"Resource.parent":                      {Statements: 1},
		"Resource.metadata":                    {Statements: 1},
		"Resource.metadataItem":                {Statements: 1},
		"Resource.metadataReport":              {Statements: 5},
		"Resource.tags":                        {Statements: 1},
		"Resource.capabilities":                {Statements: 1},
		"Resource.provider":                    {Statements: 2, World: true},
		"ResourceConnection.metadataFacets":    {Given: ofList(resourcesWork)},
		"MetadataItem.definitions":             {Statements: 5},
		"ResourceProvider.resource":            {Statements: 1},
		"Allocation.provider":                  {Statements: 1, World: true},
		"Allocation.consumer":                  {Statements: 1},
		"Consumer.allocations":                 {Statements: 1},
	}
	lists := document.Works{
		"Query.auditEvents":            {Statements: 1},
		"Query.namespaces":             {Statements: 1},
		"Query.resourceTypes":          {Statements: 1},
		"Query.tags":                   {Statements: 1},
		"Query.resources":              {Given: resourcesWork},
		"Query.metadataKeys":           {Statements: 1},
		"Query.consumers":              {Statements: 1},
		"Query.traits":                 {Statements: 1},
		"Query.resourceClasses":        {Statements: 1},
		"ResourceType.namespaces":      {Statements: 2},
		"ResourceType.associations":    {Statements: 1},
		"ResourceType.resources":       {Given: resourcesWork},
		"Resource.children":            {Given: resourcesWork},
		"ResourceProvider.allocations": {Statements: 1},
	}
	addLists(all, lists)
	return all
}

// addLists adds the fields of lists that are read page by page from the
// database. What counts such a list, and what looks whether it goes on beyond
// the start of a page, reads it once more; of lists that are in memory nothing
// is read.
func addLists(all, lists document.Works) {
	read := func(c document.Call) document.Work {
		work := lists[c.Of()+"."+c.Name()]
		if work.Given != nil {
			work = work.Given(c)
		}
		return work
	}
	again := ofList(read)
	for name, work := range lists {
		all[name] = work
	}
	for _, of := range []string{"AuditEvent", "Namespace", "ResourceType", "Tag", "Resource", "MetadataKey", "Consumer", "Trait", "ResourceClass",
		"ResourceTypeAssociation", "Allocation"} {
		all[of+"Connection.totalCount"] = document.Work{Given: again}
	}
	beyond := func(size, cursor string) document.Work {
		return document.Work{Given: ofList(ofList(func(c document.Call) document.Work {
			if c.Argument(cursor) == nil || size == "last" && c.Argument("last") == nil || size == "first" && c.Argument("last") != nil {
				return document.Work{}
			}
			return read(c)
		}))}
	}
	all["PageInfo.hasPreviousPage"] = beyond("first", "after")
	all["PageInfo.hasNextPage"] = beyond("last", "before")
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

// nodesWork is a statement for each kind among the ids, and for the associations
// through which definitions are seen.
func nodesWork(c document.Call) document.Work {
	ids, ok := c.Argument("ids").([]any)
	if !ok {
		ids = []any{cmp.Or(c.Argument("ids"), c.Argument("id"))}
	}
	var kinds []page.Kind
	for _, id := range ids[:min(len(ids), maxNodes)] {
		text, _ := id.(string)
		node, ok := page.ParseNodeID(text)
		if !ok {
			continue
		}
		kinds = append(kinds, node.Kind)
		if node.Association != 0 {
			kinds = append(kinds, page.KindResourceTypeAssociation)
		}
	}
	slices.Sort(kinds)
	kinds = slices.Compact(kinds)
	statements := len(kinds)
	if slices.Contains(kinds, page.KindPropertyDefinition) {
		statements++ // the objects that properties are of
	}
	return document.Work{Statements: statements, World: slices.Contains(kinds, page.KindResourceProvider)}
}

// throughWork is the definitions of a namespace and, where they are seen through
// an association, its associations.
func throughWork(c document.Call) document.Work {
	if c.Argument("resourceType") != nil {
		return document.Work{Statements: 2}
	}
	return document.Work{Statements: 1}
}

// resourcesWork is a read of resources by a filter. What names capabilities has
// them looked up first.
func resourcesWork(c document.Call) document.Work {
	filter, _ := c.Argument("filter").(map[string]any)
	if filter["requirements"] != nil || filter["matching"] != nil || testsCapability(filter["where"]) {
		return document.Work{Statements: 2}
	}
	return document.Work{Statements: 1}
}

// testsCapability reports whether a tree of conditions has a test of a
// capability.
func testsCapability(condition any) bool {
	switch condition := condition.(type) {
	case []any:
		return slices.ContainsFunc(condition, testsCapability)
	case map[string]any:
		return condition["capability"] != nil || testsCapability(condition["all"]) || testsCapability(condition["any"]) || testsCapability(condition["not"])
	}
	return false
}
