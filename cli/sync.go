package cli

import (
	"cmp"
	"errors"
	"os"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

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
	cloud, project, err := c.cloud()
	if err != nil {
		return err
	}
	var rows []any
	var failed []error
	for _, kind := range kinds {
		if len(c.given["kinds"]) == 0 && !cloud.Offers(kind) {
			c.notef("%s: the catalogue of the cloud has no such service\n", kind.Name)
			continue
		}
		bar := c.progress(kind.Name, -1)
		pass := &cloudsync.Pass{Cloud: cloud, Server: c.api, Origin: cmp.Or(c.text("origin"), c.text("cloud"), "openstack"), Kind: kind,
			Project: project, AllowGone: c.is("allow-gone"), Progress: bar.add}
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

// cloud signs in at the cloud to read. It returns the project that owns things
// without one: by default the project of the account.
func (c *call) cloud() (from *cloudsync.Cloud, project string, err error) {
	of, err := cloudNamed(cmp.Or(c.text("cloud"), os.Getenv("OS_CLOUD")))
	if err != nil {
		return nil, "", err
	}
	if of.at.Region = cmp.Or(c.text("region"), of.at.Region); of.at.Region == "" {
		return nil, "", usagef("--region is missing: the cloud names none")
	}
	of.credentials.AllowReauth = true
	provider, err := of.signIn(c.ctx)
	if err != nil {
		return nil, "", err
	}
	provider.HTTPClient.Timeout = c.server.timeout
	if project = c.text("project"); project == "" {
		project = projectOf(provider)
	}
	if project == "" {
		return nil, "", usagef("--project is missing: the account has no project")
	}
	return &cloudsync.Cloud{Provider: provider, At: of.at}, project, nil
}

// projectOf returns the project of a token, "" if it has none.
func projectOf(provider *gophercloud.ProviderClient) string {
	signedIn, ok := provider.GetAuthResult().(tokens.CreateResult)
	if !ok {
		return ""
	}
	project, err := signedIn.ExtractProject()
	if err != nil || project == nil {
		return ""
	}
	return project.ID
}
