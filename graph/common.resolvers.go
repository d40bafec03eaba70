package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
)

func (r *queryResolver) Node(ctx context.Context, id string) (model.Node, error) {
	if _, ok := page.ParseNodeID(id); !ok {
		return nil, problem.Invalid("id", "is not an id")
	}
	nodes, err := r.nodesOf(ctx, []string{id})
	if err != nil {
		return nil, err
	}
	return nodes[0], nil
}

func (r *queryResolver) Nodes(ctx context.Context, ids []string) ([]model.Node, error) {
	return r.nodesOf(ctx, ids)
}

func (r *queryResolver) Viewer(ctx context.Context) (*access.Viewer, error) {
	viewer := access.ViewerFrom(ctx)
	return &viewer, nil
}

func (r *viewerResolver) ID(ctx context.Context, obj *access.Viewer) (string, error) {
	return page.Key("Viewer", obj.UserID, obj.ProjectID), nil
}

func (r *viewerResolver) Roles(ctx context.Context, obj *access.Viewer) ([]model.Role, error) {
	return model.RolesOf(*obj), nil
}
