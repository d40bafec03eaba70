package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/catalog"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/namespace"
	"github.com/cadastre-dev/cadastre/ent/objectdefinition"
	"github.com/cadastre-dev/cadastre/ent/predicate"
	"github.com/cadastre-dev/cadastre/ent/propertydefinition"
	"github.com/cadastre-dev/cadastre/ent/resourcetype"
	"github.com/cadastre-dev/cadastre/ent/resourcetypeassociation"
	"github.com/cadastre-dev/cadastre/ent/tag"
)

var namespaceOrders = map[string]sortKey{
	"NAME":         {column: namespace.FieldName},
	"DISPLAY_NAME": {column: namespace.FieldDisplayName},
	"CREATED_AT":   {column: namespace.FieldCreatedAt, isTime: true},
	"UPDATED_AT":   {column: namespace.FieldUpdatedAt, isTime: true},
}

// Namespaces is a page of the namespaces that the viewer may see.
func (s *Store) Namespaces(ctx context.Context, filter catalog.NamespaceFilter, order catalog.Order, request catalog.PageRequest) (catalog.Page[*catalog.Namespace], error) {
	paging, err := newPaging("namespaces", namespaceOrders, order, request)
	if err != nil {
		return catalog.Page[*catalog.Namespace]{}, err
	}
	rows, err := s.ent.Namespace.Query().Where(visibleNamespaces(ctx), namespacesThat(filter), paging.within).
		Order(paging.sort).Limit(paging.limit()).All(ctx)
	if err != nil {
		return catalog.Page[*catalog.Namespace]{}, fmt.Errorf("list namespaces: %w", err)
	}
	return page(paging, rows, namespaceNoun, func(row *ent.Namespace) (any, int64) {
		switch order.Field {
		case "DISPLAY_NAME":
			return row.DisplayName, row.ID
		case "CREATED_AT":
			return row.CreatedAt, row.ID
		case "UPDATED_AT":
			return row.UpdatedAt, row.ID
		}
		return row.Name, row.ID
	}), nil
}

// CountNamespaces is how many namespaces Namespaces goes through in all.
func (s *Store) CountNamespaces(ctx context.Context, filter catalog.NamespaceFilter) (int, error) {
	n, err := s.ent.Namespace.Query().Where(visibleNamespaces(ctx), namespacesThat(filter)).Count(ctx)
	if err != nil {
		return 0, fmt.Errorf("count namespaces: %w", err)
	}
	return n, nil
}

// namespacesThat keeps the namespaces that a filter wants.
func namespacesThat(filter catalog.NamespaceFilter) predicate.Namespace {
	return func(s *entsql.Selector) {
		if filter.Visibility != nil {
			s.Where(entsql.EQ(s.C(namespace.FieldVisibility), string(*filter.Visibility)))
		}
		if filter.ResourceTypes != nil {
			associations := entsql.Dialect(s.Dialect()).Table(resourcetypeassociation.Table)
			types := entsql.Dialect(s.Dialect()).Table(resourcetype.Table)
			s.Where(entsql.In(s.C(namespace.FieldID), entsql.Dialect(s.Dialect()).
				Select(associations.C(resourcetypeassociation.FieldNamespaceID)).From(associations).
				Join(types).On(associations.C(resourcetypeassociation.FieldResourceTypeID), types.C(resourcetype.FieldID)).
				Where(isAmong(s, types.C(resourcetype.FieldName), filter.ResourceTypes))))
		}
	}
}

// NamespaceNamed is the namespace with a name, or ErrNotFound.
func (s *Store) NamespaceNamed(ctx context.Context, name string) (*catalog.Namespace, error) {
	row, err := s.ent.Namespace.Query().Where(visibleNamespaces(ctx), namespace.Name(name)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, catalog.Refuse(catalog.ErrNotFound, "there is no namespace %q", name)
	}
	if err != nil {
		return nil, fmt.Errorf("look up a namespace: %w", err)
	}
	return namespaceNoun(row), nil
}

// NamespacesByID are the namespaces of the rows that the viewer may see.
func (s *Store) NamespacesByID(ctx context.Context, ids []int64) (map[int64]*catalog.Namespace, error) {
	rows, err := s.ent.Namespace.Query().Where(visibleNamespaces(ctx), among(namespace.FieldID, ids)).All(ctx)
	return byID(rows, err, "namespaces", namespaceNoun, func(row *ent.Namespace) int64 { return row.ID })
}

// PropertiesByID are the property definitions of the rows that the viewer may
// see.
func (s *Store) PropertiesByID(ctx context.Context, ids []int64) (map[int64]*catalog.PropertyDefinition, error) {
	rows, err := s.ent.PropertyDefinition.Query().
		Where(among(propertydefinition.FieldID, ids), visibleNamespaceOf(ctx, propertydefinition.FieldNamespaceID)).
		WithObject().All(ctx)
	return byID(rows, err, "properties", propertyNoun, func(row *ent.PropertyDefinition) int64 { return row.ID })
}

