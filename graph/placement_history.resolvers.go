package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/placement"
)

func (r *queryResolver) CapacityHistory(ctx context.Context, groupBy placement.CapacityHistoryGrouping, bucket placement.CapacityBucketSize, filter *placement.CapacityHistoryFilter, first *int, after *string, last *int, before *string) (*model.CapacityBucketConnection, error) {
	query := placement.HistoryQuery{By: groupBy, Bucket: bucket, CapacityHistoryFilter: valueOf(filter)}
	return r.history(ctx, query, model.PageRequest(first, after, last, before))
}
