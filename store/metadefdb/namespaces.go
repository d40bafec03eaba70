package metadefdb

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/namespace"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
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
		ID: row.ID, UUID: row.UUID, NamespaceID: row.NamespaceID, Name: row.Name,
		BaseName: row.Name, PropertySchema: schema,
		CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(),
	}
	if row.ObjectID != nil {
		p.ObjectID = *row.ObjectID
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
	t := &metadef.Tag{ID: row.ID, UUID: row.UUID, NamespaceID: row.NamespaceID, Name: row.Name,
		CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC()}
	if row.ParentID != nil {
		t.ParentID = *row.ParentID
	}
	return t
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
