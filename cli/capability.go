package cli

import (
	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
)

type capabilityCommand struct {
	List     capabilityListCommand     `cmd:"" help:"List the capabilities of a resource type." example:"cadastre capability list physical:host ;; cadastre capability list physical:host --all --detail -o csv"`
	Show     capabilityShowCommand     `cmd:"" aliases:"get" help:"Show the values of one capability." example:"cadastre capability show physical:host gpu"`
	Create   capabilityCreateCommand   `cmd:"" help:"Register a capability." example:"cadastre capability create physical:host cooling --public"`
	Set      capabilitySetCommand      `cmd:"" help:"Set who discovers a capability." example:"cadastre capability set physical:host cooling --private"`
	Delete   capabilityDeleteCommand   `cmd:"" help:"Delete a capability; asks first." example:"cadastre capability delete physical:host cooling --yes"`
	Of       capabilityOfCommand       `cmd:"" help:"List the capabilities of a resource." example:"cadastre capability of compute-19 --all"`
	Assign   capabilityAssignCommand   `cmd:"" help:"Give capabilities with values to a resource; the others stay." example:"cadastre capability assign compute-19 gpu='NVIDIA A2' 'nic=[\"mlx5\", \"ice\"]' -c name,value"`
	Unassign capabilityUnassignCommand `cmd:"" help:"Take capabilities from a resource; asks first." example:"cadastre capability unassign compute-19 nic --yes -q"`
}

// capabilityColumns are the columns of capabilities of a type.
func capabilityColumns() []column { return columnsOf("name private valueCount") }

// valueColumns are the columns of the values of one capability, and of several.
func valueColumns(several bool) []column {
	if several {
		return columnsOf("name private value resourceCount")
	}
	return columnsOf("value resourceCount")
}

// capabilityValue is a value of a capability, as a row of its own.
type capabilityValue struct {
	Name          string `json:"name"`
	Private       bool   `json:"private"`
	Value         string `json:"value"`
	ResourceCount int    `json:"resourceCount"`
}

type capabilityListCommand struct {
	common
	Type   string `arg:"" of:"resource-type" help:"The name of the resource type, such as physical:host."`
	All    bool   `help:"Private ones, too; only administrators see them."`
	Detail bool   `help:"A row for each value in use."`
}

func (c *capabilityListCommand) Run(run *session) error {
	answer, err := client.ListCapabilities(run.ctx, run.api, c.Type, c.All, c.Detail)
	if err != nil {
		return err
	}
	if answer.ResourceType == nil {
		return missing("resource type", c.Type)
	}
	if !c.Detail {
		return list(run, capabilityColumns(), answer.ResourceType.Capabilities)
	}
	var rows []capabilityValue
	for _, of := range answer.ResourceType.Capabilities {
		values := of.Values.Nodes
		if of.Values.PageInfo.HasNextPage {
			if values, err = client.Collect(client.CapabilityValues(run.ctx, run.api, c.Type, of.Name), 0); err != nil {
				return err
			}
		}
		for _, value := range values {
			rows = append(rows, capabilityValue{of.Name, of.Private, value.Value, value.ResourceCount})
		}
	}
	return list(run, valueColumns(true), rows)
}

type capabilityShowCommand struct {
	common
	Type string `arg:"" of:"resource-type" help:"The name of the resource type."`
	Name string `arg:"" of:"capability" help:"The name of the capability."`
}

func (c *capabilityShowCommand) Run(run *session) error {
	answer, err := client.ReadCapability(run.ctx, run.api, c.Type, c.Name, nil)
	if err != nil {
		return err
	}
	if answer.ResourceType == nil {
		return missing("resource type", c.Type)
	}
	of := answer.ResourceType.Capability
	if of == nil {
		return missing("capability of "+c.Type, c.Name)
	}
	values, err := client.Collect(client.CapabilityValues(run.ctx, run.api, c.Type, c.Name), 0)
	if err != nil {
		return err
	}
	if !run.out.isData() {
		return list(run, valueColumns(false), values)
	}
	return one(run, columnsOf("name private values"), struct {
		Name    string               `json:"name"`
		Private bool                 `json:"private"`
		Values  []*client.ValueInUse `json:"values"`
	}{of.Name, of.Private, values})
}

// visibility is who discovers a capability.
type visibility struct {
	Private bool `xor:"visibility" help:"Only administrators discover it."`
	Public  bool `xor:"visibility" help:"Everyone discovers it who may discover capabilities."`
}

