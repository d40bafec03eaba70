package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/resource"
)

func (r *queryResolver) WhatIf(ctx context.Context, changes []*placement.WhatIfChange) (*model.WhatIf, error) {
	foreseen, err := r.Store.WhatIf(ctx, model.Values(changes))
	if err != nil {
		return nil, err
	}
	return &model.WhatIf{Foreseen: foreseen}, nil
}

func (r *whatIfResolver) AllocationCandidates(ctx context.Context, obj *model.WhatIf, resources []*placement.Amount, requiredAll []string, requiredAny []string, requiredAnySets []*placement.TraitSet, forbidden []string, memberOf []*placement.AggregateFilter, inTree *string, firstOf []*placement.Alternative, groups []*placement.Group, groupPolicy placement.GroupPolicy, sameSubtree []*placement.Subtree, rootRequired []string, rootForbidden []string, tolerates []string, hosts *resource.Filter, preferences []*model.PreferenceInput, orderBy placement.CandidateOrder, seed int, shapes []*placement.Shape, distinct placement.CandidateDistinct, alternatives int, first *int, after *string) (*model.AllocationCandidateConnection, error) {
	asked := candidatesAsked(resources, requiredAll, requiredAny, requiredAnySets, forbidden, memberOf, inTree,
		firstOf, groups, groupPolicy, sameSubtree, rootRequired, rootForbidden, tolerates, hosts)
	return r.candidates(ctx, obj.World,
		distinctIn(inOrder(*asked, preferences, orderBy, seed, shapes), distinct, alternatives), first, after)
}

func (r *whatIfResolver) Capacity(ctx context.Context, obj *model.WhatIf, filter *model.ResourceProviderFilter, groupBy placement.CapacityGrouping, resourceClasses []string, first *int, after *string, last *int, before *string) (*model.CapacityConnection, error) {
	return r.capacities(ctx, obj.World, filter, groupBy, resourceClasses, model.PageRequest(first, after, last, before))
}

func (r *whatIfResolver) Fits(ctx context.Context, obj *model.WhatIf, request model.PlacementRequestInput) (*placement.Fit, error) {
	return r.fitsOne(ctx, obj.World, &request)
}

func (r *whatIfResolver) CapacityFor(ctx context.Context, obj *model.WhatIf, requests []*model.PlacementRequestInput) ([]*placement.Fit, error) {
	return r.fitsOfAll(ctx, obj.World, requests)
}

func (r *whatIfResolver) FitsTogether(ctx context.Context, obj *model.WhatIf, requests []*model.MixedRequestInput) (*placement.Mix, error) {
	return r.fitsTogether(ctx, obj.World, requests)
}

func (r *whatIfResolver) Survives(ctx context.Context, obj *model.WhatIf, by placement.FailureGrouping, capability *string, filter *model.ResourceProviderFilter, first *int, after *string, last *int, before *string) (*model.FailureConnection, error) {
	return r.survival(ctx, obj.Foreseen, by, capability, filter, model.PageRequest(first, after, last, before))
}

func (r *whatIfResolver) DrainPlan(ctx context.Context, obj *model.WhatIf, providers []string, strategy placement.CandidateOrder, seed int, movesPerHost int) (*model.DrainPlan, error) {
	return r.drainPlan(ctx, obj.Foreseen,
		&placement.Draining{Providers: providers, Strategy: strategy, Seed: seed, MovesPerHost: movesPerHost})
}

func (r *whatIfResolver) RebalancePlan(ctx context.Context, obj *model.WhatIf, requests []*model.MixedRequestInput, providers []string, strategy placement.CandidateOrder, seed int, maxMoves int) (*model.RebalancePlan, error) {
	return r.rebalancePlan(ctx, obj.Foreseen, requests,
		&placement.Rebalancing{Providers: providers, Strategy: strategy, Seed: seed, MaxMoves: maxMoves})
}

func (r *whatIfResolver) Diff(ctx context.Context, obj *model.WhatIf, groupBy placement.CapacityGrouping) ([]*model.CapacityDifference, error) {
	differences := obj.Difference(groupBy, maxDifferences)
	dataloader.RegisterLater(ctx, func() []*model.ResourceProvider { return model.DifferenceRoots(differences) })
	return differences, nil
}
