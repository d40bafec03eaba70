package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
)

// survival returns a page of failures in a foreseen world; nil is the stored one.
func (r *Resolver) survival(
	ctx context.Context, foreseen *placement.Foreseen, by placement.FailureGrouping, capability *string,
	filter *model.ResourceProviderFilter, request page.Request,
) (*model.FailureConnection, error) {
	wanted, problems, err := r.wantedProviders(ctx, "filter", filter)
	if err != nil {
		return nil, err
	}
	together := placement.FailingTogether{By: by}
	switch {
	case (by == placement.FailureOfCapability) != (capability != nil):
		problems.Add("capability", "must be set if by is CAPABILITY, and only then")
	case capability != nil:
		if together.Values, err = r.Store.HostValues(ctx, "capability", *capability, &problems); err != nil {
			return nil, err
		}
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
