package metadefdb

import (
	"context"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/namespace"
	"github.com/cadastre-dev/cadastre/ent/objectdefinition"
	"github.com/cadastre-dev/cadastre/ent/propertydefinition"
	"github.com/cadastre-dev/cadastre/ent/resourcetype"
	"github.com/cadastre-dev/cadastre/ent/resourcetypeassociation"
	"github.com/cadastre-dev/cadastre/ent/tag"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/visible"
)

// The tables that lists read.
var (
	namespaceTable = sqldb.NewTable[ent.Namespace](namespace.Table, namespace.Columns, namespace.FieldSearchKey,
		namespace.FieldOriginDocument, namespace.FieldDefaultRules).Timeless()
	propertyTable = sqldb.NewTable[ent.PropertyDefinition](propertydefinition.Table, propertydefinition.Columns,
		propertydefinition.FieldSearchKey).Timeless()
	objectTable = sqldb.NewTable[ent.ObjectDefinition](objectdefinition.Table, objectdefinition.Columns,
		objectdefinition.FieldSearchKey).Timeless()
	tagTable         = sqldb.NewTable[ent.Tag](tag.Table, tag.Columns).Timeless()
	associationTable = sqldb.NewTable[ent.ResourceTypeAssociation](resourcetypeassociation.Table,
		resourcetypeassociation.Columns)
	typeTable = sqldb.NewTable[ent.ResourceType](resourcetype.Table, resourcetype.Columns).Timeless()
)

// PropertiesByUUID returns the visible property definitions with the uuids.
func (s *MetadefStore) PropertiesByUUID(ctx context.Context,
	uuids []string) (map[string]*metadef.PropertyDefinition, error) {
	rows, err := s.Ent.PropertyDefinition.Query().
		Where(paging.Among(propertydefinition.FieldUUID, uuids), visible.InNamespaces(ctx)).
		WithObject().All(ctx)
	return paging.ByID(rows, err, "properties", s.PropertyNoun, func(row *ent.PropertyDefinition) string {
		return row.UUID
	})
}

// PropertiesOf returns the properties of each visible namespace by its row id,
// without the properties of objects, in their stored order.
func (s *MetadefStore) PropertiesOf(ctx context.Context,
	namespaces []int64) (map[int64][]*metadef.PropertyDefinition, error) {
	rows, err := propertyTable.All(ctx, s.DB, paging.Among(propertydefinition.FieldNamespaceID, namespaces),
		propertydefinition.ObjectIDIsNil(), visible.InNamespaces(ctx),
		sqldb.Where(propertydefinition.ByNamespaceID(), propertydefinition.ByPosition(), propertydefinition.ByID()))
	return paging.ByParent(rows, err, "properties", s.PropertyNoun, func(row *ent.PropertyDefinition) int64 {
		return row.NamespaceID
	})
}

// PropertiesOfObjects returns the properties of each visible object by its row
// id, in their stored order. It does not set Required;
// metadef.PropertiesOfObject does.
func (s *MetadefStore) PropertiesOfObjects(ctx context.Context,
	objects []int64) (map[int64][]*metadef.PropertyDefinition, error) {
	rows, err := propertyTable.All(ctx, s.DB, paging.Among(propertydefinition.FieldObjectID, objects),
		visible.InNamespaces(ctx),
		sqldb.Where(propertydefinition.ByObjectID(), propertydefinition.ByPosition(), propertydefinition.ByID()))
	return paging.ByParent(rows, err, "properties of objects", s.PropertyNoun, func(row *ent.PropertyDefinition) int64 {
		return *row.ObjectID
	})
}

// ObjectsByID returns the visible object definitions with the row ids.
func (s *MetadefStore) ObjectsByID(ctx context.Context, ids []int64) (map[int64]*metadef.ObjectDefinition, error) {
	rows, err := s.Ent.ObjectDefinition.Query().
		Where(paging.Among(objectdefinition.FieldID, ids), visible.InNamespaces(ctx)).All(ctx)
	return paging.ByID(rows, err, "objects", objectNoun, func(row *ent.ObjectDefinition) int64 { return row.ID })
}

// ObjectsByUUID returns the visible object definitions with the uuids.
func (s *MetadefStore) ObjectsByUUID(ctx context.Context,
	uuids []string) (map[string]*metadef.ObjectDefinition, error) {
	rows, err := s.Ent.ObjectDefinition.Query().
		Where(paging.Among(objectdefinition.FieldUUID, uuids), visible.InNamespaces(ctx)).All(ctx)
	return paging.ByID(rows, err, "objects", objectNoun, func(row *ent.ObjectDefinition) string { return row.UUID })
}

