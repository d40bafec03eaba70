// Package auth turns the credentials of an HTTP request into an access.Viewer.
// It asks its sources (a token file, an OpenID Connect issuer, an OpenStack
// identity service) in order. It does not check permissions.
package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// maxTokenBytes is the maximum length of a token. Longer tokens, and tokens with
// control characters, are unknown; no source is asked about them.
const maxTokenBytes = 16 << 10

// Source returns the viewer of a token. For a token that is unknown or has
// expired the error wraps problem.ErrUnauthenticated. While the source cannot
// check tokens the error wraps problem.ErrUnavailable.
type Source func(ctx context.Context, token string) (access.Viewer, error)

// Authenticator asks several sources for the viewer of a request.
type Authenticator struct {
	sources []Source
}

// New returns an authenticator that asks the sources in the order given.
func New(sources ...Source) *Authenticator { return &Authenticator{sources: sources} }

// Authenticate returns the viewer of a request with these headers. It asks the
// sources in order for the token of `Authorization: Bearer T` or `X-Auth-Token:
// T`. The error wraps problem.ErrUnauthenticated if a header is malformed, if
// there is no token, if there are two different ones, or if the token is
// unknown to every source. It wraps problem.ErrUnavailable if no source
// returned a viewer and one of them could not check the token.
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

// tokenOf returns the token of a request. It refuses a malformed header, no
// token, different tokens, and one that is too long or has control characters.
func tokenOf(header http.Header) (string, error) {
	var tokens []string
	for _, value := range header.Values("Authorization") {
		scheme, token, ok := strings.Cut(strings.TrimSpace(value), " ")
		if !ok || !strings.EqualFold(scheme, "Bearer") {
			return "", problem.Refuse(problem.ErrUnauthenticated,
				"the Authorization header is not of the form Bearer TOKEN")
		}
		tokens = append(tokens, strings.TrimSpace(token))
	}
	for _, value := range header.Values("X-Auth-Token") {
		tokens = append(tokens, strings.TrimSpace(value))
	}
	if len(tokens) == 0 {
		return "", problem.Refuse(problem.ErrUnauthenticated,
			"the request has no token: send Authorization: Bearer TOKEN, or X-Auth-Token: TOKEN")
	}
	for _, token := range tokens {
		switch {
		case token != tokens[0]:
			return "", problem.Refuse(problem.ErrUnauthenticated, "the request has two different tokens")
		case token == "" || len(token) > maxTokenBytes || strings.ContainsFunc(token, unicode.IsControl):
			return "", errUnknown()
		}
	}
	return tokens[0], nil
}

// maxAnswerBytes bounds an answer of a service that a source asks.
const maxAnswerBytes = 4 << 20

// newClient returns an HTTP client for sources, with a time limit of 5 seconds.
func newClient() *http.Client {
	return &http.Client{Timeout: 5 * time.Second, Transport: bounded{http.DefaultTransport}}
}

// bounded is a transport that ends long answers after maxAnswerBytes.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, maxAnswerBytes), response.Body}
	}
	return response, err
}

// isHTTP reports whether a string is the URL of an HTTP server.
func isHTTP(text string) bool {
	address, err := url.Parse(text)
	return err == nil && address.Host != "" && (address.Scheme == "https" || address.Scheme == "http")
}

// connection is a connection to another service. The first caller that needs it
// opens it, and it stays open until a caller forgets it. If opening fails, all
// callers get the error for the time of retryAfter.
type connection[T comparable] struct {
	open       func(ctx context.Context) (T, error)
	retryAfter time.Duration
	now        func() time.Time

	mu     sync.Mutex
	opened *T
	tried  time.Time // the end of the last attempt
	failed error
}

func (c *connection[T]) get(ctx context.Context) (value T, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opened != nil {
		return *c.opened, nil
	}
	if c.failed != nil && c.now().Sub(c.tried) < c.retryAfter {
		return value, c.failed
	}
	value, c.failed = c.open(context.WithoutCancel(ctx)) // others wait for it, too
	c.tried = c.now()
	if c.failed == nil {
		c.opened = &value
	}
	return value, c.failed
}

// forget lets the next caller open the connection again, if value is still the
// open one and was opened at least retryAfter ago.
func (c *connection[T]) forget(value T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opened != nil && *c.opened == value && c.now().Sub(c.tried) >= c.retryAfter {
		c.opened = nil
	}
}

// knownRoles returns the sorted roles for the names from an identity service.
// It compares names exactly: with the mapping or, without one, with the roles
// themselves. It drops other names.
func knownRoles(names []string, mapping map[string]string) []string {
	var roles []string
	for _, name := range names {
		role := name
		if len(mapping) > 0 {
			role = mapping[name]
		}
		if checkRole(role) == nil && !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	return roles
}

// checkRole returns an error for a string that is not a role.
func checkRole(name string) error {
	switch name {
	case access.RoleAdmin, access.RoleMember, access.RoleReader, access.RoleService:
		return nil
	}
	return fmt.Errorf("unknown role %q: the roles are admin, member, reader and service", name)
}

// checkMapping returns an error if a mapping leads to something other than a
// role.
func checkMapping(mapping map[string]string) error {
	for name, role := range mapping {
		if err := checkRole(role); err != nil {
			return fmt.Errorf("roles: %s: %w", name, err)
		}
	}
	return nil
}

// checkID returns an error for a string that cannot be the id of a user or a
// project in the database.
func checkID(id string) error {
	var problems problem.Problems
	text.Check(&problems, "id", id, 0, 255)
	if len(problems) > 0 {
		return errors.New(problems[0].Message)
	}
	return nil
}

// viewerOf returns a viewer with this user, project and roles. The token is
// unknown if an id is invalid, if the user is empty, or if the project is empty
// and no role is for the whole cloud.
func viewerOf(user, project string, roles []string) (access.Viewer, error) {
	viewer := access.Viewer{UserID: user, ProjectID: project, Roles: roles}
	if err := errors.Join(checkID(user), checkID(project)); err != nil {
		return access.Viewer{}, errUnknown().Because(err)
	}
	if user == "" || project == "" && !viewer.IsAdmin() && !viewer.IsService() {
		return access.Viewer{}, errUnknown()
	}
	return viewer, nil
}

// claimAt returns the claim whose name is the path, such as `a.b`. If there is
// none, it follows the parts between dots into nested claims, and returns nil
// if they lead to no claim.
func claimAt(claims map[string]any, path string) any {
	if value, ok := claims[path]; ok {
		return value
	}
	first, rest, _ := strings.Cut(path, ".")
	if inner, ok := claims[first].(map[string]any); ok && rest != "" {
		return claimAt(inner, rest)
	}
	return nil
}

// textsOf returns the strings of a claim that is a list, or the words of a
// claim that is a string. It returns nil for any other claim.
func textsOf(claim any) []string {
	switch claim := claim.(type) {
	case string:
		return strings.Fields(claim)
	case []any:
		var texts []string
		for _, member := range claim {
			if name, ok := member.(string); ok {
				texts = append(texts, name)
			}
		}
		return texts
	}
	return nil
}
