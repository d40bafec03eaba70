package graph

import "github.com/cadastre-dev/cadastre/catalog"

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
