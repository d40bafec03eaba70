package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/placement"
)

func (r *mutationResolver) ApplyPlan(ctx context.Context, input placement.PlannedMoves) (*model.ApplyPlanPayload, error) {
	moves, err := r.Store.ApplyPlan(ctx, input)
	return &model.ApplyPlanPayload{Results: appliedMoves(ctx, moves)}, err
}
