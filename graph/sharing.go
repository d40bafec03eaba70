package graph

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/internal/pause"
)

// Streams are equal if the same user, with the same project and rights,
// subscribes with the same document and variables. Only the cursor after which
// they begin may differ. Equal streams share the work for an event: the first
// stream that answers an event keeps the answer for the others. One source
// notifies all equal streams when a new answer is due.

// groupKey identifies a group of equal streams.
type groupKey struct {
	viewer    string
	plan      *document.Plan
	variables string
}

// keyOf returns the key of a subscription. The cursor is not part of the key,
// unless the document uses the cursor's variable a second time.
func keyOf(viewer access.Viewer, operation *document.Operation) (groupKey, bool) {
	plan := operation.Plan()
	variables := operation.Variables
	if after := plan.Root.Fields[0].AST.Arguments.ForName("after"); after != nil && after.Value.Kind == ast.Variable {
		name := after.Value.Raw
		if strings.Count(operation.Definition.Position.Src.Input, "$"+name) == 2 { // the declaration and the argument
			variables = map[string]any{}
			for key, value := range operation.Variables {
				if key != name {
					variables[key] = value
				}
			}
		}
	}
	text, err := json.Marshal(variables)
	roles := slices.Sorted(slices.Values(viewer.Roles))
	return groupKey{viewer: fmt.Sprintf("%q %q %q", viewer.UserID, viewer.ProjectID, roles), plan: plan,
		variables: string(text)}, err == nil
}

// equalStreams is a group of equal streams.
type equalStreams struct {
	of     *streamGroups
	key    groupKey
	viewer access.Viewer
	open   int // guarded by of.mu

	mu       sync.Mutex
	answered *answering            // nil until a stream needs it
	kept     map[int64]*model.Kept // answers to changes, by change id
}

// streamGroups are the groups of equal streams of an executor. The zero value
// is ready to use.
type streamGroups struct {
	mu     sync.Mutex
	groups map[groupKey]*equalStreams
}

// Bounds of the answers that are kept for equal streams.
const (
	maxKept      = 100       // changes of one group
	maxKeptBytes = 256 << 10 // bytes of one answer
	// keptFor is how long a kept answer counts as current.
	keptFor = time.Second
)

// join adds a stream to the group of its key, and returns the group. The key
// does not include the policy, so a viewer under another policy than the group
// of the key gets a separate group for one stream.
func (g *streamGroups) join(viewer access.Viewer, operation *document.Operation) *equalStreams {
	key, ok := keyOf(viewer, operation)
	g.mu.Lock()
	defer g.mu.Unlock()
	if group := g.groups[key]; ok && group != nil && group.viewer.Equal(viewer) {
		group.open++
		return group
	}
	group := &equalStreams{of: g, key: key, viewer: viewer, open: 1, kept: map[int64]*model.Kept{}}
	if g.groups == nil {
		g.groups = map[groupKey]*equalStreams{}
	}
	if ok && g.groups[key] == nil {
		g.groups[key] = group
	}
	return group
}

// leave removes a stream from its group. The last one to leave ends the source
// that the group shares.
func (e *equalStreams) leave() {
	e.of.mu.Lock()
	e.open--
	last := e.open == 0
	if last && e.of.groups[e.key] == e {
		delete(e.of.groups, e.key)
	}
	e.of.mu.Unlock()
	if !last {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.answered != nil {
		e.answered.cancel()
	}
}

// keptOf returns the place where equal streams share their answer to a change.
// It returns nil, and the stream does not share its answer, if the stream has
// no equal or the group already keeps the answers to maxKept changes.
func (e *equalStreams) keptOf(id int64) *model.Kept {
	e.of.mu.Lock()
	alone := e.open < 2
	e.of.mu.Unlock()
	if alone {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	kept := e.kept[id]
	if kept == nil && len(e.kept) < maxKept {
		kept = &model.Kept{}
		e.kept[id] = kept
		time.AfterFunc(keptFor, func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			delete(e.kept, id)
		})
	}
	return kept
}

// answering reports to equal streams when a new answer is due.
type answering struct {
	cancel context.CancelFunc
	source *stream

	mu     sync.Mutex
	number int           // of the newest event
	event  any           // the newest event, nil before the first
	next   chan struct{} // closed with the next event, or at the end
	ended  bool
}

// awaiting begins to wait for a new state. The function that it returns waits
// for the change and reports false if the stream ended.
type awaiting func() (changed func() bool)

// answering returns the shared source of events for equal streams. The first
// stream starts it. Any change after the call leads to an event.
func (e *equalStreams) answering(of *stream, begin func(*stream) (await awaiting, stop func(), err error),
	event func() any) (*answering, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := of.ctx.Err(); err != nil { // the stream may have left, and nothing would end the source
		return nil, err
	}
	if e.answered != nil && !e.answered.isOver() {
		return e.answered, nil
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(of.ctx))
	a := &answering{cancel: cancel, source: &stream{ctx: ctx, statements: of.statements}, next: make(chan struct{})}
	await, stop, err := begin(a.source)
	if err != nil {
		cancel()
		return nil, err
	}
	e.answered = a
	changed := await()
	go func() {
		defer stop()
		defer a.publish(nil)
		for changed() {
			changed = await()
			a.publish(event())
			if !pause.For(ctx, betweenAnswers) {
				return
			}
		}
	}()
	return a, nil
}

// publish sends the next event; nil ends the source.
func (a *answering) publish(event any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.number, a.event, a.ended = a.number+1, event, event == nil
	close(a.next)
	a.next = make(chan struct{})
}

func (a *answering) isOver() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ended
}

// newest returns the number of the newest event.
func (a *answering) newest() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.number
}

// after waits for an event with a larger number, and returns the newest event
// with its number. It returns nil if the stream or the source has ended.
func (a *answering) after(ctx context.Context, number int) (any, int) {
	for {
		a.mu.Lock()
		event, newest, next, ended := a.event, a.number, a.next, a.ended
		a.mu.Unlock()
		if ended || newest > number {
			return event, newest
		}
		select {
		case <-next:
		case <-ctx.Done():
			return nil, number
		}
	}
}

// shared returns the answer to an event, with its cursor if it has one. The
// first stream that answers the event makes the answer for all. Answers with
// errors or with more than maxKeptBytes are not shared.
func (e *Executor) shared(kept *model.Kept, write func() (answer *Answer, cursor string)) (*Answer, string) {
	if kept == nil {
		return write()
	}
	kept.Lock()
	if found, ok := kept.Answer.(*Answer); ok && time.Since(kept.At) < keptFor {
		defer kept.Unlock()
		return found, kept.Cursor
	}
	if kept.Failed {
		kept.Unlock()
		return write()
	}
	defer kept.Unlock()
	at := time.Now()
	answer, cursor := write()
	if answer.Errors != nil || answer.Taken.Bytes > maxKeptBytes {
		kept.Failed = true
		return answer, cursor
	}
	own := &Answer{Data: [][]byte{e.pieces.Whole(answer.Data)}, Taken: answer.Taken}
	kept.Answer, kept.Cursor, kept.At = own, cursor, at
	return answer, cursor
}
