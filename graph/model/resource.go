package model

import (
	"context"

	"github.com/cadastre-dev/cadastre/resource"
)

// ResourceConnection is a page of resources.
type ResourceConnection struct {
	*Connection[resource.Resource]
	// CountMetadata and CountFacets count the values on the resources of the
	// list.
	CountMetadata func(ctx context.Context, keys []string, first int) ([]*resource.MetadataFacet, error)
	CountFacets   func(ctx context.Context, wanted []resource.FacetRequest) ([]*resource.Facet, error)
}

// Facets returns the values on the resources of the list, with their counts.
func (c *ResourceConnection) Facets(ctx context.Context, of []resource.FacetRequest) ([]*resource.Facet, error) {
	return c.CountFacets(ctx, of)
}

// MetadataFacets returns the values of metadata keys on all resources of the
// list.
func (c *ResourceConnection) MetadataFacets(ctx context.Context, keys []string, first *int) ([]*resource.MetadataFacet, error) {
	if first == nil {
		return c.CountMetadata(ctx, keys, resource.DefaultFacetValues)
	}
	return c.CountMetadata(ctx, keys, *first)
}

// MetadataKeyConnection is a page of metadata keys.
type MetadataKeyConnection struct {
	*Connection[resource.MetadataKey]
}

// MetadataKeyEdge is a metadata key with its cursor.
type MetadataKeyEdge struct{ Edge[resource.MetadataKey] }

// Edges returns the keys with their cursors.
func (c *MetadataKeyConnection) Edges() []MetadataKeyEdge {
	return edges[MetadataKeyEdge](c.Connection)
}

// ResourceEdge is a resource with its cursor.
type ResourceEdge struct{ Edge[resource.Resource] }

// Edges returns the resources with their cursors.
func (c *ResourceConnection) Edges() []ResourceEdge { return edges[ResourceEdge](c.Connection) }

// CapabilityValueConnection is a page of the values of a capability.
type CapabilityValueConnection struct {
	*Connection[resource.CapabilityValue]
}

// CapabilityValueEdge is a value of a capability with its cursor.
type CapabilityValueEdge struct {
	Edge[resource.CapabilityValue]
}

// Edges returns the values with their cursors.
func (c *CapabilityValueConnection) Edges() []CapabilityValueEdge {
	return edges[CapabilityValueEdge](c.Connection)
}
