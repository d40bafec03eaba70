package cli

import (
	"fmt"
	"strings"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/internal/lists"
)

type metadataCommand struct {
	Get      metadataGetCommand      `cmd:"" help:"Show the metadata of a resource."`
	Set      metadataSetCommand      `cmd:"" help:"Set metadata items of a resource; the others stay."`
	Replace  metadataReplaceCommand  `cmd:"" help:"Replace the metadata of a resource: items that are not named are deleted."`
	Problems metadataProblemsCommand `cmd:"" help:"List metadata that break the definitions that they now have."`
	Unset    metadataUnsetCommand    `cmd:"" help:"Delete metadata items of a resource; asks first."`
}

func showItems(run *session, form output, items []*client.Item) error {
	return show(run.stdout, form, items, []string{"KEY", "VALUE", "USERS MAY CHANGE"}, func(item *client.Item) []string {
		return []string{item.Key, item.Value, yesOrNo(item.UserModifiable)}
	})
}

// keyValues returns the items that are written as KEY=VALUE.
func keyValues(arguments []string) ([]*client.KeyValueInput, error) {
	items := []*client.KeyValueInput{}
	for _, argument := range arguments {
		key, value, ok := strings.Cut(argument, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not of the form KEY=VALUE", argument)
		}
		items = append(items, &client.KeyValueInput{Key: key, Value: value})
	}
	return items, nil
}

type metadataGetCommand struct {
	remote
	output
	Resource string   `arg:"" help:"The uuid of the resource."`
	Keys     []string `arg:"" optional:"" sep:"none" help:"Only these keys."`
}

func (c *metadataGetCommand) Run(run *session) error {
	answer, err := client.ReadMetadata(run.ctx, c.client(), c.Resource, c.Keys)
	if err != nil {
		return c.explained(err)
	}
	if answer.Resource == nil {
		return fmt.Errorf("resource %s does not exist", c.Resource)
	}
	return showItems(run, c.output, answer.Resource.Metadata)
}

type metadataSetCommand struct {
	remote
	output
	Resource string   `arg:"" help:"The uuid of the resource."`
	Items    []string `arg:"" sep:"none" help:"Items as KEY=VALUE."`
}

func (c *metadataSetCommand) Run(run *session) error {
	items, err := keyValues(c.Items)
	if err != nil {
		return err
	}
	answer, err := client.SetMetadata(run.ctx, c.client(), &client.SetMetadataInput{Resource: c.Resource, Items: items})
	if err != nil {
		return c.explained(err)
	}
	return showItems(run, c.output, answer.SetMetadata.Resource.Metadata)
}

type metadataReplaceCommand struct {
	remote
	output
	deletion
	Resource            string   `arg:"" help:"The uuid of the resource."`
	Items               []string `arg:"" optional:"" sep:"none" help:"Items as KEY=VALUE; none deletes all, after asking."`
	IncludeServiceOwned bool     `help:"Replace items that only administrators and services change, too."`
}

func (c *metadataReplaceCommand) Run(run *session) error {
	items, err := keyValues(c.Items)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		if err := c.confirm(run, "yes", "Delete all metadata of the resource %s?", c.Resource); err != nil {
			return err
		}
	}
	answer, err := client.ReplaceMetadata(run.ctx, c.client(), &client.ReplaceMetadataInput{
		Resource: c.Resource, Items: items, IncludeServiceOwned: c.IncludeServiceOwned,
	})
	if err != nil {
		return c.explained(err)
	}
	metadata, retained := answer.ReplaceMetadata.Resource.Metadata, answer.ReplaceMetadata.Retained
	if c.Output == "json" {
		return showJSON(run.stdout, replaced{metadata, retained})
	}
	if len(retained) > 0 {
		keys := lists.Map(retained, func(item *client.Item) string { return printable(item.Key) })
		run.notef("kept, because only administrators and services change them: %s\n", strings.Join(keys, ", "))
	}
	return showItems(run, c.output, metadata)
}

// replaced is the JSON of the metadata after a replacement, and of those items
// that were not named and are retained.
type replaced struct {
	Metadata []*client.Item `json:"metadata"`
	Retained []*client.Item `json:"retained"`
}

type metadataUnsetCommand struct {
	remote
	output
	deletion
	Resource string   `arg:"" help:"The uuid of the resource."`
	Keys     []string `arg:"" sep:"none" help:"The keys."`
}

func (c *metadataUnsetCommand) Run(run *session) error {
	if err := c.confirm(run, "yes", "Delete %s of the resource %s?", quoted(c.Keys), c.Resource); err != nil {
		return err
	}
	answer, err := client.DeleteMetadata(run.ctx, c.client(), &client.DeleteMetadataInput{Resource: c.Resource, Keys: c.Keys})
	if err != nil {
		return c.explained(err)
	}
	return showItems(run, c.output, answer.DeleteMetadata.Resource.Metadata)
}
