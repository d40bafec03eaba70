package graph

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"runtime/debug"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/graph/generated"
	"github.com/cadastre-dev/cadastre/graph/writer"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
)

// Executor runs operations against the schema. The errors in its responses are
// as clients get them.
type Executor struct {
	config  generated.Config
	writers generated.Writers
	store   *store.Store
	log     *slog.Logger
	pieces  writer.Pieces
	streams streamGroups
}

// Answer is the answer to an operation.
type Answer struct {
	// Data is the pieces of the JSON of the data; nil means that the operation
	// did not start.
	Data   [][]byte
	Errors gqlerror.List
	Taken  Taken
}

// Taken is what an operation took: the statements that it ran, the rows that
// they returned, the bytes of the data, and what all of these cost.
type Taken struct {
	Cost, Statements, Rows, Bytes int64
	// IsOutside reports whether a database in another process ran the statements.
	IsOutside bool
	// Decisions are how questions about resources were answered, and why.
	Decisions []string
}

// NewExecutor returns an executor of the resolvers that logs internal errors.
func NewExecutor(resolver *Resolver, log *slog.Logger) *Executor {
	language := *generated.Schema()
	language.Directives = maps.Clone(language.Directives)
	delete(language.Directives, "defer") // no transport here sends parts later
	delete(language.Directives, "work")  // which prices are made of
	config := generated.Config{Schema: &language, Resolvers: resolver}
	return &Executor{config: config, writers: generated.NewWriters(config), store: resolver.Store, log: log}
}

// Schema returns the schema that operations run against.
func (e *Executor) Schema() *ast.Schema { return e.config.Schema }

// Places returns how many operations may have a connection to the database at
// once; without a store, none need one.
func (e *Executor) Places() store.Places {
	if e.store == nil {
		return store.Places{}
	}
	return e.store.Places()
}

// Preparer makes operations of requests.
type Preparer struct {
	reader *document.Reader
	log    *slog.Logger
}

// Preparer returns what makes operations within limits for the executor.
func (e *Executor) Preparer(limits document.Limits) *Preparer {
	return &Preparer{reader: document.NewReader(e.Schema(), lookUps, limits), log: e.log}
}

// Prepare does everything that is to be done before an operation runs; see
// document.Reader.Prepare. The errors are as clients get them.
func (p *Preparer) Prepare(ctx context.Context, request document.Request) document.Prepared {
	prepared := p.reader.Prepare(request)
	if prepared.Refused != nil {
		prepared.Refused = PresentErrors(ctx, p.log, prepared.Refused)
	}
	return prepared
}

// readingFor returns how an operation sees the database, and how a field of
// Mutation does. A single statement, or the world alone, is of one instant by
// itself: that needs no transaction. A mutation shows its world besides. A query of
// one field that memory mostly tells begins without a transaction, and has one
// where memory does not tell: nothing was shown until then.
func readingFor(operation *document.Operation) (how, afterWrite store.How) {
	of, statements := operation.Price, operation.Price.Statements
	if operation.Definition.Operation == ast.Query && len(operation.Plan().Root.Fields) == 1 {
		statements -= of.Fallback
	}
	if statements > 1 || statements > 0 && (of.World || operation.Definition.Operation == ast.Mutation) {
		return store.AtOnce, store.AtOnceAfterWrite
	}
	return store.Each, store.EachAfterWrite
}

// readingAs returns a context in which an operation reads no times that it does not
// show, and where it is heavy has connections apart.
func readingAs(ctx context.Context, operation *document.Operation) context.Context {
	if !operation.Plan().Times && operation.Definition.Operation != ast.Mutation {
		ctx = store.WithoutTimes(ctx)
	}
	if operation.Needs == document.NeedsLong {
		ctx = store.Searching(ctx)
	}
	return ctx
}

