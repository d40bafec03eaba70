package graph

import (
	"strings"

	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/text"
)

// resourceWorks returns what the fields of resources and of their metadata do,
// without lists.
func resourceWorks() document.Works {
	return document.Works{
		"Query.resource":                     {Statements: 1, Given: one(tableResources)},
		"Query.explainResources":             {Statements: 1, Given: explainWork},
		"Resource.type":                      {Statements: 1, Given: one(tableResourceTypes)},
		"Resource.parent":                    {Statements: 1, Given: one(tableResources)},
		"Resource.metadata":                  {Statements: 1, Given: metadataWork},
		"Resource.metadataItem":              {Statements: 1, Given: one(tableMetadataItems)},
		"Resource.metadataReport":            {Statements: 2, World: true, Given: reportWork},
		"Resource.tags":                      {Statements: 1, Given: many(tableResourceTags, tableResources)},
		"Resource.capabilities":              {Statements: 1, Given: many(tableCapabilityOf, tableResources)},
		"Resource.provider":                  {Statements: 2, World: true, Given: one(tableProviders)},
		"Resource.viewerCanDelete":           {Statements: 1, Given: usesWork(tableResources, tableResources, tableProviders)},
		"MetadataItem.viewerCanUpdate":       {Statements: 1, Given: one(tableResources)},
		"MetadataItem.viewerCanDelete":       {Statements: 1, Given: one(tableResources)},
		"ResourceCapability.viewerCanUpdate": {Statements: 1, Given: one(tableResources)},
		"ResourceCapability.viewerCanDelete": {Statements: 1, Given: one(tableResources)},
		"Resource.description":               {Bytes: 100},
		"ResourceConnection.metadataFacets":  {Given: metadataFacetsWork},
		"ResourceConnection.facets":          {Given: facetsWork},
		"ResourceFacet.values":               {Given: facetValuesWork},
		"MetadataFacet.values":               {Given: metadataValuesWork},
		"MetadataItem.definitions":           {Statements: 5, Given: itemDefinitionsWork},
	}
}

// metadataWork is the items of resources, all or those of some keys.
func metadataWork(c document.Call) document.Work {
	length := average(c, tableMetadataItems, tableResources)
	if keys := lengthOf(c.Argument("keys")); keys > 0 {
		length = min(length, keys)
	}
	work := readOf(c, c.Objects()*length, tableMetadataItems)
	work.Length = length
	return work
}

// reportWork judges the items of resources by the definitions of their types.
func reportWork(c document.Call) document.Work { return judged(c, c.Objects()) }

// judged is reportWork for so many resources.
func judged(c document.Call, resources int64) document.Work {
	items := readOf(c, resources*average(c, tableMetadataItems, tableResources), tableMetadataItems)
	of := readOf(c, resources, tableResources)
	return document.Work{Read: items.Read + of.Read, Scanned: items.Scanned + of.Scanned, Tests: 4*items.Read + applied(c)}
}

// itemDefinitionsWork looks the keys of items up in the definitions of the types
// of their resources.
func itemDefinitionsWork(c document.Call) document.Work {
	items, of := readOf(c, c.Objects(), tableMetadataItems), readOf(c, c.Objects(), tableResources)
	return document.Work{Read: items.Read + of.Read + applied(c), Scanned: items.Scanned + of.Scanned, Tests: 4 * items.Read, Length: 2}
}

// search is what it takes to find the resources that match a filter.
type search struct {
	statements int
	rows       int64 // that may match, of those that conditions with an index leave
	whole      bool  // whether all of them are looked at before the first is found
	scanned    int64 // rows of other tables
	tests      int64
	atMost     int64 // rows and tests besides, where a text that is searched for is frequent
	clauses    int64
}

// Conditions with an index are supposed to leave no more rows than these.
const (
	indexedRows = 10_000
	namedRows   = 100
)

// searchOf returns what the filter among the arguments of a field takes.
func searchOf(c document.Call) search { return searchFor(c, objectOf(c.Argument("filter"))) }

