package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
)

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
