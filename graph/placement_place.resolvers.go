package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/model"
)

func (r *mutationResolver) Place(ctx context.Context, input model.PlaceInput) (*model.PlacePayload, error) {
	placing, err := r.placingOf(ctx, &input)
	if err != nil {
		return nil, err
	}
	outcomes, full, err := r.Store.Place(ctx, placing, input.DryRun)
	if err != nil {
		return nil, err
	}
	return model.PlacedIn(full, &placing, placedResults(ctx, &placing.Request, outcomes)), nil
}

func (r *placePayloadResolver) Explain(ctx context.Context, obj *model.PlacePayload) (*model.CandidateExplanation, error) {
	return explained(ctx, obj.Explanation()), nil
}

func (r *placeRefusalResolver) Explain(ctx context.Context, obj *model.PlaceRefusal) (*model.CandidateExplanation, error) {
	world, err := r.Store.World(ctx)
	if err != nil {
		return nil, err
	}
	return explained(ctx, obj.Explanation(world)), nil
}

func (r *queryResolver) LastRefusal(ctx context.Context, consumer string) (*model.PlaceRefusal, error) {
	refusal, err := r.Store.LastRefusal(ctx, consumer)
	if err != nil || refusal == nil {
		return nil, err
	}
	return &model.PlaceRefusal{Consumer: refusal.Consumer, ProjectID: refusal.ProjectID, RefusedAt: refusal.RefusedAt,
		Errors: rowErrors(refusal.Problems), Explained: refusal.Explanation}, nil
}
