package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
)

func (r *mutationResolver) SetLimits(ctx context.Context, input placement.ProjectLimits) (*model.SetLimitsPayload, error) {
	limits, err := r.Store.SetLimits(store.DryRun(ctx, input.DryRun), input)
	return &model.SetLimitsPayload{Limits: limits}, err
}

func (r *queryResolver) Limits(ctx context.Context, projectID string) ([]*placement.Limit, error) {
	return r.Store.Limits(ctx, projectID)
}
