package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/placement"
)

// rebalancePlan sets the requests of a rebalancing, returns its plan for the
// stored world, and registers the rows of the plan. It reports the problems of
// all arguments together.
func (r *Resolver) rebalancePlan(
	ctx context.Context, mixed []*model.MixedRequestInput, of *placement.Rebalancing,
) (*model.RebalancePlan, error) {
	world, err := r.Store.World(ctx)
	if err != nil {
		return nil, err
	}
	problems := r.Store.CheckRebalancing(world, of)
	_, of.Requests, err = r.mixedRequests(ctx, world, mixed, placement.MaxRebalanceRequests, problems)
	if err != nil {
		return nil, err
	}
	found, err := r.Store.RebalancePlan(ctx, world, of)
	if err != nil {
		return nil, err
	}
	plan := &model.RebalancePlan{RebalancePlan: found, World: world}
	dataloader.RegisterLater(ctx, plan.Roots)
	dataloader.RegisterLater(ctx, plan.Moves)
	return plan, nil
}
