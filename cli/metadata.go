package cli

import (
	"errors"
	"strings"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
	"github.com/cadastre-dev/cadastre/internal/lists"
)

type metadataCommand struct {
	List     metadataListCommand     `cmd:"" aliases:"get" help:"List the metadata of a resource." example:"cadastre metadata list home ;; cadastre metadata list home cost_center share_protocol -o json"`
	Show     metadataShowCommand     `cmd:"" help:"Show one metadata item of a resource." example:"cadastre metadata show home cost_center ;; cadastre metadata show home cost_center -o value -c value"`
	Set      metadataSetCommand      `cmd:"" help:"Set metadata items of a resource; the others stay." example:"cadastre metadata set home ticket=4711 reviewed=yes ;; cadastre metadata set home site=fra1 --service-owned"`
	Replace  metadataReplaceCommand  `cmd:"" help:"Replace the metadata of a resource: items that are not named are deleted." example:"cadastre metadata replace ci-cache cost_center=DE-4100 purpose=cache"`
	Delete   metadataDeleteCommand   `cmd:"" aliases:"unset" help:"Delete metadata items of a resource; asks first." example:"cadastre metadata delete home ticket reviewed --yes"`
	Keys     metadataKeysCommand     `cmd:"" help:"List the metadata keys that resources have, and how many have each." example:"cadastre metadata keys --type physical:host"`
	Check    metadataCheckCommand    `cmd:"" help:"Check metadata against their definitions, before they are written." example:"cadastre metadata check OS::Nova::Flavor hw:cpu_sockets=2 hw:cpu_cores=0"`
	Problems metadataProblemsCommand `cmd:"" help:"List metadata that break the definitions that they now have." example:"cadastre metadata problems --type physical:host --rule enum"`
}

// itemColumns are the columns of metadata items.
func itemColumns() []column { return columnsOf("key value userModifiable") }

type metadataListCommand struct {
	common
	Resource string   `arg:"" ref:"resource" help:"The uuid or the name of the resource, or the beginning of one."`
	Keys     []string `arg:"" optional:"" sep:"none" help:"Only these keys."`
}

func (c *metadataListCommand) Run(run *session) error {
	items, err := itemsOf(run, c, &c.Resource, c.Keys)
	if err != nil {
		return err
	}
	return list(run, itemColumns(), items)
}

// itemsOf returns the metadata of the resource of a command: of some keys, or all
// without any.
func itemsOf(run *session, command any, resource *string, keys []string) ([]*client.Item, error) {
	if err := run.resolve(command); err != nil {
		return nil, err
	}
	answer, err := client.ReadMetadata(run.ctx, run.api, *resource, keys)
	if err != nil {
		return nil, err
	}
	if answer.Resource == nil {
		return nil, missing("resource", *resource)
	}
	return answer.Resource.Metadata, nil
}

type metadataShowCommand struct {
	common
	Resource string `arg:"" ref:"resource" help:"The uuid or the name of the resource, or the beginning of one."`
	Key      string `arg:"" help:"The key."`
}

func (c *metadataShowCommand) Run(run *session) error {
	items, err := itemsOf(run, c, &c.Resource, []string{c.Key})
	if err != nil {
		return err
	}
	if len(items) == 0 {
		return missing("metadata item", c.Key)
	}
	return one(run, itemColumns(), items[0])
}

type metadataSetCommand struct {
	common
	Resource     string   `arg:"" ref:"resource" at:"input.resource" help:"The uuid or the name of the resource, or the beginning of one."`
	Items        []string `arg:"" sep:"none" at:"input.items" help:"Items as KEY=VALUE."`
	ServiceOwned bool     `xor:"owner" help:"Only administrators and services change these items from now on."`
	UserOwned    bool     `xor:"owner" help:"Users may change these items from now on."`
	Revision     *int     `at:"input.revision" placeholder:"N" help:"Only if the resource has this revision."`
}

func (c *metadataSetCommand) Run(run *session) error {
	input, err := argument[client.SetMetadataInput](run, c, "input")
	if err != nil {
		return err
	}
	if c.ServiceOwned || c.UserOwned {
		input.UserModifiable = optional.Value(c.UserOwned)
	}
	answer, err := client.SetMetadata(run.ctx, run.api, input)
	if err != nil {
		return err
	}
	return list(run, itemColumns(), answer.SetMetadata.Resource.Metadata)
}

