package cli

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/config"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"

	cloudsync "github.com/cadastre-dev/cadastre/sync"
)

// syncOpenStack makes a pass over kinds of things of a cloud. A kind that fails
// does not stop the others, but makes the command fail.
func syncOpenStack(c *call) error {
	kinds, unknown := cloudsync.Kinds(c.given["kinds"])
	if len(unknown) > 0 {
		all, _ := cloudsync.Kinds(nil)
		var names []string
		for _, kind := range all {
			names = append(names, kind.Name)
		}
		return usagef("--kinds: %q is no kind; the kinds are %s", unknown[0], strings.Join(names, ", "))
	}
	cloud, err := c.signIn()
	if err != nil {
		return err
	}
	var rows []any
	var failed []error
	for _, kind := range kinds {
		bar := c.progress(kind.Name, -1)
		pass := &cloudsync.Pass{Cloud: cloud, Server: c.api, Origin: cmp.Or(c.text("origin"), c.text("cloud"), "openstack"), Kind: kind,
			Project: c.text("project"), AllowGone: c.is("allow-gone"), Progress: bar.add}
		result, err := pass.Run(c.ctx)
		bar.end()
		if err != nil {
			failed = append(failed, err)
		}
		for _, left := range result.LeftOut {
			c.notef("%s %s: no resource can have the value of %s\n", kind.Name, left.ID, left.Key)
		}
		rows = append(rows, map[string]any{"kind": kind.Name, "seen": result.Seen, "unknown": result.Unknown, "created": result.Created, "updated": result.Updated,
			"unchanged": result.Unchanged, "absent": result.SyncCounts.Absent, "gone": result.Gone, "refused": result.Refused, "deleted": result.Deleted})
	}
	return errors.Join(append([]error{c.list("kind seen created updated unchanged absent gone refused deleted +unknown", rows)}, failed...)...)
}

// signIn signs in at a cloud of clouds.yaml, or at the one that the OS_*
// variables name.
func (c *call) signIn() (*cloudsync.Cloud, error) {
	name := cmp.Or(c.text("cloud"), os.Getenv("OS_CLOUD"))
	credentials, at, settings, err := gophercloud.AuthOptions{}, gophercloud.EndpointOpts{Region: os.Getenv("OS_REGION_NAME")}, (*tls.Config)(nil), error(nil)
	if name == "" {
		credentials, err = openstack.AuthOptionsFromEnv()
	} else {
		credentials, at, settings, err = clouds.Parse(clouds.WithCloudName(name))
	}
	if err != nil {
		return nil, usagef("the cloud %q: %w", name, err)
	}
	region := cmp.Or(c.text("region"), at.Region)
	if region == "" {
		return nil, usagef("--region is missing: the cloud names none")
	}
	credentials.AllowReauth = true
	provider, err := config.NewProviderClient(c.ctx, credentials, config.WithTLSConfig(settings))
	if err != nil {
		return nil, fmt.Errorf("sign in at %s: %w", credentials.IdentityEndpoint, err)
	}
	provider.HTTPClient.Timeout = c.server.timeout
	return &cloudsync.Cloud{Provider: provider, Region: region}, nil
}
