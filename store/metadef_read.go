package store

import (
	"context"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/objectdefinition"
	"github.com/cadastre-dev/cadastre/ent/propertydefinition"
	"github.com/cadastre-dev/cadastre/ent/resourcetype"
	"github.com/cadastre-dev/cadastre/ent/resourcetypeassociation"
	"github.com/cadastre-dev/cadastre/ent/tag"
	"github.com/cadastre-dev/cadastre/metadef"
)

// PropertiesByID are the property definitions of the rows that the viewer may
// see.
func (s *Store) PropertiesByID(ctx context.Context, ids []int64) (map[int64]*metadef.PropertyDefinition, error) {
	rows, err := s.ent.PropertyDefinition.Query().
		Where(among(propertydefinition.FieldID, ids), visibleNamespaceOf(ctx)).
		WithObject().All(ctx)
	return byID(rows, err, "properties", propertyNoun, func(row *ent.PropertyDefinition) int64 { return row.ID })
}

// PropertiesOf are the properties that the namespaces themselves define, in
// their order.
func (s *Store) PropertiesOf(ctx context.Context, namespaces []int64) (map[int64][]*metadef.PropertyDefinition, error) {
	rows, err := s.ent.PropertyDefinition.Query().
		Where(among(propertydefinition.FieldNamespaceID, namespaces), propertydefinition.ObjectIDIsNil(),
			visibleNamespaceOf(ctx)).
		Order(propertydefinition.ByNamespaceID(), propertydefinition.ByPosition(), propertydefinition.ByID()).All(ctx)
	return byParent(rows, err, "properties", propertyNoun, func(row *ent.PropertyDefinition) int64 { return row.NamespaceID })
}

// PropertiesOfObjects are the properties that the objects define, in their
// order. Which of them are required is for the object to say.
func (s *Store) PropertiesOfObjects(ctx context.Context, objects []int64) (map[int64][]*metadef.PropertyDefinition, error) {
	rows, err := s.ent.PropertyDefinition.Query().
		Where(among(propertydefinition.FieldObjectID, objects), visibleNamespaceOf(ctx)).
		Order(propertydefinition.ByObjectID(), propertydefinition.ByPosition(), propertydefinition.ByID()).All(ctx)
	return byParent(rows, err, "properties of objects", propertyNoun, func(row *ent.PropertyDefinition) int64 { return *row.ObjectID })
}

// ObjectsByID are the object definitions of the rows that the viewer may see.
func (s *Store) ObjectsByID(ctx context.Context, ids []int64) (map[int64]*metadef.ObjectDefinition, error) {
	rows, err := s.ent.ObjectDefinition.Query().
		Where(among(objectdefinition.FieldID, ids), visibleNamespaceOf(ctx)).All(ctx)
	return byID(rows, err, "objects", objectNoun, func(row *ent.ObjectDefinition) int64 { return row.ID })
}

// ObjectsOf are the objects of the namespaces, in their order.
func (s *Store) ObjectsOf(ctx context.Context, namespaces []int64) (map[int64][]*metadef.ObjectDefinition, error) {
	rows, err := s.ent.ObjectDefinition.Query().
		Where(among(objectdefinition.FieldNamespaceID, namespaces), visibleNamespaceOf(ctx)).
		Order(objectdefinition.ByNamespaceID(), objectdefinition.ByPosition(), objectdefinition.ByID()).All(ctx)
	return byParent(rows, err, "objects", objectNoun, func(row *ent.ObjectDefinition) int64 { return row.NamespaceID })
}

// TagsByID are the tags of the rows that the viewer may see.
func (s *Store) TagsByID(ctx context.Context, ids []int64) (map[int64]*metadef.Tag, error) {
	rows, err := s.ent.Tag.Query().Where(among(tag.FieldID, ids), visibleNamespaceOf(ctx)).All(ctx)
	return byID(rows, err, "tags", tagNoun, func(row *ent.Tag) int64 { return row.ID })
}

// TagsOf are the tags of the namespaces, by name without regard to case.
func (s *Store) TagsOf(ctx context.Context, namespaces []int64) (map[int64][]*metadef.Tag, error) {
	rows, err := s.ent.Tag.Query().
		Where(among(tag.FieldNamespaceID, namespaces), visibleNamespaceOf(ctx)).
		Order(tag.ByNameKey(), tag.ByID()).All(ctx)
	return byParent(rows, err, "tags", tagNoun, func(row *ent.Tag) int64 { return row.NamespaceID })
}

// TagsBelow are the tags whose parents are the tags given, by name without
// regard to case.
func (s *Store) TagsBelow(ctx context.Context, parents []int64) (map[int64][]*metadef.Tag, error) {
	rows, err := s.ent.Tag.Query().
		Where(among(tag.FieldParentID, parents), visibleNamespaceOf(ctx)).
		Order(tag.ByNameKey(), tag.ByID()).All(ctx)
	return byParent(rows, err, "tags below tags", tagNoun, func(row *ent.Tag) int64 { return *row.ParentID })
}

// AssociationsByID are the associations of the rows that the viewer may see.
func (s *Store) AssociationsByID(ctx context.Context, ids []int64) (map[int64]*metadef.ResourceTypeAssociation, error) {
	rows, err := associations(ctx, s.ent).Where(among(resourcetypeassociation.FieldID, ids)).All(ctx)
	return byID(rows, err, "associations", associationNoun, func(row *ent.ResourceTypeAssociation) int64 { return row.ID })
}

// AssociationsOf are the associations of the namespaces, by type, prefix and
// target.
func (s *Store) AssociationsOf(ctx context.Context, namespaces []int64) (map[int64][]*metadef.ResourceTypeAssociation, error) {
	rows, err := associations(ctx, s.ent).Where(among(resourcetypeassociation.FieldNamespaceID, namespaces)).All(ctx)
	return byParent(rows, err, "associations", associationNoun, func(row *ent.ResourceTypeAssociation) int64 { return row.NamespaceID })
}

// associations reads associations with the names of their types.
func associations(ctx context.Context, client *ent.Client) *ent.ResourceTypeAssociationQuery {
	query := client.ResourceTypeAssociation.Query().
		Where(visibleNamespaceOf(ctx))
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
