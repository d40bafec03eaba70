package resourcedb

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/resource/resident"
	"github.com/cadastre-dev/cadastre/text"
)

// inMemory returns a clause of a filter as one on resources in memory.
type inMemory func(held *heldResources) resident.Clause

// typeValue returns the value that stands for a type: types are renamed.
func typeValue(id int64) string { return strconv.FormatInt(id, 10) }

// has returns the clause that a column has one of some values.
func has(kind resident.Kind, values ...string) inMemory {
	return func(*heldResources) resident.Clause { return resident.Has(resident.Column{Kind: kind}, values...) }
}

// isOfTypes returns the clause that a resource has one of some types.
func isOfTypes(names []string) inMemory {
	return func(held *heldResources) resident.Clause {
		var values []string
		for id, name := range held.types {
			if slices.Contains(names, name) {
				values = append(values, typeValue(id))
			}
		}
		return resident.Has(resident.Column{Kind: resident.OfType}, values...)
	}
}

// isTagged returns the clause that a resource has one of some tags; nil where what
// the definitions place below them counts, too.
func isTagged(tags ...resource.TagFilter) inMemory {
	if slices.ContainsFunc(tags, func(tag resource.TagFilter) bool { return tag.IncludeDescendants }) {
		return nil
	}
	folded := lists.Map(tags, func(tag resource.TagFilter) string { return text.Fold(tag.Name) })
	return func(*heldResources) resident.Clause { return resident.HasTag(folded...) }
}

// meets returns the clause of a condition; nil where memory does not tell.
func meets(c resource.Condition) inMemory {
	clause, ok := resident.Meets(c)
	if !ok {
		return nil
	}
	return func(*heldResources) resident.Clause { return clause }
}

// seenInMemory returns the clause of what the viewer may see.
func seenInMemory(ctx context.Context) resident.Clause {
	return resident.Seen(resource.ReachOf(access.ViewerFrom(ctx)))
}

// decidedBy returns the resources in memory as the reading of the context sees
// them where they decide all clauses; nil where the database does.
func (s *ResourceStore) decidedBy(ctx context.Context, clauses ...clause) (*heldResources, error) {
	if slices.ContainsFunc(clauses, func(c clause) bool { return !c.ignored && c.inMemory == nil }) {
		return nil, nil
	}
	return s.resourcesAt(ctx)
}

// clausesInMemory returns what the viewer may see and clauses that memory decides.
func (h *heldResources) clausesInMemory(ctx context.Context, clauses []clause) []resident.Clause {
	all := []resident.Clause{seenInMemory(ctx)}
	for _, c := range clauses {
		if !c.ignored {
			all = append(all, c.inMemory(h))
		}
	}
	return all
}

// count returns how many resources of clauses the viewer may see; 0 of none.
func (h *heldResources) count(ctx context.Context, clauses []clause) int {
	if h == nil {
		return 0
	}
	return h.CountMatching(h.clausesInMemory(ctx, clauses))
}

// rarestFirst returns clauses with the searches in the order of how many resources in
// memory each finds, where all can be counted there: where no walk finds a page, the
// first search does. Memory may be behind, for the order decides nothing else.
func (s *ResourceStore) rarestFirst(clauses []clause) []clause {
	searches := slices.DeleteFunc(slices.Clone(clauses), func(c clause) bool { return c.part == nil })
	if s.memory == nil || len(searches) < 2 || slices.ContainsFunc(searches, func(c clause) bool { return c.inMemory == nil }) {
		return clauses
	}
	held := s.memory.Held()
	if held == nil {
		s.loadSoon()
		return clauses
	}
	counts := map[*partSearch]int{} // none of what is no search, which comes first
	for _, c := range searches {
		counts[c.part] = held.CountMatching([]resident.Clause{c.inMemory(held)})
	}
	return slices.SortedStableFunc(slices.Values(clauses), func(a, b clause) int { return cmp.Compare(counts[a.part], counts[b.part]) })
}

// explain is ExplainResources by memory; nil of none.
func (h *heldResources) explain(ctx context.Context, clauses []clause) *resource.Explanation {
	if h == nil {
		return nil
	}
	considered, passing, remaining := h.Explain(seenInMemory(ctx), lists.Map(clauses, func(c clause) resident.Clause {
		if c.ignored {
			return resident.All()
		}
		return c.inMemory(h)
	}))
	explanation := explanationOf(clauses)
	explanation.Considered = considered
	for i := range explanation.Clauses {
		explanation.Clauses[i].Passing, explanation.Clauses[i].Remaining = passing[i], remaining[i]
	}
	return explanation
}

