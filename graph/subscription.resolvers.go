package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/resource"
)

func (r *allocationCandidatesChangeResolver) AllocationCandidates(ctx context.Context, obj *model.AllocationCandidatesChange, preferences []*model.PreferenceInput, orderBy placement.CandidateOrder, seed int, shapes []*placement.Shape, distinct placement.CandidateDistinct, alternatives int, first *int, after *string) (*model.AllocationCandidateConnection, error) {
	return r.candidates(ctx, nil,
		distinctIn(inOrder(*obj.Asked, preferences, orderBy, seed, shapes), distinct, alternatives), first, after)
}

func (r *capacityChangeResolver) Capacity(ctx context.Context, obj *model.CapacityChange, first *int, after *string, last *int, before *string) (*model.CapacityConnection, error) {
	return r.capacities(ctx, nil, obj.Filter, obj.GroupBy, obj.ResourceClasses,
		model.PageRequest(first, after, last, before))
}

func (r *consumerChangeResolver) Consumer(ctx context.Context, obj *model.ConsumerChange) (*model.Consumer, error) {
	return lookUp(ctx, obj.Change.Key, r.consumerByUUID)
}

func (r *namespaceChangeResolver) Namespace(ctx context.Context, obj *model.NamespaceChange) (*metadef.Namespace, error) {
	return lookUp(ctx, obj.Change.Key, r.Store.NamespaceNamed)
}

func (r *resourceChangeResolver) Resource(ctx context.Context, obj *model.ResourceChange) (*resource.Resource, error) {
	return lookUp(ctx, obj.Change.Key, r.Store.ResourceByUUID)
}

func (r *resourceProviderChangeResolver) ResourceProvider(ctx context.Context, obj *model.ResourceProviderChange) (*model.ResourceProvider, error) {
	world, err := r.Store.World(ctx)
	if err != nil {
		return nil, err
	}
	return registered(ctx, model.ProviderAt(world, obj.Change.Key)), nil
}

func (r *subscriptionResolver) AllocationCandidatesChanged(ctx context.Context, resources []*placement.Amount, requiredAll []string, requiredAny []string, requiredAnySets []*placement.TraitSet, forbidden []string, memberOf []*placement.AggregateFilter, inTree *string, firstOf []*placement.Alternative, groups []*placement.Group, groupPolicy placement.GroupPolicy, sameSubtree []*placement.Subtree, rootRequired []string, rootForbidden []string, tolerates []string, hosts *resource.Filter, after *string) (<-chan *model.AllocationCandidatesChange, error) {
	asked := candidatesAsked(resources, requiredAll, requiredAny, requiredAnySets, forbidden, memberOf, inTree,
		firstOf, groups, groupPolicy, sameSubtree, rootRequired, rootForbidden, tolerates, hosts)
	if _, _, _, _, err := r.searchFor(ctx, nil, asked, nil, nil); err != nil {
		return nil, err
	}
	return answersAfter(ctx, r.Resolver, after, func(of model.Answered) *model.AllocationCandidatesChange {
		return &model.AllocationCandidatesChange{Answered: of, Asked: asked}
	})
}

func (r *subscriptionResolver) CapacityChanged(ctx context.Context, filter *model.ResourceProviderFilter, groupBy placement.CapacityGrouping, resourceClasses []string, after *string) (<-chan *model.CapacityChange, error) {
	if _, err := r.capacities(ctx, nil, filter, groupBy, resourceClasses, page.Request{First: new(0)}); err != nil {
		return nil, err
	}
	return answersAfter(ctx, r.Resolver, after, func(of model.Answered) *model.CapacityChange {
		return &model.CapacityChange{Answered: of, Filter: filter, GroupBy: groupBy, ResourceClasses: resourceClasses}
	})
}

func (r *subscriptionResolver) SurvivalChanged(ctx context.Context, by placement.FailureGrouping, capability *string, filter *model.ResourceProviderFilter, after *string) (<-chan *model.SurvivalChange, error) {
	return r.survivalAfter(ctx, model.SurvivalChange{By: by, Capability: capability, Filter: filter}, after)
}

func (r *subscriptionResolver) ResourceChanged(ctx context.Context, uuids []string, after *string) (<-chan *model.ResourceChange, error) {
	return changesAfter[model.ResourceChange](ctx, r.Resolver, change.Resource, "uuids", uuids, after)
}

func (r *subscriptionResolver) NamespaceChanged(ctx context.Context, names []string, after *string) (<-chan *model.NamespaceChange, error) {
	return changesAfter[model.NamespaceChange](ctx, r.Resolver, change.Namespace, "names", names, after)
}

func (r *subscriptionResolver) ResourceProviderChanged(ctx context.Context, uuids []string, after *string) (<-chan *model.ResourceProviderChange, error) {
	return changesAfter[model.ResourceProviderChange](ctx, r.Resolver, change.ResourceProvider, "uuids", uuids, after)
}

func (r *subscriptionResolver) ConsumerChanged(ctx context.Context, uuids []string, after *string) (<-chan *model.ConsumerChange, error) {
	return changesAfter[model.ConsumerChange](ctx, r.Resolver, change.Consumer, "uuids", uuids, after)
}

func (r *survivalChangeResolver) Survives(ctx context.Context, obj *model.SurvivalChange, first *int, after *string, last *int, before *string) (*model.FailureConnection, error) {
	return r.survival(ctx, nil, obj.By, obj.Capability, obj.Filter, model.PageRequest(first, after, last, before))
}
