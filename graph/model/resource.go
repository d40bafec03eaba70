package model

import (
	"context"

	"github.com/cadastre-dev/cadastre/catalog"
)

// ResourceConnection is a page of resources.
type ResourceConnection struct {
	*Connection[catalog.Resource]
	Facets func(keys []string, first int) ([]*catalog.MetadataFacet, error)
}

// MetadataFacets are the values of metadata keys on all resources of the list.
func (c *ResourceConnection) MetadataFacets(_ context.Context, keys []string, first *int) ([]*catalog.MetadataFacet, error) {
	if first == nil {
		return c.Facets(keys, catalog.DefaultFacetValues)
	}
	return c.Facets(keys, *first)
}

// MetadataKeyConnection is a page of metadata keys.
type MetadataKeyConnection struct {
	*Connection[catalog.MetadataKey]
}

// MetadataKeyEdge is a metadata key in a page.
type MetadataKeyEdge struct{ Edge[catalog.MetadataKey] }

// Edges are the keys with their cursors.
func (c *MetadataKeyConnection) Edges() []MetadataKeyEdge {
	return edges[MetadataKeyEdge](c.Connection)
}

// ResourceEdge is a resource in a page.
type ResourceEdge struct{ Edge[catalog.Resource] }

// Edges are the resources with their cursors.
func (c *ResourceConnection) Edges() []ResourceEdge { return edges[ResourceEdge](c.Connection) }
