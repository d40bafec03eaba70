package graph

import (
	"cmp"
	"context"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
)

func (r *allocationResolver) ID(ctx context.Context, obj *placement.Allocation) (string, error) {
	return page.Key("Allocation", obj.Consumer, obj.Provider, obj.ResourceClass), nil
}

func (r *allocationCandidateConnectionResolver) Explain(ctx context.Context, obj *model.AllocationCandidateConnection) (*model.CandidateExplanation, error) {
	explanation := obj.Explanation()
	dataloader.Register(ctx, obj.Nearest()...)
	return explanation, nil
}

func (r *consumerResolver) Mappings(ctx context.Context, obj *model.Consumer) ([]*model.GroupMapping, error) {
	mappings, err := mappingsOfConsumer.Load(ctx, r.Store, obj, dataloader.None{})
	return orEmpty(mappings), err
}

func (r *drainPlanResolver) Explain(ctx context.Context, obj *model.DrainPlan) (*model.CandidateExplanation, error) {
	return explained(ctx, obj.Explanation()), nil
}

func (r *explanationStepResolver) Path(ctx context.Context, obj *placement.ExplanationStep) (*string, error) {
	if obj.Path == "" {
		return nil, nil
	}
	return &obj.Path, nil
}

func (r *inventoryResolver) Held(ctx context.Context, obj *model.Inventory) (*int64, error) {
	held, err := heldOfProvider.Load(ctx, r.Store, obj.In)
	if err != nil || held == nil {
		return nil, err
	}
	units := held[obj.ResourceClass]
	return &units, nil
}

func (r *mutationResolver) CreateResourceProvider(ctx context.Context, input placement.NewProvider) (*model.CreateResourceProviderPayload, error) {
	world, provider, err := r.Store.CreateResourceProvider(ctx, input)
	return &model.CreateResourceProviderPayload{ResourceProvider: registered(ctx, model.ProviderIn(world, provider))},
		err
}

func (r *mutationResolver) CreateResourceProviders(ctx context.Context, input placement.NewProviders) (*model.CreateResourceProvidersPayload, error) {
	world, outcomes, err := r.Store.CreateResourceProviders(store.DryRun(ctx, input.DryRun), input)
	results := make([]*model.CreateResourceProvidersResult, len(outcomes))
	for i, outcome := range outcomes {
		results[i] = &model.CreateResourceProvidersResult{ResourceProvider: registered(ctx,
			model.ProviderIn(world, outcome.Row)), Errors: rowErrors(outcome.Problems)}
	}
	return &model.CreateResourceProvidersPayload{Results: results}, err
}

func (r *mutationResolver) UpdateResourceProvider(ctx context.Context, input model.UpdateResourceProviderInput) (*model.UpdateResourceProviderPayload, error) {
	change := placement.ProviderPatch{Provider: input.Provider,
		Parent: cleared(input.Parent), Resource: cleared(input.Resource)}
	if name, ok := input.NewName.ValueOK(); ok {
		change.NewName = new(valueOf(name)) // a name cannot be cleared: the empty one is refused
	}
	world, provider, err := r.Store.UpdateResourceProvider(store.DryRun(ctx, input.DryRun), change)
	return &model.UpdateResourceProviderPayload{ResourceProvider: registered(ctx, model.ProviderIn(world, provider))},
		err
}

func (r *mutationResolver) DeleteResourceProvider(ctx context.Context, input placement.TreeDeletion) (*model.DeleteResourceProviderPayload, error) {
	world, providers, err := r.Store.DeleteResourceProviders(ctx, input)
	if err != nil {
		return nil, err
	}
	deleted := model.ProvidersIn(world, providers)
	dataloader.Register(ctx, deleted...)
	return &model.DeleteResourceProviderPayload{ResourceProvider: deleted[0], Descendants: deleted[1:]}, nil
}

func (r *mutationResolver) SetInventories(ctx context.Context, input placement.ProviderInventories) (*model.SetInventoriesPayload, error) {
	world, provider, err := r.Store.SetInventories(ctx, input)
	return &model.SetInventoriesPayload{ResourceProvider: registered(ctx, model.ProviderIn(world, provider))}, err
}

