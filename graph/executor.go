package graph

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/graph/generated"
)

// Executor runs operations against the schema. The errors in its responses are
// as clients get them.
type Executor struct {
	executable graphql.ExecutableSchema
	log        *slog.Logger
}

// NewExecutor returns an executor of the resolvers that logs internal errors.
func NewExecutor(resolver *Resolver, log *slog.Logger) *Executor {
	language := *generated.NewExecutableSchema(generated.Config{}).Schema()
	language.Directives = maps.Clone(language.Directives)
	delete(language.Directives, "defer") // no transport here sends parts later
	schema := generated.NewExecutableSchema(generated.Config{Schema: &language, Resolvers: resolver})
	return &Executor{executable: schema, log: log}
}

// Schema returns the schema that operations run against.
func (e *Executor) Schema() *ast.Schema { return e.executable.Schema() }

// Run runs an operation to its end. When the context ends meanwhile, the fields
// that are not yet resolved become errors of the code TIMEOUT.
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
	response := e.executable.Exec(ctx)(ctx)
	response.Errors = PresentErrors(ctx, e.log, append(response.Errors, graphql.GetErrors(ctx)...))
	return response
}

// aroundField checks the table of permissions at the fields of Query and
// Mutation, and does nothing at others. A field of Mutation does not begin once
// the context has ended.
func aroundField(ctx context.Context, next graphql.Resolver) (any, error) {
	field := graphql.GetFieldContext(ctx)
	if field.Object != "Query" && field.Object != "Mutation" || strings.HasPrefix(field.Field.Name, "__") {
		return next(ctx)
	}
	if field.Object == "Mutation" && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	viewer, err := access.ViewerFrom(ctx).Asking(field.Field.Name)
	if err != nil {
		return nil, err
	}
	return next(access.WithViewer(ctx, viewer))
}

// semanticNonNull is the directive of fields that are null only together with an
// error.
const semanticNonNull = "semanticNonNull"

// errNull is the error of a field that is null although nothing failed.
var errNull = errors.New("must not be null")

// aroundRootField runs each field of a mutation with loaders of its own. A field
// marked semanticNonNull that is null without any error becomes an internal one.
func aroundRootField(ctx context.Context, next graphql.RootResolver) graphql.Marshaler {
	if graphql.GetOperationContext(ctx).Operation.Operation == ast.Mutation {
		ctx = WithLoaders(ctx)
	}
	answer := next(ctx)
	field := graphql.GetRootFieldContext(ctx).Field
	if answer == graphql.Null && field.Definition.Directives.ForName(semanticNonNull) != nil && !failed(ctx, field.Alias) {
		graphql.AddError(ctx, gqlerror.WrapPath(ast.Path{ast.PathName(field.Alias)}, errNull))
	}
	return answer
}

// failed reports whether the root field with a key in the answer, or anything
// below it, has an error.
func failed(ctx context.Context, key string) bool {
	return slices.ContainsFunc(graphql.GetErrors(ctx), func(err *gqlerror.Error) bool { return rootField(err) == key })
}

// recovered returns a panic as an error that PresentErrors masks.
func recovered(_ context.Context, panicked any) error {
	return &panicError{value: panicked, stack: debug.Stack()}
}
