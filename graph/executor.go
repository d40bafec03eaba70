package graph

import (
	"context"
	"log/slog"
	"runtime/debug"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// maxTokens bounds the tokens of a document: what is refused here is not even
// validated, which takes time quadratic in the length of a selection.
const maxTokens = 3000

// Executor runs operations against the schema.
type Executor struct {
	*executor.Executor
	log *slog.Logger
}

// NewExecutor makes an executor over the resolvers. Internal errors go to log.
func NewExecutor(resolver *Resolver, log *slog.Logger) *Executor {
	schema := NewExecutableSchema(Config{Resolvers: resolver})
	delete(schema.Schema().Directives, "defer") // no transport here sends parts later
	e := &Executor{Executor: executor.New(schema), log: log}
	e.SetParserTokenLimit(maxTokens)
	e.SetRecoverFunc(e.recovered)
	e.Use(extension.Introspection{})
	e.AroundRootFields(func(ctx context.Context, next graphql.RootResolver) graphql.Marshaler {
		if graphql.GetOperationContext(ctx).Operation.Operation == ast.Mutation {
			ctx = WithLoaders(ctx)
		}
		return next(ctx)
	})
	return e
}

// Execute runs one operation to its end. Every error in the answer is fit to be
// seen. A nil Data means that the operation did not start.
func (e *Executor) Execute(ctx context.Context, params *graphql.RawParams) *graphql.Response {
	ctx = WithLoaders(graphql.StartOperationTrace(ctx))
	operation, refused := e.CreateOperationContext(ctx, params)
	if refused != nil {
		return &graphql.Response{Errors: PresentErrors(ctx, e.log, refused)}
	}
	responses, ctx := e.DispatchOperation(ctx, operation)
	response := responses(ctx)
	if response == nil { // the request ended meanwhile
		response = &graphql.Response{Errors: gqlerror.List{Problem(ctx, CodeTimeout, "the request took too long")}}
		return response
	}
	response.Errors = PresentErrors(ctx, e.log, response.Errors)
	return response
}

// recovered turns a panic into an error that PresentErrors masks.
func (e *Executor) recovered(ctx context.Context, panicked any) error {
	return &panicError{value: panicked, stack: debug.Stack()}
}
