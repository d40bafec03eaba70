package metadefdb

import (
	"context"
	"fmt"
	"maps"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/namespace"
	"github.com/cadastre-dev/cadastre/ent/predicate"
	"github.com/cadastre-dev/cadastre/ent/resourcetype"
	"github.com/cadastre-dev/cadastre/ent/resourcetypeassociation"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// ResourceTypes returns a page of the resource types that the viewer may know.
func (s *MetadefStore) ResourceTypes(ctx context.Context, filter metadef.ResourceTypeFilter, order page.Order,
	request page.Request) (page.Page[*metadef.ResourceType], error) {
	if err := s.CheckNames(ctx, filter.Check(), filter.Mentions("filter")...); err != nil {
		return page.Page[*metadef.ResourceType]{}, err
	}
	pages, err := paging.New("resourceTypes", paging.NamedOrders, order, request)
	return paging.PageOf(ctx, s.DB, typeTable, pages, err, resourceTypeNoun, func(row *ent.ResourceType) (any, string) {
		return paging.KeyUnder(order, row.Name, row.CreatedAt, row.UpdatedAt), row.UUID
	}, visible.ResourceTypes(ctx), resourceTypesMatching(filter))
}

// CountResourceTypes returns the number of resource types on all pages of
// ResourceTypes.
func (s *MetadefStore) CountResourceTypes(ctx context.Context, filter metadef.ResourceTypeFilter) (int, error) {
	return typeTable.Count(ctx, s.DB, visible.ResourceTypes(ctx), resourceTypesMatching(filter))
}

func resourceTypesMatching(filter metadef.ResourceTypeFilter) predicate.ResourceType {
	return func(s *entsql.Selector) {
		if filter.Names != nil {
			s.Where(paging.IsAmong(s, s.C(resourcetype.FieldName), filter.Names))
		}
	}
}

// ResourceTypeNamed returns the visible resource type with a name, or
// ErrNotFound.
func (s *MetadefStore) ResourceTypeNamed(ctx context.Context, name string) (*metadef.ResourceType, error) {
	if err := text.CheckAny("name", name); err != nil {
		return nil, err
	}
	row, err := s.Ent.ResourceType.Query().Where(visible.ResourceTypes(ctx), resourcetype.Name(name)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, RefuseUnknownType(name)
	}
	if err != nil {
		return nil, fmt.Errorf("look up a resource type: %w", err)
	}
	return resourceTypeNoun(row), nil
}

// ResourceTypeRow returns the row of the visible resource type with a name, or
// ErrNotFound for the input field that has the name.
func ResourceTypeRow(ctx context.Context, tx *sqldb.Tx, field, name string) (*ent.ResourceType, error) {
	row, err := tx.ResourceType.Query().Where(visible.ResourceTypes(ctx), resourcetype.Name(name)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, RefuseUnknownType(name).On(field)
	}
	return row, err
}

// RefuseUnknownType returns the refusal of a resource type that does not exist
// or that the viewer may not know.
func RefuseUnknownType(name string) *problem.Refusal {
	return problem.Refuse(problem.ErrNotFound, "resource type %q does not exist", name)
}

// ResourceTypesByID returns the visible resource types with the row ids.
func (s *MetadefStore) ResourceTypesByID(ctx context.Context, ids []int64) (map[int64]*metadef.ResourceType, error) {
	rows, err := s.Ent.ResourceType.Query().Where(visible.ResourceTypes(ctx), paging.Among(resourcetype.FieldID, ids)).
		All(ctx)
	return paging.ByID(rows, err, "resource types", resourceTypeNoun, func(row *ent.ResourceType) int64 {
		return row.ID
	})
}

// ResourceTypesInUse reports, by row id, which of the types an association, a
// resource or a capability refers to.
func (s *MetadefStore) ResourceTypesInUse(ctx context.Context, ids []int64) (map[int64]bool, error) {
	used, err := sqldb.Column[int64](ctx, s.DB, s.Pool, `SELECT t.id FROM resource_types t WHERE `+s.Listed("t.id", "$1", "bigint")+` AND (
		EXISTS (SELECT 1 FROM resource_type_associations a WHERE a.resource_type_id = t.id) OR
		EXISTS (SELECT 1 FROM resources r WHERE r.resource_type_id = t.id) OR
		EXISTS (SELECT 1 FROM capabilities c WHERE c.resource_type_id = t.id))`, sqldb.JSONOf(ids))
	if err != nil {
		return nil, fmt.Errorf("look up which resource types are in use: %w", err)
	}
	return lists.Set(used, lists.Itself[int64]), nil
}

// ResourceTypesByUUID returns the visible resource types with the uuids.
func (s *MetadefStore) ResourceTypesByUUID(ctx context.Context,
	uuids []string) (map[string]*metadef.ResourceType, error) {
	rows, err := s.Ent.ResourceType.Query().
		Where(visible.ResourceTypes(ctx), paging.Among(resourcetype.FieldUUID, uuids)).All(ctx)
	return paging.ByID(rows, err, "resource types", resourceTypeNoun, func(row *ent.ResourceType) string {
		return row.UUID
	})
}

// TypesOfResources returns the resource types with the row ids, for resources
// that the viewer has seen. It does not check visibility: a viewer who sees a
// resource knows its type, even if the last resource of the type has just been
// deleted.
func (s *MetadefStore) TypesOfResources(ctx context.Context, ids []int64) (map[int64]*metadef.ResourceType, error) {
	rows, err := typeTable.All(ctx, s.DB, paging.Among(resourcetype.FieldID, ids))
	return paging.ByID(rows, err, "types of resources", resourceTypeNoun, func(row *ent.ResourceType) int64 {
		return row.ID
	})
}

// IsOfType holds for rows whose column has the row id of a resource type with
// one of the names. column is qualified by its table.
func IsOfType(s *entsql.Selector, column string, names []string) *entsql.Predicate {
	types := entsql.Dialect(s.Dialect()).Table(resourcetype.Table)
	return entsql.In(column, entsql.Dialect(s.Dialect()).Select(types.C(resourcetype.FieldID)).From(types).
		Where(paging.IsAmong(s, types.C(resourcetype.FieldName), names)))
}

// IsOfOneType is IsOfType for one name. It compares the column with =, so that
// an index that begins with the column returns the rows sorted by the next one.
func IsOfOneType(s *entsql.Selector, column, name string) *entsql.Predicate {
	types := entsql.Dialect(s.Dialect()).Table(resourcetype.Table)
	return entsql.EQ(column, entsql.Dialect(s.Dialect()).Select(types.C(resourcetype.FieldID)).From(types).
		Where(entsql.EQ(types.C(resourcetype.FieldName), name)))
}

func resourceTypeNoun(row *ent.ResourceType) *metadef.ResourceType {
	return &metadef.ResourceType{
		ID: row.ID, UUID: row.UUID, Name: row.Name, Protected: row.Protected, Strict: row.Strict,
		CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(),
	}
}

var associationOrders = map[string]paging.SortKey{"CREATED_AT": {Column: resourcetypeassociation.FieldCreatedAt,
	IsTime: true}}

func (s *MetadefStore) associationPaging(ctx context.Context, filter metadef.AssociationFilter,
	request page.Request) (paging.Paging, error) {
	if err := s.CheckAssociationFilter(ctx, filter); err != nil {
		return paging.Paging{}, err
	}
	return paging.New("associations", associationOrders, page.Order{Field: "CREATED_AT"}, request)
}

// CheckAssociationFilter returns the problems of a filter of associations.
func (s *MetadefStore) CheckAssociationFilter(ctx context.Context, filter metadef.AssociationFilter) error {
	return s.CheckNames(ctx, filter.Check(), filter.Mentions("filter")...)
}

// AssociationsOfTypes returns a page of each resource type's visible
// associations that match a filter, oldest first. They have no
// ResourceTypeName.
func (s *MetadefStore) AssociationsOfTypes(ctx context.Context, types []int64, filter metadef.AssociationFilter,
	request page.Request) (map[int64]page.Page[*metadef.ResourceTypeAssociation], error) {
	pages, err := s.associationPaging(ctx, filter, request)
	if err != nil {
		return nil, err
	}
	rows, err := s.Ent.ResourceTypeAssociation.Query().
		Where(pages.OfEach(resourcetypeassociation.Table, resourcetypeassociation.FieldResourceTypeID, types,
			visible.InNamespaces(ctx), associationsMatching(filter))).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list associations of resource types: %w", err)
	}
	return paging.PagesOf(pages, types, rows, typeOfAssociation, AssociationNoun,
		func(row *ent.ResourceTypeAssociation) (any, string) { return row.CreatedAt, row.UUID }), nil
}

