package graph

import (
	"context"
	"log/slog"
	"maps"
	"runtime/debug"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/graph/generated"
)

// Executor runs operations against the schema. Every error in its answers is fit
// to be seen.
type Executor struct {
	schema graphql.ExecutableSchema
	log    *slog.Logger
}

// NewExecutor makes an executor over the resolvers. Internal errors go to log.
func NewExecutor(resolver *Resolver, log *slog.Logger) *Executor {
	language := *generated.NewExecutableSchema(generated.Config{}).Schema()
	language.Directives = maps.Clone(language.Directives)
	delete(language.Directives, "defer") // no transport here sends parts later
	schema := generated.NewExecutableSchema(generated.Config{Schema: &language, Resolvers: resolver})
	return &Executor{schema: schema, log: log}
}

// Schema is the schema that operations run against.
func (e *Executor) Schema() *ast.Schema { return e.schema.Schema() }

// Run runs an operation to its end. Where the context ends meanwhile the fields
// not yet resolved are errors of the code TIMEOUT.
func (e *Executor) Run(ctx context.Context, operation *document.Operation) *graphql.Response {
	ctx = graphql.WithOperationContext(WithLoaders(ctx), &graphql.OperationContext{
		Doc:                    operation.Document,
		Operation:              operation.Definition,
		OperationName:          operation.Definition.Name,
		Variables:              operation.Variables,
		RecoverFunc:            recovered,
		ResolverMiddleware:     aroundField,
		RootResolverMiddleware: aroundRootField,
	})
	ctx = graphql.WithResponseContext(ctx, graphql.DefaultErrorPresenter, recovered)
	response := e.schema.Exec(ctx)(ctx)
	response.Errors = PresentErrors(ctx, e.log, append(response.Errors, graphql.GetErrors(ctx)...))
	return response
}

// aroundField asks the table of permissions at the fields of Query and Mutation;
// it has nothing to do with any other.
func aroundField(ctx context.Context, next graphql.Resolver) (any, error) {
	field := graphql.GetFieldContext(ctx)
	if field.Object != "Query" && field.Object != "Mutation" || strings.HasPrefix(field.Field.Name, "__") {
		return next(ctx)
	}
	viewer, err := access.ViewerFrom(ctx).Asking(field.Field.Name)
	if err != nil {
		return nil, err
	}
	return next(access.WithViewer(ctx, viewer))
}

// aroundRootField gives each field of a mutation its own loaders.
func aroundRootField(ctx context.Context, next graphql.RootResolver) graphql.Marshaler {
	if graphql.GetOperationContext(ctx).Operation.Operation == ast.Mutation {
		ctx = WithLoaders(ctx)
	}
	return next(ctx)
}

// recovered turns a panic into an error that PresentErrors masks.
func recovered(ctx context.Context, panicked any) error {
	return &panicError{value: panicked, stack: debug.Stack()}
}