// searchFor returns what a filter of resources takes.
func searchFor(c document.Call, filter map[string]any) search {
	all := c.Size(tableResources)
	s := search{rows: all}
	narrow := func(argument string, rows int64) {
		if filter[argument] != nil {
			s.rows = min(s.rows, rows)
			s.clauses++
		}
	}
	narrow("uuids", lengthOf(filter["uuids"]))
	narrow("name", namedRows)
	narrow("parent", indexedRows)
	narrow("types", all)
	narrow("projectId", all)
	narrow("projectIds", all)
	narrow("visibility", all)
	narrow("updatedSince", all)
	if filter["ancestor"] != nil { // all that is below it is looked up first
		below := min(all, indexedRows)
		s.whole, s.rows, s.scanned, s.clauses = true, min(s.rows, below), s.scanned+below, s.clauses+1
	}
	if part := filter["nameContains"]; part != nil {
		named, more := partly(c, part, tableResources, indexOfNames)
		s.whole, s.rows, s.atMost, s.clauses = true, min(s.rows, named), s.atMost+2*more, s.clauses+1
		s.tests += s.rows
	}
	if part := filter["search"]; part != nil {
		found := partsOf(c, part, searchedIn{tableResources, indexOfNames}, searchedIn{tableResources, indexOfDescriptions}, searchedIn{tableMetadataItems, indexOfValues})
		s.whole, s.rows, s.scanned, s.tests = true, min(s.rows, found.Scanned), s.scanned+found.Scanned, s.tests+found.Tests
		s.atMost, s.clauses = s.atMost+found.AtMost, s.clauses+1
	}
	for _, table := range []struct{ argument, name string }{{"metadata", tableMetadataItems}, {"tags", tableResourceTags}, {"anyTags", tableResourceTags}} {
		if count := lengthOf(filter[table.argument]); count > 0 {
			found := min(atMost(c, indexedRows, table.name), max(all, 1))
			s.whole, s.rows, s.scanned, s.clauses = true, min(s.rows, found), s.scanned+count*found, s.clauses+count
		}
	}
	s.add(c, conditionTests(filter))
	return s
}

// add adds tests of values, of metadata and of capabilities: those of one group
// go through all values that any of them may hold of.
func (s *search) add(c document.Call, groups []testGroup) {
	all := c.Size(tableResources)
	for _, group := range groups {
		size := c.Size(group.table)
		rows := min(size, all*group.tests)
		if found := group.found(c); found < rows {
			s.atMost += (rows - found) * (1 + group.tests)
			rows = found
		}
		if group.narrows {
			s.rows = min(s.rows, rows)
		}
		s.whole, s.scanned, s.tests, s.clauses = true, s.scanned+rows, s.tests+rows*group.tests, s.clauses+1
		if group.table == tableCapabilityItems {
			s.statements = 1 // which looks the names of capabilities up
		}
	}
}

// testGroup is tests of which one is enough, and the table of the values.
type testGroup struct {
	table string
	tests int64
	parts []any // which some of the tests look for in values
	// narrows is whether only resources match that have one of the values.
	narrows bool
}

// found returns how many rows the index of texts leaves for the tests, all where
// it does not serve each of them.
func (g testGroup) found(c document.Call) int64 {
	index := indexOfValues
	if g.table == tableCapabilityItems {
		index = indexOfCapabilities
	}
	if int64(len(g.parts)) < g.tests {
		return c.Size(g.table)
	}
	var found int64
	for _, part := range g.parts {
		rows, _ := partly(c, part, g.table, index)
		found += rows
	}
	return found
}

// The indexes of texts, as store/sqldb names them.
const (
	indexOfValues       = "metadata_items_value_trigrams"
	indexOfCapabilities = "capability_members_value_trigrams"
	indexOfNames        = "resources_name_key_trigrams"
	indexOfDescriptions = "resources_description_trigrams"
	indexOfNamespaces   = "namespaces_search_key_trigrams"
	indexOfProperties   = "property_definitions_search_key_trigrams"
	indexOfObjects      = "object_definitions_search_key_trigrams"
	indexOfTags         = "tags_name_key_trigrams"
)

// partly returns how many rows of a table a search for a part of their texts
// looks at, and how many more where the part is frequent. All of them, where the
// part is too short for the index or the database has none; else half of a small
// table, and no more of a large one than makes reading all of it better.
func partly(c document.Call, part any, table, index string) (rows, more int64) {
	size := c.Size(table)
	if of, _ := part.(string); !text.HasTrigram(of) || !c.Indexed(index) {
		return size, 0
	}
	rows = max(min(divide(size, 2), indexedRows), size/wholePart)
	return rows, size - rows
}

// maxTests is how many tests are counted: more are refused by their field.
const maxTests = 250

