package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/catalog"
)

// NamespaceConnection is a page of namespaces.
type NamespaceConnection struct {
	*Connection[catalog.Namespace]
}

// NamespaceEdge is a namespace in a page.
type NamespaceEdge struct{ Edge[catalog.Namespace] }

// Edges are the namespaces with their cursors.
func (c *NamespaceConnection) Edges() []NamespaceEdge { return edges[NamespaceEdge](c.Connection) }

// ResourceTypeConnection is a page of resource types.
type ResourceTypeConnection struct {
	*Connection[catalog.ResourceType]
}

// ResourceTypeEdge is a resource type in a page.
type ResourceTypeEdge struct{ Edge[catalog.ResourceType] }

// Edges are the resource types with their cursors.
func (c *ResourceTypeConnection) Edges() []ResourceTypeEdge {
	return edges[ResourceTypeEdge](c.Connection)
}

func namespaceID(n *catalog.Namespace) int64     { return n.ID }
func objectID(o *catalog.ObjectDefinition) int64 { return o.ID }
func tagID(t *catalog.Tag) int64                 { return t.ID }

// PropertyDefinitionConnection is a page of properties.
type PropertyDefinitionConnection struct {
	*Connection[catalog.PropertyDefinition]
}

// PropertyDefinitionEdge is a property in a page.
type PropertyDefinitionEdge struct {
	Edge[catalog.PropertyDefinition]
}

// Edges are the properties with their cursors.
func (c *PropertyDefinitionConnection) Edges() []PropertyDefinitionEdge {
	return edges[PropertyDefinitionEdge](c.Connection)
}

// ObjectDefinitionConnection is a page of objects.
type ObjectDefinitionConnection struct {
	*Connection[catalog.ObjectDefinition]
}

// ObjectDefinitionEdge is an object in a page.
type ObjectDefinitionEdge struct{ Edge[catalog.ObjectDefinition] }

// Edges are the objects with their cursors.
func (c *ObjectDefinitionConnection) Edges() []ObjectDefinitionEdge {
	return edges[ObjectDefinitionEdge](c.Connection)
}

// TagConnection is a page of tags.
type TagConnection struct{ *Connection[catalog.Tag] }

// TagEdge is a tag in a page.
type TagEdge struct{ Edge[catalog.Tag] }

// Edges are the tags with their cursors.
func (c *TagConnection) Edges() []TagEdge { return edges[TagEdge](c.Connection) }

// ResourceTypeAssociationConnection is a page of associations.
type ResourceTypeAssociationConnection struct {
	*Connection[catalog.ResourceTypeAssociation]
}

// ResourceTypeAssociationEdge is an association in a page.
type ResourceTypeAssociationEdge struct {
	Edge[catalog.ResourceTypeAssociation]
}

// Edges are the associations with their cursors.
func (c *ResourceTypeAssociationConnection) Edges() []ResourceTypeAssociationEdge {
	return edges[ResourceTypeAssociationEdge](c.Connection)
}

// namespaceOrder is the order that was asked for, or by name.
func namespaceOrder(by *NamespaceOrder) catalog.Order {
	if by == nil {
		return catalog.Order{Field: string(NamespaceOrderFieldName)}
	}
	return catalog.Order{Field: string(by.Field), Descending: descending(by.Direction)}
}

// propertiesLoad is the load of the properties of namespaces and of objects.
const propertiesLoad = "properties"

// registerApplied registers all that a metadata dialog shows, so that what hangs
// off it is fetched for all of it at once; the properties of objects are there.
func registerApplied(ctx context.Context, applied []*catalog.AppliedNamespace) {
	owned := map[int64][]*catalog.PropertyDefinition{}
	defer supply[catalog.ObjectDefinition](ctx, propertiesLoad, owned)
	for _, of := range applied {
		register(ctx, of.Namespace)
		register(ctx, of.Association)
		register(ctx, of.Definitions()...)
		for _, object := range of.Objects {
			register(ctx, object.ObjectDefinition)
			owned[object.ID] = object.Properties
		}
		for _, conflict := range of.Conflicts {
			register(ctx, conflict.Definitions...)
		}
	}
}

// Where definitions stand in their connections: by name, then by id.

func placeOfProperty(p *catalog.PropertyDefinition) (name, id string) { return p.Name, p.NodeID() }
func placeOfObject(o *catalog.ObjectDefinition) (name, id string)     { return o.Name, o.NodeID() }
func placeOfTag(t *catalog.Tag) (name, id string)                     { return catalog.Fold(t.Name), t.NodeID() }
