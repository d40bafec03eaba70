package auth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"golang.org/x/sync/singleflight"

	"github.com/cadastre-dev/cadastre/access"
)

// How long what the identity service said is believed.
const (
	mostBelief    = 60 * time.Second
	failureBelief = 5 * time.Second
	mostBelieved  = 10_000 // tokens
)

// KeystoneOptions say where the identity service of an OpenStack cloud is and as
// whom this server asks it. The account needs the right to validate tokens, which
// the role `service` or `admin` has.
type KeystoneOptions struct {
	// URL is the address of the identity API, version 3: https://keystone:5000/v3.
	// Required.
	URL string
	// UserName, UserDomain, Password, Project and ProjectDomain are the account;
	// empty domains are `Default`.
	UserName, UserDomain, Password, Project, ProjectDomain string
	// ApplicationCredentialID and ApplicationCredentialSecret are given instead of
	// an account's name and password.
	ApplicationCredentialID, ApplicationCredentialSecret string
	// Roles maps the names of the cloud's roles to admin, member, reader and
	// service; empty takes the names as they are. Other names mean nothing.
	Roles map[string]string
	// Belief is how long a token is not asked for again: 60 s at most and when 0,
	// and never past the token's end. A revoked token works so long.
	Belief time.Duration
	// Client asks the identity service; nil is one that gives up after 5 s.
	Client *http.Client
	// Now is the clock; nil is the real one.
	Now func() time.Time
}

// keystone asks an OpenStack identity service.
type keystone struct {
	options KeystoneOptions

	connect  sync.Mutex
	client   *gophercloud.ServiceClient // nil until this server has a token of its own
	tried    time.Time
	failed   error
	inFlight singleflight.Group

	mu       sync.Mutex
	believed map[[sha256.Size]byte]belief
}

// belief is what the identity service said of a token.
type belief struct {
	viewer access.Viewer
	err    error
	until  time.Time
}

// Keystone is a source that asks an OpenStack identity service who a token
// belongs to. What it says is believed for a minute at most and never past the
// token's end; that it does not know a token, or cannot be reached, for five
// seconds. A token that is not for a project is known only with a role of the
// whole cloud.
func Keystone(options KeystoneOptions) (Source, error) {
	address, err := url.Parse(options.URL)
	if err != nil || address.Host == "" || address.Scheme != "https" && address.Scheme != "http" {
		return nil, fmt.Errorf("the address of the identity service %q is no URL", options.URL)
	}
	byPassword := options.UserName != "" && options.Password != "" && options.Project != ""
	byCredential := options.ApplicationCredentialID != "" && options.ApplicationCredentialSecret != ""
	if byPassword == byCredential {
		return nil, errors.New("the identity service is asked either as a user, with name, password and project, or by an application credential, with id and secret")
	}
	for name, role := range options.Roles {
		if !isRole(role) {
			return nil, fmt.Errorf("the role %q maps to %q, which is none of admin, member, reader, service", name, role)
		}
	}
	options.URL = strings.TrimRight(options.URL, "/") + "/"
	options.UserDomain = cmp.Or(options.UserDomain, "Default")
	options.ProjectDomain = cmp.Or(options.ProjectDomain, "Default")
	if options.Belief <= 0 || options.Belief > mostBelief {
		options.Belief = mostBelief
	}
	if options.Client == nil {
		options.Client = &http.Client{Timeout: 5 * time.Second}
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	k := &keystone{options: options, believed: map[[sha256.Size]byte]belief{}}
	return k.authenticate, nil
}

func (k *keystone) authenticate(ctx context.Context, token string) (access.Viewer, error) {
	hash := sha256.Sum256([]byte(token))
	if known, there := k.recall(hash); there {
		return known.viewer, known.err
	}
	// Whoever asks first asks for all, so their going away must not end it.
	asked := k.inFlight.DoChan(string(hash[:]), func() (any, error) {
		said := k.ask(context.WithoutCancel(ctx), token)
		k.keep(hash, said)
		return said, nil
	})
	select {
	case result := <-asked:
		said := result.Val.(belief)
		return said.viewer, said.err
	case <-ctx.Done():
		return access.Viewer{}, unavailable(ctx.Err())
	}
}

func (k *keystone) recall(hash [sha256.Size]byte) (belief, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known, there := k.believed[hash]
	return known, there && k.options.Now().Before(known.until)
}

// keep remembers a belief. Where there are too many, those that ended go first,
// then any.
func (k *keystone) keep(hash [sha256.Size]byte, said belief) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.believed) >= mostBelieved {
		now := k.options.Now()
		for old, held := range k.believed {
			if !now.Before(held.until) {
				delete(k.believed, old)
			}
		}
		for old := range k.believed {
			if len(k.believed) < mostBelieved {
				break
			}
			delete(k.believed, old)
		}
	}
	k.believed[hash] = said
}