// facetsInMemory returns the first values of facets as facetCounts does, given the
// clauses of each; false where memory does not tell.
func (s *ResourceStore) facetsInMemory(ctx context.Context, scope facetScope, wanted []resource.FacetRequest, clauses [][]clause) (counts []facetCount, ok bool, err error) {
	if scope.Scope != resource.EveryResource || slices.ContainsFunc(wanted, func(of resource.FacetRequest) bool { return of.By == resource.FacetCapabilityValue }) {
		return nil, false, nil
	}
	held, err := s.decidedBy(ctx, slices.Concat(clauses...)...)
	if err != nil || held == nil {
		return nil, false, err
	}
	for i, of := range wanted {
		for place, found := range held.facet(of, held.clausesInMemory(ctx, clauses[i])) {
			counts = append(counts, facetCount{facetOf: facetOf{0, i}, group: found.Group, place: place + 1,
				FacetValue: resource.FacetValue{Value: found.Value, ResourceCount: found.Count}})
		}
	}
	return counts, true, nil
}

// facet returns the first values of a facet, one more than is wanted.
func (h *heldResources) facet(of resource.FacetRequest, clauses []resident.Clause) []resident.Count {
	first, start := of.First+1, text.OrEmpty(of.StartsWith)
	switch of.By {
	case resource.FacetProject:
		return h.CountValues(resident.Column{Kind: resident.OfProject}, clauses, start, first)
	case resource.FacetVisibility:
		return h.CountValues(resident.Column{Kind: resident.OfVisibility}, clauses, start, first)
	case resource.FacetTag:
		return h.CountValues(resident.Column{Kind: resident.OfTag}, clauses, text.Fold(start), first)
	case resource.FacetMetadataKey:
		return h.CountKeys(clauses, start, first)
	case resource.FacetMetadataValue:
		return h.CountValues(resident.Column{Kind: resident.OfItem, Key: *of.Key}, clauses, start, first)
	}
	return h.typesCounted(clauses, start, first)
}

// typesCounted returns the first types whose names begin with a text.
func (h *heldResources) typesCounted(clauses []resident.Clause, start string, first int) []resident.Count {
	var named []resident.Count
	for _, found := range h.CountValues(resident.Column{Kind: resident.OfType}, clauses, "", math.MaxInt) {
		id, _ := strconv.ParseInt(found.Value, 10, 64) // as typeValue wrote it
		if name := h.types[id]; strings.HasPrefix(name, start) {
			named = append(named, resident.Count{Group: name, Value: name, Count: found.Count})
		}
	}
	slices.SortFunc(named, func(a, b resident.Count) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Group, b.Group))
	})
	return named[:min(first, len(named))]
}

// metadataFacetsInMemory adds the values of metadata keys to facets that have none;
// it reports false where memory does not tell.
func (s *ResourceStore) metadataFacetsInMemory(ctx context.Context, scope resource.Scope, clauses []clause, facets []*resource.MetadataFacet, first int) (bool, error) {
	if scope != resource.EveryResource {
		return false, nil
	}
	held, err := s.decidedBy(ctx, clauses...)
	if err != nil || held == nil {
		return false, err
	}
	matching := held.clausesInMemory(ctx, clauses)
	for _, facet := range facets {
		for _, found := range held.CountValues(resident.Column{Kind: resident.OfItem, Key: facet.Key}, matching, "", first) {
			facet.Values = append(facet.Values, resource.MetadataFacetValue{Value: found.Value, ResourceCount: found.Count})
		}
	}
	return true, nil
}

// keysInMemory returns the metadata keys after one on the resources of clauses, in
// order; false where memory does not tell.
func (s *ResourceStore) keysInMemory(ctx context.Context, clauses []clause, after string) (keys []resource.MetadataKey, ok bool, err error) {
	held, err := s.decidedBy(ctx, clauses...)
	if err != nil || held == nil {
		return nil, false, err
	}
	for _, found := range held.CountKeys(held.clausesInMemory(ctx, clauses), "", math.MaxInt) {
		if found.Value > after {
			keys = append(keys, resource.MetadataKey{Key: found.Value, ResourceCount: found.Count})
		}
	}
	slices.SortFunc(keys, func(a, b resource.MetadataKey) int { return strings.Compare(a.Key, b.Key) })
	return keys, true, nil
}
