package cli

import (
	"fmt"
	"strconv"

	"github.com/cadastre-dev/cadastre/client"
)

type capabilityCommand struct {
	List   capabilityListCommand   `cmd:"" help:"List the capabilities of a resource type."`
	Get    capabilityGetCommand    `cmd:"" help:"Show the values of one capability."`
	Set    capabilitySetCommand    `cmd:"" help:"Set who discovers a capability."`
	Create capabilityCreateCommand `cmd:"" help:"Register a capability."`
}

// shownCapability is the JSON of a capability.
type shownCapability struct {
	Name       string               `json:"name"`
	Private    bool                 `json:"private"`
	ValueCount *int                 `json:"valueCount,omitempty"`
	Values     []*client.ValueInUse `json:"values,omitempty"`
}

type capabilityListCommand struct {
	remote
	output
	Type   string `arg:"" help:"The name of the resource type, such as physical:host."`
	All    bool   `help:"Private ones, too; only administrators see them."`
	Detail bool   `help:"With the values in use."`
}

func (c *capabilityListCommand) Run(run *session) error {
	answer, err := client.ListCapabilities(run.ctx, c.client(), c.Type, c.All, c.Detail)
	if err != nil {
		return c.explained(err)
	}
	if answer.ResourceType == nil {
		return fmt.Errorf("resource type %q does not exist", c.Type)
	}
	var shown []shownCapability
	for _, of := range answer.ResourceType.Capabilities {
		one := shownCapability{Name: of.Name, Private: of.Private, ValueCount: &of.ValueCount}
		if c.Detail {
			one.Values = of.Values.Nodes
			if of.Values.PageInfo.HasNextPage {
				if one.Values, err = c.allValues(run, c.Type, of.Name, of.Values.Nodes, of.Values.PageInfo.EndCursor); err != nil {
					return err
				}
			}
		}
		shown = append(shown, one)
	}
	if !c.Detail || c.Output == "json" {
		return show(run.stdout, c.output, shown, []string{"NAME", "PRIVATE", "VALUES"}, func(of shownCapability) []string {
			return []string{of.Name, yesOrNo(of.Private), strconv.Itoa(*of.ValueCount)}
		})
	}
	var rows [][]string
	for _, of := range shown {
		for _, value := range of.Values {
			rows = append(rows, []string{of.Name, yesOrNo(of.Private), value.Value, strconv.Itoa(value.ResourceCount)})
		}
	}
	return show(run.stdout, c.output, rows, []string{"NAME", "PRIVATE", "VALUE", "RESOURCES"}, func(row []string) []string { return row })
}

type capabilityGetCommand struct {
	remote
	output
	Type string `arg:"" help:"The name of the resource type."`
	Name string `arg:"" help:"The name of the capability."`
}

func (c *capabilityGetCommand) Run(run *session) error {
	answer, err := client.ReadCapability(run.ctx, c.client(), c.Type, c.Name, nil)
	if err != nil {
		return c.explained(err)
	}
	if answer.ResourceType == nil {
		return fmt.Errorf("resource type %q does not exist", c.Type)
	}
	of := answer.ResourceType.Capability
	if of == nil {
		return unknownCapability(c.Type, c.Name)
	}
	values := of.Values.Nodes
	if of.Values.PageInfo.HasNextPage {
		if values, err = c.allValues(run, c.Type, c.Name, values, of.Values.PageInfo.EndCursor); err != nil {
			return err
		}
	}
	if c.Output == "json" {
		return show(run.stdout, c.output, []shownCapability{{of.Name, of.Private, &of.ValueCount, values}}, nil, nil)
	}
	return show(run.stdout, c.output, values, []string{"VALUE", "RESOURCES"}, func(value *client.ValueInUse) []string {
		return []string{value.Value, strconv.Itoa(value.ResourceCount)}
	})
}

func unknownCapability(resourceType, name string) error {
	return fmt.Errorf("capability %q of the resource type %s does not exist", name, resourceType)
}

// allValues returns the values of a capability: those that were read, and all
// after the cursor.
func (r remote) allValues(run *session, resourceType, name string, values []*client.ValueInUse, after *string) ([]*client.ValueInUse, error) {
	for after != nil {
		answer, err := client.ReadCapability(run.ctx, r.client(), resourceType, name, after)
		if err != nil {
			return nil, r.explained(err)
		}
		if answer.ResourceType == nil || answer.ResourceType.Capability == nil { // deleted meanwhile
			return nil, unknownCapability(resourceType, name)
		}
		page := answer.ResourceType.Capability.Values
		values = append(values, page.Nodes...)
		after = nil
		if page.PageInfo.HasNextPage {
			after = page.PageInfo.EndCursor
		}
	}
	return values, nil
}

type capabilitySetCommand struct {
	remote
	output
	Type    string `arg:"" help:"The name of the resource type."`
	Name    string `arg:"" help:"The name of the capability."`
	Private bool   `required:"" xor:"visibility" help:"Only administrators discover it."`
	Public  bool   `required:"" xor:"visibility" help:"Everyone discovers it who may discover capabilities."`
}

func (c *capabilitySetCommand) Run(run *session) error {
	answer, err := client.SetCapabilityVisibility(run.ctx, c.client(), &client.SetCapabilityVisibilityInput{
		ResourceType: c.Type, Name: c.Name, Private: c.Private,
	})
	if err != nil {
		return c.explained(err)
	}
	of := answer.SetCapabilityVisibility.Capability
	return showVisibility(run, c.output, of.Name, of.Private)
}

type capabilityCreateCommand struct {
	remote
	output
	Type    string `arg:"" help:"The name of the resource type."`
	Name    string `arg:"" help:"The name of the capability, 1 to 255 characters."`
	Private bool   `xor:"visibility" help:"Only administrators discover it."`
	Public  bool   `xor:"visibility" help:"Everyone discovers it who may discover capabilities. With neither flag the server's default holds."`
}

func (c *capabilityCreateCommand) Run(run *session) error {
	input := &client.CreateCapabilityInput{ResourceType: c.Type, Name: c.Name}
	if c.Private || c.Public {
		input.Private = &c.Private
	}
	answer, err := client.CreateCapability(run.ctx, c.client(), input)
	if err != nil {
		return c.explained(err)
	}
	of := answer.CreateCapability.Capability
	return showVisibility(run, c.output, of.Name, of.Private)
}

func showVisibility(run *session, form output, name string, private bool) error {
	return show(run.stdout, form, []shownCapability{{Name: name, Private: private}}, []string{"NAME", "PRIVATE"}, func(of shownCapability) []string {
		return []string{of.Name, yesOrNo(of.Private)}
	})
}
