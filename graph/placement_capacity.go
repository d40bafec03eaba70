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

// maxDifferences is the maximum number of sums in `WhatIf.diff`.
const maxDifferences = 1000

// wantedProviders returns a filter of providers with its hosts looked up, and
// the problems of the filter for hosts. Path is the path of the filter.
func (r *Resolver) wantedProviders(ctx context.Context, path string,
	filter *model.ResourceProviderFilter) (placement.ProviderFilter, problem.Problems, error) {
	wanted := valueOf(filter)
	var problems problem.Problems
	hosts, err := r.hostsOf(ctx, path+".resource", wanted.Resource, &problems)
	wanted.Hosts = hosts
	return wanted.ProviderFilter, problems, err
}

// capacities returns a page of capacity sums of a world; nil is the stored one.
func (r *Resolver) capacities(ctx context.Context, world *placement.World, filter *model.ResourceProviderFilter,
	groupBy placement.CapacityGrouping, resourceClasses []string,
	request page.Request) (*model.CapacityConnection, error) {
	world, err := r.worldOr(ctx, world)
	if err != nil {
		return nil, err
	}
	wanted, problems, err := r.wantedProviders(ctx, "filter", filter)
	if err != nil {
		return nil, err
	}
	connection, err := connectWorld(ctx, request,
		func(_ context.Context, page page.Request) (store.WorldPage[*placement.CapacitySum], error) {
			return r.Store.Capacity(world, wanted, groupBy, resourceClasses, page, problems)
		}, model.CapacitiesIn)
	if err != nil {
		return nil, err
	}
	capacities := &model.CapacityConnection{Connection: connection}
	dataloader.RegisterLater(ctx, capacities.Roots)
	return capacities, nil
}

// providerOrder returns an order of providers; nil orders by name.
func providerOrder(orderBy *model.ResourceProviderOrder) placement.ProviderOrder {
	if orderBy == nil {
		return placement.ProviderOrder{Field: string(model.ResourceProviderOrderFieldName)}
	}
	return placement.ProviderOrder{Field: string(orderBy.Field), Descending: descending(orderBy.Direction),
		ResourceClass: orderBy.ResourceClass.Value()}
}