type capabilityCreateCommand struct {
	common
	visibility
	Type string `arg:"" at:"input.resourceType" of:"resource-type" help:"The name of the resource type."`
	Name string `arg:"" at:"input.name" help:"The name of the capability, 1 to 255 characters. With neither --private nor --public the server's default holds."`
}

func (c *capabilityCreateCommand) Run(run *session) error {
	input, err := argument[client.CreateCapabilityInput](run, c, "input")
	if err != nil {
		return err
	}
	if c.Private || c.Public {
		input.Private = optional.Value(c.Private)
	}
	answer, err := client.CreateCapability(run.ctx, run.api, input)
	if err != nil {
		return err
	}
	return list(run, columnsOf("name private"), []any{answer.CreateCapability.Capability})
}

type capabilitySetCommand struct {
	common
	visibility
	Type string `arg:"" at:"input.resourceType" of:"resource-type" help:"The name of the resource type."`
	Name string `arg:"" at:"input.name" of:"capability" help:"The name of the capability."`
}

func (c *capabilitySetCommand) Run(run *session) error {
	if !c.Private && !c.Public {
		return usagef("say who discovers it: --private or --public")
	}
	input, err := argument[client.SetCapabilityVisibilityInput](run, c, "input")
	if err != nil {
		return err
	}
	input.Private = c.Private
	answer, err := client.SetCapabilityVisibility(run.ctx, run.api, input)
	if err != nil {
		return err
	}
	return list(run, columnsOf("name private"), []any{answer.SetCapabilityVisibility.Capability})
}

type capabilityDeleteCommand struct {
	common
	deletion
	Type  string `arg:"" at:"input.resourceType" of:"resource-type" help:"The name of the resource type."`
	Name  string `arg:"" at:"input.name" of:"capability" help:"The name of the capability."`
	Force bool   `at:"input.force" help:"Remove the values that resources have of it, too."`
}

func (c *capabilityDeleteCommand) Run(run *session) error {
	if err := c.confirm(run, "yes", "Delete the capability %q of %s?", c.Name, c.Type); err != nil {
		return err
	}
	answer, err := change(run, c, client.DeleteCapability)
	if err != nil {
		return err
	}
	return list(run, columnsOf("name=capability.name private=capability.private removed=removedCount"), []any{answer.DeleteCapability})
}

// ownColumns are the columns of the capabilities of a resource.
func ownColumns() []column { return columnsOf("name value private") }

type capabilityOfCommand struct {
	common
	Resource string `arg:"" ref:"resource" help:"The uuid or the name of the resource, or the beginning of one."`
	All      bool   `help:"Private ones, too; only administrators see them."`
}

func (c *capabilityOfCommand) Run(run *session) error {
	if err := run.resolve(c); err != nil {
		return err
	}
	answer, err := client.ReadResourceCapabilities(run.ctx, run.api, c.Resource, c.All)
	if err != nil {
		return err
	}
	if answer.Resource == nil {
		return missing("resource", c.Resource)
	}
	return list(run, ownColumns(), answer.Resource.Capabilities)
}

type capabilityAssignCommand struct {
	common
	Resource     string   `arg:"" ref:"resource" at:"input.resource" help:"The uuid or the name of the resource, or the beginning of one."`
	Capabilities []string `arg:"" sep:"none" at:"input.capabilities" help:"Capabilities as NAME=VALUE; a value that is a JSON array of texts is a list."`
	Revision     *int     `at:"input.revision" placeholder:"N" help:"Only if the resource has this revision."`
}

func (c *capabilityAssignCommand) Run(run *session) error {
	answer, err := change(run, c, client.SetCapabilities)
	if err != nil {
		return err
	}
	return list(run, ownColumns(), answer.SetCapabilities.Resource.Capabilities)
}

type capabilityUnassignCommand struct {
	common
	deletion
	Resource string   `arg:"" ref:"resource" at:"input.resource" help:"The uuid or the name of the resource, or the beginning of one."`
	Names    []string `arg:"" sep:"none" at:"input.names" help:"The names of capabilities."`
	Revision *int     `at:"input.revision" placeholder:"N" help:"Only if the resource has this revision."`
}

func (c *capabilityUnassignCommand) Run(run *session) error {
	if err := c.confirm(run, "yes", "Take %s from the resource %s?", quoted(c.Names), c.Resource); err != nil {
		return err
	}
	answer, err := change(run, c, client.UnsetCapabilities)
	if err != nil {
		return err
	}
	return list(run, ownColumns(), answer.UnsetCapabilities.Resource.Capabilities)
}
