package graph

import "github.com/cadastre-dev/cadastre/graph/document"

// metadefWorks returns what the fields of definitions do.
func metadefWorks() document.Works {
	return document.Works{
		"Query.namespace":           {Statements: 1, Given: one(tableNamespaces)},
		"Query.resourceType":        {Statements: 1, Given: one(tableResourceTypes)},
		"Query.definitions":         {Statements: 2, Fallback: 2, World: true, Given: appliedWork},
		"Query.validateMetadata":    {Statements: 1, Fallback: 1, World: true, Given: validationWork},
		"Query.exportNamespaces":    {Statements: 7, Given: exportWork},
		"Query.exportNamespacePart": {Statements: 3, Given: exportPartWork},
		"NamespacePart.text":        {Bytes: documentBytes * usual},

		"Namespace.properties":               {Statements: 1, Given: through(many(tableProperties, tableNamespaces))},
		"Namespace.property":                 {Statements: 1, Given: through(chosen(tableProperties, tableNamespaces))},
		"Namespace.propertyConnection":       {Statements: 1, Given: through(chosen(tableProperties, tableNamespaces))},
		"Namespace.objects":                  {Statements: 1, Given: through(many(tableObjects, tableNamespaces))},
		"Namespace.object":                   {Statements: 1, Given: through(chosen(tableObjects, tableNamespaces))},
		"Namespace.objectConnection":         {Statements: 1, Given: through(chosen(tableObjects, tableNamespaces))},
		"Namespace.tags":                     {Statements: 1, Given: many(tableTags, tableNamespaces)},
		"Namespace.tag":                      {Statements: 1, Given: chosen(tableTags, tableNamespaces)},
		"Namespace.tagConnection":            {Statements: 1, Given: chosen(tableTags, tableNamespaces)},
		"Namespace.resourceTypeAssociations": {Statements: 1, Given: many(tableAssociations, tableNamespaces)},
		"Namespace.members":                  {Statements: 1, Given: many(tableMembers, tableNamespaces)},

		"Namespace.viewerCanUpdate":               {Statements: 1, Given: chosen(tableMembers, tableNamespaces)},
		"Namespace.viewerCanDelete":               {Statements: 1, Given: chosen(tableMembers, tableNamespaces)},
		"NamespaceMember.viewerCanUpdate":         {Statements: 1, Given: standingWork},
		"NamespaceMember.viewerCanDelete":         {Statements: 1, Given: standingWork},
		"PropertyDefinition.viewerCanUpdate":      {Statements: 1, Given: standingWork},
		"PropertyDefinition.viewerCanDelete":      {Statements: 1, Given: standingWork},
		"ObjectDefinition.viewerCanUpdate":        {Statements: 1, Given: standingWork},
		"ObjectDefinition.viewerCanDelete":        {Statements: 1, Given: standingWork},
		"Tag.viewerCanUpdate":                     {Statements: 1, Given: standingWork},
		"Tag.viewerCanDelete":                     {Statements: 1, Given: standingWork},
		"ResourceTypeAssociation.viewerCanUpdate": {Statements: 1, Given: standingWork},
		"ResourceTypeAssociation.viewerCanDelete": {Statements: 1, Given: standingWork},
		"ResourceType.viewerCanDelete":            {Statements: 1, Given: usesWork(tableResourceTypes, tableAssociations, tableResources, tableCapabilities)},

		"ObjectDefinition.properties":  {Given: objectPropertiesWork},
		"ObjectDefinition.namespace":   {Statements: 1, Given: one(tableNamespaces)},
		"PropertyDefinition.namespace": {Given: namespaceWork},
		"PropertyDefinition.object":    {Statements: 1, Given: one(tableObjects)},
		"Tag.parent":                   {Statements: 1, Given: one(tableTags)},
		"Tag.children":                 {Statements: 1, Given: many(tableTags, tableNamespaces)},
		"Tag.descendants":              {Statements: 1, Given: many(tableTags, tableNamespaces)},
		"Tag.namespace":                {Statements: 1, Given: one(tableNamespaces)},
		"Tag.resourceCount":            {Statements: 1, Given: taggedWork},

		"ResourceTypeAssociation.resourceType": {Statements: 1, Given: one(tableResourceTypes)},
		"ResourceTypeAssociation.namespace":    {Statements: 1, Given: one(tableNamespaces)},
		"ResourceType.capabilities":            {Statements: 1, Given: many(tableCapabilities, tableResourceTypes)},
		"ResourceType.capability":              {Statements: 1, Given: one(tableCapabilities)},
		"Capability.resourceType":              {Statements: 1, Given: one(tableResourceTypes)},
		"Capability.valueCount":                {Given: valuesCount},

		"Namespace.description":          {Bytes: 200},
		"PropertyDefinition.description": {Bytes: 100},
		"PropertyDefinition.jsonSchema":  {Bytes: 200},
		"ObjectDefinition.description":   {Bytes: 100},
		"AuditEvent.before":              {Bytes: 200},
		"AuditEvent.after":               {Bytes: 200},
	}
}

// standingWork is what a viewer is to namespaces: the namespaces themselves and
// the project's memberships of them.
func standingWork(c document.Call) document.Work {
	of, members := readOf(c, c.Objects(), tableNamespaces), readOf(c, c.Objects(), tableMembers)
	return document.Work{Read: of.Read + members.Read, Scanned: of.Scanned + members.Scanned}
}

