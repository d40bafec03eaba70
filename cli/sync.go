package cli

import (
	"cmp"
	"errors"
	"os"
	"strings"

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
	cloud, err := c.cloud()
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

// cloud signs in at the cloud to read.
func (c *call) cloud() (*cloudsync.Cloud, error) {
	of, err := cloudNamed(cmp.Or(c.text("cloud"), os.Getenv("OS_CLOUD")))
	if err != nil {
		return nil, err
	}
	region := cmp.Or(c.text("region"), of.region)
	if region == "" {
		return nil, usagef("--region is missing: the cloud names none")
	}
	of.credentials.AllowReauth = true
	provider, err := of.signIn(c.ctx)
	if err != nil {
		return nil, err
	}
	provider.HTTPClient.Timeout = c.server.timeout
	return &cloudsync.Cloud{Provider: provider, Region: region}, nil
}
