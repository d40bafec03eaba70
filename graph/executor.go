package graph

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/graph/generated"
	"github.com/cadastre-dev/cadastre/graph/writer"
	"github.com/cadastre-dev/cadastre/internal/tracing"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
)

// Executor runs operations against the schema. It returns errors as clients get
// them.
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
	// Data is the JSON of the data, in pieces. It is nil if the operation did
	// not start.
	Data   [][]byte
	Errors gqlerror.List
	Taken  Taken
	// Position is the position of a PostgreSQL database after a mutation,
	// otherwise empty; see ReadAfter.
	Position string
}

// PositionHeader is the HTTP header of a position.
const PositionHeader = store.PositionHeader

// ReadAfter returns a context in which operations see all changes before the
// Position of an earlier Answer; "" is none. It refuses any other string than a
// position.
func ReadAfter(ctx context.Context, position string) (context.Context, error) {
	return store.After(ctx, position)
}

// ReadLatest returns a context in which queries see all changes that any server
// has confirmed. No standby answers them.
func ReadLatest(ctx context.Context) context.Context {
	ctx, _ = store.After(ctx, "0") // a position
	return context.WithValue(ctx, onPrimaryKey{}, true)
}

// Taken is the measured work of an operation: the number of statements, the
// rows that they returned, the bytes of the data, and the total cost.
type Taken struct {
	Cost, Statements, Rows, Bytes int64
	// IsOutside reports whether a database in another process ran the
	// statements.
	IsOutside bool
	// Decisions say how queries of resources were answered, and why.
	Decisions []string
}

// NewExecutor returns an executor of the resolvers that logs internal errors.
func NewExecutor(resolver *Resolver, log *slog.Logger) *Executor {
	language := *generated.Schema()
	language.Directives = maps.Clone(language.Directives)
	delete(language.Directives, "defer") // no transport here sends parts later
	delete(language.Directives, "work")  // the directive only serves prices
	config := generated.Config{Schema: &language, Resolvers: resolver}
	return &Executor{config: config, writers: generated.NewWriters(config), store: resolver.Store, log: log}
}

// Schema returns the schema that operations run against.
func (e *Executor) Schema() *ast.Schema { return e.config.Schema }

// Places returns how many operations may have a database connection at the same
// time. Without a store no operation needs one.
func (e *Executor) Places() store.Places {
	if e.store == nil {
		return store.Places{}
	}
	return e.store.Places()
}

// Preparer turns requests into operations.
type Preparer struct {
	reader *document.Reader
	log    *slog.Logger
}

// Preparer returns a preparer of operations for the executor. The preparer
// refuses requests beyond the limits.
func (e *Executor) Preparer(limits document.Limits) *Preparer {
	return &Preparer{reader: document.NewReader(e.Schema(), lookUps, limits), log: e.log}
}

// Prepare parses, validates, plans and prices a request; see
// document.Reader.Prepare. It returns errors as clients get them.
func (p *Preparer) Prepare(ctx context.Context, request document.Request) document.Prepared {
	prepared := p.reader.Prepare(request)
	if prepared.Refused != nil {
		prepared.Refused = PresentErrors(ctx, p.log, prepared.Refused)
	}
	return prepared
}

// readingFor returns how an operation reads the database (how), and how a field
// of Mutation does (afterWrite). A single statement, or the world alone, sees
// one instant and needs no transaction. A mutation with a statement for its
// payload also reads the world, so it needs a transaction. A query of one field
// that memory usually answers starts without one. It opens a transaction if
// memory lacks the answer, since nothing was shown until then.
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

// readingAs returns the context for the reads of an operation. A query or a
// subscription that needs no times of rows does not read them. A long operation
// uses separate connections.
func readingAs(ctx context.Context, operation *document.Operation) context.Context {
	if !operation.Plan().Times && operation.Definition.Operation != ast.Mutation {
		ctx = store.WithoutTimes(ctx)
	}
	if operation.Needs == document.NeedsLong {
		ctx = store.Searching(ctx)
	}
	return ctx
}

