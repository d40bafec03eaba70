package resourcedb

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/ent/metadataitem"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/query"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/text"
)

// MetadataFacets returns, for each key of a scope, the values in use of each
// metadata key in names, with the number of resources of a filter that have each
// value: at most first values, the most frequent first. Without a scope, 0 is
// the only key of it and stands for all resources of the filter.
func (s *ResourceStore) MetadataFacets(ctx context.Context, scope resource.Scope, keys []int64, filter resource.Filter,
	names []string, first int) (map[int64][]*resource.MetadataFacet, error) {
	var problems problem.Problems
	text.CheckNames(&problems, "keys", names, metadef.MaxMetadataKey)
	text.CheckCount(&problems, "keys", len(names), resource.MaxFacetKeys)
	if first < 0 || first > resource.MaxFacetValues {
		problems.Add("first", "must be 0 to %d", resource.MaxFacetValues)
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	clauses, err := s.clausesOf(ctx, "filter", filter)
	if err != nil {
		return nil, err
	}
	facets := make(map[int64][]*resource.MetadataFacet, len(keys))
	for _, of := range keys {
		facets[of] = []*resource.MetadataFacet{}
		for _, name := range names {
			facets[of] = append(facets[of], &resource.MetadataFacet{Key: name, Values: []resource.MetadataFacetValue{}})
		}
	}
	wanted := lists.Map(names, func(name string) resource.FacetRequest {
		return resource.FacetRequest{By: resource.FacetMetadataValue, Key: &name, First: first}
	})
	counts, err := s.countValues(ctx, facetScope{scope, keys}, wanted, slices.Repeat([][]clause{clauses}, len(names)),
		make([]map[string][]int64, len(names)))
	if err != nil {
		return nil, err
	}
	for _, count := range counts {
		if facet := facets[count.key][count.index]; len(facet.Values) < first {
			facet.Values = append(facet.Values,
				resource.MetadataFacetValue{Value: count.Value, ResourceCount: count.ResourceCount})
		}
	}
	return facets, nil
}

// MetadataKeys returns a page of the metadata keys in use on the visible
// resources of a filter, by key. It keeps the keys that contain the search
// string, ignoring case. If resourceType is not nil, it counts only resources
// of that type. The page is always read forward, between request.After and
// request.Before, both excluded. Every call counts the keys again.
func (s *ResourceStore) MetadataKeys(ctx context.Context, filter resource.Filter, resourceType *string, search string,
	request page.Request) (page.Page[*resource.MetadataKey], error) {
	none := page.Page[*resource.MetadataKey]{}
	const list = "metadataKeys"
	var problems problem.Problems
	request.Check(&problems)
	text.Check(&problems, "search", search, 0, metadef.MaxMetadataKey)
	place := func(cursor *string, field string) (key string) {
		if cursor == nil {
			return ""
		}
		position, ok := page.ParsePosition(*cursor, list)
		if !ok {
			problems.Add(field, "is not a cursor of this list")
		}
		return position.Key
	}
	after, before := place(request.After, "after"), place(request.Before, "before")
	if err := problems.Err(); err != nil {
		return none, err
	}
	current := page.Page[*resource.MetadataKey]{Items: []*resource.MetadataKey{}, Cursors: []string{}}
	err := s.eachMetadataKey(ctx, filter, resourceType, after, search, func(key resource.MetadataKey) bool {
		if before != "" && key.Key >= before {
			return false
		}
		if current.HasMore = len(current.Items) == request.Limit(); current.HasMore {
			return false
		}
		current.Items = append(current.Items, &key)
		current.Cursors = append(current.Cursors, page.Position{List: list, Key: key.Key}.Cursor())
		return true
	})
	return current, err
}

// CountMetadataKeys returns the total number of keys in MetadataKeys.
func (s *ResourceStore) CountMetadataKeys(ctx context.Context, filter resource.Filter, resourceType *string,
	search string) (count int, err error) {
	err = s.eachMetadataKey(ctx, filter, resourceType, "", search, func(resource.MetadataKey) bool {
		count++
		return true
	})
	return count, err
}

// eachMetadataKey calls each for the keys after the given one that contain the
// search string, in order, until each returns false. It searches here rather
// than in the database, so that case folding is the same for every database.
func (s *ResourceStore) eachMetadataKey(ctx context.Context, filter resource.Filter, resourceType *string, after,
	search string, each func(resource.MetadataKey) bool) error {
	var problems problem.Problems
	filter.Check(&problems, "filter")
	text.CheckOptional(&problems, "resourceType", resourceType, 0, math.MaxInt)
	mentions := append(filter.Mentions("filter"),
		metadef.MentionOfOne(metadef.NameOfResourceType, "resourceType", resourceType))
	if err := s.metadefs.CheckNames(ctx, problems.Err(), mentions...); err != nil {
		return err
	}
	clauses, err := s.clausesOf(ctx, "filter", filter.OfType(resourceType))
	if err != nil {
		return err
	}
	wanted := text.Fold(search)
	answered, err := s.answerOf(ctx, query.Question{Use: query.Facet, By: resource.FacetMetadataKey}, clauses)
	if err != nil {
		return err
	}
	if answered.bySets() {
		for _, found := range answered.keys(after) {
			if strings.Contains(text.Fold(found.Key), wanted) && !each(found) {
				break
			}
		}
		return nil
	}
	build := entsql.Dialect(s.Pool.Dialect())
	resources, items := build.Table(entresource.Table), build.Table(metadataitem.Table)
	selector := build.Select().From(resources)
	selector.Join(items).On(resources.C(entresource.FieldID), items.C(metadataitem.FieldResourceID))
	key := items.C(metadataitem.FieldKey)
	matchingAll(ctx, answered.clauses)(selector)
	selector.Select(key, entsql.Count("*"))
	if after != "" {
		selector.Where(entsql.GT(key, after))
	}
	query, args := selector.GroupBy(key).OrderBy(key).Query()
	rows, err := s.Ent.QueryContext(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("list metadata keys: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var found resource.MetadataKey
		if err := rows.Scan(&found.Key, &found.ResourceCount); err != nil {
			return fmt.Errorf("list metadata keys: %w", err)
		}
		if strings.Contains(text.Fold(found.Key), wanted) && !each(found) {
			break
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("list metadata keys: %w", err)
	}
	return nil
}
