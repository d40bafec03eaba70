package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/placement"
)

func (r *queryResolver) Survives(ctx context.Context, by placement.FailureGrouping, capability *string, filter *model.ResourceProviderFilter, first *int, after *string, last *int, before *string) (*model.FailureConnection, error) {
	return r.survival(ctx, nil, by, capability, filter, model.PageRequest(first, after, last, before))
}

func (r *unplacedConsumerResolver) Consumer(ctx context.Context, obj *placement.Unplaced) (*model.Consumer, error) {
	return unplacedConsumer.Load(ctx, r.Store, obj)
}