// ask asks the identity service who a token belongs to.
func (k *keystone) ask(ctx context.Context, token string) belief {
	now := k.options.Now()
	failure := func(err error) belief { return belief{err: err, until: now.Add(failureBelief)} }
	client, err := k.connected(ctx)
	if err != nil {
		return failure(unavailable(err))
	}
	result := tokens.Get(ctx, client, token)
	if gophercloud.ResponseCodeIs(result.Err, http.StatusNotFound) || gophercloud.ResponseCodeIs(result.Err, http.StatusBadRequest) {
		return failure(errUnknown())
	}
	if result.Err != nil {
		return failure(unavailable(withoutToken(result.Err)))
	}
	var document struct {
		ExpiresAt time.Time       `json:"expires_at"`
		User      tokens.User     `json:"user"`
		Project   *tokens.Project `json:"project"`
		Roles     []tokens.Role   `json:"roles"`
	}
	if err := result.ExtractInto(&document); err != nil {
		return failure(unavailable(fmt.Errorf("read what the identity service says of a token: %w", err)))
	}
	if !now.Before(document.ExpiresAt) {
		return failure(errUnknown())
	}
	var names []string
	for _, role := range document.Roles {
		names = append(names, role.Name)
	}
	project := ""
	if document.Project != nil {
		project = document.Project.ID
	}
	viewer, err := viewerOf(document.User.ID, project, knownRoles(names, k.options.Roles))
	if err != nil {
		return failure(err)
	}
	until := now.Add(k.options.Belief)
	if document.ExpiresAt.Before(until) {
		until = document.ExpiresAt
	}
	return belief{viewer: viewer, until: until}
}

// withoutToken is an error of the client without the words of the answer, which
// may repeat the token.
func withoutToken(err error) error {
	if code := new(gophercloud.ErrUnexpectedResponseCode); errors.As(err, code) {
		return fmt.Errorf("the identity service answered %d", code.Actual)
	}
	return fmt.Errorf("ask the identity service: %w", err)
}

// connected gives a client with a token of this server's own, which it renews by
// itself; after a failure the next attempt is five seconds later.
func (k *keystone) connected(ctx context.Context) (*gophercloud.ServiceClient, error) {
	k.connect.Lock()
	defer k.connect.Unlock()
	if k.client != nil {
		return k.client, nil
	}
	now := k.options.Now()
	if k.failed != nil && now.Sub(k.tried) < failureBelief {
		return nil, k.failed
	}
	k.tried = now
	provider, err := openstack.NewClient(k.options.URL)
	if err == nil {
		provider.HTTPClient = *k.options.Client
		account := &gophercloud.AuthOptions{
			IdentityEndpoint: k.options.URL, AllowReauth: true,
			Username: k.options.UserName, Password: k.options.Password,
			ApplicationCredentialID: k.options.ApplicationCredentialID, ApplicationCredentialSecret: k.options.ApplicationCredentialSecret,
		}
		if k.options.UserName != "" {
			account.DomainName = k.options.UserDomain
			account.Scope = &gophercloud.AuthScope{ProjectName: k.options.Project, DomainName: k.options.ProjectDomain}
		}
		err = openstack.AuthenticateV3(ctx, provider, account, gophercloud.EndpointOpts{})
	}
	if err != nil {
		k.failed = fmt.Errorf("sign in at the identity service: %w", withoutToken(err))
		return nil, k.failed
	}
	k.failed = nil
	k.client = &gophercloud.ServiceClient{ProviderClient: provider, Endpoint: k.options.URL, Type: "identity"}
	return k.client, nil
}
