package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/generated"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
)

func (r *allocationResolver) Provider(ctx context.Context, obj *placement.Allocation) (*model.ResourceProvider, error) {
	return loadOne(ctx, "provider", obj, func(a *placement.Allocation) string { return a.Provider }, r.providers)
}

func (r *allocationResolver) Consumer(ctx context.Context, obj *placement.Allocation) (*model.Consumer, error) {
	return loadOne(ctx, "consumer", obj, func(a *placement.Allocation) string { return a.Consumer }, r.consumers)
}

func (r *allocationCandidateConnectionResolver) Explain(ctx context.Context, obj *model.AllocationCandidateConnection) (*model.CandidateExplanation, error) {
	explanation := obj.Explanation()
	for _, miss := range explanation.Nearest {
		register(ctx, miss.Provider())
	}
	return explanation, nil
}

func (r *consumerResolver) Allocations(ctx context.Context, obj *model.Consumer) ([]*placement.Allocation, error) {
	if obj.Released != nil {
		register(ctx, obj.Released...)
		return obj.Released, nil
	}
	return loadMany(ctx, "allocations", obj, func(c *model.Consumer) string { return c.UUID }, r.Store.AllocationsOfConsumers)
}

func (r *mutationResolver) CreateResourceProvider(ctx context.Context, input placement.NewProvider) (*model.CreateResourceProviderPayload, error) {
	world, provider, err := r.Store.CreateResourceProvider(ctx, input)
	if err != nil {
		return nil, err
	}
	return &model.CreateResourceProviderPayload{ResourceProvider: model.ProviderIn(world, provider)}, nil
}

func (r *mutationResolver) UpdateResourceProvider(ctx context.Context, input model.UpdateResourceProviderInput) (*model.UpdateResourceProviderPayload, error) {
	change := placement.ProviderPatch{Provider: input.Provider, Parent: cleared(input.Parent), Resource: cleared(input.Resource)}
	if name, ok := input.NewName.ValueOK(); ok {
		change.NewName = new(valueOf(name)) // a name cannot be cleared: the empty one is refused
	}
	world, provider, err := r.Store.UpdateResourceProvider(ctx, change)
	if err != nil {
		return nil, err
	}
	return &model.UpdateResourceProviderPayload{ResourceProvider: model.ProviderIn(world, provider)}, nil
}

func (r *mutationResolver) DeleteResourceProvider(ctx context.Context, input model.DeleteResourceProviderInput) (*model.DeleteResourceProviderPayload, error) {
	world, provider, err := r.Store.DeleteResourceProvider(ctx, input.Provider)
	if err != nil {
		return nil, err
	}
	return &model.DeleteResourceProviderPayload{ResourceProvider: model.ProviderIn(world, provider)}, nil
}

func (r *mutationResolver) SetInventories(ctx context.Context, input placement.ProviderInventories) (*model.SetInventoriesPayload, error) {
	world, provider, err := r.Store.SetInventories(ctx, input)
	if err != nil {
		return nil, err
	}
	return &model.SetInventoriesPayload{ResourceProvider: model.ProviderIn(world, provider)}, nil
}

func (r *mutationResolver) SetInventory(ctx context.Context, input placement.OneInventory) (*model.SetInventoryPayload, error) {
	world, provider, err := r.Store.SetInventory(ctx, input)
	if err != nil {
		return nil, err
	}
	return &model.SetInventoryPayload{ResourceProvider: model.ProviderIn(world, provider)}, nil
}

func (r *mutationResolver) DeleteInventory(ctx context.Context, input placement.InventoryClass) (*model.DeleteInventoryPayload, error) {
	world, provider, err := r.Store.DeleteInventory(ctx, input)
	if err != nil {
		return nil, err
	}
	return &model.DeleteInventoryPayload{ResourceProvider: model.ProviderIn(world, provider)}, nil
}

func (r *mutationResolver) SetProviderTraits(ctx context.Context, input placement.ProviderTraits) (*model.SetProviderTraitsPayload, error) {
	world, provider, err := r.Store.SetProviderTraits(ctx, input)
	if err != nil {
		return nil, err
	}
	return &model.SetProviderTraitsPayload{ResourceProvider: model.ProviderIn(world, provider)}, nil
}

func (r *mutationResolver) SetProviderAggregates(ctx context.Context, input placement.ProviderAggregates) (*model.SetProviderAggregatesPayload, error) {
	world, provider, err := r.Store.SetProviderAggregates(ctx, input)
	if err != nil {
		return nil, err
	}
	return &model.SetProviderAggregatesPayload{ResourceProvider: model.ProviderIn(world, provider)}, nil
}

func (r *mutationResolver) CreateTrait(ctx context.Context, input model.CreateTraitInput) (*model.CreateTraitPayload, error) {
	trait, err := r.Store.CreateTrait(ctx, input.Name)
	if err != nil {
		return nil, err
	}
	return &model.CreateTraitPayload{Trait: trait}, nil
}

