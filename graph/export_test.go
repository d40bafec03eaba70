package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/graph/document"
)

// What the tests of operations run them with.

// maxTokens bounds the tokens of a document that Execute takes: validation
// takes time quadratic in the length of a selection.
const maxTokens = 3000

// AroundRootField runs a field of Query or Mutation.
var AroundRootField = aroundRootField

// Execute runs one operation from its text to its end. A nil Data means that
// the operation did not start.
func (e *Executor) Execute(ctx context.Context, params *graphql.RawParams) *graphql.Response {
	return e.executeWithin(ctx, params, maxTokens)
}

// ExecuteAny runs one operation of a document of any length.
func (e *Executor) ExecuteAny(ctx context.Context, params *graphql.RawParams) *graphql.Response {
	return e.executeWithin(ctx, params, 0)
}

// ExecuteByGqlgen runs one operation by gqlgen's own executor.
func (e *Executor) ExecuteByGqlgen(ctx context.Context, params *graphql.RawParams) *graphql.Response {
	operation, refused := e.read(params, 0)
	if refused != nil {
		return &graphql.Response{Errors: PresentErrors(ctx, e.log, refused)}
	}
	return e.runGenerated(ctx, operation)
}

// ExecuteWhole runs an operation of a document of any length.
func (e *Executor) ExecuteWhole(ctx context.Context, query string) *graphql.Response {
	return e.ExecuteAny(ctx, &graphql.RawParams{Query: query})
}

func (e *Executor) executeWithin(ctx context.Context, params *graphql.RawParams, maxTokens int) *graphql.Response {
	operation, refused := e.read(params, maxTokens)
	if refused != nil {
		return &graphql.Response{Errors: PresentErrors(ctx, e.log, refused)}
	}
	return e.Run(ctx, operation)
}

// read makes an operation that no limit holds for but the number of tokens.
func (e *Executor) read(params *graphql.RawParams, maxTokens int) (*document.Operation, gqlerror.List) {
	parsed, refused := document.Parse(params.Query, maxTokens)
	if refused != nil {
		return nil, refused
	}
	valid, refused := document.NewReader(e.Schema(), document.Limits{}).Validate(parsed, true)
	if refused != nil {
		return nil, refused
	}
	return valid.Operation(params.OperationName, params.Variables)
}
