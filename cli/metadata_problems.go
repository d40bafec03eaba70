package cli

import (
	"fmt"
	"strings"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
)

type metadataProblemsCommand struct {
	common
	Namespace *string  `at:"filter.namespace" of:"namespace" placeholder:"NAME" help:"Only what breaks a definition of the namespace of this name."`
	Key       *string  `at:"filter.key" placeholder:"KEY" help:"Only items with this key."`
	Rule      *string  `at:"filter.rule" placeholder:"RULE" help:"Only what breaks this rule, such as maximum or enum."`
	Types     []string `name:"type" at:"filter.resources.types" of:"resource-type" placeholder:"NAME" sep:"none" help:"Only resources of the type of this name; can be given several times."`
	Projects  []string `name:"project" at:"filter.resources.projectIds" placeholder:"ID" sep:"none" help:"Only resources of the project with this id; can be given several times."`
}

// brokenItem is an item that breaks a rule, as it is shown.
type brokenItem struct {
	Resource  string               `json:"resource"`
	Name      string               `json:"name"`
	Type      string               `json:"type"`
	Key       string               `json:"key"`
	Value     string               `json:"value"`
	Rule      client.ViolationRule `json:"rule"`
	Message   string               `json:"message"`
	Namespace *string              `json:"namespace"`
}

// brokenItems returns what is wrong with resources, item by item.
func brokenItems(resources []*client.BrokenResource) (items []*brokenItem) {
	for _, of := range resources {
		for _, problem := range of.Problems {
			items = append(items, &brokenItem{of.Resource.Uuid, of.Resource.Name, of.Resource.Type.Name,
				problem.Key, problem.Value, problem.Rule, problem.Message, problem.Namespace})
		}
	}
	return items
}

// wouldBreak says that a change would break the item.
func (b *brokenItem) wouldBreak() string {
	return fmt.Sprintf("would break: %s %s (%s): %s=%s: %s\n", b.Type, printable(b.Name), b.Resource, printable(b.Key), printable(b.Value), printable(b.Message))
}

// Run walks all pages and shows every problem.
func (c *metadataProblemsCommand) Run(run *session) error {
	filter := &client.MetadataProblemFilter{Namespace: optional.From(c.Namespace), Key: optional.From(c.Key)}
	if c.Rule != nil {
		filter.Rule = optional.Value(client.ViolationRule(strings.ToUpper(strings.ReplaceAll(*c.Rule, "-", "_"))))
	}
	var among *client.ResourceFilter
	if c.Types != nil || c.Projects != nil {
		among = &client.ResourceFilter{Types: optional.List(c.Types), ProjectIds: optional.List(c.Projects)}
		filter.Resources = optional.Value(*among)
	}
	to := run.api
	counted, err := client.CountResources(run.ctx, to, among)
	if err != nil {
		return err
	}
	done := run.progress("looking through resources", counted.Resources.TotalCount)
	defer done.end()
	var items []*brokenItem
	resources, scanned := 0, 0
	for after := (*string)(nil); ; {
		answer, err := client.MetadataProblems(run.ctx, to, filter, after)
		if err != nil {
			return err
		}
		page := answer.MetadataProblems
		items, resources, scanned = append(items, brokenItems(page.Nodes)...), resources+len(page.Nodes), scanned+page.Scanned
		done.add(page.Scanned)
		if page.Complete {
			break
		}
		after = page.ScannedTo
	}
	done.end()
	if err := list(run, columnsOf("resource name type key value rule message +namespace"), items); err != nil {
		return err
	}
	run.notef("%s, of %d looked through\n", broken(resources), scanned)
	return nil
}

// broken says how many resources break their definitions.
func broken(resources int) string {
	if resources == 1 {
		return "1 resource breaks its definitions"
	}
	return fmt.Sprintf("%d resources break their definitions", resources)
}
