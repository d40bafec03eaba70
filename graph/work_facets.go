package graph

import (
	"maps"

	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/resource"
)

// childrenOfOne is how many children a resource is supposed to have at most.
const childrenOfOne = 50

// likely returns how many rows are supposed to match: a filter leaves half of
// those that its indexed conditions leave.
func (s search) likely() int64 {
	if s.clauses > 0 {
		return divide(s.rows, 2)
	}
	return s.rows
}

// facetRequests returns what facets are asked for.
func facetRequests(c document.Call) (wanted []map[string]any) {
	for _, of := range firstOf(listOf(c.Argument("of"))) {
		wanted = append(wanted, objectOf(of))
	}
	return wanted[:min(len(wanted), resource.MaxFacets)]
}

// facetKind returns the kind of a facet that is asked for.
func facetKind(of map[string]any) resource.FacetKind {
	kind, _ := of["by"].(string)
	return resource.FacetKind(kind)
}

// choicesOf returns the arguments of a filter that are the own choice of a facet.
func choicesOf(kind resource.FacetKind) []string {
	switch kind {
	case resource.FacetType:
		return []string{"types"}
	case resource.FacetProject:
		return []string{"projectId", "projectIds"}
	case resource.FacetTag:
		return []string{"tags", "anyTags"}
	case resource.FacetVisibility:
		return []string{"visibility"}
	case resource.FacetMetadataValue:
		return []string{"metadata"}
	}
	return nil
}

// valuesOfFacet returns how many rows have the values of a facet on some
// resources.
func valuesOfFacet(c document.Call, kind resource.FacetKind, resources int64) int64 {
	switch kind {
	case resource.FacetTag:
		return atMost(c, resources*average(c, tableResourceTags, tableResources), tableResourceTags)
	case resource.FacetMetadataKey: // grouped by an index, without the values
		return atMost(c, divide(resources, 2)*average(c, tableMetadataItems, tableResources), tableMetadataItems)
	case resource.FacetMetadataValue: // of one key, which half of them have
		return atMost(c, divide(resources, 2), tableMetadataItems)
	case resource.FacetCapabilityValue:
		return atMost(c, resources*usual, tableCapabilityItems)
	case resource.FacetType:
		return c.Size(tableResourceTypes)
	}
	return 0
}

// differentValues returns how many values a facet has at most.
func differentValues(c document.Call, kind resource.FacetKind) int64 {
	switch kind {
	case resource.FacetType:
		return c.Size(tableResourceTypes)
	case resource.FacetVisibility:
		return 2
	}
	return c.Size(tableResources)
}

// facetsWork groups the values of each facet on the resources of the filter
// without its own choice, all in one statement.
func facetsWork(c document.Call) document.Work {
	list, _ := c.Parent()
	filter := objectOf(list.Argument("filter"))
	requests := facetRequests(c)
	work := document.Work{Statements: 1, Length: max(1, int64(len(requests)))}
	named, byType := searchOf(list).statements > 0, false
	unused := map[resource.FacetKind]bool{}
	for _, of := range requests {
		kind := facetKind(of)
		without := maps.Clone(filter)
		for _, argument := range choicesOf(kind) {
			delete(without, argument)
		}
		s := searchFor(list, without)
		if list.Of() == "Resource" { // whose children an index finds
			s.rows = min(s.rows, list.Objects()*childrenOfOne)
		}
		work.Scanned += scannedOfFacet(s) + s.scanned + valuesOfFacet(c, kind, s.likely())
		work.Tests, work.AtMost = work.Tests+s.tests, work.AtMost+s.atMost
		work.Read += min(facetLimit(of)+1, s.likely(), differentValues(c, kind))
		named = named || kind == resource.FacetCapabilityValue
		byType = byType || kind == resource.FacetType && filter["types"] != nil
		if wants, _ := of["includeUnused"].(bool); wants {
			unused[kind] = true
		}
	}
	return addKnown(c, work, named, byType, unused)
}

// scannedOfFacet returns how many resources a facet is counted on: without a
// filter half of them, for who sees all of them has the values counted alone.
func scannedOfFacet(s search) int64 {
	if s.clauses == 0 {
		return divide(s.likely(), 2)
	}
	return s.likely()
}

// addKnown adds the statements that look up the names of capabilities, and the
// known values of the kinds of which unused ones are included.
func addKnown(c document.Call, work document.Work, named, byType bool, unused map[resource.FacetKind]bool) document.Work {
	if named {
		work.Statements++
		work.Scanned += atMost(c, namedRows, tableCapabilities)
	}
	if named && byType {
		work.Statements++
	}
	for kind, rows := range map[resource.FacetKind]int64{
		resource.FacetType: c.Size(tableResourceTypes), resource.FacetTag: c.Size(tableTags), resource.FacetMetadataValue: atMost(c, namedRows, tableProperties),
	} {
		if unused[kind] {
			work.Statements++
			work.Scanned += rows
		}
	}
	return work
}

// facetLimit is how many values a facet is asked for.
func facetLimit(of map[string]any) int64 {
	if first, ok := numberOf(of["first"]); ok {
		return min(first, resource.MaxFacetValues)
	}
	return resource.DefaultFacetValues
}

// facetValuesWork is as many values as facets are asked for, on average.
func facetValuesWork(c document.Call) document.Work {
	facets, _ := c.Parent()
	requests := facetRequests(facets)
	var values int64
	for _, of := range requests {
		values += atMost(c, facetLimit(of), tableResources)
	}
	return document.Work{Length: max(1, divide(values, int64(len(requests))))}
}
