package graph

import (
	"context"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
)

// readsChanges reports whether an operation reads the feed of changes. Such an
// operation first calls Store.Settle, so that the feed shows earlier commits.
func readsChanges(operation *document.Operation) bool {
	if operation.Definition.Operation != ast.Query {
		return false
	}
	for _, field := range operation.Plan().Root.Fields {
		if field.Of == "Query" && field.AST.Name == "changes" {
			return true
		}
	}
	return false
}

// changes returns a page of the feed of changes.
func (r *Resolver) changes(ctx context.Context, filter change.Filter, first *int,
	after *string) (*model.ChangeConnection, error) {
	var problems problem.Problems
	request := page.Request{First: first, After: after}
	request.Check(&problems)
	filter.Check(&problems, "filter")
	var from change.Position
	if after != nil {
		position, err := r.Store.PositionOf(*after)
		wrong, ok := problem.Of(err)
		if !ok {
			return nil, err
		}
		from, problems = position, append(problems, wrong...)
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	list := func(ctx context.Context, request page.Request) (page.Page[*change.Change], error) {
		if request.Last != nil { // asks only whether rows come before the page
			before, err := r.Store.HasChanges(ctx, filter, from)
			return page.Page[*change.Change]{HasMore: before}, err
		}
		changes, more, err := r.Store.Changes(ctx, filter, from, request.Limit())
		of := page.Page[*change.Change]{Items: changes, HasMore: more}
		for _, c := range changes {
			of.Cursors = append(of.Cursors, r.Store.Cursor(c.Position()))
		}
		return of, err
	}
	connection, err := connect(ctx, request, list, nil)
	if err != nil {
		return nil, err
	}
	end := r.Store.Cursor(r.Store.After(from, connection.Page.Items, connection.Page.HasMore))
	return &model.ChangeConnection{Connection: connection, Cursor: end,
		Newest: func(ctx context.Context) (string, error) {
			latest, err := r.Store.Latest(ctx, filter)
			return r.Store.Cursor(latest), err
		}}, nil
}