func (r *mutationResolver) SetInventory(ctx context.Context, input placement.InventoryChange) (*model.SetInventoryPayload, error) {
	world, provider, err := r.Store.SetInventory(store.DryRun(ctx, input.DryRun), input)
	return &model.SetInventoryPayload{ResourceProvider: registered(ctx, model.ProviderIn(world, provider))}, err
}

func (r *mutationResolver) UpdateInventories(ctx context.Context, input model.UpdateInventoriesInput) (*model.UpdateInventoriesPayload, error) {
	update := input.InventoryUpdate
	var problems problem.Problems
	var err error
	if update.Filter, problems, err = r.wantedProviders(ctx, "input.filter", input.Filter); err != nil {
		return nil, err
	}
	world, updated, err := r.Store.UpdateInventories(store.DryRun(ctx, input.DryRun), update, problems)
	if err != nil {
		return nil, err
	}
	return updatedInventories(ctx, world, &updated), nil
}

func (r *mutationResolver) DeleteInventory(ctx context.Context, input placement.InventoryDeletion) (*model.DeleteInventoryPayload, error) {
	world, provider, err := r.Store.DeleteInventory(store.DryRun(ctx, input.DryRun), input)
	return &model.DeleteInventoryPayload{ResourceProvider: registered(ctx, model.ProviderIn(world, provider))}, err
}

func (r *mutationResolver) SetProviderTraits(ctx context.Context, input placement.ProviderTraits) (*model.SetProviderTraitsPayload, error) {
	world, provider, err := r.Store.SetProviderTraits(store.DryRun(ctx, input.DryRun), input)
	return &model.SetProviderTraitsPayload{ResourceProvider: registered(ctx, model.ProviderIn(world, provider))}, err
}

func (r *mutationResolver) SetProviderAggregates(ctx context.Context, input placement.ProviderAggregates) (*model.SetProviderAggregatesPayload, error) {
	world, provider, err := r.Store.SetProviderAggregates(store.DryRun(ctx, input.DryRun), input)
	return &model.SetProviderAggregatesPayload{ResourceProvider: registered(ctx, model.ProviderIn(world, provider))},
		err
}

func (r *mutationResolver) SetOnResourceProviders(ctx context.Context, input placement.Replacements) (*model.SetOnResourceProvidersPayload, error) {
	world, outcomes, err := r.Store.SetOnResourceProviders(store.DryRun(ctx, input.DryRun), input)
	results := make([]*model.SetOnResourceProvidersResult, len(outcomes))
	for i, outcome := range outcomes {
		results[i] = &model.SetOnResourceProvidersResult{ResourceProvider: registered(ctx,
			model.ProviderIn(world, outcome.Row)), Errors: rowErrors(outcome.Problems)}
	}
	return &model.SetOnResourceProvidersPayload{Results: results}, err
}

func (r *mutationResolver) CreateTrait(ctx context.Context, input model.CreateTraitInput) (*model.CreateTraitPayload, error) {
	trait, err := r.Store.CreateTrait(store.DryRun(ctx, input.DryRun), input.Name)
	return &model.CreateTraitPayload{Trait: trait}, err
}

func (r *mutationResolver) EnsureTraits(ctx context.Context, input model.EnsureTraitsInput) (*model.EnsureTraitsPayload, error) {
	traits, created, err := r.Store.EnsureTraits(store.DryRun(ctx, input.DryRun), input.Names)
	return &model.EnsureTraitsPayload{Traits: traits, Created: created}, err
}

func (r *mutationResolver) DeleteTrait(ctx context.Context, input model.DeleteTraitInput) (*model.DeleteTraitPayload, error) {
	trait, err := r.Store.DeleteTrait(store.DryRun(ctx, input.DryRun), input.Name)
	return &model.DeleteTraitPayload{Trait: trait}, err
}

func (r *mutationResolver) CreateResourceClass(ctx context.Context, input model.CreateResourceClassInput) (*model.CreateResourceClassPayload, error) {
	class, err := r.Store.CreateResourceClass(store.DryRun(ctx, input.DryRun), input.Name)
	return &model.CreateResourceClassPayload{ResourceClass: class}, err
}