// PropertiesOf are the properties that the namespaces themselves define, in
// their order.
func (s *Store) PropertiesOf(ctx context.Context, namespaces []int64) (map[int64][]*catalog.PropertyDefinition, error) {
	rows, err := s.ent.PropertyDefinition.Query().
		Where(among(propertydefinition.FieldNamespaceID, namespaces), propertydefinition.ObjectIDIsNil(),
			visibleNamespaceOf(ctx, propertydefinition.FieldNamespaceID)).
		Order(propertydefinition.ByNamespaceID(), propertydefinition.ByPosition(), propertydefinition.ByID()).All(ctx)
	return byParent(rows, err, "properties", propertyNoun, func(row *ent.PropertyDefinition) int64 { return row.NamespaceID })
}

// PropertiesOfObjects are the properties that the objects define, in their
// order. Which of them are required is for the object to say.
func (s *Store) PropertiesOfObjects(ctx context.Context, objects []int64) (map[int64][]*catalog.PropertyDefinition, error) {
	rows, err := s.ent.PropertyDefinition.Query().
		Where(among(propertydefinition.FieldObjectID, objects), visibleNamespaceOf(ctx, propertydefinition.FieldNamespaceID)).
		Order(propertydefinition.ByObjectID(), propertydefinition.ByPosition(), propertydefinition.ByID()).All(ctx)
	return byParent(rows, err, "properties of objects", propertyNoun, func(row *ent.PropertyDefinition) int64 { return *row.ObjectID })
}

// ObjectsByID are the object definitions of the rows that the viewer may see.
func (s *Store) ObjectsByID(ctx context.Context, ids []int64) (map[int64]*catalog.ObjectDefinition, error) {
	rows, err := s.ent.ObjectDefinition.Query().
		Where(among(objectdefinition.FieldID, ids), visibleNamespaceOf(ctx, objectdefinition.FieldNamespaceID)).All(ctx)
	return byID(rows, err, "objects", objectNoun, func(row *ent.ObjectDefinition) int64 { return row.ID })
}

// ObjectsOf are the objects of the namespaces, in their order.
func (s *Store) ObjectsOf(ctx context.Context, namespaces []int64) (map[int64][]*catalog.ObjectDefinition, error) {
	rows, err := s.ent.ObjectDefinition.Query().
		Where(among(objectdefinition.FieldNamespaceID, namespaces), visibleNamespaceOf(ctx, objectdefinition.FieldNamespaceID)).
		Order(objectdefinition.ByNamespaceID(), objectdefinition.ByPosition(), objectdefinition.ByID()).All(ctx)
	return byParent(rows, err, "objects", objectNoun, func(row *ent.ObjectDefinition) int64 { return row.NamespaceID })
}

// TagsByID are the tags of the rows that the viewer may see.
func (s *Store) TagsByID(ctx context.Context, ids []int64) (map[int64]*catalog.Tag, error) {
	rows, err := s.ent.Tag.Query().Where(among(tag.FieldID, ids), visibleNamespaceOf(ctx, tag.FieldNamespaceID)).All(ctx)
	return byID(rows, err, "tags", tagNoun, func(row *ent.Tag) int64 { return row.ID })
}

// TagsOf are the tags of the namespaces, by name without regard to case.
func (s *Store) TagsOf(ctx context.Context, namespaces []int64) (map[int64][]*catalog.Tag, error) {
	rows, err := s.ent.Tag.Query().
		Where(among(tag.FieldNamespaceID, namespaces), visibleNamespaceOf(ctx, tag.FieldNamespaceID)).
		Order(tag.ByNameKey(), tag.ByID()).All(ctx)
	return byParent(rows, err, "tags", tagNoun, func(row *ent.Tag) int64 { return row.NamespaceID })
}

// TagsBelow are the tags whose parents are the tags given, by name without
// regard to case.
func (s *Store) TagsBelow(ctx context.Context, parents []int64) (map[int64][]*catalog.Tag, error) {
	rows, err := s.ent.Tag.Query().
		Where(among(tag.FieldParentID, parents), visibleNamespaceOf(ctx, tag.FieldNamespaceID)).
		Order(tag.ByNameKey(), tag.ByID()).All(ctx)
	return byParent(rows, err, "tags below tags", tagNoun, func(row *ent.Tag) int64 { return *row.ParentID })
}

// AssociationsByID are the associations of the rows that the viewer may see.
func (s *Store) AssociationsByID(ctx context.Context, ids []int64) (map[int64]*catalog.ResourceTypeAssociation, error) {
	rows, err := s.associations(ctx).Where(among(resourcetypeassociation.FieldID, ids)).All(ctx)
	return byID(rows, err, "associations", associationNoun, func(row *ent.ResourceTypeAssociation) int64 { return row.ID })
}