type metadataReplaceCommand struct {
	common
	deletion
	Resource            string   `arg:"" ref:"resource" at:"input.resource" help:"The uuid or the name of the resource, or the beginning of one."`
	Items               []string `arg:"" optional:"" sep:"none" at:"input.items" help:"Items as KEY=VALUE; none deletes all, after asking."`
	IncludeServiceOwned bool     `at:"input.includeServiceOwned" help:"Replace items that only administrators and services change, too."`
	Revision            *int     `at:"input.revision" placeholder:"N" help:"Only if the resource has this revision."`
}

func (c *metadataReplaceCommand) Run(run *session) error {
	input, err := argument[client.ReplaceMetadataInput](run, c, "input")
	if err != nil {
		return err
	}
	if len(input.Items) == 0 {
		input.Items = []*client.KeyValueInput{}
		if err := c.confirm(run, "yes", "Delete all metadata of the resource %s?", c.Resource); err != nil {
			return err
		}
	}
	answer, err := client.ReplaceMetadata(run.ctx, run.api, input)
	if err != nil {
		return err
	}
	metadata, retained := answer.ReplaceMetadata.Resource.Metadata, answer.ReplaceMetadata.Retained
	if run.out.isData() {
		return one(run, columnsOf("metadata retained"), replaced{metadata, retained})
	}
	if len(retained) > 0 {
		keys := lists.Map(retained, func(item *client.Item) string { return printable(item.Key) })
		run.notef("kept, because only administrators and services change them: %s\n", strings.Join(keys, ", "))
	}
	return list(run, itemColumns(), metadata)
}

// replaced is the metadata after a replacement, and of those the items that were
// not named and are retained.
type replaced struct {
	Metadata []*client.Item `json:"metadata"`
	Retained []*client.Item `json:"retained"`
}

type metadataDeleteCommand struct {
	common
	deletion
	Resource string   `arg:"" ref:"resource" at:"input.resource" help:"The uuid or the name of the resource, or the beginning of one."`
	Keys     []string `arg:"" sep:"none" at:"input.keys" help:"The keys."`
	Revision *int     `at:"input.revision" placeholder:"N" help:"Only if the resource has this revision."`
}

func (c *metadataDeleteCommand) Run(run *session) error {
	if err := c.confirm(run, "yes", "Delete %s of the resource %s?", quoted(c.Keys), c.Resource); err != nil {
		return err
	}
	answer, err := change(run, c, client.DeleteMetadata)
	if err != nil {
		return err
	}
	return list(run, itemColumns(), answer.DeleteMetadata.Resource.Metadata)
}

type metadataKeysCommand struct {
	common
	paging
	Type   *string `at:"resourceType" of:"resource-type" placeholder:"NAME" help:"Only of resources of this type."`
	Search *string `at:"search" placeholder:"TEXT" help:"Only keys with this text in them."`
}

func (c *metadataKeysCommand) Run(run *session) error {
	keys, err := client.Collect(client.MetadataKeys(run.ctx, run.api, nil, c.Type, c.Search, c.first()), c.Limit)
	if err != nil {
		return err
	}
	return list(run, columnsOf("key resourceCount"), keys)
}

type metadataCheckCommand struct {
	common
	Type   string   `arg:"" at:"resourceType" of:"resource-type" help:"The name of the resource type."`
	Items  []string `arg:"" sep:"none" at:"values" help:"Items as KEY=VALUE."`
	Target *string  `at:"target" placeholder:"NAME" help:"Only definitions for this properties target."`
}

// Run shows what is wrong with each item, and fails where one is not accepted.
func (c *metadataCheckCommand) Run(run *session) error {
	values, err := keyValues(c.Items)
	if err != nil {
		return err
	}
	answer, err := client.ValidateMetadata(run.ctx, run.api, &c.Type, c.Target, values, nil, nil)
	if err != nil {
		return err
	}
	report := answer.ValidateMetadata
	if err := list(run, columnsOf("key accepted problems=violations.message +rules=violations.rule custom=isCustom suggestion"), report.Items); err != nil {
		return err
	}
	if !report.Accepted {
		return inputError{errors.New("the metadata break their definitions")}
	}
	return nil
}
