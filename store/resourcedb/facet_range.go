package resourcedb

import (
	"context"
	"fmt"
	"slices"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/propertydefinition"
	"github.com/cadastre-dev/cadastre/ent/resourcetype"
	"github.com/cadastre-dev/cadastre/ent/resourcetypeassociation"
	"github.com/cadastre-dev/cadastre/ent/tag"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/metadefdb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// addUnused appends to a facet the known values that are not in use and begin
// with the requested prefix, sorted by code point, until the facet has the
// number of values requested. If more are left, it sets HasMore.
func addUnused(facet *resource.Facet, of resource.FacetRequest, known []string, inUse map[string]bool) {
	group := func(value string) string { return value }
	if of.By == resource.FacetTag {
		group = text.Fold
	}
	start := group(text.OrEmpty(of.StartsWith))
	slices.SortFunc(known, func(a, b string) int { return strings.Compare(group(a), group(b)) })
	added := map[string]bool{}
	for _, value := range known {
		key := group(value)
		if inUse[key] || added[key] || !strings.HasPrefix(key, start) {
			continue
		}
		if facet.HasMore = facet.HasMore || len(facet.Values) == of.First; facet.HasMore {
			return
		}
		added[key] = true
		facet.Values = append(facet.Values, resource.FacetValue{Value: value})
	}
}

// facetRange is the known values of facets, in use or not.
type facetRange struct {
	kinds map[resource.FacetKind][]string
	types map[int64]string // names of the visible types
	// enums are the values that definitions list, by index of the facet. In the
	// scope of types, they are also by type.
	enums map[facetOf][]string
	scope resource.Scope
}

// of returns the known values of a facet for one key of the scope.
func (r facetRange) of(key int64, index int, by resource.FacetKind) []string {
	switch {
	case by == resource.FacetMetadataValue && r.scope != resource.ResourcesOfType:
		return slices.Clone(r.enums[facetOf{0, index}])
	case by == resource.FacetMetadataValue:
		return slices.Clone(r.enums[facetOf{key, index}])
	case by == resource.FacetType && r.scope == resource.ResourcesOfType:
		if name, ok := r.types[key]; ok {
			return []string{name}
		}
		return nil
	}
	return slices.Clone(r.kinds[by])
}

// knownValues returns the known values of the facets that include unused ones.
// It takes one statement each for types, tags and enums.
func (s *ResourceStore) knownValues(ctx context.Context, scope facetScope, filter resource.Filter,
	wanted []resource.FacetRequest) (facetRange, error) {
	found := facetRange{scope: scope.Scope, enums: map[facetOf][]string{}, kinds: map[resource.FacetKind][]string{
		resource.FacetVisibility: {string(access.Private), string(access.Public)}}}
	var keys []string
	asked := map[resource.FacetKind]bool{}
	for _, of := range wanted {
		if of.IncludeUnused {
			asked[of.By] = true
			if of.By == resource.FacetMetadataValue {
				keys = append(keys, *of.Key)
			}
		}
	}
	var err error
	if asked[resource.FacetType] {
		if err = s.knownTypes(ctx, &found); err != nil {
			return found, err
		}
	}
	if asked[resource.FacetTag] {
		if found.kinds[resource.FacetTag], err = s.knownTags(ctx, wanted); err != nil {
			return found, err
		}
	}
	if len(keys) > 0 {
		err = s.knownEnums(ctx, scope, filter, wanted, keys, found.enums)
	}
	return found, err
}

// knownTypes reads the types that the viewer may see.
func (s *ResourceStore) knownTypes(ctx context.Context, found *facetRange) error {
	rows, err := s.Ent.ResourceType.Query().Where(visible.ResourceTypes(ctx)).Order(resourcetype.ByName()).All(ctx)
	if err != nil {
		return fmt.Errorf("list resource types: %w", err)
	}
	found.types = map[int64]string{}
	for _, row := range rows {
		found.types[row.ID] = row.Name
		found.kinds[resource.FacetType] = append(found.kinds[resource.FacetType], row.Name)
	}
	return nil
}

// knownTags returns the names of the tags in visible namespaces that begin with
// a requested prefix, one spelling of each folded name.
func (s *ResourceStore) knownTags(ctx context.Context, wanted []resource.FacetRequest) ([]string, error) {
	build := entsql.Dialect(s.Pool.Dialect())
	table := build.Table(tag.Table)
	names := build.Select().From(table)
	names.Select(entsql.Min(table.C(tag.FieldName)))
	visible.InNamespaces(ctx)(names)
	var starts []*entsql.Predicate
	for _, of := range wanted {
		if of.By != resource.FacetTag || !of.IncludeUnused {
			continue
		}
		if text.OrEmpty(of.StartsWith) == "" {
			starts = nil
			break
		}
		starts = append(starts, beginsWith(table.C(tag.FieldNameKey), text.Fold(*of.StartsWith)))
	}
	if len(starts) > 0 {
		names.Where(entsql.Or(starts...))
	}
	names.GroupBy(table.C(tag.FieldNameKey)).OrderBy(table.C(tag.FieldNameKey))
	var tags []string
	err := s.Select(ctx, names, func(rows *entsql.Rows) error {
		var name string
		err := rows.Scan(&name)
		tags = append(tags, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list tags: %w", err)
	}
	return tags, nil
}

// knownEnums reads the enums that visible definitions list for the metadata
// keys of facets. It reads the definitions on all resource types, or on those
// of the scope and the filter. An association may prefix names, so the statement
// looks up the names that equal a key or end it, which an index finds.
func (s *ResourceStore) knownEnums(ctx context.Context, scope facetScope, filter resource.Filter,
	wanted []resource.FacetRequest, keys []string, enums map[facetOf][]string) error {
	var ends []string
	for _, key := range keys {
		ends = append(ends, metadef.KeyEnds(key)...)
	}
	build := entsql.Dialect(s.Pool.Dialect())
	links := build.Table(resourcetypeassociation.Table)
	definitions := build.Select().From(build.Table(propertydefinition.Table))
	definitions.Join(links).
		On(definitions.C(propertydefinition.FieldNamespaceID), links.C(resourcetypeassociation.FieldNamespaceID))
	definitions.Where(paging.IsAmong(definitions, definitions.C(propertydefinition.FieldName), lists.Distinct(ends)))
	visible.InNamespaces(ctx)(definitions)
	of := links.C(resourcetypeassociation.FieldResourceTypeID)
	if scope.Scope == resource.ResourcesOfType {
		definitions.Where(paging.IsAmong(definitions, of, scope.keys))
	}
	if filter.Types != nil {
		definitions.Where(metadefdb.IsOfType(definitions, of, filter.Types))
	}
	definitions.Select(of, links.C(resourcetypeassociation.FieldPrefix), definitions.C(propertydefinition.FieldName),
		definitions.C(propertydefinition.FieldKeywords))
	err := s.Select(ctx, definitions, func(rows *entsql.Rows) error {
		var at facetOf
		var prefix string
		var row ent.PropertyDefinition
		if err := rows.Scan(&at.key, &prefix, &row.Name, &row.Keywords); err != nil {
			return err
		}
		if scope.Scope != resource.ResourcesOfType {
			at.key = 0
		}
		name := metadef.NameThrough(prefix, row.Name)
		for i, of := range wanted {
			if of.By == resource.FacetMetadataValue && of.IncludeUnused && *of.Key == name {
				at.index = i
				enums[at] = append(enums[at], s.metadefs.PropertyNoun(&row).EnumTexts()...)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("look up definitions of metadata keys: %w", err)
	}
	return nil
}
