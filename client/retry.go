package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"sync/atomic"
	"time"

	"github.com/Khan/genqlient/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/cadastre-dev/cadastre/internal/pause"
)

// DefaultRetries is the default number of retries of a request.
const DefaultRetries = 3

// The waits before a retry: the first if the server gives no time, which doubles
// with each retry, and the maximum. If the server gives a longer time, the client does not retry.
const (
	firstWait = 250 * time.Millisecond
	maxWait   = 10 * time.Second
)

// WithRetries sets the number of retries when the server has no capacity for a
// request (RATE_LIMITED, UNAVAILABLE, or the status 429 or 503); 0 is none. The
// client waits for the time that the server gives. A mutation has an
// idempotency key, so it happens once even if it is sent several times. So the
// client also repeats a mutation without an answer, which can be the status 502
// or 504 of a proxy, or with an unknown outcome.
func WithRetries(n int) Option { return func(o *options) { o.retries = max(0, n) } }

// retryAfter holds the value of the header Retry-After of a response.
type retryAfter struct{ wait string }

type retryAfterKey struct{}

// repeated calls send until it succeeds, fails permanently, or all retries are
// used.
func (c *Client) repeated(ctx context.Context, req *graphql.Request, send func(context.Context) error) error {
	kind := kindOf(req)
	if kind == ast.Mutation {
		ctx = context.WithValue(ctx, idempotencyKey{}, rand.Text())
	}
	var open error // of the last attempt that can have made the change
	for again := 0; ; again++ {
		err := traced(ctx, send)
		if err == nil || kind == "" || ctx.Err() != nil {
			return err
		}
		wait, ok := waitOf(err, min(firstWait<<min(again, 10), maxWait), kind == ast.Mutation)
		if kind == ast.Mutation && isOpen(err) {
			open = err
		} else if open != nil && changedNothing(err) {
			err, ok = fmt.Errorf("%w; sent again: %v", open, err), ok || isOfDial(err)
		}
		if !ok || again >= c.retries || !pause.For(ctx, wait) {
			return err
		}
	}
}

// traced calls send. net/http sends a request with a key again when a kept
// connection breaks. If it then cannot connect, traced returns a cut connection
// as the error, since the first request may have made the change.
func traced(ctx context.Context, send func(context.Context) error) error {
	var wrote atomic.Bool
	err := send(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { wrote.Store(true) }}))
	if isOfDial(err) && wrote.Load() {
		err = fmt.Errorf("%w; sent again: %v", io.ErrUnexpectedEOF, err)
	}
	return err
}

// waitOf returns the wait before the next attempt after an error: the longer of
// otherwise and the server's time. It returns false if a retry would fail
// again, could repeat the operation, or would have to wait longer than maxWait.
// once means that the operation has an idempotency key.
func waitOf(err error, otherwise time.Duration, once bool) (time.Duration, bool) {
	refused := new(Errors)
	if once && isOpen(err) {
		return otherwise, true // this also repeats the parts that were refused
	}
	if !errors.As(err, &refused) {
		return otherwise, false
	}
	wait := otherwise
	for _, one := range refused.List {
		busy := one.Code == RateLimited || one.Code == Unavailable ||
			one.Code == "" &&
				(refused.Status == http.StatusTooManyRequests || refused.Status == http.StatusServiceUnavailable)
		if !busy {
			return 0, false
		}
		if one.RetryAfter > 0 {
			wait = max(wait, one.RetryAfter)
		}
	}
	return wait, wait <= maxWait
}

// isOpen reports whether the outcome of a mutation is unknown after an error.
func isOpen(err error) bool {
	refused := new(Errors)
	if !errors.As(err, &refused) {
		return isCut(err)
	}
	return isOfGateway(refused) || slices.ContainsFunc(refused.List, isUnsettled)
}

// changedNothing reports whether the error of an attempt means that this attempt
// changed nothing. An earlier attempt can have made the change.
func changedNothing(err error) bool {
	refused := new(Errors)
	if !errors.As(err, &refused) {
		return isOfDial(err)
	}
	return slices.ContainsFunc(refused.List, func(one *Error) bool {
		return one.Path == "" || one.Code == RateLimited || one.Code == Unavailable || one.Code == Timeout
	})
}

// isUnsettled reports whether an error of a mutation leaves its outcome open:
// the outcome is unknown, or the same request is in progress.
func isUnsettled(one *Error) bool {
	return one.Code == OutcomeUnknown || one.Code == ConcurrentUpdate && one.Field == idempotencyHeader
}

// isOfGateway reports whether a proxy got no answer from the server.
func isOfGateway(refused *Errors) bool {
	return refused.List[0].Code == "" &&
		(refused.Status == http.StatusBadGateway || refused.Status == http.StatusGatewayTimeout)
}

// isCut reports whether a connection ended before the end of the answer.
func isCut(err error) bool {
	network, header := new(net.OpError), textproto.ProtocolError("")
	return errors.As(err, &network) && !isOfDial(err) || errors.As(err, &header) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// isOfDial reports whether no connection could be opened.
func isOfDial(err error) bool {
	failed := new(net.OpError)
	return errors.As(err, &failed) && failed.Op == "dial"
}

// idempotencyHeader is the header with the idempotency key.
const idempotencyHeader = "Idempotency-Key"

type idempotencyKey struct{}

// kindOf returns the kind of operation that a request runs; empty if the
// document cannot be parsed or does not have the operation.
func kindOf(req *graphql.Request) ast.Operation {
	document, err := parser.ParseQuery(&ast.Source{Input: req.Query})
	if err != nil {
		return ""
	}
	operation := document.Operations.ForName(req.OpName)
	if operation == nil {
		return ""
	}
	return operation.Operation
}
