package graph

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/graph/generated"
	"github.com/cadastre-dev/cadastre/graph/writer"
	"github.com/cadastre-dev/cadastre/store"
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

// ExecuteAny runs one operation of a document of any length, whose answer has
// 16 MiB at most.
func (e *Executor) ExecuteAny(ctx context.Context, params *graphql.RawParams) *graphql.Response {
	return e.executeWithin(ctx, params, 0)
}

// ExecuteWhole runs an operation of a document of any length.
func (e *Executor) ExecuteWhole(ctx context.Context, query string) *graphql.Response {
	return e.ExecuteAny(ctx, &graphql.RawParams{Query: query})
}

func (e *Executor) executeWithin(ctx context.Context, params *graphql.RawParams, maxTokens int) *graphql.Response {
	prepared := e.prepare(ctx, params, maxTokens)
	if prepared.Refused != nil {
		return &graphql.Response{Errors: prepared.Refused}
	}
	return e.respond(ctx, prepared.Operation, 16<<20)
}

// ExecuteWithin runs one operation whose answer has at most so many bytes.
func (e *Executor) ExecuteWithin(ctx context.Context, query string, answerBytes int) *graphql.Response {
	prepared := e.prepare(ctx, &graphql.RawParams{Query: query}, 0)
	if prepared.Refused != nil {
		return &graphql.Response{Errors: prepared.Refused}
	}
	return e.respond(ctx, prepared.Operation, answerBytes)
}

// Operation returns an operation that no limit holds for.
func (e *Executor) Operation(query string, variables map[string]any) *document.Operation {
	prepared := e.prepare(context.Background(), &graphql.RawParams{Query: query, Variables: variables}, 0)
	if prepared.Refused != nil {
		panic(fmt.Sprintf("%v: %s", prepared.Refused, query))
	}
	return prepared.Operation
}

// Respond runs an operation.
func (e *Executor) Respond(ctx context.Context, operation *document.Operation) *graphql.Response {
	return e.respond(ctx, operation, 0)
}

// refuseAlone ends the field whose parent was not registered with the others at
// its place: what it fetched it would fetch for one row after another.
func refuseAlone(loader string) { panic(loader + " is fetched for one row alone") }

func (e *Executor) respond(ctx context.Context, operation *document.Operation, answerBytes int) *graphql.Response {
	answer := e.Run(dataloader.WatchAlone(ctx, refuseAlone), operation, answerBytes)
	if answer.Data == nil { // it did not begin
		return &graphql.Response{Errors: answer.Errors}
	}
	defer e.Release(answer.Data...)
	return &graphql.Response{Data: bytes.Join(answer.Data, nil), Errors: answer.Errors}
}

// prepare makes an operation that no limit holds for but the number of tokens.
func (e *Executor) prepare(ctx context.Context, params *graphql.RawParams, maxTokens int) document.Prepared {
	return e.Preparer(document.Limits{Tokens: maxTokens}).Prepare(ctx, document.Request{
		Text: params.Query, OperationName: params.OperationName, Variables: params.Variables, Hints: true,
	})
}

// LookUps returns how many statements look nodes up.
var LookUps = lookUps

// RespondByGqlgen runs an operation by gqlgen's own executor. What a reading keeps
// is kept here, too.
func (e *Executor) RespondByGqlgen(ctx context.Context, operation *document.Operation) *graphql.Response {
	ctx, reading := e.store.WithReading(ctx, store.Each)
	defer reading.End()
	ctx = dataloader.WatchAlone(dataloader.With(ctx), refuseAlone)
	ctx = graphql.WithOperationContext(ctx, &graphql.OperationContext{
		Doc:                    operation.Document,
		Operation:              operation.Definition,
		OperationName:          operation.Definition.Name,
		Variables:              operation.Variables,
		RecoverFunc:            recovered,
		ResolverMiddleware:     aroundField,
		RootResolverMiddleware: aroundRootField,
	})
	ctx = graphql.WithResponseContext(ctx, graphql.DefaultErrorPresenter, recovered)
	response := generated.NewExecutableSchema(e.config).Exec(ctx)(ctx)
	response.Errors = PresentErrors(ctx, e.log, append(response.Errors, graphql.GetErrors(ctx)...))
	return response
}

// aroundField checks the table of permissions at the fields of Query and
// Mutation, and does nothing at others.
func aroundField(ctx context.Context, next graphql.Resolver) (any, error) {
	field := graphql.GetFieldContext(ctx)
	if field.Object != "Query" && field.Object != "Mutation" || strings.HasPrefix(field.Field.Name, "__") {
		return next(ctx)
	}
	ctx, err := authorize(ctx, &document.Field{Of: field.Object, AST: field.Field.Field})
	if err != nil {
		return nil, err
	}
	return next(ctx)
}

// aroundRootField runs each field of a mutation with loaders of its own. A field
// marked semanticNonNull that is null without any error becomes an internal one.
func aroundRootField(ctx context.Context, next graphql.RootResolver) graphql.Marshaler {
	if graphql.GetOperationContext(ctx).Operation.Operation == ast.Mutation {
		ctx = dataloader.With(ctx)
	}
	answer := next(ctx)
	field := graphql.GetRootFieldContext(ctx).Field
	if answer == graphql.Null && field.Definition.Directives.ForName(document.SemanticNonNull) != nil && !failed(ctx, field.Alias) {
		graphql.AddError(ctx, gqlerror.WrapPath(ast.Path{ast.PathName(field.Alias)}, writer.ErrNull))
	}
	return answer
}

// failed reports whether the root field with a key in the answer, or anything
// below it, has an error.
func failed(ctx context.Context, key string) bool {
	return slices.ContainsFunc(graphql.GetErrors(ctx), func(err *gqlerror.Error) bool { return len(err.Path) > 0 && err.Path[0] == ast.PathName(key) })
}

// ExecuteOnce runs one operation of a document of any length with an idempotency
// key.
func (e *Executor) ExecuteOnce(ctx context.Context, key string, params *graphql.RawParams) *graphql.Response {
	prepared := e.prepare(ctx, params, 0)
	if prepared.Refused != nil {
		return &graphql.Response{Errors: prepared.Refused}
	}
	return e.respond(WithIdempotencyKey(ctx, key), prepared.Operation, 16<<20)
}
