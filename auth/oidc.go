package auth

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/cadastre-dev/cadastre/access"
)

// OIDCOptions name the issuer of JSON Web Tokens and the meaning of their
// claims.
type OIDCOptions struct {
	// Issuer is the URL of the issuer, exactly as in the claim `iss`. The
	// issuer's configuration is below it. Required.
	Issuer string
	// Audience is the required value in the claim `aud`. Required.
	Audience string
	// Algorithms are the accepted signature algorithms; RS256 and ES256 if empty.
	// Other RS, PS and ES algorithms and EdDSA are possible. Symmetric algorithms
	// and the algorithm `none` are not.
	Algorithms []string
	// UserClaim is the claim with the user's id; empty is `sub`.
	UserClaim string
	// ProjectClaim is the claim with the project's id; empty is `project`. Dots
	// lead to claims inside others: `cloud.project`.
	ProjectClaim string
	// RolesClaim is the claim with the names of roles, a list or a string
	// separated by spaces; empty is `roles`.
	RolesClaim string
	// Roles maps these names to admin, member, reader and service. If it is
	// empty, the names are used unchanged. Other names are ignored.
	Roles map[string]string
}

// issuer checks the tokens of one issuer.
type issuer struct {
	options    OIDCOptions
	now        func() time.Time
	discovered connection[discovered]
}

// discovered has the keys of the issuer, at the URL in its configuration, and
// the verifier that uses them.
type discovered struct {
	keys     *keys
	verifier *oidc.IDTokenVerifier
}

// OIDC returns a source for the tokens of an OpenID Connect issuer: signed by
// one of its keys with one of the algorithms, for this audience, not expired.
// Other strings, and tokens of other issuers, are unknown. The source fetches
// the issuer's keys for the first token, then every ten minutes, and for an
// unknown key at most every ten seconds. While the issuer cannot be reached,
// known keys work for an hour, and tokens of other keys cannot be checked.
func OIDC(options OIDCOptions, now func() time.Time) (Source, error) {
	if !isHTTP(options.Issuer) {
		return nil, fmt.Errorf("the issuer %q is not a URL", options.Issuer)
	}
	if options.Audience == "" {
		return nil,
			errors.New("the issuer requires an audience: otherwise its tokens for other services would be accepted")
	}
	if len(options.Algorithms) == 0 {
		options.Algorithms = []string{oidc.RS256, oidc.ES256}
	}
	for _, algorithm := range options.Algorithms {
		if !slices.Contains(asymmetric, jose.SignatureAlgorithm(algorithm)) {
			return nil, fmt.Errorf("unknown or symmetric algorithm %q: the algorithms are %v", algorithm, asymmetric)
		}
	}
	if err := checkMapping(options.Roles); err != nil {
		return nil, err
	}
	options.UserClaim = cmp.Or(options.UserClaim, "sub")
	options.ProjectClaim = cmp.Or(options.ProjectClaim, "project")
	options.RolesClaim = cmp.Or(options.RolesClaim, "roles")
	i := &issuer{options: options, now: now}
	i.discovered.open, i.discovered.retryAfter, i.discovered.now = i.discover, issuerRetryTime, now
	return i.authenticate, nil
}

func (i *issuer) authenticate(ctx context.Context, token string) (access.Viewer, error) {
	if !i.issued(token) {
		return access.Viewer{}, errUnknown()
	}
	found, err := i.discovered.get(ctx)
	if err != nil {
		return access.Viewer{}, unavailable(err)
	}
	if _, err := found.keys.current(ctx, false); err != nil {
		return access.Viewer{}, unavailable(err)
	}
	verified, err := found.verifier.Verify(ctx, token)
	if err != nil { // the error does not wrap errNoKeys
		if _, keyErr := found.keys.VerifySignature(ctx, token); errors.Is(keyErr, errNoKeys) {
			return access.Viewer{}, unavailable(keyErr)
		}
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

// issued reports whether a string looks like a token of the issuer. It does not
// verify the token.
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

// discover asks the issuer for its configuration.
func (i *issuer) discover(ctx context.Context) (discovered, error) {
	var configuration struct {
		KeysURL string `json:"jwks_uri"`
	}
	client := newClient()
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, client), i.options.Issuer)
	if err == nil {
		err = provider.Claims(&configuration)
	}
	if err != nil {
		return discovered{}, fmt.Errorf("read the configuration of the issuer %s: %w", i.options.Issuer, err)
	}
	keys := &keys{url: configuration.KeysURL, client: client, now: i.now}
	return discovered{keys: keys, verifier: oidc.NewVerifier(i.options.Issuer, keys, &oidc.Config{
		ClientID: i.options.Audience, SupportedSigningAlgs: i.options.Algorithms, Now: i.now,
	})}, nil
}
