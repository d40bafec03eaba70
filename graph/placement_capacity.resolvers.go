package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/placement"
)

func (r *queryResolver) Capacity(ctx context.Context, filter *model.ResourceProviderFilter, groupBy placement.CapacityGrouping, resourceClasses []string, first *int, after *string, last *int, before *string) (*model.CapacityConnection, error) {
	return r.capacities(ctx, nil, filter, groupBy, resourceClasses, model.PageRequest(first, after, last, before))
}
