package graph

import (
	"context"
	"slices"
	"time"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/internal/lists"
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

func (r *Resolver) history(ctx context.Context, query placement.HistoryQuery,
	request page.Request) (*model.CapacityBucketConnection, error) {
	all, isCut, problems, err := r.Store.History(ctx, query)
	if err == nil && query.By == placement.HistoryByFlavor {
		all, err = r.ofSeenFlavors(ctx, all)
	}
	if err != nil {
		return nil, err
	}
	order := page.Order{Field: string(query.Bucket) + " " + string(query.By)}
	connection, err := connect(ctx, request,
		func(_ context.Context, request page.Request) (page.Page[*placement.CapacityBucket], error) {
			return page.OfList("capacityHistory", order, all, request, problems,
				func(row *placement.CapacityBucket) string {
					return row.BeginsAt.Format(time.RFC3339) + " " + row.Series.Group
				},
				func(row *placement.CapacityBucket) string {
					return row.Series.ResourceClass + " " + row.Series.Flavor
				})
		}, func(context.Context) (int, error) { return len(all), nil })
	if err != nil {
		return nil, err
	}
	return &model.CapacityBucketConnection{Connection: connection, IsIncomplete: isCut}, nil
}

// ofSeenFlavors keeps the rows of the flavors that the viewer sees.
func (r *Resolver) ofSeenFlavors(ctx context.Context,
	all []*placement.CapacityBucket) ([]*placement.CapacityBucket, error) {
	flavors := lists.Distinct(lists.Map(all, func(row *placement.CapacityBucket) string { return row.Series.Flavor }))
	seen, err := r.Store.ResourcesByUUID(ctx, flavors)
	return slices.DeleteFunc(all, func(row *placement.CapacityBucket) bool {
		return seen[row.Series.Flavor] == nil
	}), err
}

// survival returns a page of failures in a foreseen world; nil is the stored one.
func (r *Resolver) survival(
	ctx context.Context, foreseen *placement.Foreseen, by placement.FailureGrouping, capability *string,
	filter *model.ResourceProviderFilter, request page.Request,
) (*model.FailureConnection, error) {
	wanted, together, problems, err := r.failing(ctx, by, capability, filter)
	if err != nil {
		return nil, err
	}
	failures := new(model.FailureConnection)
	failures.Connection, err = connectWorld(ctx, request,
		func(ctx context.Context, page page.Request) (of store.WorldPage[*placement.Failure], err error) {
			of, failures.UnsurvivedCount, err = r.Store.Survival(ctx, foreseen, wanted, together, page, problems)
			return of, err
		}, model.FailuresIn)
	if err != nil {
		return nil, err
	}
	dataloader.RegisterLater(ctx, failures.Roots)
	dataloader.RegisterLater(ctx, failures.Unplaced)
	return failures, nil
}

// failing returns the filter of the providers that fail, how their trees fail
// together, and the problems of both that are found without a world.
func (r *Resolver) failing(ctx context.Context, by placement.FailureGrouping, capability *string,
	filter *model.ResourceProviderFilter) (
	wanted placement.ProviderFilter, together placement.FailingTogether, problems problem.Problems, err error,
) {
	together.By = by
	if wanted, problems, err = r.wantedProviders(ctx, "filter", filter); err != nil {
		return wanted, together, nil, err
	}
	switch {
	case (by == placement.FailureOfCapability) != (capability != nil):
		problems.Add("capability", "is required if by is CAPABILITY, and not allowed otherwise")
	case capability != nil:
		together.Values, err = r.Store.HostValues(ctx, "capability", *capability, &problems)
	}
	return wanted, together, problems, err
}

// survivalAfter checks the arguments of a subscription to failures, and returns
// its source of events; see answersAfter.
func (r *Resolver) survivalAfter(ctx context.Context, asked model.SurvivalChange,
	after *string) (<-chan *model.SurvivalChange, error) {
	wanted, _, problems, err := r.failing(ctx, asked.By, asked.Capability, asked.Filter)
	if err != nil {
		return nil, err
	}
	world, err := r.Store.World(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.Store.CheckProviders(world, wanted, problems); err != nil {
		return nil, err
	}
	return answersAfter(ctx, r, after, func(of model.Answered) *model.SurvivalChange {
		event := asked
		event.Answered = of
		return &event
	})
}
