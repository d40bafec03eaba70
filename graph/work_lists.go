package graph

import "github.com/cadastre-dev/cadastre/graph/document"

// list is what it takes to read a list page by page: its page, which is read
// once more to look whether the list goes on beyond its start, and its length.
type list struct {
	rows        string // the type of the rows
	page, count func(document.Call) document.Work
}

// listWorks returns what the fields of lists do that are read page by page from
// the database. Of lists that are in memory nothing is read.
func listWorks() document.Works {
	lists := map[string]list{
		"Query.changes":                {"Change", changesWork, nil},
		"Query.auditEvents":            {"AuditEvent", pageOf(tableAuditEvents, nil), countOf(tableAuditEvents, nil)},
		"Query.namespaces":             {"Namespace", pageOf(tableNamespaces, namespaceTests), countOf(tableNamespaces, namespaceTests)},
		"Query.resourceTypes":          {"ResourceType", pageOf(tableResourceTypes, nil), countOf(tableResourceTypes, nil)},
		"Query.tags":                   {"Tag", pageOf(tableTags, tagTests), countOf(tableTags, tagTests)},
		"Query.resources":              {"Resource", resourcesPage, resourcesCount},
		"Query.metadataKeys":           {"MetadataKey", keysWork, keysWork},
		"Query.consumers":              {"Consumer", pageOf(tableConsumers, consumerTests), countOf(tableConsumers, consumerTests)},
		"Query.traits":                 {"Trait", pageOf(tableTraits, traitTests), countOf(tableTraits, traitTests)},
		"Query.resourceClasses":        {"ResourceClass", pageOf(tableResourceClasses, nil), countOf(tableResourceClasses, nil)},
		"ResourceType.namespaces":      {"Namespace", namespacesOfTypes, countOf(tableAssociations, nil)},
		"ResourceType.associations":    {"ResourceTypeAssociation", associationsOfEach, countOf(tableAssociations, associationTests)},
		"ResourceType.resources":       {"Resource", resourcesOfEach, resourcesCount},
		"Resource.children":            {"Resource", resourcesOfEach, resourcesCount},
		"Capability.values":            {"CapabilityValue", valuesWork, valuesCount},
		"ResourceProvider.allocations": {"Allocation", pageOf(tableAllocations, nil), countOf(tableAllocations, nil)},
	}
	of := func(c document.Call) list { return lists[c.Of()+"."+c.Name()] }
	counted := ofList(func(c document.Call) document.Work {
		if list := of(c); list.count != nil {
			return list.count(c)
		}
		return document.Work{}
	})
	works := document.Works{}
	for name, list := range lists {
		works[name] = document.Work{Given: list.page}
		if list.count != nil {
			works[list.rows+"Connection.totalCount"] = document.Work{Given: counted}
		}
	}
	beyond := func(cursor string, backward bool) document.Work {
		return document.Work{Given: ofList(ofList(func(c document.Call) document.Work {
			list := of(c)
			if list.page == nil || c.Argument(cursor) == nil || (c.Argument("last") != nil) != backward {
				return document.Work{}
			}
			return list.page(c)
		}))}
	}
	works["PageInfo.hasPreviousPage"], works["PageInfo.hasNextPage"] = beyond("after", false), beyond("before", true)
	return works
}

// pageOf is a page of a table in an order that has an index, and the tests that
// a filter makes before the first row is found.
func pageOf(table string, tests func(document.Call) document.Work) func(document.Call) document.Work {
	return func(c document.Call) document.Work {
		work := readOf(c, c.Objects()*(c.Page()+1), table)
		work.Statements = 1
		if tests != nil {
			more := tests(c)
			work.Scanned, work.Tests, work.AtMost = work.Scanned+more.Scanned, more.Tests, more.AtMost
		}
		return work
	}
}

// pageOfEach is a page of a table for each of several parents.
func pageOfEach(table string) func(document.Call) document.Work {
	page := pageOf(table, nil)
	return func(c document.Call) document.Work {
		work := page(c)
		work.Scanned += scannedWithin(c, table)
		return work
	}
}

// associationsOfEach is a page of associations for each of several types.
func associationsOfEach(c document.Call) document.Work {
	work := pageOfEach(tableAssociations)(c)
	work.Scanned += associationTests(c).Scanned
	return work
}

