package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
)

// What the tests of operations run them with.

// maxTokens bounds the tokens of a document that Execute takes: validation takes
// time quadratic in the length of a selection.
const maxTokens = 3000

// Execute runs one operation from its text to its end. A nil Data means that the
// operation did not start.
func (e *Executor) Execute(ctx context.Context, params *graphql.RawParams) *graphql.Response {
	document, refused := e.Parse(ctx, params.Query, maxTokens)
	if refused == nil {
		refused = e.Validate(ctx, document, true)
	}
	if refused != nil {
		return &graphql.Response{Errors: refused}
	}
	operation, refused := e.Prepare(ctx, document, params.OperationName, params.Variables)
	if refused != nil {
		return &graphql.Response{Errors: refused}
	}
	return e.Run(ctx, operation)
}
