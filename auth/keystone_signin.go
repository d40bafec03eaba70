package auth

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/cadastre-dev/cadastre/problem"
)

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
