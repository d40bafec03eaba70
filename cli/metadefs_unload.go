package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cadastre-dev/cadastre/client"
)

type unloadCommand struct {
	remote
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
		return errors.New("--all excludes names, --resource-type and --origin")
	case !c.All && !chosen:
		return errors.New("nothing to unload: name namespaces, --resource-type, --origin or --all")
	}
	if err := c.ask(run); err != nil {
		return err
	}
	answer, err := client.UnloadNamespaces(run.ctx, c.client(), &client.UnloadNamespacesInput{
		Names: c.Names, ResourceTypes: c.ResourceTypes, Origin: c.Origin, All: c.All, IncludeProtected: c.IncludeProtected,
	})
	if err != nil {
		return c.explained(err)
	}
	unloaded := 0
	var failed []string
	for _, report := range answer.UnloadNamespaces.Reports {
		if report.Outcome == client.UnloadOutcomeUnloaded {
			unloaded++
			continue
		}
		failed = append(failed, report.Namespace)
		for _, problem := range report.Errors {
			run.notef("%s: %s\n", report.Namespace, problem)
		}
	}
	err = run.printf("%s unloaded, %d failed\n", counted(unloaded, "namespace"), len(failed))
	if len(failed) > 0 {
		return fmt.Errorf("%s not unloaded: %s", counted(len(failed), "namespace"), strings.Join(failed, ", "))
	}
	return err
}

// ask asks whether to delete the chosen namespaces.
func (c *unloadCommand) ask(run *session) error {
	if c.All {
		return c.confirm(run, "all", "Delete all namespaces of %s, with everything in them?", c.Server)
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
	return c.confirm(run, "yes", "Delete %s of %s, with everything in them?", chosen, c.Server)
}
