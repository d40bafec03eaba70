package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
)

// connectProblems returns the connection of a page of problems, nil for nil, and
// registers its rows.
func connectProblems(ctx context.Context, found *resource.ProblemPage) *model.MetadataProblemConnection {
	if found == nil {
		return nil
	}
	dataloader.Register(ctx, found.Resources()...)
	dataloader.Register(ctx, found.Definitions()...)
	return &model.MetadataProblemConnection{ProblemPage: found}
}

// change makes a change of definitions, or tries it in a dry run, and returns then
// what would break.
func (r *Resolver) change(ctx context.Context, dryRun bool, problems *model.MetadataProblemScan, change store.DefinitionChange) (*model.MetadataProblemConnection, error) {
	switch {
	case dryRun:
		found, err := r.Store.WouldBreak(ctx, "problems", model.ProblemScanOf(problems), change)
		return connectProblems(ctx, found), err
	case problems != nil:
		return nil, problem.Invalid("problems", "is of a dry run only: set dryRun")
	}
	return nil, change.Make(ctx)
}

// changed registers what a change of definitions changed and returns it, but nil
// in a dry run: it would be shown under its id with content that it does not have,
// and normalised caches would keep that.
func changed[T any](ctx context.Context, dryRun bool, row *T) *T {
	if dryRun {
		return nil
	}
	return registered(ctx, row)
}