func typeOfAssociation(row *ent.ResourceTypeAssociation) int64 { return row.ResourceTypeID }

// AssociationsOfTypesBehind reports which types have associations behind the
// page of AssociationsOfTypes: before a page that is read forward, after a page
// that is read backward.
func (s *MetadefStore) AssociationsOfTypesBehind(ctx context.Context, types []int64, filter metadef.AssociationFilter,
	request page.Request) (map[int64]bool, error) {
	pages, err := s.associationPaging(ctx, filter, request)
	if err != nil {
		return nil, err
	}
	rows, err := s.Ent.ResourceTypeAssociation.Query().
		Where(pages.BehindEach(resourcetypeassociation.Table, resourcetypeassociation.FieldResourceTypeID, types,
			visible.InNamespaces(ctx), associationsMatching(filter))).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for associations of resource types: %w", err)
	}
	return lists.Set(rows, typeOfAssociation), nil
}

// CountAssociationsOfTypes returns the number of each resource type's visible
// associations that match a filter. A type without any is missing.
func (s *MetadefStore) CountAssociationsOfTypes(ctx context.Context, types []int64,
	filter metadef.AssociationFilter) (map[int64]int, error) {
	if err := s.CheckAssociationFilter(ctx, filter); err != nil {
		return nil, err
	}
	return associationTable.CountBy(ctx, s.DB, resourcetypeassociation.FieldResourceTypeID,
		visible.InNamespaces(ctx), paging.Among(resourcetypeassociation.FieldResourceTypeID, types),
		associationsMatching(filter))
}

