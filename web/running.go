package web

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/graph/document"
)

// run runs an operation and writes its answer with its cost. It returns a
// refusal if the operation did not begin.
func (t *transport) run(ctx context.Context, w http.ResponseWriter, media string,
	operation *document.Operation, h *held) *refusal {
	answer, refused := t.answer(ctx, operation, h)
	if refused != nil {
		return refused
	}
	if answer.Position != "" {
		w.Header().Set(graph.PositionHeader, answer.Position)
	}
	write(w, media, http.StatusOK, answer, t.costOf(operation), sending{t.Limits.ClientBytes, t.sent(h)})
	return nil
}

// begin waits for the resources that an operation needs: room for an answer of
// this size in bytes, and a place among operations of its kind. A heavy
// mutation needs a place among searches and one among statements. An operation
// that took a turn to be read takes another to be answered from memory.
func (h *held) begin(ctx context.Context, operation *document.Operation, bytes int64) *refusal {
	var err error
	if bytes > smallAnswer {
		err = h.bytes.Take(ctx, answerBytes, bytes)
	}
	if err != nil {
		return refusedAtGate(err)
	}
	switch operation.Needs {
	case document.NeedsNothing:
		if h.turns {
			err = h.work.Take(ctx, readings, 1)
		}
	case document.NeedsLong:
		err = h.work.Take(ctx, searches, 1)
		if err == nil && operation.Definition.Operation == ast.Mutation {
			err = h.work.Take(ctx, statements, 1)
		}
	case document.NeedsDatabase:
		err = h.work.Take(ctx, statements, 1)
	}
	return refusedAtGate(err)
}

// room returns the maximum size of an answer in bytes according to the price of
// its operation. Prices are right within a factor of three.
func (t *transport) room(operation *document.Operation) int64 {
	bytes := 3 * operation.Price.Bytes
	if limit := int64(t.Limits.AnswerBytes); limit > 0 {
		return min(bytes, limit)
	}
	return bytes
}

// answer runs an operation. It returns a refusal if the operation did not
// begin.
func (t *transport) answer(ctx context.Context, operation *document.Operation, h *held) (*graph.Answer, *refusal) {
	if refused := h.begin(ctx, operation, t.room(operation)); refused != nil {
		return nil, refused
	}
	t.measured.operations[operation.Definition.Operation].Inc()
	t.measured.priced(operation.Price.Cost)
	run := t.work.begin()
	answer := t.Executor.Run(ctx, operation, t.answerBytes(ctx))
	took := run.end()
	if answer.Data == nil {
		return nil, refusedToRun(answer.Errors)
	}
	t.answered(ctx, operation, answer, h, took)
	return answer, nil
}

// answered records a finished answer, and charges its viewer for work that
// exceeded the price. Until that is paid, the viewer's next operations are
// refused, and the next events of its subscriptions wait. A small answer keeps
// its place until it is sent, which bounds the number of unsent small answers.
func (t *transport) answered(ctx context.Context, operation *document.Operation,
	answer *graph.Answer, h *held, took ran) {
	if t.SlowOperation > 0 && took.elapsed >= t.SlowOperation {
		t.logSlow(ctx, operation, answer.Taken, took.elapsed)
	}
	cost := answer.Taken.Cost
	if operation.Definition.Operation != ast.Mutation { // a mutation waits for locks and for the disk
		cost = max(cost, took.cost(answer.Taken.IsOutside, operation.Needs == document.NeedsLong))
	}
	h.payer.charge(int((cost-operation.Price.Cost)/pointCost), time.Now())
	h.work.Give(readings, searches, statements)
	if h.bytes.Uses(answerBytes) {
		h.bytes.Change(answerBytes, answer.Taken.Bytes)
		h.work.Give(operations)
	}
	t.count(ctx, answer.Errors)
}

// sent returns a function that releases the pieces of an answer as they are
// sent.
func (t *transport) sent(h *held) func(piece []byte, left int) {
	return func(piece []byte, left int) {
		t.Executor.Release(piece)
		h.bytes.Change(answerBytes, int64(left))
	}
}

// costOf returns the extensions of an answer: the cost of its operation.
func (t *transport) costOf(operation *document.Operation) string {
	return t.costIs + strconv.FormatInt(operation.Price.Cost, 10) + "}}"
}

// logSlow logs the price and the work of a slow operation, but not its text or
// its variables.
func (t *transport) logSlow(ctx context.Context, operation *document.Operation, taken graph.Taken, took time.Duration) {
	t.Log.LogAttrs(ctx, slog.LevelWarn, "slow operation",
		traced(ctx, []slog.Attr{slog.String("requestId", graph.RequestID(ctx)),
			slog.String("kind", string(operation.Definition.Operation)),
			slog.String("operation", clip(operation.Definition.Name, 100)),
			slog.Int64("milliseconds", took.Milliseconds()), slog.Int64("costPriced", operation.Price.Cost),
			slog.Int64("costFound", taken.Cost),
			slog.Int64("statements", taken.Statements),
			slog.Int64("rows", taken.Rows), slog.Int64("bytes", taken.Bytes),
			slog.Any("decisions", taken.Decisions)})...)
}