// Run runs an operation to its end. It resolves the fields in the order of the
// answer and writes each immediately. If ctx ends first, the remaining fields
// become TIMEOUT errors. The data has at most answerBytes bytes; 0 is no limit.
// A mutation with an idempotency key (WithIdempotencyKey) may be refused as a
// whole; the answer then has no data. A query that fails on a standby runs
// again on the primary.
func (e *Executor) Run(ctx context.Context, operation *document.Operation, answerBytes int) *Answer {
	plan := operation.Plan()
	mutation := operation.Definition.Operation == ast.Mutation
	how, afterWrite := readingFor(operation)
	ctx, endSpan := tracing.Operation(ctx, string(operation.Definition.Operation), operation.Definition.Name)
	defer endSpan(nil)
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
	if !mutation && ctx.Value(onPrimaryKey{}) == nil {
		reading.Spread()
	}
	made := madeChanges{}
	defer func() {
		if reading.End(); !reading.IsWhole() {
			e.log.ErrorContext(ctx, "an operation's rows were read at several instants", "requestId", RequestID(ctx),
				"operation", operation.Definition.Name)
		}
	}()
	to := e.writerOf(ctx, operation, answerBytes,
		func(ctx context.Context, field *document.Field) (context.Context, error) {
			if mutation {
				made.note(reading)
				reading.End()
				made.field = field.AST.Alias
				ctx, reading = e.store.WithReading(dataloader.With(store.AtField(ctx, field.AST.Alias)), afterWrite)
			}
			return authorize(ctx, field)
		})
	if !e.writers.Write(ctx, to, plan, mutation) {
		to.Null()
	}
	switch {
	case len(to.Errors) == 0:
	case mutation:
		made.note(reading)
		to.Errors = e.reconsidered(ctx, made.told(to.Errors))
	case slices.ContainsFunc(to.Errors, isFailure) && ctx.Err() == nil && reading.LeaveStandby():
		e.Release(to.Data()...)
		return e.Run(context.WithValue(ctx, onPrimaryKey{}, true), operation, answerBytes)
	}
	answer := e.answerOf(ctx, plan, to, measured)
	if mutation {
		answer.Position = e.store.Position()
	}
	return answer
}

// writerOf returns the writer of the answer to an operation, or to an event of a
// subscription. Begin is called before each root field; see writer.Options.
func (e *Executor) writerOf(
	ctx context.Context, operation *document.Operation, answerBytes int,
	begin func(context.Context, *document.Field) (context.Context, error),
) *writer.Writer {
	return writer.New(ctx, operation.Plan(), writer.Options{
		Variables: operation.Variables,
		Pieces:    &e.pieces,
		Bytes:     answerBytes,
		Finish:    operation.Definition.Operation == ast.Mutation,
		Recover:   recovered,
		Begin:     begin,
	})
}

// onPrimaryKey is in the context of a query that runs on the primary, such as one
// that failed on a standby.
type onPrimaryKey struct{}

// isFailure reports whether an error can come from the database rather than the
// operation: INTERNAL, UNAVAILABLE or TIMEOUT.
func isFailure(err *gqlerror.Error) bool {
	_, isProtocol := protocolCode(err)
	code := codeOf(err)
	return !isProtocol && (code == CodeInternal || code == CodeUnavailable || code == CodeTimeout)
}

// maxRows bounds the rows that a query reads: about 2 s of a core. Prices do
// not depend on the number of rows in the database, so an operation within its
// price can read more.
const maxRows = 1_000_000

// measure returns a context that counts the work of an operation and stops a
// query that reads more than maxRows. The caller must call end.
func (e *Executor) measure(ctx context.Context,
	operation *document.Operation) (measured context.Context, counts func() (statements, rows int64), end func()) {
	ctx, counts = store.Measure(ctx)
	if operation.Definition.Operation == ast.Mutation {
		return ctx, counts, func() {}
	}
	ctx, stop := context.WithCancelCause(ctx)
	store.StopBeyond(ctx, maxRows, func() {
		stop(problem.Refuse(problem.ErrTooComplex,
			"the operation was stopped: it read more than %d rows; select fewer fields or request smaller pages",
			maxRows))
	})
	return ctx, counts, func() { stop(nil) }
}

// stopped returns the errors of an operation. If the operation was stopped
// because it read more than maxRows, this refusal replaces the errors from the
// end of the context.
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

// Release lets later answers reuse the memory of pieces. The caller must not
// read the pieces afterwards.
func (e *Executor) Release(pieces ...[]byte) {
	for _, piece := range pieces {
		e.pieces.Give(piece)
	}
}

// authorize returns the context of a field of Query, Mutation or Subscription,
// or an error if the table of permissions denies it to the viewer. A field of
// Mutation does not start once ctx has ended. Every viewer may read the schema.
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