// Run runs an operation to its end: field after field in the order of the
// answer, which is written as it goes. When the context ends meanwhile, the
// fields that are not yet resolved become errors of the code TIMEOUT. The data
// has at most so many bytes; 0 is no limit. A mutation that is made once
// (WithIdempotencyKey) may be refused as a whole: then there is no data.
func (e *Executor) Run(ctx context.Context, operation *document.Operation, answerBytes int) *Answer {
	plan := operation.Plan()
	mutation := operation.Definition.Operation == ast.Mutation
	how, afterWrite := readingFor(operation)
	ctx, measured, end := e.measure(ctx, operation)
	defer end()
	once, done, err := e.makeOnce(ctx, operation)
	if err != nil {
		return &Answer{Errors: PresentErrors(ctx, e.log, gqlerror.List{gqlerror.Wrap(err)})}
	}
	defer done()
	ctx = once
	ctx = readingAs(ctx, operation)
	if readsChanges(operation) {
		if err := e.store.Settle(ctx); err != nil {
			return &Answer{Errors: PresentErrors(ctx, e.log, gqlerror.List{gqlerror.Wrap(err)})}
		}
	}
	ctx, reading := e.store.WithReading(dataloader.With(ctx), how)
	made := madeChanges{}
	defer func() {
		if reading.End(); !reading.IsWhole() {
			e.log.ErrorContext(ctx, "an operation was read at several instants", "requestId", RequestID(ctx), "operation", operation.Definition.Name)
		}
	}()
	to := writer.New(ctx, plan, writer.Options{
		Variables: operation.Variables,
		Pieces:    &e.pieces,
		Bytes:     answerBytes,
		Finish:    mutation,
		Recover:   recovered,
		Begin: func(ctx context.Context, field *document.Field) (context.Context, error) {
			if mutation {
				made.note(reading)
				reading.End()
				made.field = field.AST.Alias
				ctx, reading = e.store.WithReading(dataloader.With(store.AtField(ctx, field.AST.Alias)), afterWrite)
			}
			return authorize(ctx, field)
		},
	})
	if !e.writers.Write(ctx, to, plan, mutation) {
		to.Null()
	}
	if mutation && len(to.Errors) > 0 {
		made.note(reading)
		to.Errors = e.reconsidered(ctx, made.told(to.Errors))
	}
	return e.answerOf(ctx, to, measured)
}

// maxRows bounds the rows that a query reads: about 2 s of a core. Prices do not
// say how many rows there are, so an operation within its price can meet more.
const maxRows = 1_000_000

// measure returns a context under which the work of an operation is counted, and
// in which a query ends beyond maxRows. The caller calls end.
func (e *Executor) measure(ctx context.Context, operation *document.Operation) (measured context.Context, counts func() (statements, rows int64), end func()) {
	ctx, counts = store.Measure(ctx)
	if operation.Definition.Operation == ast.Mutation {
		return ctx, counts, func() {}
	}
	ctx, stop := context.WithCancelCause(ctx)
	store.StopBeyond(ctx, maxRows, func() {
		stop(problem.Refuse(problem.ErrTooComplex, "the operation was stopped: it read more than %d rows; select less, or ask for smaller pages", maxRows))
	})
	return ctx, counts, func() { stop(nil) }
}

// stopped returns the errors of an operation, where it was stopped for its work
// with that as the reason instead of the end of its context.
func stopped(ctx context.Context, list gqlerror.List) gqlerror.List {
	why := context.Cause(ctx)
	if !errors.Is(why, problem.ErrTooComplex) {
		return list
	}
	for _, err := range list {
		if errors.Is(err, problem.ErrTimeout) || errors.Is(err, context.Canceled) {
			err.Err, err.Message = why, why.Error()
		}
	}
	return list
}

// Release takes back the memory of pieces of answers that nobody reads any more.
func (e *Executor) Release(pieces ...[]byte) {
	for _, piece := range pieces {
		e.pieces.Give(piece)
	}
}

// authorize returns the context of a field of Query, Mutation or Subscription,
// unless the table of permissions refuses it to the viewer. A field of Mutation does not begin
// once the context has ended. Whoever may ask anything may ask for the schema.
func authorize(ctx context.Context, field *document.Field) (context.Context, error) {
	if field.Of == "Mutation" && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if field.Number == document.Schema || field.Number == document.Type {
		return ctx, nil
	}
	viewer, err := access.ViewerFrom(ctx).Authorize(field.AST.Name)
	if err != nil {
		return nil, err
	}
	return access.WithViewer(ctx, viewer), nil
}

// recovered returns a panic as an error that PresentErrors masks.
func recovered(_ context.Context, panicked any) error {
	return &panicError{value: panicked, stack: debug.Stack()}
}
