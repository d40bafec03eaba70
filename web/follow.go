package web

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/internal/pause"
)

// receiver takes the answers to one operation of a stream, one after the other.
// Its methods return an error when the client takes no more.
type receiver interface {
	// next sends an answer with its extensions. It calls sent with each piece
	// that it has copied, even before the client gets the piece.
	next(answer *graph.Answer, extensions string, sent func(piece []byte, left int)) error
	// refused sends the reason why the operation did not begin.
	refused(errs gqlerror.List) error
	// complete tells the client that no answer follows.
	complete() error
}

// follow begins a subscription and sends the answers to its events to the
// receiver, until the subscription, the context or the receiver ends.
func (s *session) follow(ctx context.Context, of caller, operation *document.Operation, to receiver) error {
	leave, refused := s.streams.subscriptions.enter(principal(s.viewer))
	if refused != nil {
		return s.refuseOn(ctx, to, refused)
	}
	defer leave()
	s.measured.operations[operation.Definition.Operation].Inc()
	ctx = access.WithViewer(ctx, s.viewer)
	subscription, errs := s.subscribe(ctx, of, operation)
	if subscription == nil {
		s.count(ctx, errs)
		return to.refused(errs)
	}
	defer subscription.End()
	for {
		event, ok := subscription.Next(ctx)
		if !ok {
			break
		}
		if err := s.send(ctx, of, operation, subscription, event, to); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errs := subscription.Err(ctx); errs != nil {
		s.count(ctx, errs)
		if err := to.next(&graph.Answer{Errors: errs, Data: [][]byte{[]byte("null")}},
			s.costOf(operation), func([]byte, int) {}); err != nil {
			return err
		}
	}
	return to.complete()
}

// refuseOn counts the errors of a refusal and sends them.
func (s *session) refuseOn(ctx context.Context, to receiver, refused *refusal) error {
	errs := refused.list(ctx)
	s.count(ctx, errs)
	return to.refused(errs)
}

// subscribe begins a subscription, which lasts as long as the context. It uses
// the gates only while it begins.
func (s *session) subscribe(ctx context.Context, of caller,
	operation *document.Operation) (*graph.Subscription, gqlerror.List) {
	h, refused := s.gates.enter(ctx, of)
	defer h.end()
	if refused == nil {
		refused = h.begin(ctx, operation, 0)
	}
	if refused != nil {
		return nil, refused.list(ctx)
	}
	begin, cancel := s.within(ctx)
	defer cancel()
	return s.Executor.Subscribe(ctx, begin, operation)
}

// send runs an event's operation once the viewer has the points and the gates
// admit it, and sends the answer unless the client has it. See maxTries.
func (s *session) send(ctx context.Context, of caller, operation *document.Operation,
	subscription *graph.Subscription, event any, to receiver) error {
	for again := range maxTries {
		if !s.judge(ctx) || !of.payer.wait(ctx, 1+pointsOf(s.viewer, operation)) {
			return ctx.Err()
		}
		h := s.runSoon(ctx, of, operation)
		if h == nil {
			return ctx.Err()
		}
		answer := s.eventAnswer(ctx, operation, subscription, event, h)
		if answer != nil && again < maxTries-1 && ctx.Err() == nil && answer.FailsForNow() {
			s.Executor.Release(answer.Data...)
			h.end()
			pause.For(ctx, time.Second<<min(again, 3))
			continue
		}
		var err error
		if answer != nil && ctx.Err() == nil {
			s.measured.events.Inc()
			err = to.next(answer, s.costOf(operation), s.sent(h))
		}
		h.end()
		return err
	}
	return nil
}

// maxTries bounds the attempts to answer an event while the database is
// unreachable or too slow: about a minute. After that, send sends the answer
// with its error.
const maxTries = 10

// runSoon waits, without a time limit, for the resources that an operation
// needs to run. It returns nil if the context ends first.
func (s *session) runSoon(ctx context.Context, of caller, operation *document.Operation) *held {
	for ctx.Err() == nil {
		h, refused := s.gates.enter(ctx, of)
		if refused == nil {
			refused = h.begin(ctx, operation, s.room(operation))
		}
		if refused == nil {
			return h
		}
		h.end()
		pause.For(ctx, time.Second)
	}
	return nil
}

// eventAnswer returns the answer to an event, or nil if the client already has
// that answer.
func (s *session) eventAnswer(ctx context.Context, operation *document.Operation,
	subscription *graph.Subscription, event any, h *held) *graph.Answer {
	s.measured.priced(operation.Price.Cost)
	ctx, cancel := s.within(ctx)
	defer cancel()
	run := s.work.begin()
	answer := subscription.Answer(ctx, event, s.Limits.AnswerBytes)
	if took := run.end(); answer != nil {
		s.answered(ctx, operation, answer, h, took)
	}
	return answer
}

// runOne runs a query or a mutation and sends its answer or its refusal.
func (s *session) runOne(ctx context.Context, operation *document.Operation,
	header http.Header, h *held, to receiver) error {
	ctx = access.WithViewer(ctx, s.viewer)
	running, cancel := s.within(ctx)
	defer cancel()
	running, refused := once(running, header, operation)
	if refused != nil {
		return s.refuseOn(ctx, to, refused)
	}
	answer, refused := s.answer(running, operation, h)
	if refused != nil {
		return s.refuseOn(ctx, to, refused)
	}
	if err := to.next(answer, s.costOf(operation), s.sent(h)); err != nil {
		return err
	}
	return to.complete()
}

// latest returns the deadline for a client to take size bytes.
func (s *session) latest(size int) time.Time {
	latest := time.Now().Add(slowClientFor)
	if rate := s.Limits.ClientBytes; rate > 0 {
		latest = latest.Add(time.Duration(size) * time.Second / time.Duration(rate))
	}
	return latest
}

// whole returns one byte slice with before, the answer and its extensions, and
// after. It calls sent with each piece that it has copied.
func whole(before string, answer *graph.Answer, extensions, after string, sent func([]byte, int)) []byte {
	out := bytes.NewBuffer(make([]byte, 0, len(before)+int(answer.Taken.Bytes)+len(extensions)+256))
	out.WriteString(before)
	end := around(out, answer, extensions)
	for _, piece := range answer.Data {
		out.Write(piece)
		sent(piece, 0)
	}
	out.WriteString(end)
	out.WriteString(after)
	return out.Bytes()
}
