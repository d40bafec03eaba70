package graph

import (
	"cmp"
	"context"

	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/resource"
)

func (r *queryResolver) PlacementRequest(ctx context.Context, resource string) (*model.PlacementRequest, error) {
	return lookUp(ctx, resource, func(ctx context.Context, uuid string) (*model.PlacementRequest, error) {
		world, err := r.Store.World(ctx)
		if err != nil {
			return nil, err
		}
		of, err := r.Store.ResourceByUUID(ctx, uuid)
		if err != nil {
			return nil, err
		}
		judged, err := requestsOf(ctx, r.Store, world, []int64{of.ID})
		return cmp.Or(judged[0].of[of.ID], judged[1].of[of.ID]), err
	})
}

func (r *resourceResolver) AllocationCandidates(ctx context.Context, obj *resource.Resource, orderBy placement.CandidateOrder, distinct placement.CandidateDistinct, alternatives int, first *int, after *string) (*model.AllocationCandidateConnection, error) {
	position, limit, problems := candidateCursor(first, after)
	if !distinct.Allows(alternatives) {
		problems.Add("alternatives", placement.AlternativesRule)
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	found, err := candidatesOfResource.Load(ctx, r.Store, obj,
		candidatePage{orderBy, distinct, alternatives, position, limit})
	if err != nil {
		return nil, err
	}
	return found.connection, found.err
}
