package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/graph/document"
)

// What the tests of operations run them with.

// maxTokens bounds the tokens of a document that Execute takes: validation takes
// time quadratic in the length of a selection.
const maxTokens = 3000

// Execute runs one operation from its text to its end. A nil Data means that the
// operation did not start.
func (e *Executor) Execute(ctx context.Context, params *graphql.RawParams) *graphql.Response {
	reader := document.NewReader(e.Schema())
	parsed, refused := reader.Parse(params.Query, maxTokens)
	if refused == nil {
		refused = reader.Validate(parsed, true)
	}
	if refused != nil {
		return &graphql.Response{Errors: PresentErrors(ctx, e.log, refused)}
	}
	operation, refused := reader.Prepare(parsed, params.OperationName, params.Variables)
	if refused != nil {
		return &graphql.Response{Errors: PresentErrors(ctx, e.log, refused)}
	}
	return e.Run(ctx, operation)
}
