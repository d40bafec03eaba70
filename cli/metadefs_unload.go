package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
)

type unloadCommand struct {
	common
	deletion
	All              bool     `help:"Delete all namespaces."`
	Origin           *string  `help:"Only namespaces of this origin; cadastre is that of the program's own."`
	ResourceTypes    []string `name:"resource-type" sep:"none" help:"Only namespaces that apply to this resource type; can be given several times."`
	IncludeProtected bool     `help:"Delete protected namespaces, too."`
	Names            []string `arg:"" optional:"" help:"Names of namespaces."`
}

// Run deletes namespaces and reports on each. One that stays, such as a
// protected one, makes the command fail.
func (c *unloadCommand) Run(run *session) error {
	chosen := len(c.Names)+len(c.ResourceTypes) > 0 || c.Origin != nil
	switch {
	case c.All && chosen:
		return usagef("--all excludes names, --resource-type and --origin")
	case !c.All && !chosen:
		return usagef("nothing to unload: name namespaces, --resource-type, --origin or --all")
	}
	if err := c.ask(run); err != nil {
		return err
	}
	u := &unload{command: c, run: run}
	var err error
	if c.All {
		err = u.all()
	} else {
		err = u.send(&client.UnloadNamespacesInput{Names: optional.List(c.Names), ResourceTypes: optional.List(c.ResourceTypes), Origin: optional.From(c.Origin), IncludeProtected: optional.Value(c.IncludeProtected)})
	}
	if err != nil && u.unloaded == 0 {
		return err
	}
	if run.out.isTable() {
		err = errors.Join(err, run.printf("%s unloaded, %d failed\n", counted(u.unloaded, "namespace"), len(u.failed)))
	} else {
		err = errors.Join(err, list(run, columnsOf("namespace outcome errors"), u.reports))
	}
	if len(u.failed) > 0 {
		err = errors.Join(err, fmt.Errorf("%s not unloaded: %s", counted(len(u.failed), "namespace"), strings.Join(u.failed, ", ")))
	}
	return err
}

// unloadBatch is how many namespaces one request deletes: few enough for the
// time that a server gives an operation.
const unloadBatch = 20

// unload is one run of unloadCommand.
type unload struct {
	command  *unloadCommand
	run      *session
	unloaded int
	failed   []string
	reports  []any
}

// all deletes all namespaces in parts, each in a request and a transaction of its
// own, so that the server does not run out of time.
func (u *unload) all() error {
	names, err := namespaceNames(u.run, nil)
	if err != nil {
		return err
	}
	done := u.run.progress("unloading", len(names))
	defer done.end()
	for part := range slices.Chunk(names, unloadBatch) {
		if err := u.send(&client.UnloadNamespacesInput{Names: optional.List(part), IncludeProtected: optional.Value(u.command.IncludeProtected)}); err != nil {
			return err
		}
		done.add(len(part))
	}
	return nil
}

// send deletes the namespaces of one request.
func (u *unload) send(input *client.UnloadNamespacesInput) error {
	answer, err := client.UnloadNamespaces(u.run.ctx, u.run.api, input)
	if err != nil {
		return err
	}
	for _, report := range answer.UnloadNamespaces.Reports {
		u.reports = append(u.reports, report)
		if report.Outcome == client.UnloadOutcomeUnloaded {
			u.unloaded++
			continue
		}
		u.failed = append(u.failed, report.Namespace)
		for _, problem := range report.Errors {
			u.run.notef("%s: %s\n", report.Namespace, problem)
		}
	}
	return nil
}

// ask asks whether to delete the chosen namespaces.
func (c *unloadCommand) ask(run *session) error {
	if c.All {
		return c.confirm(run, "all", "Delete all namespaces of %s, with everything in them?", run.server.address)
	}
	chosen := "namespaces"
	if len(c.Names) > 0 {
		chosen = quoted(c.Names)
	}
	if len(c.ResourceTypes) > 0 {
		chosen += " that apply to " + quoted(c.ResourceTypes)
	}
	if c.Origin != nil {
		chosen += fmt.Sprintf(" of the origin %q", *c.Origin)
	}
	return c.confirm(run, "yes", "Delete %s of %s, with everything in them?", chosen, run.server.address)
}
