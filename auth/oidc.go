package auth

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/problem"
)

// OIDCOptions say whose JSON Web Tokens are taken and what their claims mean.
type OIDCOptions struct {
	// Issuer is the URL of the issuer, exactly as its tokens have it in `iss`; its
	// configuration is found below it. Required.
	Issuer string
	// Audience is what a token must have in `aud`. Required.
	Audience string
	// Algorithms are the signatures that are taken; RS256 and ES256 when empty.
	// Others of RS, PS and ES and EdDSA may be named; symmetric ones and none may
	// not.
	Algorithms []string
	// UserClaim is the claim with the user's id; empty is `sub`.
	UserClaim string
	// ProjectClaim is the claim with the project's id; empty is `project`. Claims
	// inside others are written with dots: `cloud.project`.
	ProjectClaim string
	// RolesClaim is the claim with the names of roles, a list or a text with spaces
	// between; empty is `roles`.
	RolesClaim string
	// Roles maps those names to admin, member, reader and service; none takes the
	// names as they are. Other names mean nothing.
	Roles map[string]string
	// Client fetches the issuer's configuration and keys; nil is one that gives up
	// after 5 s.
	Client *http.Client
	// Now is the clock; nil is the real one.
	Now func() time.Time
}

// asymmetric are the algorithms that can be taken: whoever can check their
// signatures cannot make them.
var asymmetric = map[string]bool{
	oidc.RS256: true, oidc.RS384: true, oidc.RS512: true, oidc.PS256: true, oidc.PS384: true, oidc.PS512: true,
	oidc.ES256: true, oidc.ES384: true, oidc.ES512: true, oidc.EdDSA: true,
}

// issuer checks the tokens of one issuer.
type issuer struct {
	options OIDCOptions

	mu       sync.Mutex
	keys     *keys // nil, like verifier, until the issuer told where they are
	verifier *oidc.IDTokenVerifier
	tried    time.Time
	failed   error
}

// OIDC is a source that knows the tokens of an OpenID Connect issuer: signed by
// one of its keys with an algorithm that is taken, for this audience, not
// expired. Other texts, and tokens of other issuers, are left to other sources.
// The issuer is asked for its keys when the first token comes, every ten minutes
// from then on, and, at most every ten seconds, when a key is not known. While it
// cannot be reached the keys that are known stay good for an hour; after that,
// and before the first were fetched, tokens cannot be checked.
func OIDC(options OIDCOptions) (Source, error) {
	address, err := url.Parse(options.Issuer)
	if err != nil || address.Host == "" || address.Scheme != "https" && address.Scheme != "http" {
		return nil, fmt.Errorf("the issuer %q is no URL", options.Issuer)
	}
	if options.Audience == "" {
		return nil, errors.New("an issuer needs an audience: tokens for other services of the same issuer must not work here")
	}
	if len(options.Algorithms) == 0 {
		options.Algorithms = []string{oidc.RS256, oidc.ES256}
	}
	for _, algorithm := range options.Algorithms {
		if !asymmetric[algorithm] {
			return nil, fmt.Errorf("the algorithm %q cannot be taken: name some of RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA", algorithm)
		}
	}
	for name, role := range options.Roles {
		if !isRole(role) {
			return nil, fmt.Errorf("the role %q maps to %q, which is none of admin, member, reader, service", name, role)
		}
	}
	options.UserClaim = cmp.Or(options.UserClaim, "sub")
	options.ProjectClaim = cmp.Or(options.ProjectClaim, "project")
	options.RolesClaim = cmp.Or(options.RolesClaim, "roles")
	if options.Client == nil {
		options.Client = &http.Client{Timeout: 5 * time.Second}
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	i := &issuer{options: options}
	return i.authenticate, nil
}

func (i *issuer) authenticate(ctx context.Context, token string) (access.Viewer, error) {
	if !i.issued(token) {
		return access.Viewer{}, errUnknown()
	}
	verifier, err := i.discovered(ctx)
	if err != nil {
		return access.Viewer{}, unavailable(err)
	}
	if _, err := i.keys.current(ctx, false); err != nil {
		return access.Viewer{}, unavailable(err)
	}
	verified, err := verifier.Verify(ctx, token)
	if err != nil {
		return access.Viewer{}, errUnknown().Because(err)
	}
	var claims map[string]any
	if err := verified.Claims(&claims); err != nil {
		return access.Viewer{}, errUnknown().Because(err)
	}
	user, _ := claimAt(claims, i.options.UserClaim).(string)
	project, _ := claimAt(claims, i.options.ProjectClaim).(string)
	return viewerOf(user, project, knownRoles(textsOf(claimAt(claims, i.options.RolesClaim)), i.options.Roles))
}

// issued tells whether a text looks like a token of the issuer. It is not yet
// believed.
func (i *issuer) issued(token string) bool {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return false
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	return json.Unmarshal(payload, &claims) == nil && claims.Issuer == i.options.Issuer
}

// discovered gives the verifier, for which the issuer is asked once where its
// keys are; after a failure it is asked again ten seconds later.
func (i *issuer) discovered(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.options.Now()
	if i.verifier != nil {
		return i.verifier, nil
	}
	if i.failed != nil && now.Sub(i.tried) < retryTime {
		return nil, i.failed
	}
	i.tried = now
	provider, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), i.options.Client), i.options.Issuer)
	if err == nil {
		var configuration struct {
			KeysURL string `json:"jwks_uri"`
		}
		if err = provider.Claims(&configuration); err == nil {
			i.keys = &keys{url: configuration.KeysURL, client: i.options.Client, now: i.options.Now}
			i.verifier = oidc.NewVerifier(i.options.Issuer, i.keys, &oidc.Config{
				ClientID: i.options.Audience, SupportedSigningAlgs: i.options.Algorithms, Now: i.options.Now,
			})
		}
	}
	if err != nil {
		i.failed = fmt.Errorf("ask the issuer %s for its configuration: %w", i.options.Issuer, err)
		return nil, i.failed
	}
	i.failed = nil
	return i.verifier, nil
}

func unavailable(cause error) error {
	return problem.Refuse(problem.ErrUnavailable, "the token cannot be checked at the moment").Because(cause)
}
