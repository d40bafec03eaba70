package client

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/Khan/genqlient/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/cadastre-dev/cadastre/internal/pause"
)

// DefaultRetries is how often a request is sent again by default.
const DefaultRetries = 3

// The waits before a request is sent again: the first where the server says none,
// and the longest. A server that says a longer one is not asked again.
const (
	firstWait = 250 * time.Millisecond
	maxWait   = 10 * time.Second
)

// WithRetries sets how often a request is sent again that the server had no
// capacity for (RATE_LIMITED, UNAVAILABLE, or the status 429 or 503), after the
// time that the server says; 0 is never. A mutation has an idempotency key, by
// which it happens once however often it is sent, so it is sent again also where
// no answer came, or the server does not know its outcome.
func WithRetries(n int) Option { return func(o *options) { o.retries = max(0, n) } }

// retryAfter holds what the header Retry-After of a response says.
type retryAfter struct{ wait string }

type retryAfterKey struct{}

// repeated calls send until it succeeds, fails for good, or was called often
// enough.
func (c *Client) repeated(ctx context.Context, req *graphql.Request, send func(context.Context) error) error {
	kind := kindOf(req)
	if kind == ast.Mutation {
		ctx = context.WithValue(ctx, idempotencyKey{}, rand.Text())
	}
	for again := 0; ; again++ {
		err := send(ctx)
		if err == nil || again >= c.retries || kind == "" || ctx.Err() != nil {
			return err
		}
		wait, ok := waitOf(err, firstWait<<again, kind == ast.Mutation)
		if !ok {
			return err
		}
		if !pause.For(ctx, wait) {
			return err
		}
	}
}

// waitOf returns when to try again what failed with an error: as the server says,
// or after the time that is given. It reports false for what fails again, or may
// happen again: once says that it does not.
func waitOf(err error, otherwise time.Duration, once bool) (time.Duration, bool) {
	refused := new(Errors)
	if !errors.As(err, &refused) {
		return otherwise, once && isCut(err)
	}
	if once && slices.ContainsFunc(refused.List, isUnsettled) {
		return otherwise, true // what was refused beside it is tried again, too
	}
	wait := otherwise
	for _, one := range refused.List {
		busy := one.Code == RateLimited || one.Code == Unavailable ||
			one.Code == "" && (refused.Status == http.StatusTooManyRequests || refused.Status == http.StatusServiceUnavailable)
		if !busy {
			return 0, false
		}
		if one.RetryAfter > 0 {
			wait = max(wait, one.RetryAfter)
		}
	}
	return wait, wait <= maxWait
}

// isUnsettled reports whether an error of a mutation does not say what becomes of
// it: its outcome is not known, or the same request is under way.
func isUnsettled(one *Error) bool {
	return one.Code == OutcomeUnknown || one.Code == ConcurrentUpdate && one.Field == idempotencyHeader
}

// isCut reports whether a connection ended before the answer did.
func isCut(err error) bool {
	failed := new(net.OpError)
	return errors.As(err, &failed) && failed.Op != "dial" || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// idempotencyHeader is the header by which a server makes a mutation once.
const idempotencyHeader = "Idempotency-Key"

type idempotencyKey struct{}

// kindOf returns what kind of operation a request runs; empty for none that can be
// read.
func kindOf(req *graphql.Request) ast.Operation {
	document, err := parser.ParseQuery(&ast.Source{Input: req.Query})
	if err != nil {
		return ""
	}
	operation := document.Operations.ForName(req.OpName)
	if req.OpName == "" && len(document.Operations) == 1 {
		operation = document.Operations[0]
	}
	if operation == nil {
		return ""
	}
	return operation.Operation
}
