package metadefdb

import (
	"context"
	"fmt"
	"slices"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/namespace"
	"github.com/cadastre-dev/cadastre/ent/objectdefinition"
	"github.com/cadastre-dev/cadastre/ent/predicate"
	"github.com/cadastre-dev/cadastre/ent/propertydefinition"
	"github.com/cadastre-dev/cadastre/ent/resourcetypeassociation"
	"github.com/cadastre-dev/cadastre/ent/tag"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/sqldb/textindex"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

var namespaceOrders = map[string]paging.SortKey{
	"NAME":         {Column: namespace.FieldName},
	"DISPLAY_NAME": {Column: namespace.FieldDisplayName},
	"CREATED_AT":   {Column: namespace.FieldCreatedAt, IsTime: true},
	"UPDATED_AT":   {Column: namespace.FieldUpdatedAt, IsTime: true},
}

// Namespaces returns a page of the namespaces that the viewer may see.
func (s *MetadefStore) Namespaces(ctx context.Context, filter metadef.NamespaceFilter, order page.Order,
	request page.Request) (page.Page[*metadef.Namespace], error) {
	if err := s.CheckNames(ctx, filter.Check(), filter.Mentions("filter")...); err != nil {
		return page.Page[*metadef.Namespace]{}, err
	}
	if filter.Search != nil { // the best plan depends on how frequent the string is
		ctx = sqldb.Unprepared(ctx)
	}
	pages, err := paging.New("namespaces", namespaceOrders, order, request)
	return paging.PageOf(ctx, s.DB, namespaceTable, pages, err, namespaceNoun, namespacePosition(order),
		visible.Namespaces(ctx), namespacesMatching(filter))
}

// namespacePosition returns a function that returns the position of a namespace
// under an order: its sort key and, for ties, its uuid.
func namespacePosition(order page.Order) func(*ent.Namespace) (key any, tie string) {
	return func(row *ent.Namespace) (any, string) {
		return namespaceKey(order, row.DisplayName, row.Name, row.CreatedAt, row.UpdatedAt), row.UUID
	}
}

// namespaceKey returns the sort key of a namespace under an order.
func namespaceKey(order page.Order, displayName, name string, createdAt, updatedAt time.Time) any {
	if order.Field == "DISPLAY_NAME" {
		return displayName
	}
	return paging.KeyUnder(order, name, createdAt, updatedAt)
}

// NamespaceCursor returns the cursor of a namespace in Namespaces under an
// order.
func NamespaceCursor(n *metadef.Namespace, order page.Order) string {
	key := namespaceKey(order, n.DisplayName(), n.Name, n.CreatedAt, n.UpdatedAt)
	return paging.CursorAt(order.Of("namespaces"), key, n.UUID)
}

// CountNamespaces returns the number of namespaces on all pages of Namespaces.
func (s *MetadefStore) CountNamespaces(ctx context.Context, filter metadef.NamespaceFilter) (int, error) {
	return namespaceTable.Count(ctx, s.DB, visible.Namespaces(ctx), namespacesMatching(filter))
}

// NamespaceNamed returns the visible namespace with a name, or ErrNotFound.
func (s *MetadefStore) NamespaceNamed(ctx context.Context, name string) (*metadef.Namespace, error) {
	if err := text.CheckAny("name", name); err != nil {
		return nil, err
	}
	row, err := s.Ent.Namespace.Query().Where(visible.Namespaces(ctx), namespace.Name(name)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, refuseUnknownNamespace(name)
	}
	if err != nil {
		return nil, fmt.Errorf("look up a namespace: %w", err)
	}
	return namespaceNoun(row), nil
}

// NamespacesByID returns the visible namespaces with the row ids.
func (s *MetadefStore) NamespacesByID(ctx context.Context, ids []int64) (map[int64]*metadef.Namespace, error) {
	rows, err := namespaceTable.All(ctx, s.DB, visible.Namespaces(ctx), paging.Among(namespace.FieldID, ids))
	return paging.ByID(rows, err, "namespaces", namespaceNoun, func(row *ent.Namespace) int64 { return row.ID })
}

// NamespacesByUUID returns the visible namespaces with the uuids.
func (s *MetadefStore) NamespacesByUUID(ctx context.Context, uuids []string) (map[string]*metadef.Namespace, error) {
	rows, err := namespaceTable.All(ctx, s.DB, visible.Namespaces(ctx), paging.Among(namespace.FieldUUID, uuids))
	return paging.ByID(rows, err, "namespaces", namespaceNoun, func(row *ent.Namespace) string { return row.UUID })
}

func namespaceNoun(row *ent.Namespace) *metadef.Namespace {
	return &metadef.Namespace{
		ID: row.ID, UUID: row.UUID, Name: row.Name, Title: row.Title, Description: row.Description,
		Visibility: access.Visibility(row.Visibility), Protected: row.Protected, Owner: row.Owner,
		Origin: row.Origin, Revision: row.Revision,
		CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(),
	}
}

func propertyNoun(row *ent.PropertyDefinition) *metadef.PropertyDefinition {
	return propertyWith(row, metadef.ReadPropertySchema(text.JSON(row.Keywords)))
}

func propertyWith(row *ent.PropertyDefinition, schema metadef.PropertySchema) *metadef.PropertyDefinition {
	p := &metadef.PropertyDefinition{
		ID: row.ID, UUID: row.UUID, NamespaceID: row.NamespaceID, ObjectID: sqldb.IDOf(row.ObjectID), Name: row.Name,
		BaseName: row.Name, PropertySchema: schema,
		CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(),
	}
	if row.Edges.Object != nil {
		p.Required = slices.Contains(sqldb.TextList(row.Edges.Object.Required), row.Name)
	}
	return p
}

func objectNoun(row *ent.ObjectDefinition) *metadef.ObjectDefinition {
	return &metadef.ObjectDefinition{
		ID: row.ID, UUID: row.UUID, NamespaceID: row.NamespaceID, Name: row.Name, Description: row.Description,
		Required: sqldb.TextList(row.Required), CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(),
	}
}

func tagNoun(row *ent.Tag) *metadef.Tag {
	return &metadef.Tag{ID: row.ID, UUID: row.UUID, NamespaceID: row.NamespaceID, Name: row.Name,
		ParentID: sqldb.IDOf(row.ParentID), CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC()}
}

// AssociationNoun returns the association of a row. Its ResourceTypeName is
// empty unless the row was read with the name of the type.
func AssociationNoun(row *ent.ResourceTypeAssociation) *metadef.ResourceTypeAssociation {
	a := &metadef.ResourceTypeAssociation{
		ID: row.ID, UUID: row.UUID, NamespaceID: row.NamespaceID, ResourceTypeID: row.ResourceTypeID,
		Prefix: sqldb.TextOrNil(row.Prefix), PropertiesTarget: sqldb.TextOrNil(row.PropertiesTarget),
		CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(),
	}
	if name, err := row.Value(typeNameColumn); err == nil {
		a.ResourceTypeName = sqldb.TextOf(name)
	}
	return a
}

// namespacesMatching returns the predicate that keeps the namespaces that match
// a filter. One association must meet all of the filter's conditions on
// associations.
func namespacesMatching(filter metadef.NamespaceFilter) predicate.Namespace {
	return func(s *entsql.Selector) {
		if filter.Visibility != nil {
			s.Where(entsql.EQ(s.C(namespace.FieldVisibility), string(*filter.Visibility)))
		}
		if filter.Owner != nil {
			s.Where(entsql.EQ(s.C(namespace.FieldOwner), *filter.Owner))
		}
		if filter.Search != nil {
			s.Where(mentions(s, text.Fold(*filter.Search)))
		}
		if filter.ResourceTypes != nil || filter.PropertiesTarget != nil {
			associations := entsql.Dialect(s.Dialect()).Table(resourcetypeassociation.Table)
			s.Where(entsql.In(s.C(namespace.FieldID), entsql.Dialect(s.Dialect()).
				Select(associations.C(resourcetypeassociation.FieldNamespaceID)).From(associations).
				Where(entsql.And(associatedAs(s, associations, filter)...))))
		}
		if filter.DefinesKey != nil {
			s.Where(defines(s, filter))
		}
		if filter.Tag != nil {
			tags := entsql.Dialect(s.Dialect()).Table(tag.Table)
			s.Where(entsql.In(s.C(namespace.FieldID), entsql.Dialect(s.Dialect()).
				Select(tags.C(tag.FieldNamespaceID)).From(tags).
				Where(entsql.EQ(tags.C(tag.FieldNameKey), text.Fold(*filter.Tag)))))
		}
	}
}

// associationsMatching returns the predicate that keeps the associations that
// match a filter, by the rule of metadef.AssociationFilter.Of.
func associationsMatching(filter metadef.AssociationFilter) func(*entsql.Selector) {
	return func(s *entsql.Selector) {
		if filter.Namespaces != nil {
			namespaces := entsql.Dialect(s.Dialect()).Table(namespace.Table)
			s.Where(entsql.In(s.C(resourcetypeassociation.FieldNamespaceID), entsql.Dialect(s.Dialect()).
				Select(namespaces.C(namespace.FieldID)).From(namespaces).
				Where(paging.IsAmong(s, namespaces.C(namespace.FieldName), filter.Namespaces))))
		}
		if filter.ResourceTypes != nil {
			s.Where(IsOfType(s, s.C(resourcetypeassociation.FieldResourceTypeID), filter.ResourceTypes))
		}
		if filter.Prefix != nil {
			s.Where(entsql.EQ(s.C(resourcetypeassociation.FieldPrefix), *filter.Prefix))
		}
		if filter.PropertiesTarget != nil {
			s.Where(entsql.EQ(s.C(resourcetypeassociation.FieldPropertiesTarget), *filter.PropertiesTarget))
		}
	}
}

// associatedAs returns the predicates for the conditions of a filter on an
// association.
func associatedAs(s *entsql.Selector, associations *entsql.SelectTable,
	filter metadef.NamespaceFilter) []*entsql.Predicate {
	var conditions []*entsql.Predicate
	if filter.ResourceTypes != nil {
		conditions = append(conditions,
			IsOfType(s, associations.C(resourcetypeassociation.FieldResourceTypeID), filter.ResourceTypes))
	}
	if filter.PropertiesTarget != nil {
		conditions = append(conditions,
			entsql.EQ(associations.C(resourcetypeassociation.FieldPropertiesTarget), *filter.PropertiesTarget))
	}
	return conditions
}

// mentions holds for a namespace that contains a folded string: in the name,
// title or description of the namespace, of a property or of an object, or in
// the name of a tag.
func mentions(s *entsql.Selector, folded string) *entsql.Predicate {
	build := entsql.Dialect(s.Dialect())
	those := func(table, namespaceID string, searched textindex.SearchedText) *entsql.Selector {
		t := build.Table(table)
		if table == namespace.Table {
			t.As("mentioning")
		}
		return build.Select(t.C(namespaceID)).From(t).Where(searched.Contains(t.C, folded))
	}
	return textindex.FoundIn(s.C(namespace.FieldID),
		those(namespace.Table, namespace.FieldID, textindex.TextsOfNamespaces).
			UnionAll(those(propertydefinition.Table, propertydefinition.FieldNamespaceID, textindex.TextsOfProperties)).
			UnionAll(those(objectdefinition.Table, objectdefinition.FieldNamespaceID, textindex.TextsOfObjects)).
			UnionAll(those(tag.Table, tag.FieldNamespaceID, textindex.NamesOfTags)))
}

// defines holds for a namespace with a property whose name, with or without the
// prefix of an association that matches the filter, is the key DefinesKey.
// Every such name is a suffix of the key, so an index finds the candidates.
func defines(s *entsql.Selector, filter metadef.NamespaceFilter) *entsql.Predicate {
	build := entsql.Dialect(s.Dialect())
	properties, associations := build.Table(propertydefinition.Table), build.Table(resourcetypeassociation.Table)
	prefixed := append(associatedAs(s, associations, filter),
		entsql.ColumnsEQ(associations.C(resourcetypeassociation.FieldNamespaceID),
			properties.C(propertydefinition.FieldNamespaceID)),
		entsql.P(func(b *entsql.Builder) {
			prefix, name := associations.C(resourcetypeassociation.FieldPrefix),
				properties.C(propertydefinition.FieldName)
			b.Ident(prefix).WriteString(" || ").Ident(name).WriteString(" = ").Arg(*filter.DefinesKey)
			// The prefix is not repeated on a name that already has it.
			b.WriteString(" AND substr(").Ident(name).WriteString(", 1, length(").
				Ident(prefix).WriteString(")) <> ").Ident(prefix)
		}))
	return entsql.In(s.C(namespace.FieldID), build.Select(properties.C(propertydefinition.FieldNamespaceID)).
		From(properties).
		Where(entsql.And(
			paging.IsAmong(s, properties.C(propertydefinition.FieldName), metadef.KeyEnds(*filter.DefinesKey)),
			entsql.Or(
				entsql.EQ(properties.C(propertydefinition.FieldName), *filter.DefinesKey),
				entsql.Exists(build.Select(associations.C(resourcetypeassociation.FieldID)).
					From(associations).Where(entsql.And(prefixed...))),
			))))
}