func (r *mutationResolver) DeleteResourceClass(ctx context.Context, input model.DeleteResourceClassInput) (*model.DeleteResourceClassPayload, error) {
	class, err := r.Store.DeleteResourceClass(store.DryRun(ctx, input.DryRun), input.Name)
	return &model.DeleteResourceClassPayload{ResourceClass: class}, err
}

func (r *mutationResolver) SetAllocations(ctx context.Context, input placement.Claim) (*model.SetAllocationsPayload, error) {
	consumers, err := r.Store.SetAllocations(ctx, input)
	return &model.SetAllocationsPayload{Consumers: changedConsumers(ctx, consumers...)}, err
}

func (r *mutationResolver) DeleteAllocations(ctx context.Context, input model.DeleteAllocationsInput) (*model.DeleteAllocationsPayload, error) {
	consumer, err := r.Store.DeleteAllocations(store.DryRun(ctx, input.DryRun), input.Consumer)
	return &model.DeleteAllocationsPayload{Consumer: registered(ctx, model.ConsumerOf(consumer))}, err
}

func (r *mutationResolver) DeleteAllocationsForMany(ctx context.Context, input placement.Deletion) (*model.DeleteAllocationsForManyPayload, error) {
	outcomes, err := r.Store.DeleteAllocationsForMany(ctx, input)
	return &model.DeleteAllocationsForManyPayload{Results: clearedResults(ctx, outcomes)}, err
}

func (r *mutationResolver) ConfirmAllocations(ctx context.Context, input placement.Confirmation) (*model.ConfirmAllocationsPayload, error) {
	consumers, err := r.Store.ConfirmAllocations(store.DryRun(ctx, input.DryRun), input)
	return &model.ConfirmAllocationsPayload{Consumers: changedConsumers(ctx, consumers...)}, err
}

func (r *mutationResolver) Reshape(ctx context.Context, input placement.Reshape) (*model.ReshapePayload, error) {
	world, providers, consumers, err := r.Store.Reshape(ctx, input)
	if err != nil {
		return nil, err
	}
	payload := &model.ReshapePayload{ResourceProviders: model.ProvidersIn(world, providers),
		Consumers: changedConsumers(ctx, consumers...)}
	dataloader.Register(ctx, payload.ResourceProviders...)
	return payload, nil
}

func (r *mutationResolver) SetLimits(ctx context.Context, input placement.ProjectLimits) (*model.SetLimitsPayload, error) {
	limits, err := r.Store.SetLimits(store.DryRun(ctx, input.DryRun), input)
	return &model.SetLimitsPayload{Limits: limits}, err
}

func (r *mutationResolver) ApplyPlan(ctx context.Context, input placement.PlannedMoves) (*model.ApplyPlanPayload, error) {
	moves, err := r.Store.ApplyPlan(ctx, input)
	return &model.ApplyPlanPayload{Results: appliedMoves(ctx, moves)}, err
}

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

func (r *queryResolver) ResourceProviders(ctx context.Context, filter *model.ResourceProviderFilter, orderBy *model.ResourceProviderOrder, first *int, after *string, last *int, before *string) (*model.Connection[model.ResourceProvider], error) {
	wanted, problems, err := r.wantedProviders(ctx, "filter", filter)
	if err != nil {
		return nil, err
	}
	order := providerOrder(orderBy)
	return connectWorld(ctx, model.PageRequest(first, after, last, before),
		func(ctx context.Context, page page.Request) (store.WorldPage[*placement.Provider], error) {
			return r.Store.ResourceProviders(ctx, wanted, order, page, problems)
		}, model.ProvidersIn)
}

func (r *queryResolver) ResourceProvider(ctx context.Context, uuid *string, name *string) (*model.ResourceProvider, error) {
	world, err := r.Store.World(ctx)
	if err != nil {
		return nil, err
	}
	if (uuid == nil) == (name == nil) {
		return nil, problem.Invalid("uuid", "exactly one of uuid and name must be given")
	}
	found, _ := world.ProviderNamed(valueOf(name))
	if uuid != nil {
		found, _ = world.Provider(*uuid)
	}
	return registered(ctx, model.ProviderIn(world, found)), nil
}