// usesWork looks whether rows of some tables refer to the objects, which are of
// another.
func usesWork(of string, by ...string) func(document.Call) document.Work {
	return func(c document.Call) document.Work {
		work := readOf(c, c.Objects(), of)
		for _, table := range by {
			more := readOf(c, c.Objects(), table)
			work.Read, work.Scanned = work.Read+more.Read, work.Scanned+more.Scanned
		}
		return work
	}
}

// through is the work of a field of a namespace and, where it is seen through an
// association, of its associations.
func through(own func(document.Call) document.Work) func(document.Call) document.Work {
	return func(c document.Call) document.Work {
		work := own(c)
		if c.Argument("resourceType") != nil {
			work.Statements++
			work.Read += atMost(c, c.Objects()*average(c, tableAssociations, tableNamespaces), tableAssociations)
		}
		return work
	}
}

// maxApplied bounds the definitions that are supposed to apply to one resource
// type.
const maxApplied = 10_000

// applied returns how many definitions may apply to a resource type.
func applied(c document.Call) int64 {
	return min(c.Size(tableProperties)+c.Size(tableObjects), maxApplied)
}

// objectPropertiesWork is the properties of objects, which came together with those
// of definitions in memory.
func objectPropertiesWork(c document.Call) document.Work {
	if above, ok := c.Parent(); ok && above.Of() == "AppliedNamespace" {
		return document.Work{Length: average(c, tableProperties, tableObjects)}
	}
	work := many(tableProperties, tableObjects)(c)
	work.Statements = 1
	return work
}

// namespaceWork is the namespace of a property, which came together with one of
// definitions in memory.
func namespaceWork(c document.Call) document.Work {
	for above, ok := c.Parent(); ok; above, ok = above.Parent() {
		switch above.Of() {
		case "AppliedNamespace", "ObjectDefinition", "DefinitionConflict", "MetadataReport", "MetadataReportItem", "Violation":
			continue
		case "Query":
			if above.Name() == "definitions" || above.Name() == "validateMetadata" {
				return document.Work{}
			}
		}
		break
	}
	work := one(tableNamespaces)(c)
	work.Statements = 1
	return work
}

// appliedWork goes in memory through the definitions that apply to a resource type,
// with the namespaces and associations that they are of. A type that the viewer does
// not know by them is looked up among all.
func appliedWork(c document.Call) document.Work {
	of := applied(c)
	work := document.Work{AtMost: c.Size(tableResourceTypes) + c.Size(tableAssociations),
		Tests: of + atMost(c, of, tableNamespaces) + atMost(c, of, tableAssociations)}
	if c.Argument("search") != nil {
		work.Tests += of
	}
	return work
}

// validationWork is the definitions that apply to a resource type, in which each
// key is looked up, and the items of a resource.
func validationWork(c document.Call) document.Work {
	work := appliedWork(c)
	work.Tests += lengthOf(c.Argument("values")) * applied(c)
	if c.Argument("resource") != nil {
		items := readOf(c, average(c, tableMetadataItems, tableResources), tableMetadataItems)
		of := readOf(c, 1, tableResources)
		work.Read, work.Scanned = work.Read+items.Read+of.Read, work.Scanned+items.Scanned+of.Scanned
		work.Statements = 2
	}
	return work
}

// documentBytes is about how long the text of a definition is in a file.
const documentBytes = 300

// exportWork is all that namespaces hold: of those that are named, or of all.
func exportWork(c document.Call) document.Work {
	all := c.Size(tableNamespaces)
	count := all
	if named := lengthOf(c.Argument("names")); named > 0 {
		count = min(named, all)
	}
	work := readOf(c, count, tableNamespaces)
	for _, table := range []string{tableProperties, tableObjects, tableTags, tableAssociations} {
		size := c.Size(table)
		more := readOf(c, divide(size*count, all), table)
		work.Read, work.Scanned = work.Read+more.Read, work.Scanned+more.Scanned
	}
	work.Length = count
	work.Bytes = documentBytes * max(1, divide(work.Read, work.Length))
	return work
}

// exportPartWork is some of what a namespace holds.
func exportPartWork(c document.Call) document.Work {
	work := readOf(c, 1, tableNamespaces)
	for _, table := range []string{tableProperties, tableObjects, tableTags, tableAssociations} {
		more := readOf(c, average(c, table, tableNamespaces), table)
		work.Read, work.Scanned = work.Read+more.Read, work.Scanned+more.Scanned
	}
	return work
}

// taggedWork counts the resources with a tag.
func taggedWork(c document.Call) document.Work {
	size := c.Size(tableResourceTags)
	return document.Work{Scanned: size, Read: atMost(c, c.Objects(), tableTags)}
}

// valuesWork is a page of the values in use of each capability.
func valuesWork(c document.Call) document.Work { return pageOfEach(tableCapabilityUse)(c) }

// valuesCount counts the values in use of each capability.
func valuesCount(c document.Call) document.Work {
	rows := atMost(c, c.Objects()*average(c, tableCapabilityUse, tableCapabilities), tableCapabilityUse)
	return document.Work{Statements: 1, Scanned: rows, Read: c.Objects()}
}
