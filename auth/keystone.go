package auth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"golang.org/x/sync/singleflight"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/lru"
	"github.com/cadastre-dev/cadastre/problem"
)

// How long answers of the identity service are cached, and how many.
const (
	maxTokenTTL = 60 * time.Second
	failureTTL  = 5 * time.Second // the token is unknown, or the service cannot be reached

	maxCachedTokens = 10_000
)

// KeystoneOptions name the identity service of an OpenStack cloud and the
// account of this server. The account needs the right to validate tokens, which
// the roles `service` and `admin` have.
type KeystoneOptions struct {
	// URL is the address of the identity API, version 3: https://keystone:5000/v3.
	// Required.
	URL string
	// User, UserDomain, Password, Project and ProjectDomain are the account;
	// empty domains are `Default`.
	User, UserDomain, Password, Project, ProjectDomain string
	// CredentialID and CredentialSecret are an application credential. They
	// replace the account.
	CredentialID, CredentialSecret string
	// Roles maps the names of the cloud's roles to admin, member, reader and
	// service. If it is empty, the names are used unchanged. Other names are
	// ignored.
	Roles map[string]string
	// CacheTTL is how long the answer about a token is cached, but never past
	// the token's expiry. It is 60 s at most, and 60 s if 0. A revoked token
	// still works for this time.
	CacheTTL time.Duration
}

// identityService asks an OpenStack identity service.
type identityService struct {
	options KeystoneOptions
	now     func() time.Time
	client  connection[*gophercloud.ServiceClient] // with this server's own token
	asking  singleflight.Group
	// cache holds the latest answer about each token. Each answer has its own
	// expiry, compared with the clock of this source. So a plain cache is
	// enough; caches with expiry have their own clocks and goroutines.
	cache *lru.Cache[*atomic.Pointer[tokenAnswer]]
}

// tokenAnswer is the identity service's answer about a token, with its expiry
// in the cache.
type tokenAnswer struct {
	viewer  access.Viewer
	err     error
	expires time.Time
}

// Keystone returns a source that asks an OpenStack identity service for the
// viewer of a token. It caches an answer for at most a minute, and never past
// the token's expiry. It caches for five seconds that a token is unknown or
// that the service cannot be reached. A token without a project is accepted
// only with a role for the whole cloud.
func Keystone(options KeystoneOptions, now func() time.Time) (Source, error) {
	if !isHTTP(options.URL) {
		return nil, fmt.Errorf("the address of the identity service, %q, is not a URL", options.URL)
	}
	byPassword := options.User != "" && options.Password != "" && options.Project != ""
	byCredential := options.CredentialID != "" && options.CredentialSecret != ""
	if byPassword == byCredential {
		return nil,
			errors.New("the identity service needs one account: either a user with password and project, or an application credential with its secret")
	}
	if err := checkMapping(options.Roles); err != nil {
		return nil, err
	}
	options.URL = strings.TrimRight(options.URL, "/") + "/"
	options.UserDomain = cmp.Or(options.UserDomain, "Default")
	options.ProjectDomain = cmp.Or(options.ProjectDomain, "Default")
	if options.CacheTTL <= 0 || options.CacheTTL > maxTokenTTL {
		options.CacheTTL = maxTokenTTL
	}
	s := &identityService{options: options, now: now, cache: lru.New[*atomic.Pointer[tokenAnswer]](maxCachedTokens)}
	s.client.open, s.client.retryAfter, s.client.now = s.signIn, failureTTL, now
	return s.authenticate, nil
}

func (s *identityService) authenticate(ctx context.Context, token string) (access.Viewer, error) {
	sum := sha256.Sum256([]byte(token)) // the token itself is not stored
	hash := string(sum[:])
	cached := s.cache.GetOrCreate(hash, 1, func() *atomic.Pointer[tokenAnswer] {
		return &atomic.Pointer[tokenAnswer]{}
	})
	fresh := func() *tokenAnswer {
		if answer := cached.Load(); answer != nil && s.now().Before(answer.expires) {
			return answer
		}
		return nil
	}
	if answer := fresh(); answer != nil {
		return answer.viewer, answer.err
	}
	// One caller asks for all that wait. So the end of its request must not
	// cancel the question. A question that has just ended may have an answer.
	asked := s.asking.DoChan(hash, func() (any, error) {
		if answer := fresh(); answer != nil {
			return *answer, nil
		}
		answer := s.ask(context.WithoutCancel(ctx), token, s.now())
		cached.Store(&answer)
		return answer, nil
	})
	select {
	case result := <-asked:
		answer := result.Val.(tokenAnswer)
		return answer.viewer, answer.err
	case <-ctx.Done():
		return access.Viewer{}, unavailable(ctx.Err())
	}
}

// ask returns the identity service's answer about a token, with its expiry.
func (s *identityService) ask(ctx context.Context, token string, now time.Time) tokenAnswer {
	viewer, end, err := s.validate(ctx, token, now)
	if err != nil {
		return tokenAnswer{err: err, expires: now.Add(failureTTL)}
	}
	expires := now.Add(s.options.CacheTTL)
	if end.Before(expires) {
		expires = end
	}
	return tokenAnswer{viewer: viewer, expires: expires}
}