func (r *queryResolver) AllocationCandidates(ctx context.Context, resources []*placement.Amount, requiredAll []string, requiredAny []string, requiredAnySets []*placement.TraitSet, forbidden []string, memberOf []*placement.AggregateFilter, inTree *string, firstOf []*placement.Alternative, groups []*placement.Group, groupPolicy placement.GroupPolicy, sameSubtree []*placement.Subtree, rootRequired []string, rootForbidden []string, tolerates []string, hosts *resource.Filter, preferences []*model.PreferenceInput, orderBy placement.CandidateOrder, seed int, shapes []*placement.Shape, distinct placement.CandidateDistinct, alternatives int, first *int, after *string) (*model.AllocationCandidateConnection, error) {
	asked := candidatesAsked(resources, requiredAll, requiredAny, requiredAnySets, forbidden, memberOf, inTree,
		firstOf, groups, groupPolicy, sameSubtree, rootRequired, rootForbidden, tolerates, hosts)
	return r.candidates(ctx, nil,
		distinctIn(inOrder(*asked, preferences, orderBy, seed, shapes), distinct, alternatives), first, after)
}

func (r *queryResolver) Consumer(ctx context.Context, uuid string) (*model.Consumer, error) {
	return lookUp(ctx, uuid, r.consumerByUUID)
}

func (r *queryResolver) Consumers(ctx context.Context, filter *placement.ConsumerFilter, orderBy *model.ConsumerOrder, first *int, after *string, last *int, before *string) (*model.Connection[model.Consumer], error) {
	wanted, order := valueOf(filter), page.Order{Field: string(model.ConsumerOrderFieldCreatedAt)}
	if orderBy != nil {
		order = page.Order{Field: string(orderBy.Field), Descending: descending(orderBy.Direction)}
	}
	return connect(ctx, model.PageRequest(first, after, last, before),
		func(ctx context.Context, request page.Request) (page.Page[*model.Consumer], error) {
			current, err := r.Store.Consumers(ctx, wanted, order, request)
			return page.Of(current, model.ConsumersOf(current.Items)), err
		},
		func(ctx context.Context) (int, error) { return r.Store.CountConsumers(ctx, wanted) })
}

func (r *queryResolver) Usages(ctx context.Context, projectID *string, userID *string, consumerType *string, groupBy placement.UsageGrouping, first *int, after *string) ([]*placement.UsageGroup, error) {
	return r.Store.Usages(ctx, placement.UsageFilter{ProjectID: projectID, UserID: userID,
		ConsumerType: consumerType, By: groupBy, After: after}, first)
}

func (r *queryResolver) Traits(ctx context.Context, filter *placement.TraitFilter, first *int, after *string, last *int, before *string) (*model.Connection[placement.Trait], error) {
	wanted := valueOf(filter)
	return connect(ctx, model.PageRequest(first, after, last, before),
		func(ctx context.Context, request page.Request) (page.Page[*placement.Trait], error) {
			return r.Store.Traits(ctx, wanted, request)
		},
		func(ctx context.Context) (int, error) { return r.Store.CountTraits(ctx, wanted) })
}

func (r *queryResolver) ResourceClasses(ctx context.Context, filter *placement.ResourceClassFilter, first *int, after *string, last *int, before *string) (*model.Connection[placement.ResourceClass], error) {
	wanted := valueOf(filter)
	return connect(ctx, model.PageRequest(first, after, last, before),
		func(ctx context.Context, request page.Request) (page.Page[*placement.ResourceClass], error) {
			return r.Store.ResourceClasses(ctx, wanted, request)
		},
		func(ctx context.Context) (int, error) { return r.Store.CountResourceClasses(ctx, wanted) })
}

func (r *queryResolver) Capacity(ctx context.Context, filter *model.ResourceProviderFilter, groupBy placement.CapacityGrouping, resourceClasses []string, first *int, after *string, last *int, before *string) (*model.CapacityConnection, error) {
	return r.capacities(ctx, nil, filter, groupBy, resourceClasses, model.PageRequest(first, after, last, before))
}

