package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
)

// capacityConnection returns a connection of sums of capacity, all of one world.
func capacityConnection(
	ctx context.Context, request page.Request,
	list func(context.Context, page.Request) (store.CapacityPage, error),
) (*model.CapacityConnection, error) {
	total := 0
	connection, err := connect(ctx, request, func(ctx context.Context, request page.Request) (page.Page[*model.Capacity], error) {
		current, err := list(ctx, request)
		total = current.Total
		return page.Page[*model.Capacity]{Items: model.CapacitiesIn(current.World, current.Items), Cursors: current.Cursors, HasMore: current.HasMore}, err
	}, func(context.Context) (int, error) { return total, nil })
	if err != nil {
		return nil, err
	}
	capacities := &model.CapacityConnection{Connection: connection}
	dataloader.RegisterLater(ctx, capacities.Roots)
	return capacities, nil
}

// wantedProviders returns what a filter of providers wants, with the hosts that
// it looks up, and what is wrong with the filter of those.
func (r *Resolver) wantedProviders(ctx context.Context, filter *model.ResourceProviderFilter) (placement.ProviderFilter, problem.Problems, error) {
	wanted := valueOf(filter)
	var problems problem.Problems
	hosts, err := r.hostsOf(ctx, "filter.resource", wanted.Resource, &problems)
	wanted.Hosts = hosts
	return wanted.ProviderFilter, problems, err
}

// providerOrder returns an order of providers: the one given or, for nil, by
// name.
func providerOrder(orderBy *model.ResourceProviderOrder) placement.ProviderOrder {
	if orderBy == nil {
		return placement.ProviderOrder{Field: string(model.ResourceProviderOrderFieldName)}
	}
	return placement.ProviderOrder{Field: string(orderBy.Field), Descending: descending(orderBy.Direction), ResourceClass: orderBy.ResourceClass.Value()}
}
