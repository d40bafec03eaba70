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
func (c *ResourceConnection) MetadataFacets(ctx context.Context, keys []string,
	first *int) ([]*resource.MetadataFacet, error) {
	if first == nil {
		return c.CountMetadata(ctx, keys, resource.DefaultFacetValues)
	}
	return c.CountMetadata(ctx, keys, *first)
}
