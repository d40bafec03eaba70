package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/audit"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/page"
)

func (r *auditEventResolver) Operation(ctx context.Context, obj *audit.Event) (*model.Operation, error) {
	return model.OperationOf(obj), nil
}

func (r *queryResolver) AuditEvents(ctx context.Context, filter *audit.Filter, first *int, after *string, last *int, before *string) (*model.Connection[audit.Event], error) {
	wanted := valueOf(filter)
	return connect(ctx, model.PageRequest(first, after, last, before),
		func(ctx context.Context, page page.Request) (page.Page[*audit.Event], error) {
			return r.Store.AuditEvents(ctx, wanted, page)
		},
		func(ctx context.Context) (int, error) { return r.Store.CountAuditEvents(ctx, wanted) })
}
