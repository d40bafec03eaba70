package graph

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/graph/writer"
	"github.com/cadastre-dev/cadastre/internal/pause"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Subscription is a running subscription. Only one goroutine may use it.
type Subscription struct {
	executor  *Executor
	operation *document.Operation
	events    writer.Events
	stream    *stream
	cancel    context.CancelFunc
	// last is the cursor of the last answer that was sent, at first the cursor
	// that the client asked with.
	last string
}

// stream is the part of a subscription that its source of events uses.
type stream struct {
	// ctx is the context of the stream with its viewer. It carries no reading
	// or loads of a single operation.
	ctx context.Context
	// statements reports whether answering an event takes SQL statements.
	// Otherwise the resident world alone answers it.
	statements bool
	equal      *equalStreams // the group of equal streams that the stream belongs to
	after      string        // the cursor that the client asked with, empty for none
	err        error         // why the events ended; set before their channel is closed
}

type streamKey struct{}

// streamOf returns the stream that the context of a field belongs to.
func streamOf(ctx context.Context) *stream {
	of, _ := ctx.Value(streamKey{}).(*stream)
	if of == nil { // an executor without streams
		return &stream{ctx: ctx, equal: &equalStreams{of: &streamGroups{}, open: 1}}
	}
	return of
}

// Subscribe begins a subscription, or returns the errors that prevent it. The
// context begin bounds that. The subscription lasts until End is called or ctx
// ends.
func (e *Executor) Subscribe(ctx, begin context.Context,
	operation *document.Operation) (*Subscription, gqlerror.List) {
	ctx, cancel := context.WithCancel(ctx)
	group := e.streams.join(access.ViewerFrom(ctx), operation)
	context.AfterFunc(ctx, group.leave)
	of := &stream{statements: operation.Price.Statements > 0, equal: group}
	s := &Subscription{executor: e, operation: operation, stream: of, cancel: cancel}
	begin = context.WithValue(begin, streamKey{}, of)
	if err := e.store.Settle(begin); err != nil { // so that earlier commits are no events
		cancel()
		return nil, PresentErrors(ctx, e.log, gqlerror.List{gqlerror.Wrap(err)})
	}
	within, reading := e.store.WithReading(dataloader.With(begin), store.AtOnce)
	defer reading.End()
	to := e.writerOf(within, operation, 0,
		func(within context.Context, field *document.Field) (context.Context, error) {
			allowed, err := authorize(within, field)
			if err == nil {
				of.ctx = access.WithViewer(ctx, access.ViewerFrom(allowed))
			}
			return allowed, err
		})
	s.events = e.writers.Subscribe(within, to, operation.Plan())
	e.Release(to.Data()...)
	if s.events == nil {
		cancel()
		return nil, e.errorsOf(ctx, operation.Plan(), to.Errors)
	}
	s.last = of.after
	return s, nil
}

// End ends the subscription. Its source ends soon after.
func (s *Subscription) End() { s.cancel() }

// Next waits for the next event. Ok is false once the context, the subscription
// or its source has ended. If the source has ended, Err returns the reason.
func (s *Subscription) Next(ctx context.Context) (event any, ok bool) { return s.events(ctx) }

// Err returns why the events ended, as clients get it. Call it after Next has
// returned false. It returns nil if nothing went wrong.
func (s *Subscription) Err(ctx context.Context) gqlerror.List {
	if s.stream.err == nil {
		return nil
	}
	path := ast.Path{ast.PathName(s.operation.Plan().Root.Fields[0].AST.Alias)}
	return PresentErrors(ctx, s.executor.log, gqlerror.List{gqlerror.WrapPath(path, s.stream.err)})
}

// Answer returns the answer to an event for the viewer of ctx. It reads the
// data itself, unless an equal stream has just answered the same event. It
// returns nil if the client has the answer already. The data has at most
// answerBytes bytes; 0 is no limit.
func (s *Subscription) Answer(ctx context.Context, event any, answerBytes int) *Answer {
	switch of := event.(type) {
	case interface{ Answers() *model.Answered }:
		answer, cursor := s.executor.shared(of.Answers().Kept, func() (*Answer, string) {
			answer := s.write(ctx, event, answerBytes)
			return answer, answer.sealWith(of.Answers().Cursor)
		})
		switch {
		case answer.FailsForNow(): // the next answer is compared with the one before
		case cursor == s.last:
			s.executor.Release(answer.Data...)
			return nil
		default:
			s.last = cursor
		}
		return answer
	case interface{ KeptIn() *model.Kept }:
		answer, _ := s.executor.shared(of.KeptIn(), func() (*Answer, string) {
			return s.write(ctx, event, answerBytes), ""
		})
		return answer
	}
	return s.write(ctx, event, answerBytes)
}

