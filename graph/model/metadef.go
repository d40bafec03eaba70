package model

import (
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
