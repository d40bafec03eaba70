package graph

import (
	"context"
	"slices"
	"time"

	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
)

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
