package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/resource"
)

func (r *queryResolver) Fits(ctx context.Context, request model.PlacementRequestInput) (*placement.Fit, error) {
	return r.fitsOne(ctx, nil, &request)
}

func (r *queryResolver) CapacityFor(ctx context.Context, requests []*model.PlacementRequestInput) ([]*placement.Fit, error) {
	return r.fitsOfAll(ctx, nil, requests)
}

func (r *queryResolver) FitsTogether(ctx context.Context, requests []*model.MixedRequestInput) (*placement.Mix, error) {
	return r.fitsTogether(ctx, nil, requests)
}

func (r *resourceResolver) Fits(ctx context.Context, obj *resource.Resource) (*placement.Fit, error) {
	found, err := fitsOfResource.Load(ctx, r.Store, obj)
	if err != nil {
		return nil, err
	}
	return found.fit, found.err
}
