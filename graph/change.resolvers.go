package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/graph/model"
)

func (r *queryResolver) Changes(ctx context.Context, filter *change.Filter, first *int, after *string) (*model.ChangeConnection, error) {
	return r.Resolver.changes(ctx, valueOf(filter), first, after)
}
