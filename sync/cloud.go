package sync

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Khan/genqlient/graphql"
	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/config"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
)

// Credentials are an account of an OpenStack cloud, with a region and TLS settings.
type Credentials struct {
	auth     gophercloud.AuthOptions
	at       gophercloud.EndpointOpts // its region is "" for none
	settings *tls.Config
}

// errNoVariables means that OS_AUTH_URL is missing.
var errNoVariables = errors.New("the OS_* variables: OS_AUTH_URL is missing")

// variables is the name of the cloud that the OS_* variables describe, as in
// OpenStack's own clients. No cloud of clouds.yaml can have it.
const variables = "envvars"

// OriginOf returns the origin of the things of a cloud: its name, or "openstack"
// for the cloud of the OS_* variables.
func OriginOf(cloud string) string {
	if cloud == "" || cloud == variables {
		return "openstack"
	}
	return cloud
}

// CredentialsOf returns the credentials for a cloud of clouds.yaml. An empty
// name or `envvars` means the cloud of the OS_* variables.
func CredentialsOf(name string) (of Credentials, err error) {
	called, options := fmt.Sprintf("the cloud %q", name), []clouds.ParseOption{clouds.WithCloudName(name)}
	if name == "" || name == variables {
		if os.Getenv("OS_AUTH_URL") == "" {
			return of, errNoVariables
		}
		called = "the OS_* variables"
		options = []clouds.ParseOption{clouds.WithCloudName(variables), clouds.WithCloudsYAML(cloudOfVariables())}
	}
	if of.auth, of.at, of.settings, err = clouds.Parse(options...); err != nil {
		return of, fmt.Errorf("%s: %w", called, err)
	}
	of.auth.AllowReauth = true
	return of, nil
}

// cloudOfVariables returns a clouds.yaml with the OS_* variables. Each variable
// becomes the setting of the same or a newer name, as in OpenStack's clients.
func cloudOfVariables() io.Reader {
	newer := strings.NewReplacer("tenant_", "project_", "userid", "user_id")
	auth := map[string]string{}
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		if name, ok := strings.CutPrefix(name, "OS_"); ok {
			name = strings.ToLower(name)
			if newer.Replace(name) == name || auth[newer.Replace(name)] == "" {
				auth[newer.Replace(name)] = value
			}
		}
	}
	of := map[string]any{variables: map[string]any{"auth": auth}}
	text, _ := json.Marshal(map[string]any{"clouds": of}) // strings can be JSON, and JSON is YAML
	return bytes.NewReader(text)
}

// ErrRefused means that Keystone does not accept credentials.
var ErrRefused = errors.New("does not accept the credentials")

// SignIn gets a token from Keystone. It returns ErrRefused if Keystone does not
// accept the credentials. The Cloud renews the token when a service no longer
// accepts it. timeout bounds each request to the cloud.
func (of Credentials) SignIn(ctx context.Context, timeout time.Duration) (*Cloud, error) {
	provider, err := config.NewProviderClient(ctx, of.auth, config.WithTLSConfig(of.settings),
		config.WithHTTPClient(http.Client{Timeout: timeout})) // also of the renewals, which have a copy of it
	if gophercloud.ResponseCodeIs(err, http.StatusUnauthorized) {
		return nil, fmt.Errorf("the Keystone at %s %w", of.auth.IdentityEndpoint, ErrRefused)
	}
	if err != nil {
		return nil, fmt.Errorf("request a token from the Keystone at %s: %w", of.auth.IdentityEndpoint, err)
	}
	return &Cloud{Provider: provider, At: of.at}, nil
}

// Plan says which passes to make over a cloud.
type Plan struct {
	Origin string // the name of the cloud
	// Project owns the things that have no project; "" is the project of the
	// account.
	Project string
	// Regions are the regions; empty is the region of the cloud, and "*" is every
	// region of the catalogue.
	Regions []string
	// Kinds are the names of kinds; empty is all kinds with a service in the
	// catalogue.
	Kinds []string
	// Intervals replace the intervals of kinds, by name.
	Intervals map[string]time.Duration
	// Progress gets the number of things of a pass that were read since the last
	// call.
	Progress func(pass *Pass, things int)
}

