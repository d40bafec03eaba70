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
