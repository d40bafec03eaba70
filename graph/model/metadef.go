package model

import "github.com/cadastre-dev/cadastre/metadef"

// NamespaceConnection is a page of namespaces.
type NamespaceConnection struct {
	*Connection[metadef.Namespace]
}

// NamespaceEdge is a namespace with its cursor.
type NamespaceEdge struct{ Edge[metadef.Namespace] }

// Edges returns the namespaces with their cursors.
func (c *NamespaceConnection) Edges() []NamespaceEdge { return edges[NamespaceEdge](c.Connection) }

// ResourceTypeConnection is a page of resource types.
type ResourceTypeConnection struct {
	*Connection[metadef.ResourceType]
}

// ResourceTypeEdge is a resource type with its cursor.
type ResourceTypeEdge struct{ Edge[metadef.ResourceType] }

// Edges returns the resource types with their cursors.
func (c *ResourceTypeConnection) Edges() []ResourceTypeEdge {
	return edges[ResourceTypeEdge](c.Connection)
}

// PropertyDefinitionConnection is a page of properties.
type PropertyDefinitionConnection struct {
	*Connection[metadef.PropertyDefinition]
}

// PropertyDefinitionEdge is a property with its cursor.
type PropertyDefinitionEdge struct {
	Edge[metadef.PropertyDefinition]
}

// Edges returns the properties with their cursors.
func (c *PropertyDefinitionConnection) Edges() []PropertyDefinitionEdge {
	return edges[PropertyDefinitionEdge](c.Connection)
}

// ObjectDefinitionConnection is a page of objects.
type ObjectDefinitionConnection struct {
	*Connection[metadef.ObjectDefinition]
}

// ObjectDefinitionEdge is an object with its cursor.
type ObjectDefinitionEdge struct{ Edge[metadef.ObjectDefinition] }

// Edges returns the objects with their cursors.
func (c *ObjectDefinitionConnection) Edges() []ObjectDefinitionEdge {
	return edges[ObjectDefinitionEdge](c.Connection)
}

// TagConnection is a page of tags.
type TagConnection struct{ *Connection[metadef.Tag] }

// TagEdge is a tag with its cursor.
type TagEdge struct{ Edge[metadef.Tag] }

// Edges returns the tags with their cursors.
func (c *TagConnection) Edges() []TagEdge { return edges[TagEdge](c.Connection) }

// ResourceTypeAssociationConnection is a page of associations.
type ResourceTypeAssociationConnection struct {
	*Connection[metadef.ResourceTypeAssociation]
}

// ResourceTypeAssociationEdge is an association with its cursor.
type ResourceTypeAssociationEdge struct {
	Edge[metadef.ResourceTypeAssociation]
}

// Edges returns the associations with their cursors.
func (c *ResourceTypeAssociationConnection) Edges() []ResourceTypeAssociationEdge {
	return edges[ResourceTypeAssociationEdge](c.Connection)
}
