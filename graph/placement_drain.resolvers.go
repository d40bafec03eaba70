package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/placement"
)

func (r *drainMoveResolver) Consumer(ctx context.Context, obj *model.DrainMove) (*model.Consumer, error) {
	return movedConsumer.Load(ctx, r.Store, obj)
}

func (r *drainPlanResolver) Explain(ctx context.Context, obj *model.DrainPlan) (*model.CandidateExplanation, error) {
	return explained(ctx, obj.Explanation()), nil
}

func (r *queryResolver) DrainPlan(ctx context.Context, providers []string, strategy placement.CandidateOrder, seed int, movesPerHost int) (*model.DrainPlan, error) {
	return r.drainPlan(ctx, nil,
		&placement.Draining{Providers: providers, Strategy: strategy, Seed: seed, MovesPerHost: movesPerHost})
}