// write answers an event with its own loads and reading.
func (s *Subscription) write(ctx context.Context, event any, answerBytes int) *Answer {
	e, plan := s.executor, s.operation.Plan()
	ctx, measured, end := e.measure(ctx, s.operation)
	defer end()
	ctx = readingAs(ctx, s.operation)
	how, _ := readingFor(s.operation)
	ctx, reading := e.store.WithReading(dataloader.With(ctx), how)
	defer reading.End()
	to := e.writerOf(ctx, s.operation, answerBytes, authorize)
	if !e.writers.WriteEvent(ctx, to, plan, event) {
		to.Null()
	}
	if !reading.IsWhole() {
		e.log.ErrorContext(ctx, "an event's rows were read at several instants", "requestId", RequestID(ctx),
			"operation", s.operation.Definition.Name)
	}
	return e.answerOf(ctx, plan, to, measured)
}

// answerOf returns the answer that was written, with its measured work.
func (e *Executor) answerOf(ctx context.Context, plan *document.Plan, to *writer.Writer,
	measured func() (statements, rows int64)) *Answer {
	answer := &Answer{Data: to.Data(), Errors: e.errorsOf(ctx, plan, stopped(ctx, to.Errors))}
	answer.Taken.Statements, answer.Taken.Rows = measured()
	answer.Taken.IsOutside = answer.Taken.Statements > 0 && e.store.Postgres()
	answer.Taken.Decisions = store.Decisions(ctx)
	for _, piece := range answer.Data {
		answer.Taken.Bytes += int64(len(piece))
	}
	answer.Taken.Cost = document.CostOf(answer.Taken.Statements, answer.Taken.Rows, answer.Taken.Bytes)
	return answer
}

// sealWith computes the cursor of an answer: a hash of its data and errors. It
// replaces each occurrence of the placeholder standIn with the cursor.
func (a *Answer) sealWith(standIn string) (cursor string) {
	hash := sha256.New()
	for _, piece := range a.Data {
		for part := range bytes.SplitSeq(piece, []byte(standIn)) {
			_, _ = hash.Write(part)
		}
	}
	for _, err := range a.Errors {
		_, _ = fmt.Fprintf(hash, "\x00%s\x00%s", err.Path, err.Message)
	}
	cursor = answerCursors.EncodeToString(hash.Sum(nil))[:len(standIn)]
	for _, piece := range a.Data {
		for at := bytes.Index(piece, []byte(standIn)); at >= 0; at = bytes.Index(piece, []byte(standIn)) {
			copy(piece[at:], cursor)
		}
	}
	return cursor
}

// answerCursors encodes a hash as the cursor of an answer, in the alphabet of
// the rand.Text placeholders.
var answerCursors = base32.StdEncoding

// answerCursor matches the cursor of an answer.
var answerCursor = regexp.MustCompile(`^[A-Z2-7]{26}$`)

// betweenAnswers is the minimum time between two answers.
const betweenAnswers = time.Second

// answersAfter returns a source of events that each need a new answer. The
// first event comes immediately. Further events come when anything changes that
// answers can depend on, at most one in betweenAnswers. Equal streams share all
// but the first event.
func answersAfter[Event any](ctx context.Context, r *Resolver, after *string,
	event func(model.Answered) *Event) (<-chan *Event, error) {
	if after != nil && !answerCursor.MatchString(*after) {
		return nil, problem.Invalid("after", "is not a cursor of this stream")
	}
	of := streamOf(ctx)
	of.after = valueOf(after)
	begin := r.awaitsWorld
	if of.statements {
		begin = r.awaitsChanges(ctx)
	}
	source, err := of.equal.answering(of, begin, func() any { return event(model.NewAnswered(&model.Kept{})) })
	if err != nil {
		return nil, err
	}
	seen := source.newest()
	events := make(chan *Event)
	go func() {
		defer close(events)
		next, ok := event(model.NewAnswered(nil)), true
		for first := true; ok; first = false {
			select {
			case events <- next:
			case <-of.ctx.Done():
				return
			}
			if first && !pause.For(of.ctx, betweenAnswers) {
				return
			}
			var newest any
			newest, seen = source.after(of.ctx, seen)
			next, ok = newest.(*Event)
		}
		if source.isOver() {
			of.err = source.source.err
		}
	}()
	return events, nil
}

// awaitsWorld returns a function that begins to wait for a new world. It serves
// answers that depend on the world alone.
func (r *Resolver) awaitsWorld(of *stream) (await awaiting, stop func(), err error) {
	return func() func() bool {
		held, next := r.Store.HeldWorld()
		return func() bool {
			for now, more := held, next; now == held; now, more = r.Store.HeldWorld() {
				select {
				case <-more:
				case <-of.ctx.Done():
					return false
				}
			}
			return true
		}
	}, func() {}, nil
}