// NamespacesOfTypes returns a page of the visible namespaces that are
// associated with each resource type, without duplicates.
func (s *MetadefStore) NamespacesOfTypes(ctx context.Context, types []int64, order page.Order,
	request page.Request) (map[int64]page.Page[*metadef.Namespace], error) {
	pages, err := paging.New("namespaces", namespaceOrders, order, request)
	if err != nil {
		return nil, err
	}
	build := entsql.Dialect(s.Pool.Dialect())
	pairs, of := typesWithNamespaces(ctx, s.Pool.Dialect(), types)
	pages.Within(pairs)
	id, key, tie := pairs.C(namespace.FieldID), pairs.C(pages.Key.Column), pairs.C(namespace.FieldUUID)
	pairs.Select(entsql.As(of, "type_id"), entsql.As(id, "namespace_id")).GroupBy(of, id, key, tie)
	pairs.AppendSelectExprAs(entsql.RowNumber().PartitionBy(of).
		OrderBy(pages.Direction()(key), pages.Direction()(tie)), "place")
	pairs.As("pairs")
	ranked := build.Select(pairs.C("type_id"), pairs.C("namespace_id")).From(pairs).
		Where(entsql.LTE(pairs.C("place"), pages.Limit())).OrderBy(pairs.C("type_id"), pairs.C("place"))
	var ofTypes, ids []int64
	err = s.Select(ctx, ranked, func(rows *entsql.Rows) error {
		var of, id int64
		err := rows.Scan(&of, &id)
		ofTypes, ids = append(ofTypes, of), append(ids, id)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list namespaces of resource types: %w", err)
	}
	rows, err := namespaceTable.All(ctx, s.DB, visible.Namespaces(ctx), paging.Among(namespace.FieldID, ids))
	if err != nil {
		return nil, fmt.Errorf("read namespaces of resource types: %w", err)
	}
	there := lists.ByKey(rows, func(row *ent.Namespace) int64 { return row.ID })
	parts := map[int64][]*ent.Namespace{}
	for i, of := range ofTypes {
		if row := there[ids[i]]; row != nil {
			parts[of] = append(parts[of], row)
		}
	}
	return lists.Index(types, func(of int64) (int64, page.Page[*metadef.Namespace]) {
		return of, paging.NewPage(pages, parts[of], namespaceNoun, namespacePosition(order))
	}), nil
}

// NamespacesOfTypesBehind reports which types have namespaces behind the page
// of NamespacesOfTypes: before a page that is read forward, after a page that
// is read backward.
func (s *MetadefStore) NamespacesOfTypesBehind(ctx context.Context, types []int64, order page.Order,
	request page.Request) (map[int64]bool, error) {
	pages, err := paging.New("namespaces", namespaceOrders, order, request)
	if err != nil {
		return nil, err
	}
	counts, err := s.namespaceCounts(ctx, types, pages.Behind)
	return lists.Set(slices.Collect(maps.Keys(counts)), lists.Itself), err
}

// CountNamespacesOfTypes returns the number of visible namespaces that are
// associated with each resource type. A type without any is missing.
func (s *MetadefStore) CountNamespacesOfTypes(ctx context.Context, types []int64) (map[int64]int, error) {
	return s.namespaceCounts(ctx, types, func(*entsql.Selector) {})
}

func (s *MetadefStore) namespaceCounts(ctx context.Context, types []int64,
	condition func(*entsql.Selector)) (map[int64]int, error) {
	pairs, of := typesWithNamespaces(ctx, s.Pool.Dialect(), types)
	pairs.Select(of, entsql.Count(entsql.Distinct(pairs.C(namespace.FieldID)))).GroupBy(of)
	condition(pairs)
	counts, err := s.CountEach(ctx, pairs)
	if err != nil {
		return nil, fmt.Errorf("count namespaces of resource types: %w", err)
	}
	return counts, nil
}

// typesWithNamespaces returns a join of the visible namespaces with their
// associations with the types, and the column of the type's row id.
func typesWithNamespaces(ctx context.Context, dialect string, types []int64) (*entsql.Selector, string) {
	build := entsql.Dialect(dialect)
	links := build.Table(resourcetypeassociation.Table)
	pairs := build.Select().From(build.Table(namespace.Table))
	pairs.Join(links).On(links.C(resourcetypeassociation.FieldNamespaceID), pairs.C(namespace.FieldID))
	of := links.C(resourcetypeassociation.FieldResourceTypeID)
	visible.Namespaces(ctx)(pairs)
	pairs.Where(paging.IsAmong(pairs, of, types))
	return pairs, of
}
