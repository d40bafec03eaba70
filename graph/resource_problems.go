package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/resource"
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