func (r *mutationResolver) DeleteTrait(ctx context.Context, input model.DeleteTraitInput) (*model.DeleteTraitPayload, error) {
	trait, err := r.Store.DeleteTrait(ctx, input.Name)
	if err != nil {
		return nil, err
	}
	return &model.DeleteTraitPayload{Trait: trait}, nil
}

func (r *mutationResolver) CreateResourceClass(ctx context.Context, input model.CreateResourceClassInput) (*model.CreateResourceClassPayload, error) {
	class, err := r.Store.CreateResourceClass(ctx, input.Name)
	if err != nil {
		return nil, err
	}
	return &model.CreateResourceClassPayload{ResourceClass: class}, nil
}

func (r *mutationResolver) DeleteResourceClass(ctx context.Context, input model.DeleteResourceClassInput) (*model.DeleteResourceClassPayload, error) {
	class, err := r.Store.DeleteResourceClass(ctx, input.Name)
	if err != nil {
		return nil, err
	}
	return &model.DeleteResourceClassPayload{ResourceClass: class}, nil
}

func (r *mutationResolver) SetAllocations(ctx context.Context, input placement.Claim) (*model.SetAllocationsPayload, error) {
	consumers, err := r.Store.SetAllocations(ctx, input)
	if err != nil {
		return nil, err
	}
	payload := &model.SetAllocationsPayload{Consumers: model.ConsumersOf(consumers)}
	register(ctx, payload.Consumers...)
	return payload, nil
}

func (r *mutationResolver) DeleteAllocations(ctx context.Context, input model.DeleteAllocationsInput) (*model.DeleteAllocationsPayload, error) {
	consumer, err := r.Store.DeleteAllocations(ctx, input.Consumer)
	if err != nil {
		return nil, err
	}
	return &model.DeleteAllocationsPayload{Consumer: &model.Consumer{Consumer: consumer}}, nil
}

func (r *mutationResolver) Reshape(ctx context.Context, input placement.Reshape) (*model.ReshapePayload, error) {
	world, providers, consumers, err := r.Store.Reshape(ctx, input)
	if err != nil {
		return nil, err
	}
	payload := &model.ReshapePayload{ResourceProviders: model.ProvidersIn(world, providers), Consumers: model.ConsumersOf(consumers)}
	register(ctx, payload.ResourceProviders...)
	register(ctx, payload.Consumers...)
	return payload, nil
}

