package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/placement"
)

// drainPlan returns the plan of a draining in a foreseen world, nil is the stored
// one, and registers the rows of the plan.
func (r *Resolver) drainPlan(ctx context.Context, foreseen *placement.Foreseen,
	of *placement.Draining) (*model.DrainPlan, error) {
	world, plan, err := r.Store.DrainPlan(ctx, foreseen, of)
	if err != nil {
		return nil, err
	}
	drained := model.DrainPlanIn(world, plan)
	dataloader.RegisterLater(ctx, drained.Roots)
	dataloader.RegisterLater(ctx, drained.Moves)
	dataloader.RegisterLater(ctx, drained.Unplaced)
	return drained, nil
}

// rebalancePlan sets the requests of a rebalancing, returns its plan for a
// foreseen world, nil is the stored one, and registers the rows of the plan. It
// reports the problems of all arguments together.
func (r *Resolver) rebalancePlan(
	ctx context.Context, foreseen *placement.Foreseen, mixed []*model.MixedRequestInput, of *placement.Rebalancing,
) (*model.RebalancePlan, error) {
	world, err := r.Store.WorldOf(ctx, foreseen)
	if err != nil {
		return nil, err
	}
	problems := r.Store.CheckRebalancing(world, of)
	_, of.Requests, err = r.mixedRequests(ctx, world, mixed, placement.MaxRebalanceRequests, problems)
	if err != nil {
		return nil, err
	}
	found, err := r.Store.RebalancePlan(ctx, world, foreseen, of)
	if err != nil {
		return nil, err
	}
	plan := &model.RebalancePlan{RebalancePlan: found, World: world}
	dataloader.RegisterLater(ctx, plan.Roots)
	dataloader.RegisterLater(ctx, plan.Moves)
	return plan, nil
}
