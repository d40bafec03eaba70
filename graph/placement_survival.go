package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
)

// survival returns a page of failures.
func (r *Resolver) survival(
	ctx context.Context, by placement.FailureGrouping, filter *model.ResourceProviderFilter, request page.Request,
) (*model.FailureConnection, error) {
	wanted, problems, err := r.wantedProviders(ctx, filter)
	if err != nil {
		return nil, err
	}
	failures := new(model.FailureConnection)
	failures.Connection, err = connectWorld(ctx, request,
		func(ctx context.Context, page page.Request) (of store.WorldPage[*placement.Failure], err error) {
			of, failures.UnsurvivedCount, err = r.Store.Survival(ctx, wanted, by, page, problems)
			return of, err
		}, model.FailuresIn)
	if err != nil {
		return nil, err
	}
	dataloader.RegisterLater(ctx, failures.Roots)
	dataloader.RegisterLater(ctx, failures.Unplaced)
	return failures, nil
}
