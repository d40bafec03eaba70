// Package auth turns the credentials of an HTTP request into a access.Viewer.
// It asks its sources (a token file, an OpenID Connect issuer, an OpenStack
// identity service) in order. What a viewer may do is decided elsewhere.
package auth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/problem"
)

// maxTokenBytes is the length of the longest token. Sources are not asked about
// longer ones, which are unknown.
const maxTokenBytes = 16 << 10

// Source returns the viewer that a token stands for. For a token that is
// unknown or has expired the error wraps problem.ErrUnauthenticated; while the
// source cannot check tokens it wraps problem.ErrUnavailable.
type Source func(ctx context.Context, token string) (access.Viewer, error)

// Authenticator asks several sources for the viewer behind a request.
type Authenticator struct {
	sources []Source
}

// New returns an authenticator that asks the sources in the order given.
func New(sources ...Source) *Authenticator { return &Authenticator{sources: sources} }

// Authenticate returns the viewer behind a request with these headers: that of
// the first source that knows the token of `Authorization: Bearer T` or
// `X-Auth-Token: T`. The error wraps problem.ErrUnauthenticated when there is
// no token, when there are two different ones, and when no source knows it; it
// wraps problem.ErrUnavailable when no source knows it but one of them could
// not check it.
func (a *Authenticator) Authenticate(ctx context.Context, header http.Header) (access.Viewer, error) {
	token, err := tokenOf(header)
	if err != nil {
		return access.Viewer{}, err
	}
	var failure error
	for _, source := range a.sources {
		viewer, err := source(ctx, token)
		if err == nil {
			return viewer, nil
		}
		if !errors.Is(err, problem.ErrUnauthenticated) {
			failure = err
		}
	}
	if failure != nil {
		return access.Viewer{}, unavailable(failure)
	}
	return access.Viewer{}, errUnknown()
}

func errUnknown() *problem.Refusal {
	return problem.Refuse(problem.ErrUnauthenticated, "the token is unknown or has expired")
}

func unavailable(cause error) error {
	return problem.Refuse(problem.ErrUnavailable, "the token cannot be checked at the moment").Because(cause)
}

// tokenOf returns the one token of a request.
func tokenOf(header http.Header) (string, error) {
	var tokens []string
	for _, value := range header.Values("Authorization") {
		scheme, token, ok := strings.Cut(strings.TrimSpace(value), " ")
		if !ok || !strings.EqualFold(scheme, "Bearer") {
			return "", problem.Refuse(problem.ErrUnauthenticated, "the Authorization header is not of the form Bearer TOKEN")
		}
		tokens = append(tokens, strings.TrimSpace(token))
	}
	for _, value := range header.Values("X-Auth-Token") {
		tokens = append(tokens, strings.TrimSpace(value))
	}
	if len(tokens) == 0 {
		return "", problem.Refuse(problem.ErrUnauthenticated, "the request has no token: send Authorization: Bearer TOKEN, or X-Auth-Token: TOKEN")
	}
	for _, token := range tokens {
		switch {
		case token != tokens[0]:
			return "", problem.Refuse(problem.ErrUnauthenticated, "the request has two different tokens")
		case token == "" || len(token) > maxTokenBytes:
			return "", errUnknown()
		}
	}
	return tokens[0], nil
}

// newClient returns a client for the services behind sources.
func newClient() *http.Client { return &http.Client{Timeout: 5 * time.Second} }

// isHTTP reports whether a text is the URL of an HTTP server.
func isHTTP(text string) bool {
	address, err := url.Parse(text)
	return err == nil && address.Host != "" && (address.Scheme == "https" || address.Scheme == "http")
}

// connection is what it takes to ask another service: opened by the first
// caller that needs it, and kept. For retryAfter a failure is returned to all
// callers.
type connection[T any] struct {
	open       func(ctx context.Context) (T, error)
	retryAfter time.Duration
	now        func() time.Time

	mu     sync.Mutex
	opened *T
	tried  time.Time
	failed error
}

func (c *connection[T]) get(ctx context.Context) (value T, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opened != nil {
		return *c.opened, nil
	}
	now := c.now()
	if c.failed != nil && now.Sub(c.tried) < c.retryAfter {
		return value, c.failed
	}
	c.tried = now
	value, c.failed = c.open(context.WithoutCancel(ctx)) // others wait for it, too
	if c.failed == nil {
		c.opened = &value
	}
	return value, c.failed
}
