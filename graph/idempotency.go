package graph

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
)

// IdempotencyKeyHeader is the request header with the idempotency key.
const IdempotencyKeyHeader = store.IdempotencyKeyHeader

type idempotencyKey struct{}

// WithIdempotencyKey returns a context in which a mutation runs once per viewer
// and key.
func WithIdempotencyKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, idempotencyKey{}, key)
}

// makeOnce returns the context of an operation. For a mutation with an
// idempotency key, it refuses a key that was used for a different request or
// that a running request uses. The caller must call done when the request ends.
func (e *Executor) makeOnce(ctx context.Context,
	operation *document.Operation) (once context.Context, done func(), err error) {
	key, ok := ctx.Value(idempotencyKey{}).(string)
	if !ok || operation.Definition.Operation != ast.Mutation {
		return ctx, func() {}, nil
	}
	fingerprint, err := fingerprintOf(operation)
	if err != nil {
		return nil, nil, err
	}
	return e.store.MakeOnce(ctx, key, fingerprint)
}

// fingerprintOf returns a hash of the request: the document, the operation
// name, and the variables in any order.
func fingerprintOf(operation *document.Operation) (string, error) {
	variables := operation.Asked.Variables
	if len(variables) == 0 {
		variables = nil
	}
	asked, err := json.Marshal([]any{operation.Asked.Text, operation.Definition.Name, variables})
	digest := sha256.Sum256(asked)
	return hex.EncodeToString(digest[:]), err
}

// reconsidered returns the errors of a mutation with an idempotency key. If the
// same request has meanwhile committed a field on another server, the refusal
// of that field here was caused by that very change. The client then gets
// CONCURRENT_UPDATE with a retry time.
func (e *Executor) reconsidered(ctx context.Context, list gqlerror.List) gqlerror.List {
	for i, err := range list {
		if len(err.Path) != 1 || !errors.Is(err, problem.ErrInvalidInput) && !refusesForGood(err) {
			continue
		}
		name, _ := err.Path[0].(ast.PathName)
		if done, failed := e.store.WasDoneMeanwhile(store.AtField(ctx, string(name))); failed == nil && done {
			list[i] = gqlerror.WrapPath(err.Path, problem.Refuse(problem.ErrConcurrentUpdate,
				"%s: the request was still running; send it again with the same key", IdempotencyKeyHeader).
				On(IdempotencyKeyHeader).After(askAgain))
			list[i].Locations = err.Locations
		}
	}
	return list
}

// askAgain is the delay after which the client should retry a request that was
// under way.
const askAgain = time.Second

// refusesForGood reports whether an error refuses the mutation itself. Errors
// from the state of the server or the database do not.
func refusesForGood(err error) bool {
	for _, kind := range []error{problem.ErrUnavailable, problem.ErrTimeout,
		problem.ErrOutcomeUnknown, problem.ErrRateLimited} {
		if errors.Is(err, kind) {
			return false
		}
	}
	_, isRefusal := errors.AsType[*problem.Refusal](err)
	return isRefusal
}

// madeChanges has the response names of the fields of a mutation that have
// committed a change.
type madeChanges struct {
	field  string // the field that is being written
	fields map[string]bool
}

// note records the current field if its reading has committed a change.
func (m *madeChanges) note(reading *store.Reading) {
	if m.field == "" || !reading.HasCommitted() {
		return
	}
	if m.fields == nil {
		m.fields = map[string]bool{}
	}
	m.fields[m.field] = true
}

// told returns the errors of a mutation. If a committed field failed with
// UNAVAILABLE, TIMEOUT or QUERY_TOO_COMPLEX, its error says that the change was
// made. The first two codes become OUTCOME_UNKNOWN, because a client that got
// them would make the change again.
func (m *madeChanges) told(list gqlerror.List) gqlerror.List {
	for i, err := range list {
		if len(err.Path) == 0 {
			continue
		}
		name, _ := err.Path[0].(ast.PathName)
		refusal, ok := errors.AsType[*problem.Refusal](store.Refused(err.Err))
		if !m.fields[string(name)] || !ok {
			continue
		}
		kind := refusal.Kind
		switch {
		case errors.Is(kind, problem.ErrUnavailable) || errors.Is(kind, problem.ErrTimeout):
			kind = problem.ErrOutcomeUnknown
		case !errors.Is(kind, problem.ErrTooComplex):
			continue
		}
		told := gqlerror.WrapPath(err.Path,
			problem.Refuse(kind, "the change was made, but its result cannot be read: %s",
				refusal.Message).Because(refusal.Cause()))
		told.Locations = err.Locations
		list[i] = told
	}
	return list
}