// ObjectsOf returns the objects of each visible namespace by its row id, in
// their stored order.
func (s *MetadefStore) ObjectsOf(ctx context.Context,
	namespaces []int64) (map[int64][]*metadef.ObjectDefinition, error) {
	rows, err := objectTable.All(ctx, s.DB, paging.Among(objectdefinition.FieldNamespaceID, namespaces),
		visible.InNamespaces(ctx),
		sqldb.Where(objectdefinition.ByNamespaceID(), objectdefinition.ByPosition(), objectdefinition.ByID()))
	return paging.ByParent(rows, err, "objects", objectNoun, func(row *ent.ObjectDefinition) int64 {
		return row.NamespaceID
	})
}

// TagsByID returns the visible tags with the row ids.
func (s *MetadefStore) TagsByID(ctx context.Context, ids []int64) (map[int64]*metadef.Tag, error) {
	rows, err := s.Ent.Tag.Query().Where(paging.Among(tag.FieldID, ids), visible.InNamespaces(ctx)).All(ctx)
	return paging.ByID(rows, err, "tags", tagNoun, func(row *ent.Tag) int64 { return row.ID })
}

// TagsByUUID returns the visible tags with the uuids.
func (s *MetadefStore) TagsByUUID(ctx context.Context, uuids []string) (map[string]*metadef.Tag, error) {
	rows, err := s.Ent.Tag.Query().Where(paging.Among(tag.FieldUUID, uuids), visible.InNamespaces(ctx)).All(ctx)
	return paging.ByID(rows, err, "tags", tagNoun, func(row *ent.Tag) string { return row.UUID })
}

// TagsOf returns the tags of each visible namespace by its row id, sorted by
// name, ignoring case.
func (s *MetadefStore) TagsOf(ctx context.Context, namespaces []int64) (map[int64][]*metadef.Tag, error) {
	rows, err := tagTable.All(ctx, s.DB, paging.Among(tag.FieldNamespaceID, namespaces), visible.InNamespaces(ctx),
		sqldb.Where(tag.ByNameKey(), tag.ByID()))
	return paging.ByParent(rows, err, "tags", tagNoun, func(row *ent.Tag) int64 { return row.NamespaceID })
}

// TagsBelow returns the visible children of each tag by its row id, sorted by
// name, ignoring case.
func (s *MetadefStore) TagsBelow(ctx context.Context, parents []int64) (map[int64][]*metadef.Tag, error) {
	rows, err := tagTable.All(ctx, s.DB, paging.Among(tag.FieldParentID, parents), visible.InNamespaces(ctx),
		sqldb.Where(tag.ByNameKey(), tag.ByID()))
	return paging.ByParent(rows, err, "tags below tags", tagNoun, func(row *ent.Tag) int64 { return *row.ParentID })
}

// AssociationsByUUID returns the visible associations with the uuids.
func (s *MetadefStore) AssociationsByUUID(ctx context.Context,
	uuids []string) (map[string]*metadef.ResourceTypeAssociation, error) {
	rows, err := associations(ctx, s.Ent).Where(paging.Among(resourcetypeassociation.FieldUUID, uuids)).All(ctx)
	return paging.ByID(rows, err, "associations", AssociationNoun, func(row *ent.ResourceTypeAssociation) string {
		return row.UUID
	})
}

// AssociationsOf returns the associations of each visible namespace by its row
// id, sorted by type, prefix and target.
func (s *MetadefStore) AssociationsOf(ctx context.Context,
	namespaces []int64) (map[int64][]*metadef.ResourceTypeAssociation, error) {
	rows, err := associations(ctx, s.Ent).Where(paging.Among(resourcetypeassociation.FieldNamespaceID, namespaces)).
		All(ctx)
	return paging.ByParent(rows, err, "associations", AssociationNoun, func(row *ent.ResourceTypeAssociation) int64 {
		return row.NamespaceID
	})
}

// associations returns a query for the associations in visible namespaces, with
// the names of their types, sorted by type, prefix and target.
func associations(ctx context.Context, client *ent.Client) *ent.ResourceTypeAssociationQuery {
	return namedAssociations(client).Where(visible.InNamespaces(ctx))
}

// namedAssociations returns the query of associations regardless of visibility.
func namedAssociations(client *ent.Client) *ent.ResourceTypeAssociationQuery {
	query := client.ResourceTypeAssociation.Query()
	query.Modify(func(s *entsql.Selector) {
		types := entsql.Dialect(s.Dialect()).Table(resourcetype.Table)
		s.Join(types).On(s.C(resourcetypeassociation.FieldResourceTypeID), types.C(resourcetype.FieldID))
		s.AppendSelectAs(types.C(resourcetype.FieldName), typeNameColumn)
		s.OrderBy(types.C(resourcetype.FieldName), s.C(resourcetypeassociation.FieldPrefix),
			s.C(resourcetypeassociation.FieldPropertiesTarget))
	})
	return query
}

// typeNameColumn is the alias of a resource type's name in queries of other
// tables.
const typeNameColumn = "resource_type_name"