// awaitsChanges returns a function like awaitsWorld, for changes that the
// viewer may see. It serves answers that need SQL statements.
func (r *Resolver) awaitsChanges(ctx context.Context) func(of *stream) (await awaiting, stop func(), err error) {
	return func(of *stream) (await awaiting, stop func(), err error) {
		from, err := r.Store.Latest(ctx, change.Filter{})
		if err != nil {
			return nil, nil, err
		}
		following := r.Store.Follow(change.Filter{}, from)
		return func() func() bool {
			return func() bool {
				if changes := nextChanges(of, following); len(changes) == 0 {
					return false
				}
				for { // changes that have come meanwhile need no separate answer
					more, err := following.Next(of.ctx, changesAtOnce)
					if err != nil || len(more) < changesAtOnce {
						return true
					}
				}
			}
		}, following.Stop, nil
	}
}

// changesAtOnce is the maximum number of changes that a stream reads from the
// feed in one batch.
const changesAtOnce = 100

// betweenChanges is how long a stream gathers changes. Otherwise each
// transaction would wake thousands of streams.
const betweenChanges = 20 * time.Millisecond

// nextChanges waits for the next changes that the viewer of a stream may see.
// It returns none if the stream ended. It also returns none, and sets of.err,
// if the feed no longer keeps the stream's position.
func nextChanges(of *stream, following *store.Following) []*change.Change {
	for of.ctx.Err() == nil {
		changes, err := following.Next(of.ctx, changesAtOnce)
		switch {
		case errors.Is(err, problem.ErrInvalidInput):
			of.err = err
			return nil
		case err != nil: // the database cannot be reached
			pause.For(of.ctx, time.Second)
		case len(changes) > 0:
			return changes
		case following.Wait(of.ctx) == nil:
			pause.For(of.ctx, betweenChanges)
		}
	}
	return nil
}

// changesAfter returns a source of events for the changes of the objects of a
// kind with some keys. Argument is the name of the argument with the keys. The
// events start after a cursor, or now if there is none.
func changesAfter[Event ~struct{ model.Changed }](
	ctx context.Context, r *Resolver, kind change.Kind, argument string, keys []string, after *string,
) (<-chan *Event, error) {
	filter := change.Filter{Kinds: []change.Kind{kind}, Keys: keys}
	var problems problem.Problems
	change.CheckKeys(&problems, argument, keys)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	from, err := r.positionIn(ctx, filter, after)
	if err != nil {
		return nil, err
	}
	of := streamOf(ctx)
	following := r.Store.Follow(filter, from)
	events := make(chan *Event)
	go func() {
		defer close(events)
		defer following.Stop()
		for changes := nextChanges(of, following); len(changes) > 0; changes = nextChanges(of, following) {
			for _, one := range changes {
				event := &Event{model.Changed{Cursor: r.Store.Cursor(one.Position()),
					Change: one, Kept: of.equal.keptOf(one.ID)}}
				select {
				case events <- event:
				case <-of.ctx.Done():
					return
				}
			}
		}
	}()
	return events, nil
}

// positionIn returns the position after which a stream begins: the cursor's, or
// the newest one if there is no cursor.
func (r *Resolver) positionIn(ctx context.Context, filter change.Filter, after *string) (change.Position, error) {
	if after == nil {
		return r.Store.Latest(ctx, filter)
	}
	return r.Store.PositionOf(*after)
}

// readsChanges reports whether an operation reads the feed of changes. Such an
// operation first calls Store.Settle, so that the feed shows earlier commits.
func readsChanges(operation *document.Operation) bool {
	if operation.Definition.Operation != ast.Query {
		return false
	}
	for _, field := range operation.Plan().Root.Fields {
		if field.Of == "Query" && field.AST.Name == "changes" {
			return true
		}
	}
	return false
}

// changes returns a page of the feed of changes.
func (r *Resolver) changes(ctx context.Context, filter change.Filter, first *int,
	after *string) (*model.ChangeConnection, error) {
	var problems problem.Problems
	request := page.Request{First: first, After: after}
	request.Check(&problems)
	filter.Check(&problems, "filter")
	var from change.Position
	if after != nil {
		position, err := r.Store.PositionOf(*after)
		wrong, ok := problem.Of(err)
		if !ok {
			return nil, err
		}
		from, problems = position, append(problems, wrong...)
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	list := func(ctx context.Context, request page.Request) (page.Page[*change.Change], error) {
		if request.Last != nil { // asks only whether rows come before the page
			before, err := r.Store.HasChanges(ctx, filter, from)
			return page.Page[*change.Change]{HasMore: before}, err
		}
		changes, more, err := r.Store.Changes(ctx, filter, from, request.Limit())
		of := page.Page[*change.Change]{Items: changes, HasMore: more}
		for _, c := range changes {
			of.Cursors = append(of.Cursors, r.Store.Cursor(c.Position()))
		}
		return of, err
	}
	connection, err := connect(ctx, request, list, nil)
	if err != nil {
		return nil, err
	}
	end := r.Store.Cursor(r.Store.After(from, connection.Page.Items, connection.Page.HasMore))
	return &model.ChangeConnection{Connection: connection, Cursor: end,
		Newest: func(ctx context.Context) (string, error) {
			latest, err := r.Store.Latest(ctx, filter)
			return r.Store.Cursor(latest), err
		}}, nil
}
