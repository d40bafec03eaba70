package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
)

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
