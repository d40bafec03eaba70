package client

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/Khan/genqlient/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

// DefaultRetries is how often a query is sent again by default.
const DefaultRetries = 3

// The waits before a query is sent again: the first where the server says none,
// and the longest. A server that says a longer one is not asked again.
const (
	firstWait = 250 * time.Millisecond
	maxWait   = 10 * time.Second
)

// WithRetries sets how often a query is sent again that the server had no
// capacity for (RATE_LIMITED, UNAVAILABLE, or the status 429 or 503), after the
// time that the server says; 0 is never. A mutation is never sent again.
func WithRetries(n int) Option { return func(o *options) { o.retries = max(0, n) } }

// retryAfter holds what the header Retry-After of a response says.
type retryAfter struct{ wait string }

type retryAfterKey struct{}

// repeated calls send until it succeeds, fails for good, or was called often
// enough.
func (c *Client) repeated(ctx context.Context, req *graphql.Request, send func() error) error {
	for again := 0; ; again++ {
		err := send()
		if err == nil || again >= c.retries || !isQuery(req) {
			return err
		}
		wait, ok := waitOf(err, firstWait<<again)
		if !ok {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
	}
}

// waitOf returns when to try again what failed with an error: as the server says,
// or after the time that is given. It reports false for what fails again.
func waitOf(err error, otherwise time.Duration) (time.Duration, bool) {
	refused := new(Errors)
	if !errors.As(err, &refused) {
		return 0, false
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

// isQuery reports whether a request runs a query, which changes nothing.
func isQuery(req *graphql.Request) bool {
	document, err := parser.ParseQuery(&ast.Source{Input: req.Query})
	if err != nil {
		return false
	}
	operation := document.Operations.ForName(req.OpName)
	if req.OpName == "" && len(document.Operations) == 1 {
		operation = document.Operations[0]
	}
	return operation != nil && operation.Operation == ast.Query
}