func (r *queryResolver) DrainPlan(ctx context.Context, providers []string, strategy placement.CandidateOrder, seed int, movesPerHost int) (*model.DrainPlan, error) {
	return r.drainPlan(ctx, nil,
		&placement.Draining{Providers: providers, Strategy: strategy, Seed: seed, MovesPerHost: movesPerHost})
}

func (r *queryResolver) Fits(ctx context.Context, request model.PlacementRequestInput) (*placement.Fit, error) {
	return r.fitsOne(ctx, nil, &request)
}

func (r *queryResolver) CapacityFor(ctx context.Context, requests []*model.PlacementRequestInput) ([]*placement.Fit, error) {
	return r.fitsOfAll(ctx, nil, requests)
}

func (r *queryResolver) FitsTogether(ctx context.Context, requests []*model.MixedRequestInput) (*placement.Mix, error) {
	return r.fitsTogether(ctx, nil, requests)
}

func (r *queryResolver) CapacityHistory(ctx context.Context, groupBy placement.CapacityHistoryGrouping, bucket placement.CapacityBucketSize, filter *placement.CapacityHistoryFilter, first *int, after *string, last *int, before *string) (*model.CapacityBucketConnection, error) {
	query := placement.HistoryQuery{By: groupBy, Bucket: bucket, CapacityHistoryFilter: valueOf(filter)}
	return r.history(ctx, query, model.PageRequest(first, after, last, before))
}

func (r *queryResolver) Limits(ctx context.Context, projectID string) ([]*placement.Limit, error) {
	return r.Store.Limits(ctx, projectID)
}

func (r *queryResolver) LastRefusal(ctx context.Context, consumer string) (*model.PlaceRefusal, error) {
	refusal, err := r.Store.LastRefusal(ctx, consumer)
	if err != nil || refusal == nil {
		return nil, err
	}
	return &model.PlaceRefusal{Consumer: refusal.Consumer, ProjectID: refusal.ProjectID, RefusedAt: refusal.RefusedAt,
		Errors: rowErrors(refusal.Problems), Explained: refusal.Explanation}, nil
}

func (r *queryResolver) RebalancePlan(ctx context.Context, requests []*model.MixedRequestInput, providers []string, strategy placement.CandidateOrder, seed int, maxMoves int) (*model.RebalancePlan, error) {
	return r.rebalancePlan(ctx, nil, requests,
		&placement.Rebalancing{Providers: providers, Strategy: strategy, Seed: seed, MaxMoves: maxMoves})
}

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

func (r *queryResolver) Survives(ctx context.Context, by placement.FailureGrouping, capability *string, filter *model.ResourceProviderFilter, first *int, after *string, last *int, before *string) (*model.FailureConnection, error) {
	return r.survival(ctx, nil, by, capability, filter, model.PageRequest(first, after, last, before))
}

func (r *queryResolver) WhatIf(ctx context.Context, changes []*placement.WhatIfChange) (*model.WhatIf, error) {
	foreseen, err := r.Store.WhatIf(ctx, model.Values(changes))
	if err != nil {
		return nil, err
	}
	return &model.WhatIf{Foreseen: foreseen}, nil
}

func (r *resourceResolver) Allocations(ctx context.Context, obj *resource.Resource) ([]*placement.Allocation, error) {
	allocations, err := allocationsOfResource.Load(ctx, r.Store, obj)
	return orEmpty(allocations), err
}

func (r *resourceResolver) Fits(ctx context.Context, obj *resource.Resource) (*placement.Fit, error) {
	found, err := fitsOfResource.Load(ctx, r.Store, obj)
	if err != nil {
		return nil, err
	}
	return found.fit, found.err
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

func (r *resourceClassResolver) ID(ctx context.Context, obj *placement.ResourceClass) (string, error) {
	return page.Key("ResourceClass", obj.Name), nil
}

func (r *resourceProviderResolver) Allocations(ctx context.Context, obj *model.ResourceProvider, first *int, after *string, last *int, before *string) (*model.Connection[placement.Allocation], error) {
	return allocationsOfProvider.connect(ctx, r.Store, obj, dataloader.None{},
		model.PageRequest(first, after, last, before))
}

func (r *traitResolver) ID(ctx context.Context, obj *placement.Trait) (string, error) {
	return page.Key("Trait", obj.Name), nil
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
