package cli

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/internal/lists"
	cloudsync "github.com/cadastre-dev/cadastre/sync"
)

// syncOpenStack makes a pass over kinds of things of a cloud, or follows them. A
// kind that fails does not stop the others, but makes the command fail.
func syncOpenStack(c *call) error {
	_, wrongKinds := kindsOf("--kinds", c.given["kinds"])
	_, wrongDeletes := kindsOf("--allow-deletes", c.given["allow-deletes"])
	intervals, err := c.intervals()
	if err := errors.Join(wrongKinds, wrongDeletes, err); err != nil {
		return err
	}
	cloud, err := signIn(c.ctx, c.text("cloud"), c.server.timeout)
	if err != nil {
		return err
	}
	var bar *progress
	plan := cloudsync.Plan{Origin: cmp.Or(c.text("origin"), cloudsync.OriginOf(c.text("cloud"))),
		Project: c.text("project"), Regions: c.given["regions"], Kinds: c.given["kinds"], Intervals: intervals,
		Progress: func(pass *cloudsync.Pass, things int) {
			if bar == nil {
				bar = c.progress(named(pass), -1)
			}
			bar.add(things)
		}}
	passes, without, err := plan.Passes(cloud, c.api)
	if err != nil {
		return UsageError(err)
	}
	for _, pass := range passes {
		pass.DryRun = c.is("dry-run")
	}
	for _, pass := range without {
		c.notef("%s: the catalogue of the cloud has no such service\n", named(pass))
	}
	ended := func(pass *cloudsync.Pass, result cloudsync.Result) {
		bar = nil
		for _, left := range result.LeftOut {
			why := cmp.Or(left.Why, "resources cannot store the value of "+left.Key)
			c.notef("%s %s: %s\n", named(pass), printable(left.ID), printable(why))
		}
	}
	if c.is("follow") {
		return c.followPasses(plan, cloud, passes, ended)
	}
	return c.runPasses(passes, ended)
}

// runPasses makes each pass once, and shows their results, or the differences of
// dry runs.
func (c *call) runPasses(passes []*cloudsync.Pass, ended func(*cloudsync.Pass, cloudsync.Result)) error {
	rows, changes := []any{}, []any{}
	var failed []error
	for _, pass := range passes {
		if slices.Contains(c.given["allow-deletes"], pass.Kind.Name) {
			if err := c.allowDeletes(pass); err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", named(pass), err))
				continue
			}
		}
		result, err := pass.Run(c.ctx)
		ended(pass, result)
		rows, failed = append(rows, rowOf(pass, result)), append(failed, err)
		for _, change := range result.Changes {
			changed := lists.Map(change.Changed, func(name string) any { return name })
			changes = append(changes, map[string]any{"kind": pass.Kind.Name, "region": pass.Cloud.At.Region,
				"effect": string(change.Effect), "id": change.ForeignID, "name": change.Name, "changed": changed})
		}
		if result.Unlisted > 0 {
			c.notef("%s: the list lacks %s\n", named(pass), counted(result.Unlisted, "absent thing"))
		}
	}
	columns := passColumns
	if c.is("dry-run") {
		columns, rows = "id effect kind region name changed", changes
	}
	return errors.Join(append([]error{c.list(columns, rows)}, failed...)...)
}

// allowDeletes shows the things that a pass would refuse to declare gone. If
// the user agrees, it raises the limit of the pass to their number.
func (c *call) allowDeletes(pass *cloudsync.Pass) error {
	trial := *pass
	trial.DryRun, trial.Progress = true, func(int) {}
	result, err := trial.Run(c.ctx)
	if err != nil || len(result.Beyond()) == 0 {
		return err
	}
	for _, change := range result.Beyond() {
		c.notef("%s %s %s\n", named(pass), printable(change.ForeignID), printable(change.Name))
	}
	if err := c.confirm("yes", "Declare %s gone?", counted(result.Refused, "thing")); err != nil {
		return err
	}
	pass.Allow(result)
	return nil
}

// named returns the region and the kind of a pass.
func named(pass *cloudsync.Pass) string { return pass.Cloud.At.Region + " " + pass.Kind.Name }

const passColumns = "kind region seen created updated unchanged absent gone refused deleted +unknown"

func rowOf(pass *cloudsync.Pass, result cloudsync.Result) map[string]any {
	return map[string]any{"region": pass.Cloud.At.Region, "kind": pass.Kind.Name,
		"seen": result.Seen, "unknown": result.Unknown,
		"created": result.Created, "updated": result.Updated, "unchanged": result.Unchanged,
		"absent": result.SyncCounts.Absent, "gone": result.Gone, "refused": result.Refused, "deleted": result.Deleted}
}

// intervals returns the times of --interval by kind.
func (c *call) intervals() (map[string]time.Duration, error) {
	intervals := map[string]time.Duration{}
	for _, written := range c.given["interval"] {
		names, length, isOne := strings.Cut(written, "=")
		if !isOne {
			names, length = "", names
		}
		interval, err := time.ParseDuration(length)
		if err != nil || interval < time.Second {
			return nil, usagef("--interval: %q is not a time of at least a second, such as 5m", length)
		}
		kinds, err := kindsOf("--interval", strings.Fields(names))
		if err != nil {
			return nil, err
		}
		for _, kind := range kinds {
			intervals[kind.Name] = interval
		}
	}
	if len(intervals) > 0 && !c.is("follow") {
		return nil, usagef("--interval requires --follow")
	}
	return intervals, nil
}

// kindsOf returns the kinds with the names of a flag, or all kinds if there are
// no names. An unknown name is an error.
func kindsOf(flag string, names []string) ([]cloudsync.Kind, error) {
	kinds, unknown := cloudsync.Kinds(names)
	if len(unknown) == 0 {
		return kinds, nil
	}
	all, _ := cloudsync.Kinds(nil)
	return nil, usagef("%s: %q is not a kind; the kinds are %s", flag, unknown[0],
		strings.Join(lists.Map(all, func(kind cloudsync.Kind) string { return kind.Name }), ", "))
}

// followPasses repeats passes until the context ends. It shows the first result
// of each pass, and later results with changes. It notes the parts that a pass
// left out, unless the pass before it left out the same.
func (c *call) followPasses(plan cloudsync.Plan, cloud *cloudsync.Cloud, passes []*cloudsync.Pass,
	ended func(*cloudsync.Pass, cloudsync.Result)) error {
	var failed error
	shown, leftOut := map[*cloudsync.Pass]bool{}, map[*cloudsync.Pass][]cloudsync.LeftOut{}
	show := func(pass *cloudsync.Pass, result cloudsync.Result, err error) {
		if slices.Equal(result.LeftOut, leftOut[pass]) {
			result.LeftOut = nil
		} else {
			leftOut[pass] = result.LeftOut
		}
		ended(pass, result)
		if err != nil {
			c.notef("%s: %v\n", named(pass), err)
		}
		if err != nil || shown[pass] && !result.Changed() {
			return
		}
		failed = errors.Join(failed, c.showNext(columnsOf(passColumns), rowOf(pass, result), len(shown) == 0))
		shown[pass] = true
	}
	plan.Follower(cloud, c.api, passes, rand.Float64, show).Run(c.ctx)
	return failed
}
