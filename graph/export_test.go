package graph

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/graph/generated"
	"github.com/cadastre-dev/cadastre/graph/writer"
	"github.com/cadastre-dev/cadastre/store"
)

// Helpers that run operations in tests.

// maxTokens bounds the tokens of a document for Execute. Validation takes
// quadratic time in the length of a selection.
const maxTokens = 3000

// AroundRootField runs a field of Query or Mutation.
var AroundRootField = aroundRootField

// Execute runs one operation from its source to its end. Data is nil if the
// operation did not start.
func (e *Executor) Execute(ctx context.Context, params *graphql.RawParams) *graphql.Response {
	return e.executeWithin(ctx, params, maxTokens)
}

// ExecuteAny runs one operation of a document of any length. The answer is
// limited to 16 MiB.
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

// ExecuteWithin runs one operation with at most answerBytes bytes of data.
func (e *Executor) ExecuteWithin(ctx context.Context, query string, answerBytes int) *graphql.Response {
	prepared := e.prepare(ctx, &graphql.RawParams{Query: query}, 0)
	if prepared.Refused != nil {
		return &graphql.Response{Errors: prepared.Refused}
	}
	return e.respond(ctx, prepared.Operation, answerBytes)
}

// Operation returns an operation without limits.
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

// refuseAlone fails a field that loads for a single row, because its parent was
// not registered at its place. Such a field would take one statement for each
// row.
func refuseAlone(loader string) { panic(loader + " is fetched for one row alone") }

func (e *Executor) respond(ctx context.Context, operation *document.Operation, answerBytes int) *graphql.Response {
	answer := e.Run(dataloader.WatchAlone(ctx, refuseAlone), operation, answerBytes)
	if answer.Data == nil { // it did not begin
		return &graphql.Response{Errors: answer.Errors}
	}
	defer e.Release(answer.Data...)
	return &graphql.Response{Data: bytes.Join(answer.Data, nil), Errors: answer.Errors}
}

// readers has the readers of documents by their limit of tokens. All executors
// have one schema.
var readers sync.Map

// prepare prepares an operation. The number of tokens is its only limit.
func (e *Executor) prepare(ctx context.Context, params *graphql.RawParams, maxTokens int) document.Prepared {
	reader, ok := readers.Load(maxTokens)
	if !ok {
		reader, _ = readers.LoadOrStore(maxTokens,
			document.NewReader(e.Schema(), lookUps, document.Limits{Tokens: maxTokens}))
	}
	preparer := Preparer{reader: reader.(*document.Reader), log: e.log}
	return preparer.Prepare(ctx, document.Request{
		Text: params.Query, OperationName: params.OperationName, Variables: params.Variables, Hints: true,
	})
}

// LookUps returns the number of statements that look up nodes.
var LookUps = lookUps

// RespondByGqlgen runs an operation with gqlgen's own executor. The reading
// caches as usual.
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
	response.Errors = e.errorsOf(ctx, operation.Plan(), append(response.Errors, graphql.GetErrors(ctx)...))
	return response
}

// aroundField checks the table of permissions at the fields of Query and
// Mutation. It ignores other fields.
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

// aroundRootField runs each field of a mutation with separate loaders. A
// semanticNonNull field that is null without an error becomes an internal
// error.
func aroundRootField(ctx context.Context, next graphql.RootResolver) graphql.Marshaler {
	if graphql.GetOperationContext(ctx).Operation.Operation == ast.Mutation {
		ctx = dataloader.With(ctx)
	}
	answer := next(ctx)
	field := graphql.GetRootFieldContext(ctx).Field
	if answer == graphql.Null && field.Definition.Directives.ForName(document.SemanticNonNull) != nil &&
		!failed(ctx, field.Alias) {
		graphql.AddError(ctx, gqlerror.WrapPath(ast.Path{ast.PathName(field.Alias)}, writer.ErrNull))
	}
	return answer
}

// failed reports whether a root field, by its response name, or anything below
// it has an error.
func failed(ctx context.Context, key string) bool {
	return slices.ContainsFunc(graphql.GetErrors(ctx), func(err *gqlerror.Error) bool {
		return len(err.Path) > 0 && err.Path[0] == ast.PathName(key)
	})
}

// ExecuteOnce runs one operation of a document of any length with an
// idempotency key.
func (e *Executor) ExecuteOnce(ctx context.Context, key string, params *graphql.RawParams) *graphql.Response {
	prepared := e.prepare(ctx, params, 0)
	if prepared.Refused != nil {
		return &graphql.Response{Errors: prepared.Refused}
	}
	return e.respond(WithIdempotencyKey(ctx, key), prepared.Operation, 16<<20)
}

// SourceOf starts the source of the events of a stream with a context.
func SourceOf(ctx context.Context) error {
	group := &equalStreams{of: &streamGroups{}}
	waits := func(*stream) (awaiting, func(), error) {
		return func() func() bool { return func() bool { return false } }, func() {}, nil
	}
	_, err := group.answering(&stream{ctx: ctx, equal: group}, waits, func() any { return nil })
	return err
}
