package resourcedb

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/resource/resident"
	"github.com/cadastre-dev/cadastre/text"
)

// typeValue returns the value that stands for a type. It is the row id, because
// types can be renamed.
func typeValue(id int64) string { return strconv.FormatInt(id, 10) }

// typeName returns the name of the type that a value stands for.
func (h *heldResources) typeName(value string) string {
	id, _ := strconv.ParseInt(value, 10, 64) // as typeValue wrote it
	return h.types[id]
}

// valuesOfTypes returns the values of the types that have one of the names.
func (h *heldResources) valuesOfTypes(names []string) (values []string) {
	for id, name := range h.types {
		if slices.Contains(names, name) {
			values = append(values, typeValue(id))
		}
	}
	return values
}

// facet returns the first values of a facet with their counts, at most one more
// than the request wants.
func (a answer) facet(of resource.FacetRequest) []resident.Count {
	first, start := of.First+1, text.OrEmpty(of.StartsWith)
	switch of.By {
	case resource.FacetProject:
		return a.held.CountValues(resident.Column{Kind: resident.OfProject}, a.sets, start, first)
	case resource.FacetVisibility:
		return a.held.CountValues(resident.Column{Kind: resident.OfVisibility}, a.sets, start, first)
	case resource.FacetTag:
		return a.held.CountValues(resident.Column{Kind: resident.OfTag}, a.sets, text.Fold(start), first)
	case resource.FacetMetadataKey:
		return a.held.CountKeys(a.sets, start, first)
	case resource.FacetMetadataValue:
		return a.held.CountValues(resident.Column{Kind: resident.OfItem, Key: *of.Key}, a.sets, start, first)
	}
	return a.types(start, first)
}

// types returns the type names that begin with start, and their counts: at most
// first of them, the largest counts first.
func (a answer) types(start string, first int) []resident.Count {
	var named []resident.Count
	for _, found := range a.held.CountValues(resident.Column{Kind: resident.OfType}, a.sets, "", math.MaxInt) {
		if name := a.held.typeName(found.Value); strings.HasPrefix(name, start) {
			named = append(named, resident.Count{Group: name, Value: name, Count: found.Count})
		}
	}
	slices.SortFunc(named, func(a, b resident.Count) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Group, b.Group))
	})
	return named[:min(first, len(named))]
}

// keys returns the metadata keys after the given one, in order.
func (a answer) keys(after string) (keys []resource.MetadataKey) {
	for _, found := range a.held.CountKeys(a.sets, "", math.MaxInt) {
		if found.Value > after {
			keys = append(keys, resource.MetadataKey{Key: found.Value, ResourceCount: found.Count})
		}
	}
	slices.SortFunc(keys, func(a, b resource.MetadataKey) int { return strings.Compare(a.Key, b.Key) })
	return keys
}

// explanation counts the resources that the viewer may see, the ones that pass
// each clause, and the ones that pass it and all clauses before it.
func (a answer) explanation(clauses []clause) *resource.Explanation {
	explanation := explanationOf(clauses)
	sets := []resident.Clause{}
	for _, c := range clauses {
		if c.Ignored {
			sets = append(sets, resident.All())
		} else {
			sets = append(sets, a.held.compile(c.Condition))
		}
	}
	considered, passing, remaining := a.held.Explain(a.sets[0], sets)
	explanation.Considered = considered
	for i := range explanation.Clauses {
		explanation.Clauses[i].Passing, explanation.Clauses[i].Remaining = passing[i], remaining[i]
	}
	return explanation
}