// associationTests is what the filter of associations looks at: their prefixes
// and targets have no order of their own.
func associationTests(c document.Call) document.Work {
	filter := objectOf(c.Argument("filter"))
	if len(filter) == 0 {
		return document.Work{}
	}
	work := document.Work{Scanned: c.Size(tableAssociations)}
	if filter["namespaces"] != nil {
		work.Scanned += readOf(c, lengthOf(filter["namespaces"]), tableNamespaces).Scanned
	}
	return work
}

// scannedWithin is what a page for each of several parents looks at besides: the
// pages are joined with the table, of which a small one is read whole, once more
// for each parent.
func scannedWithin(c document.Call, table string) int64 {
	switch size := c.Size(table); {
	case size <= wholeRows:
		return size * (1 + c.Objects())
	case size <= 4*wholeRows:
		return size
	}
	return 0
}

// countOf counts the rows of a table.
func countOf(table string, tests func(document.Call) document.Work) func(document.Call) document.Work {
	return func(c document.Call) document.Work {
		size := c.Size(table)
		work := document.Work{Statements: 1, Scanned: size, Read: 1}
		if tests != nil {
			more := tests(c)
			work.Scanned, work.Tests, work.AtMost = work.Scanned+more.Scanned, more.Tests, more.AtMost
		}
		return work
	}
}

// searchedIn is a table whose texts are searched for a part of them, and its
// index.
type searchedIn struct{ table, index string }

// partsOf is the search for a part of the texts of tables.
func partsOf(c document.Call, part any, tables ...searchedIn) document.Work {
	var work document.Work
	for _, in := range tables {
		rows, more := partly(c, part, in.table, in.index)
		work = work.Plus(document.Work{Scanned: rows, Tests: rows, AtMost: 2 * more})
	}
	return work
}

// namespaceTests is what the filter of namespaces looks at: a searched text in
// what they define; the others are found by indexes.
func namespaceTests(c document.Call) document.Work {
	filter := objectOf(c.Argument("filter"))
	var work document.Work
	if filter["search"] != nil {
		work = partsOf(c, filter["search"], searchedIn{tableNamespaces, indexOfNamespaces}, searchedIn{tableProperties, indexOfProperties},
			searchedIn{tableObjects, indexOfObjects}, searchedIn{tableTags, indexOfTags})
	}
	for _, indexed := range []struct{ argument, table string }{
		{"resourceTypes", tableAssociations}, {"propertiesTarget", tableAssociations}, {"definesKey", tableProperties}, {"tag", tableTags},
	} {
		if filter[indexed.argument] != nil {
			work.Scanned += atMost(c, indexedRows, indexed.table)
		}
	}
	return work
}

func tagTests(c document.Call) document.Work {
	if c.Argument("search") == nil {
		return document.Work{}
	}
	return partsOf(c, c.Argument("search"), searchedIn{tableTags, indexOfTags})
}

// consumerTests is what the filter of consumers looks at before their order.
func consumerTests(c document.Call) document.Work {
	filter := objectOf(c.Argument("filter"))
	var work document.Work
	if len(filter) > 0 {
		work.Scanned = atMost(c, indexedRows, tableConsumers)
	}
	if filter["provider"] != nil {
		work.Scanned += atMost(c, indexedRows, tableAllocations)
	}
	return work
}

func traitTests(c document.Call) document.Work {
	if objectOf(c.Argument("filter"))["associated"] == nil {
		return document.Work{}
	}
	return document.Work{Scanned: atMost(c, 10*indexedRows, tableProviderTraits)}
}

// namespacesOfTypes is a page of namespaces for each of several types, by their
// associations.
func namespacesOfTypes(c document.Call) document.Work {
	work := pageOfEach(tableAssociations)(c)
	of := readOf(c, work.Read, tableNamespaces)
	work.Statements, work.Read, work.Scanned = 2, work.Read+of.Read, work.Scanned+of.Scanned
	return work
}

// keysWork groups all items by their keys.
func keysWork(c document.Call) document.Work {
	s := searchOf(c)
	if c.Argument("resourceType") != nil {
		s.clauses++
	}
	items := atMost(c, s.likely()*average(c, tableMetadataItems, tableResources), tableMetadataItems)
	return document.Work{Statements: 1 + s.statements, Scanned: items + s.likely() + s.scanned, Tests: 3*items + s.tests, AtMost: s.atMost, Read: atMost(c, c.Page()+1, tableMetadataItems)}
}