// Passes returns the passes of a plan over a cloud, by region and kind. A pass
// whose service the catalogue lacks is in without or, if the plan has Kinds and
// its Regions are not "*", in passes.
func (p Plan) Passes(cloud *Cloud, server graphql.Client) (passes, without []*Pass, err error) {
	regions, isEvery := p.Regions, slices.Equal(p.Regions, []string{"*"})
	switch {
	case isEvery:
		if regions, err = cloud.regions(); err != nil {
			return nil, nil, err
		}
	case len(regions) == 0 && cloud.At.Region != "":
		regions = []string{cloud.At.Region}
	}
	project := cmp.Or(p.Project, cloud.project())
	if len(regions) == 0 {
		err = errors.New("the cloud has no default region: name one, or * for all")
	}
	if project == "" {
		err = errors.Join(err, errors.New("the account has no project: name one"))
	}
	if err != nil {
		return nil, nil, err
	}
	kinds, _ := Kinds(p.Kinds)
	var progress sync.Mutex
	for _, region := range regions {
		in := cloud.in(region)
		for _, kind := range kinds {
			kind.Interval = cmp.Or(p.Intervals[kind.Name], kind.Interval)
			pass := &Pass{Cloud: in, Server: server, Origin: p.Origin, Kind: kind, Project: project}
			pass.Progress = func(things int) {
				progress.Lock()
				defer progress.Unlock()
				p.Progress(pass, things)
			}
			if (isEvery || len(p.Kinds) == 0) && !pass.Cloud.offers(kind) {
				without = append(without, pass)
			} else {
				passes = append(passes, pass)
			}
		}
	}
	return passes, without, nil
}

func (c *Cloud) in(region string) *Cloud {
	c.buckets = cmp.Or(c.buckets, new(sync.Map))
	in := *c
	in.At.Region = region
	return &in
}

// renew gets a token, and uses the endpoints of its catalogue from now on.
func (c *Cloud) renew(ctx context.Context) error {
	if err := c.Provider.Reauthenticate(ctx, ""); err != nil {
		return err
	}
	catalogue, err := c.catalogue()
	if err != nil {
		return err
	}
	c.Provider.EndpointLocator = func(of gophercloud.EndpointOpts) (string, error) {
		return openstack.V3Endpoint(ctx, c.Provider, catalogue, of)
	}
	return nil
}

// catalogue returns the catalogue of the token.
func (c *Cloud) catalogue() (*tokens.ServiceCatalog, error) {
	signedIn, ok := c.Provider.GetAuthResult().(tokens.CreateResult)
	if !ok {
		return nil, errors.New("the token has no catalogue")
	}
	catalogue, err := signedIn.ExtractServiceCatalog()
	if err != nil {
		return nil, fmt.Errorf("read the catalogue: %w", err)
	}
	return catalogue, nil
}

// regions returns the regions of the catalogue, sorted.
func (c *Cloud) regions() ([]string, error) {
	catalogue, err := c.catalogue()
	if err != nil {
		return nil, err
	}
	var regions []string
	for _, service := range catalogue.Entries {
		for _, endpoint := range service.Endpoints {
			if region := cmp.Or(endpoint.RegionID, endpoint.Region); region != "" {
				regions = append(regions, region)
			}
		}
	}
	slices.Sort(regions)
	return slices.Compact(regions), nil
}

// project returns the project of the token, "" if it has none.
func (c *Cloud) project() string {
	signedIn, ok := c.Provider.GetAuthResult().(tokens.CreateResult)
	if !ok {
		return ""
	}
	project, err := signedIn.ExtractProject()
	if err != nil || project == nil {
		return ""
	}
	return project.ID
}
