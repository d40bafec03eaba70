package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/config"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
)

// cloudToken returns what gets a token of the Keystone of a cloud in clouds.yaml.
func cloudToken(name string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		credentials, _, settings, err := clouds.Parse(clouds.WithCloudName(name))
		if err != nil {
			return "", usagef("the cloud %q: %w", name, err)
		}
		return tokenOf(ctx, credentials, settings)
	}
}

// environmentToken returns a token of the Keystone that the OS_* variables name.
func environmentToken(ctx context.Context) (string, error) {
	credentials, err := openstack.AuthOptionsFromEnv()
	if err != nil {
		return "", usagef("the OS_* variables: %w", err)
	}
	return tokenOf(ctx, credentials, nil)
}

// tokenOf returns a token that Keystone gives for credentials.
func tokenOf(ctx context.Context, credentials gophercloud.AuthOptions, settings *tls.Config) (string, error) {
	provider, err := config.NewProviderClient(ctx, credentials, config.WithTLSConfig(settings))
	if refused := (gophercloud.ErrUnexpectedResponseCode{}); errors.As(err, &refused) && refused.Actual == 401 {
		return "", loginError{fmt.Errorf("the Keystone at %s does not accept the credentials", credentials.IdentityEndpoint)}
	}
	if err != nil {
		return "", fmt.Errorf("ask the Keystone at %s for a token: %w", credentials.IdentityEndpoint, err)
	}
	return provider.TokenID, nil
}
