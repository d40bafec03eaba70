package graph

import (
	"context"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/graph/generated"
	"github.com/cadastre-dev/cadastre/graph/writer"
	"github.com/cadastre-dev/cadastre/store"
)

// Executor runs operations against the schema. The errors in its responses are
// as clients get them.
type Executor struct {
	executable graphql.ExecutableSchema
	writers    generated.Writers
	store      *store.Store
	log        *slog.Logger
	buffers    sync.Pool // of *[]byte
}

// NewExecutor returns an executor of the resolvers that logs internal errors.
func NewExecutor(resolver *Resolver, log *slog.Logger) *Executor {
	language := *generated.NewExecutableSchema(generated.Config{}).Schema()
	language.Directives = maps.Clone(language.Directives)
	delete(language.Directives, "defer") // no transport here sends parts later
	schema := generated.NewExecutableSchema(generated.Config{Schema: &language, Resolvers: resolver})
	return &Executor{executable: schema, writers: generated.NewWriters(resolver), store: resolver.Store, log: log}
}

// Schema returns the schema that operations run against.
func (e *Executor) Schema() *ast.Schema { return e.executable.Schema() }

// Run runs an operation to its end: field after field in the order of the
// answer, which is written as it goes. When the context ends meanwhile, the
// fields that are not yet resolved become errors of the code TIMEOUT.
func (e *Executor) Run(ctx context.Context, operation *document.Operation) *graphql.Response {
	plan := operation.Plan()
	if plan.Introspects {
		return e.runGenerated(ctx, operation)
	}
	mutation := operation.Definition.Operation == ast.Mutation
	ctx, reading := e.store.WithReading(dataloader.With(ctx), store.AtOnce)
	defer func() { reading.End() }()
	to := writer.New(ctx, plan, e.buffer(), writer.Options{
		Variables: operation.Variables,
		Recover:   recovered,
		Begin: func(ctx context.Context, field *document.Field) (context.Context, error) {
			if mutation {
				reading.End()
				ctx, reading = e.store.WithReading(dataloader.With(ctx), store.AtOnceAfterWrite)
			}
			return asking(ctx, field.Of, field.AST.Name)
		},
	})
	if !e.writers.Write(ctx, to, plan, mutation) {
		to.Null()
	}
	return &graphql.Response{Data: to.Buf, Errors: PresentErrors(ctx, e.log, to.Errors)}
}

// largestKept bounds the buffers that are kept for the next answers.
const largestKept = 4 << 20

func (e *Executor) buffer() []byte {
	if kept, ok := e.buffers.Get().(*[]byte); ok {
		return (*kept)[:0]
	}
	return make([]byte, 0, 4<<10)
}

// Release takes back the bytes of an answer that nobody reads any more.
func (e *Executor) Release(answer *graphql.Response) {
	if data := []byte(answer.Data); cap(data) > 0 && cap(data) <= largestKept {
		e.buffers.Put(&data)
	}
	answer.Data = nil
}

// runGenerated runs an operation by gqlgen's own executor, which knows how to
// answer questions about the schema.
func (e *Executor) runGenerated(ctx context.Context, operation *document.Operation) *graphql.Response {
	ctx = graphql.WithOperationContext(dataloader.With(ctx), &graphql.OperationContext{
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

// asking returns the context of a field of Query or Mutation, unless the table
// of permissions refuses it to the viewer. A field of Mutation does not begin
// once the context has ended.
func asking(ctx context.Context, object, field string) (context.Context, error) {
	if object == "Mutation" && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	viewer, err := access.ViewerFrom(ctx).Asking(field)
	if err != nil {
		return nil, err
	}
	return access.WithViewer(ctx, viewer), nil
}

// aroundField checks the table of permissions at the fields of Query and
// Mutation, and does nothing at others.
func aroundField(ctx context.Context, next graphql.Resolver) (any, error) {
	field := graphql.GetFieldContext(ctx)
	if field.Object != "Query" && field.Object != "Mutation" || strings.HasPrefix(field.Field.Name, "__") {
		return next(ctx)
	}
	ctx, err := asking(ctx, field.Object, field.Field.Name)
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
	return slices.ContainsFunc(graphql.GetErrors(ctx), func(err *gqlerror.Error) bool { return rootField(err) == key })
}

// recovered returns a panic as an error that PresentErrors masks.
func recovered(_ context.Context, panicked any) error {
	return &panicError{value: panicked, stack: debug.Stack()}
}
