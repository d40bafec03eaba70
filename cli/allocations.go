package cli

import (
	"strings"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
)

type allocationSetCommand struct {
	common
	deletion
	Consumer    string   `arg:"" ref:"consumer" at:"input.consumers[0].uuid" help:"The uuid of the consumer, or the name of its resource."`
	Allocations []string `name:"allocation" required:"" sep:"none" at:"input.consumers[0].allocations" placeholder:"rp=PROVIDER,CLASS=AMOUNT,..." help:"What a provider gives; can be given several times, also of one provider."`
	Project     *string  `at:"input.consumers[0].projectId" placeholder:"ID" help:"The id of the project that pays; required for a new consumer."`
	User        *string  `at:"input.consumers[0].userId" placeholder:"ID" help:"The id of the user; required for a new consumer."`
	Type        *string  `at:"input.consumers[0].type" placeholder:"TYPE" help:"What kind of consumer it is, such as INSTANCE."`
	Generation  *int     `at:"input.consumers[0].generation" placeholder:"N" help:"Only if the consumer has this generation; that which was read when absent."`
}

func (c *allocationSetCommand) Run(run *session) error {
	if err := run.resolve(c); err != nil {
		return err
	}
	allocations, err := c.parsed(run)
	if err != nil {
		return err
	}
	input := &client.ConsumerAllocationsInput{Uuid: c.Consumer, Type: optional.From(c.Type), Generation: optional.From(c.Generation), Allocations: allocations}
	answer, err := client.ReadConsumer(run.ctx, run.api, c.Consumer)
	if err != nil {
		return err
	}
	if of := answer.Consumer; of != nil {
		if err := c.confirm(run, "yes", "Replace the allocations of the consumer %s?", c.Consumer); err != nil {
			return err
		}
		input.ProjectId, input.UserId = of.ProjectId, of.UserId
		if c.Generation == nil {
			input.Generation = optional.Value(of.Generation)
		}
	} else if c.Project == nil || c.User == nil {
		return usagef("the consumer is new: say --project and --user")
	}
	if c.Project != nil {
		input.ProjectId = *c.Project
	}
	if c.User != nil {
		input.UserId = *c.User
	}
	set, err := client.SetAllocations(run.ctx, run.api, &client.SetAllocationsInput{Consumers: []*client.ConsumerAllocationsInput{input}})
	if err != nil {
		return err
	}
	var all []*client.Allocation
	for _, of := range set.SetAllocations.Consumers {
		all = append(all, of.Allocations...)
	}
	return list(run, columnsOf(nounNamed("allocation").columns), all)
}

// parsed returns what is written as rp=PROVIDER,CLASS=AMOUNT,CLASS=AMOUNT, by
// provider.
func (c *allocationSetCommand) parsed(run *session) (all []*client.ProviderAllocationInput, err error) {
	byProvider := map[string]*client.ProviderAllocationInput{}
	for _, text := range c.Allocations {
		name, amounts, _ := strings.Cut(text, ",")
		provider, ok := strings.CutPrefix(name, "rp=")
		if !ok || amounts == "" || provider == "" {
			return nil, usagef("--allocation: %q is not of the form rp=PROVIDER,CLASS=AMOUNT", text)
		}
		if err := run.resolveText("provider", &provider); err != nil {
			return nil, err
		}
		of := byProvider[provider]
		if of == nil {
			of = &client.ProviderAllocationInput{Provider: provider}
			byProvider[provider] = of
			all = append(all, of)
		}
		for _, amount := range strings.Split(amounts, ",") {
			resources, err := amountOf(amount)
			if err != nil {
				return nil, usagef("--allocation: %w", err)
			}
			of.Resources = append(of.Resources, resources)
		}
	}
	return all, nil
}