// validate returns the viewer and the expiry of a token.
func (s *identityService) validate(ctx context.Context, token string,
	now time.Time) (viewer access.Viewer, end time.Time, err error) {
	var result tokens.GetResult
	for range 2 {
		client, err := s.client.get(ctx)
		if err != nil {
			return viewer, end, unavailable(err)
		}
		result = tokens.Get(ctx, client, token)
		if !gophercloud.ResponseCodeIs(result.Err, http.StatusUnauthorized) {
			break
		}
		s.client.forget(client) // the token of this server has ended
	}
	for _, status := range []int{http.StatusNotFound, http.StatusBadRequest, http.StatusRequestHeaderFieldsTooLarge} {
		if gophercloud.ResponseCodeIs(result.Err, status) {
			return viewer, end, errUnknown()
		}
	}
	if result.Err != nil {
		return viewer, end, unavailable(withoutToken(result.Err))
	}
	var document struct {
		ExpiresAt time.Time      `json:"expires_at"`
		User      tokens.User    `json:"user"`
		Project   tokens.Project `json:"project"`
		Roles     []tokens.Role  `json:"roles"`
	}
	if err := result.ExtractInto(&document); err != nil {
		return viewer, end, unavailable(fmt.Errorf("read the answer of the identity service about a token: %w", err))
	}
	if !now.Before(document.ExpiresAt) {
		return viewer, end, errUnknown()
	}
	var names []string
	for _, role := range document.Roles {
		names = append(names, role.Name)
	}
	viewer, err = viewerOf(document.User.ID, document.Project.ID, knownRoles(names, s.options.Roles))
	return viewer, document.ExpiresAt, err
}

// withoutToken returns an error of the client without the body of the answer,
// which may repeat the token.
func withoutToken(err error) error {
	if code := new(gophercloud.ErrUnexpectedResponseCode); errors.As(err, code) {
		return fmt.Errorf("the identity service answered %d", code.Actual)
	}
	return fmt.Errorf("query the identity service: %w", err)
}

// signIn returns a client with this server's own token.
func (s *identityService) signIn(ctx context.Context) (*gophercloud.ServiceClient, error) {
	provider, err := openstack.NewClient(s.options.URL)
	if err != nil {
		return nil, fmt.Errorf("sign in at the identity service: %w", err)
	}
	provider.HTTPClient = *newClient()
	account := &gophercloud.AuthOptions{
		IdentityEndpoint: s.options.URL,
		Username:         s.options.User, Password: s.options.Password,
		ApplicationCredentialID: s.options.CredentialID, ApplicationCredentialSecret: s.options.CredentialSecret,
	}
	if s.options.User != "" {
		account.DomainName = s.options.UserDomain
		account.Scope = &gophercloud.AuthScope{ProjectName: s.options.Project, DomainName: s.options.ProjectDomain}
	}
	if err := openstack.AuthenticateV3(ctx, provider, account, gophercloud.EndpointOpts{}); err != nil {
		return nil, fmt.Errorf("sign in at the identity service: %w", withoutToken(err))
	}
	return &gophercloud.ServiceClient{ProviderClient: provider, Endpoint: s.options.URL, Type: "identity"}, nil
}

// Password has the credentials of a user at an identity service.
type Password struct {
	User     string
	Password string
	Project  string
	Domain   string // of user and project, by name; empty is `Default`
}

// KeystoneSignIn returns a function that asks the identity service at a URL for
// a token of a user in a project. Its error wraps problem.ErrUnauthenticated if
// the service refuses the user, and otherwise problem.ErrUnavailable.
func KeystoneSignIn(address string) func(ctx context.Context,
	with Password) (token string, expires time.Time, err error) {
	address = strings.TrimRight(address, "/") + "/"
	return func(ctx context.Context, with Password) (string, time.Time, error) {
		provider, err := openstack.NewClient(address)
		if err != nil {
			return "", time.Time{}, unavailable(err)
		}
		provider.HTTPClient = *newClient()
		client := &gophercloud.ServiceClient{ProviderClient: provider, Endpoint: address, Type: "identity"}
		domain := cmp.Or(with.Domain, "Default")
		created := tokens.Create(ctx, client, &tokens.AuthOptions{
			IdentityEndpoint: address, Username: with.User, Password: with.Password, DomainName: domain,
			Scope: tokens.Scope{ProjectName: with.Project, DomainName: domain},
		})
		if gophercloud.ResponseCodeIs(created.Err, http.StatusUnauthorized) {
			return "", time.Time{}, problem.Refuse(problem.ErrUnauthenticated,
				"the user, the password or the project is wrong")
		}
		if created.Err != nil {
			return "", time.Time{}, unavailable(withoutToken(created.Err))
		}
		token, err := created.ExtractToken()
		if err != nil {
			return "", time.Time{}, unavailable(err)
		}
		return token.ID, token.ExpiresAt, nil
	}
}