// AssociationsOf are the associations of the namespaces, by type, prefix and
// target.
func (s *Store) AssociationsOf(ctx context.Context, namespaces []int64) (map[int64][]*catalog.ResourceTypeAssociation, error) {
	rows, err := s.associations(ctx).Where(among(resourcetypeassociation.FieldNamespaceID, namespaces)).All(ctx)
	return byParent(rows, err, "associations", associationNoun, func(row *ent.ResourceTypeAssociation) int64 { return row.NamespaceID })
}

// associations reads associations with the names of their types.
func (s *Store) associations(ctx context.Context) *ent.ResourceTypeAssociationQuery {
	query := s.ent.ResourceTypeAssociation.Query().
		Where(visibleNamespaceOf(ctx, resourcetypeassociation.FieldNamespaceID))
	query.Modify(func(s *entsql.Selector) {
		types := entsql.Dialect(s.Dialect()).Table(resourcetype.Table)
		s.Join(types).On(s.C(resourcetypeassociation.FieldResourceTypeID), types.C(resourcetype.FieldID))
		s.AppendSelectAs(types.C(resourcetype.FieldName), typeNameColumn)
		s.OrderBy(types.C(resourcetype.FieldName), s.C(resourcetypeassociation.FieldPrefix),
			s.C(resourcetypeassociation.FieldPropertiesTarget))
	})
	return query
}

// typeNameColumn is the name of a resource type read with another row.
const typeNameColumn = "resource_type_name"

// byID gathers rows as nouns by their own id.
func byID[Row, Noun any](rows []Row, err error, what string, noun func(Row) Noun, id func(Row) int64) (map[int64]Noun, error) {
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", what, err)
	}
	out := make(map[int64]Noun, len(rows))
	for _, row := range rows {
		out[id(row)] = noun(row)
	}
	return out, nil
}

// byParent gathers rows as nouns by the id of what they belong to, in their
// order.
func byParent[Row, Noun any](rows []Row, err error, what string, noun func(Row) Noun, parent func(Row) int64) (map[int64][]Noun, error) {
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", what, err)
	}
	out := map[int64][]Noun{}
	for _, row := range rows {
		out[parent(row)] = append(out[parent(row)], noun(row))
	}
	return out, nil
}

func namespaceNoun(row *ent.Namespace) *catalog.Namespace {
	return &catalog.Namespace{
		ID: row.ID, Name: row.Name, Title: row.Title, Description: row.Description,
		Visibility: catalog.Visibility(row.Visibility), Protected: row.Protected, Owner: row.Owner,
		Origin: row.Origin, Revision: row.Revision,
		CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(),
	}
}

func propertyNoun(row *ent.PropertyDefinition) *catalog.PropertyDefinition {
	p := &catalog.PropertyDefinition{
		ID: row.ID, NamespaceID: row.NamespaceID, Name: row.Name, BaseName: row.Name,
		PropertySchema: catalog.ReadPropertySchema(catalog.JSON(row.Keywords)),
		CreatedAt:      row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(),
	}
	if row.ObjectID != nil {
		p.ObjectID = *row.ObjectID
	}
	if row.Edges.Object != nil {
		p.Required = slices.Contains(textList(row.Edges.Object.Required), row.Name)
	}
	return p
}

func objectNoun(row *ent.ObjectDefinition) *catalog.ObjectDefinition {
	return &catalog.ObjectDefinition{
		ID: row.ID, NamespaceID: row.NamespaceID, Name: row.Name, Description: row.Description,
		Required: textList(row.Required), CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(),
	}
}

func tagNoun(row *ent.Tag) *catalog.Tag {
	t := &catalog.Tag{ID: row.ID, NamespaceID: row.NamespaceID, Name: row.Name, CreatedAt: row.CreatedAt.UTC()}
	if row.ParentID != nil {
		t.ParentID = *row.ParentID
	}
	return t
}

func associationNoun(row *ent.ResourceTypeAssociation) *catalog.ResourceTypeAssociation {
	a := &catalog.ResourceTypeAssociation{
		ID: row.ID, NamespaceID: row.NamespaceID, ResourceTypeID: row.ResourceTypeID,
		Prefix: textOrNil(row.Prefix), PropertiesTarget: textOrNil(row.PropertiesTarget),
		CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(),
	}
	if name, err := row.Value(typeNameColumn); err == nil {
		a.ResourceTypeName = textOf(name)
	}
	return a
}

// textOf is a text as a driver gives it for a column that ent does not know.
func textOf(v any) string {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case string:
		return v
	}
	return ""
}

func textOrNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// textList reads a column that holds a JSON array of texts.
func textList(column string) []string {
	list := []string{}
	if err := json.Unmarshal([]byte(column), &list); err != nil {
		return []string{}
	}
	return list
}
