package cli

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/cadastre-dev/cadastre/client"
)

type unloadCommand struct {
	remote
	All              bool     `help:"Delete all namespaces; asks first."`
	Yes              bool     `help:"Do not ask."`
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
	case c.All && !c.Yes:
		if err := c.confirm(run); err != nil {
			return err
		}
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

// confirm asks whether to delete all namespaces, and returns an error unless
// the answer is all.
func (c *unloadCommand) confirm(run *session) error {
	run.notef("Delete all namespaces of %s, with everything in them? Type all: ", c.Server)
	if run.program.Stdin != nil {
		answer, _ := bufio.NewReader(run.program.Stdin).ReadString('\n')
		if strings.TrimSpace(answer) == "all" {
			return nil
		}
	}
	return errors.New("nothing was deleted: type all to confirm, or use --yes")
}
