package graph

import (
	"context"
	"math"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/text"
)

func resourceID(r *resource.Resource) int64        { return r.ID }
func resourceUUID(r *resource.Resource) string     { return r.UUID }
func resourceTypeID(t *metadef.ResourceType) int64 { return t.ID }
func capabilityID(c *resource.Capability) int64    { return c.ID }

// metadataOf returns the metadata items of a resource with the given keys; nil
// keys are all.
func (r *Resolver) metadataOf(ctx context.Context, of *resource.Resource,
	keys []string) ([]*resource.MetadataItem, error) {
	var problems problem.Problems
	text.CheckList(&problems, "keys", keys, math.MaxInt)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	return metadataOfResource.Load(ctx, r.Store, of, keys)
}

// resourceOrder returns an order of resources; nil orders by name.
func resourceOrder(orderBy *model.ResourceOrder) page.Order {
	if orderBy == nil {
		return page.Order{Field: string(model.ResourceOrderFieldName)}
	}
	return page.Order{Field: string(orderBy.Field), Descending: descending(orderBy.Direction)}
}

// resourcesWithin holds the arguments of resources that are children of a
// parent.
type resourcesWithin struct {
	Filter resource.Filter
	Order  page.Order
}

// facetsWithin holds the arguments of the metadata facets of child resources.
type facetsWithin struct {
	Filter resource.Filter
	Keys   []string
	First  int
}

// facetsOf holds the arguments of the facets of child resources.
type facetsOf struct {
	Filter resource.Filter
	Wanted []resource.FacetRequest
}

// resourcePages load the resources that are children of parents, with their
// facets.
type resourcePages[Parent any] struct {
	pages[Parent, resource.Resource, int64, resourcesWithin]
	metadata *dataloader.ValueBy[*store.Store, Parent, []*resource.MetadataFacet, int64, facetsWithin]
	facets   *dataloader.ValueBy[*store.Store, Parent, []*resource.Facet, int64, facetsOf]
}

func newResourcePages[Parent any](name string, scope resource.Scope, key func(*Parent) int64) *resourcePages[Parent] {
	return &resourcePages[Parent]{
		*newPages(name, key,
			func(s *store.Store, ctx context.Context, keys []int64, of resourcesWithin,
				request page.Request) (map[int64]page.Page[*resource.Resource], error) {
				return s.ResourcesWithin(ctx, scope, keys, of.Filter, of.Order, request)
			},
			func(s *store.Store, ctx context.Context, keys []int64, of resourcesWithin,
				request page.Request) (map[int64]bool, error) {
				return s.ResourcesBehind(ctx, scope, keys, of.Filter, of.Order, request)
			},
			func(s *store.Store, ctx context.Context, keys []int64, of resourcesWithin) (map[int64]int, error) {
				return s.CountResourcesWithin(ctx, scope, keys, of.Filter)
			}),
		dataloader.NewManyBy(name+".metadataFacets", key,
			func(s *store.Store, ctx context.Context, keys []int64,
				of facetsWithin) (map[int64][]*resource.MetadataFacet, error) {
				return s.MetadataFacets(ctx, scope, keys, of.Filter, of.Keys, of.First)
			}),
		dataloader.NewManyBy(name+".facets", key,
			func(s *store.Store, ctx context.Context, keys []int64, of facetsOf) (map[int64][]*resource.Facet, error) {
				return s.Facets(ctx, scope, keys, of.Filter, of.Wanted)
			}),
	}
}

// connect returns a connection of the resources that are children of a parent.
func (l *resourcePages[Parent]) connect(
	ctx context.Context, s *store.Store, parent *Parent, filter *resource.Filter,
	orderBy *model.ResourceOrder, request page.Request,
) (*model.ResourceConnection, error) {
	wanted := valueOf(filter)
	connection, err := l.pages.connect(ctx, s, parent, resourcesWithin{wanted, resourceOrder(orderBy)}, request)
	if err != nil {
		return nil, err
	}
	from := ctx
	return &model.ResourceConnection{Connection: connection,
		CountMetadata: func(ctx context.Context, keys []string, first int) ([]*resource.MetadataFacet, error) {
			return l.metadata.LoadFrom(ctx, from, s, parent, facetsWithin{wanted, keys, first})
		},
		CountFacets: func(ctx context.Context, of []resource.FacetRequest) ([]*resource.Facet, error) {
			return l.facets.LoadFrom(ctx, from, s, parent, facetsOf{wanted, of})
		}}, nil
}

// may reports whether the viewer's role allows a field of Mutation.
func may(ctx context.Context, field string) bool {
	return access.ViewerFrom(ctx).MayUse(field)
}

// mayWrite reports whether the viewer may use a field of Mutation on a
// resource. A nil resource is gone, and the result is false.
func mayWrite(ctx context.Context, of *resource.Resource, field string) bool {
	viewer := access.ViewerFrom(ctx).At(field)
	return of != nil && viewer.MayUse(field) && resource.MayWriteForProject(viewer, of.ProjectID, "") == nil
}

// mayChangeItem reports whether the viewer may use a field of Mutation on a
// metadata item.
func mayChangeItem(ctx context.Context, s *store.Store, item *resource.MetadataItem, field string) (bool, error) {
	of, err := resourceOfItem.Load(ctx, s, item)
	return mayWrite(ctx, of, field) && s.MayChangeItem(access.ViewerFrom(ctx).At(field), *item), err
}