func (r *queryResolver) ResourceProviders(ctx context.Context, filter *placement.ProviderFilter, orderBy *model.ResourceProviderOrder, first *int, after *string, last *int, before *string) (*model.ResourceProviderConnection, error) {
	wanted, order := valueOf(filter), page.Order{Field: string(model.ResourceProviderOrderFieldName)}
	if orderBy != nil {
		order = page.Order{Field: string(orderBy.Field), Descending: descending(orderBy.Direction)}
	}
	return providerConnection(ctx, model.PageRequest(first, after, last, before),
		func(ctx context.Context, page page.Request) (store.ProviderPage, error) {
			return r.Store.ResourceProviders(ctx, wanted, order, page)
		})
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

func (r *queryResolver) AllocationCandidates(ctx context.Context, resources []*placement.Amount, requiredAll []string, requiredAny []string, requiredAnySets []*placement.TraitSet, forbidden []string, memberOf []*placement.AggregateFilter, inTree *string, groups []*placement.Group, groupPolicy placement.GroupPolicy, sameSubtree []*placement.Subtree, rootRequired []string, rootForbidden []string, first *int, after *string) (*model.AllocationCandidateConnection, error) {
	world, err := r.Store.World(ctx)
	if err != nil {
		return nil, err
	}
	request := &placement.Request{
		Unsuffixed: placement.Group{
			Resources: model.Values(resources), RequiredAll: requiredAll, RequiredAny: requiredAny, RequiredAnySets: model.Values(requiredAnySets),
			Forbidden: forbidden, MemberOf: model.Values(memberOf), InTree: valueOf(inTree),
		},
		Groups: model.Values(groups), Policy: groupPolicy, SameSubtree: model.Values(sameSubtree),
		RootRequired: rootRequired, RootForbidden: rootForbidden,
	}
	position, limit, problems := candidateCursor(first, after)
	if err := addProblems(problems, placement.Validate(world, request)).Err(); err != nil {
		return nil, err
	}
	connection, err := model.CandidatesIn(world, request, position, limit)
	if err == nil {
		register(ctx, connection.Roots()...)
	}
	return connection, err
}

func (r *queryResolver) Consumer(ctx context.Context, uuid string) (*model.Consumer, error) {
	return lookUp(ctx, uuid, func(ctx context.Context, uuid string) (*model.Consumer, error) {
		consumer, err := r.Store.ConsumerByUUID(ctx, uuid)
		return &model.Consumer{Consumer: consumer}, err
	})
}

func (r *queryResolver) Consumers(ctx context.Context, filter *placement.ConsumerFilter, orderBy *model.ConsumerOrder, first *int, after *string, last *int, before *string) (*model.ConsumerConnection, error) {
	wanted, order := valueOf(filter), page.Order{Field: string(model.ConsumerOrderFieldCreatedAt)}
	if orderBy != nil {
		order = page.Order{Field: string(orderBy.Field), Descending: descending(orderBy.Direction)}
	}
	connection, err := connect(ctx, model.PageRequest(first, after, last, before),
		func(ctx context.Context, request page.Request) (page.Page[*model.Consumer], error) {
			current, err := r.Store.Consumers(ctx, wanted, order, request)
			return page.Page[*model.Consumer]{Items: model.ConsumersOf(current.Items), Cursors: current.Cursors, HasMore: current.HasMore}, err
		},
		func(ctx context.Context) (int, error) { return r.Store.CountConsumers(ctx, wanted) })
	return &model.ConsumerConnection{Connection: connection}, err
}

func (r *queryResolver) Usages(ctx context.Context, projectID string, userID *string, consumerType *string) ([]*placement.UsageGroup, error) {
	return r.Store.Usages(ctx, projectID, userID, consumerType)
}

func (r *queryResolver) Traits(ctx context.Context, filter *placement.TraitFilter, first *int, after *string, last *int, before *string) (*model.TraitConnection, error) {
	wanted := valueOf(filter)
	connection, err := connect(ctx, model.PageRequest(first, after, last, before),
		func(ctx context.Context, request page.Request) (page.Page[*placement.Trait], error) {
			return r.Store.Traits(ctx, wanted, request)
		},
		func(ctx context.Context) (int, error) { return r.Store.CountTraits(ctx, wanted) })
	return &model.TraitConnection{Connection: connection}, err
}

func (r *queryResolver) ResourceClasses(ctx context.Context, filter *placement.ResourceClassFilter, first *int, after *string, last *int, before *string) (*model.ResourceClassConnection, error) {
	wanted := valueOf(filter)
	connection, err := connect(ctx, model.PageRequest(first, after, last, before),
		func(ctx context.Context, request page.Request) (page.Page[*placement.ResourceClass], error) {
			return r.Store.ResourceClasses(ctx, wanted, request)
		},
		func(ctx context.Context) (int, error) { return r.Store.CountResourceClasses(ctx, wanted) })
	return &model.ResourceClassConnection{Connection: connection}, err
}

func (r *resourceResolver) Provider(ctx context.Context, obj *resource.Resource) (*model.ResourceProvider, error) {
	return loadOne(ctx, "provider", obj, resourceID, func(ctx context.Context, ids []int64) (map[int64]*model.ResourceProvider, error) {
		world, providers, err := r.Store.ProvidersOfResources(ctx, ids)
		found := make(map[int64]*model.ResourceProvider, len(providers))
		for id, provider := range providers {
			found[id] = model.ProviderIn(world, provider)
		}
		return found, err
	})
}

func (r *resourceProviderResolver) Allocations(ctx context.Context, obj *model.ResourceProvider, first *int, after *string, last *int, before *string) (*model.AllocationConnection, error) {
	request := model.PageRequest(first, after, last, before)
	connection, err := connectWithin(ctx, argumentsKey("allocations ", request), obj, providerUUID, request,
		forTrees(obj.World, func(ctx context.Context, uuids []string) (map[string]page.Page[*placement.Allocation], error) {
			return r.Store.AllocationsOfProviders(ctx, uuids, request)
		}),
		forTrees(obj.World, func(ctx context.Context, uuids []string) (map[string]bool, error) {
			return r.Store.AllocationsBehind(ctx, uuids, request)
		}),
		forTrees(obj.World, r.Store.CountAllocationsOfProviders))
	return &model.AllocationConnection{Connection: connection}, err
}

func (r *resourceProviderResolver) Resource(ctx context.Context, obj *model.ResourceProvider) (*resource.Resource, error) {
	return loadOne(ctx, "resource", obj, providerUUID, forTrees(obj.World, func(ctx context.Context, uuids []string) (map[string]*resource.Resource, error) {
		return r.resourcesOf(ctx, obj.World, uuids)
	}))
}

func (r *Resolver) Allocation() generated.AllocationResolver { return &allocationResolver{r} }

func (r *Resolver) AllocationCandidateConnection() generated.AllocationCandidateConnectionResolver {
	return &allocationCandidateConnectionResolver{r}
}

func (r *Resolver) Consumer() generated.ConsumerResolver { return &consumerResolver{r} }

func (r *Resolver) ResourceProvider() generated.ResourceProviderResolver {
	return &resourceProviderResolver{r}
}

type (
	allocationResolver                    struct{ *Resolver }
	allocationCandidateConnectionResolver struct{ *Resolver }
	consumerResolver                      struct{ *Resolver }
	resourceProviderResolver              struct{ *Resolver }
)
