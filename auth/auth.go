// Package auth turns the credentials of an HTTP request into a access.Viewer.
// It asks its sources (a file of tokens, an OpenID Connect issuer, an OpenStack
// identity service) in order, and knows nothing of what a viewer may do.
package auth

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/problem"
)

// maxTokenBytes bounds a token; longer ones are unknown without a look.
const maxTokenBytes = 16 << 10

// Source tells who a token belongs to. A token it does not know, or that has
// expired, is an error that wraps problem.ErrUnauthenticated; a source that
// cannot tell at the moment gives one that wraps problem.ErrUnavailable.
type Source func(ctx context.Context, token string) (access.Viewer, error)

// Authenticator asks several sources for the viewer behind a request.
type Authenticator struct {
	sources []Source
}

// New makes an authenticator that asks the sources in the order given.
func New(sources ...Source) *Authenticator { return &Authenticator{sources: sources} }

// Authenticate gives the viewer of a request with these headers: that of the
// first source that knows the token of `Authorization: Bearer T` or
// `X-Auth-Token: T`. It is an error that wraps problem.ErrUnauthenticated when
// there is no token, when there are two different ones, and when every source
// says so; one that wraps problem.ErrUnavailable when none knows the token but
// one of them could not tell.
func (a *Authenticator) Authenticate(ctx context.Context, header http.Header) (access.Viewer, error) {
	token, err := tokenOf(header)
	if err != nil {
		return access.Viewer{}, err
	}
	var unavailable error
	for _, source := range a.sources {
		viewer, err := source(ctx, token)
		switch {
		case err == nil:
			return viewer, nil
		case errors.Is(err, problem.ErrUnauthenticated):
		default:
			unavailable = err
		}
	}
	if unavailable != nil {
		return access.Viewer{}, problem.Refuse(problem.ErrUnavailable, "the token cannot be checked at the moment").Because(unavailable)
	}
	return access.Viewer{}, errUnknown()
}

func errUnknown() *problem.Refusal {
	return problem.Refuse(problem.ErrUnauthenticated, "the token is unknown or has expired")
}

// tokenOf is the one token of a request.
func tokenOf(header http.Header) (string, error) {
	var tokens []string
	for _, value := range header.Values("Authorization") {
		scheme, token, found := strings.Cut(strings.TrimSpace(value), " ")
		if !found || !strings.EqualFold(scheme, "Bearer") {
			return "", problem.Refuse(problem.ErrUnauthenticated, "the Authorization header is not of the form Bearer TOKEN")
		}
		tokens = append(tokens, strings.TrimSpace(token))
	}
	for _, value := range header.Values("X-Auth-Token") {
		tokens = append(tokens, strings.TrimSpace(value))
	}
	if len(tokens) == 0 {
		return "", problem.Refuse(problem.ErrUnauthenticated, "a token is needed: Authorization: Bearer TOKEN, or X-Auth-Token: TOKEN")
	}
	for _, token := range tokens {
		switch {
		case token != tokens[0]:
			return "", problem.Refuse(problem.ErrUnauthenticated, "the request holds two different tokens")
		case token == "" || len(token) > maxTokenBytes:
			return "", errUnknown()
		}
	}
	return tokens[0], nil
}