// conditionTests returns the tests of a filter.
func conditionTests(filter map[string]any) []testGroup {
	var groups []testGroup
	for _, one := range firstOf(listOf(filter["requirements"])) {
		requirement, _ := objectOf(one)["requirement"].(string)
		groups = append(groups, testGroup{table: tableCapabilityItems, tests: max(1, int64(strings.Count(requirement, "<or>")+strings.Count(requirement, ",")))})
	}
	if matching, _ := filter["matching"].(string); matching != "" {
		for range min(max(1, strings.Count(matching, "$")), maxTests) {
			groups = append(groups, testGroup{table: tableCapabilityItems, tests: 1})
		}
	}
	return append(groups, testsOf(filter["where"])...)
}

func firstOf(list []any) []any { return list[:min(len(list), maxTests)] }

// testsOf returns the tests of a tree of conditions: those of `any` are one
// group for each table, others are groups of their own.
func testsOf(condition any) []testGroup {
	object := objectOf(condition)
	for _, of := range []struct{ argument, table string }{{"metadata", tableMetadataItems}, {"capability", tableCapabilityItems}} {
		if test := objectOf(object[of.argument]); test != nil {
			group := testGroup{table: of.table, tests: max(1, lengthOf(test["in"])/10)}
			if part := test["contains"]; part != nil {
				group.parts, group.narrows = []any{part}, true
			}
			return []testGroup{group}
		}
	}
	var groups []testGroup
	for _, member := range firstOf(listOf(object["all"])) {
		groups = append(groups, testsOf(member)...)
	}
	for _, member := range firstOf(listOf(object["not"])) {
		for _, group := range testsOf(member) {
			group.narrows = false
			groups = append(groups, group)
		}
	}
	of, narrow := map[string]testGroup{}, true
	for _, member := range firstOf(listOf(object["any"])) {
		for _, group := range testsOf(member) {
			sum := of[group.table]
			narrow = narrow && group.narrows
			of[group.table] = testGroup{table: group.table, tests: sum.tests + group.tests, parts: append(sum.parts, group.parts...)}
		}
	}
	for _, table := range []string{tableMetadataItems, tableCapabilityItems} {
		if group := of[table]; group.tests > 0 {
			group.narrows = narrow && len(of) == 1
			groups = append(groups, group)
		}
	}
	return groups
}

// resourcesOfEach is a page of the resources of a filter for each of several
// parents.
func resourcesOfEach(c document.Call) document.Work {
	work := resourcesPage(c)
	work.Scanned += scannedWithin(c, tableResources)
	return work
}

// resourcesPage is a page of the resources of a filter.
func resourcesPage(c document.Call) document.Work {
	s := searchOf(c)
	work := readOf(c, c.Objects()*(c.Page()+1), tableResources)
	order, _ := objectOf(c.Argument("orderBy"))["field"].(string)
	switch {
	case s.whole || s.rows < work.Read:
		work = document.Work{Read: min(work.Read, s.rows), Scanned: s.rows}
	case s.clauses > 0 && order != "" && order != "NAME": // no index has both
		work.Scanned = max(work.Scanned, min(s.rows, indexedRows))
	}
	work.Statements, work.Scanned, work.Tests, work.AtMost = 1+s.statements, work.Scanned+s.scanned, s.tests, s.atMost
	if order == string(resource.OrderByType) { // as many of each type, and their names
		types := c.Size(tableResourceTypes)
		work.Statements, work.Scanned = work.Statements+1, work.Scanned+2*types+min(types*(c.Page()+1), c.Size(tableResources))
	}
	return work
}

// resourcesCount counts the resources of a filter.
func resourcesCount(c document.Call) document.Work {
	s := searchOf(c)
	return document.Work{Statements: 1 + s.statements, Scanned: s.rows + s.scanned, Tests: s.tests, AtMost: s.atMost}
}

// explainWork asks every condition of every resource.
func explainWork(c document.Call) document.Work {
	s := searchOf(c)
	all := c.Size(tableResources)
	return document.Work{Statements: s.statements, Scanned: all + s.scanned, Tests: 2*all*max(s.clauses, 1) + s.tests, AtMost: s.atMost}
}

// metadataFacetsWork groups the values of keys on the resources of a filter.
func metadataFacetsWork(c document.Call) document.Work {
	list, _ := c.Parent()
	s := searchOf(list)
	keys := lengthOf(c.Argument("keys"))
	items := atMost(c, s.rows*keys, tableMetadataItems)
	return document.Work{Statements: 1 + s.statements, Scanned: s.rows + s.scanned + items, Read: items, Tests: s.tests, AtMost: s.atMost, Length: max(keys, 1)}
}

// metadataValuesWork is as many values as facets are asked for.
func metadataValuesWork(c document.Call) document.Work {
	facets, _ := c.Parent()
	return document.Work{Length: max(1, atMost(c, facets.Page(), tableResources))}
}
