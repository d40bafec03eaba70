package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
)

// connectProblems returns the connection of a page of problems and registers
// its rows. It returns nil for nil.
func connectProblems(ctx context.Context, found *resource.ProblemPage) *model.MetadataProblemConnection {
	if found == nil {
		return nil
	}
	dataloader.Register(ctx, found.Resources()...)
	dataloader.Register(ctx, found.Definitions()...)
	return &model.MetadataProblemConnection{ProblemPage: found}
}

// change makes a change of definitions. In a dry run it only tries the change,
// and returns the problems that it would cause.
func (r *Resolver) change(ctx context.Context, dryRun bool, problems *model.MetadataProblemScan,
	change store.DefinitionChange) (*model.MetadataProblemConnection, error) {
	switch {
	case dryRun:
		found, err := r.Store.WouldBreak(ctx, "problems", model.ProblemScanOf(problems), change)
		return connectProblems(ctx, found), err
	case problems != nil:
		return nil, problem.Invalid("problems", "requires dryRun")
	}
	return nil, change.Make(ctx)
}

// changed registers a row that a change of definitions changed, and returns it.
// In a dry run it returns nil: normalised caches would keep the content, which
// is not stored, under the id of the row.
func changed[T any](ctx context.Context, dryRun bool, row *T) *T {
	if dryRun {
		return nil
	}
	return registered(ctx, row)
}
