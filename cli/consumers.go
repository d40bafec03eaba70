package cli

import (
	"strings"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
)

type allocationCommand struct {
	List   allocationListCommand   `cmd:"" help:"List the allocations of a consumer, or on a provider." example:"cadastre allocation list --consumer wiki ;; cadastre allocation list --provider compute-01:numa0 --limit 3"`
	Set    allocationSetCommand    `cmd:"" help:"Replace the allocations of a consumer; asks first where it has some." example:"cadastre allocation set 7c0f8a10-6a0f-4b5e-9d7e-2f4c1b9a3e55 --allocation rp=lab-host,VCPU=2 --project demo --user ada --type INSTANCE ;; cadastre allocation set 7c0f8a10-6a0f-4b5e-9d7e-2f4c1b9a3e55 --allocation rp=lab-host,VCPU=4 --yes"`
	Delete allocationDeleteCommand `cmd:"" help:"Delete the allocations of a consumer, and so the consumer; asks first." example:"cadastre allocation delete 7c0f8a10-6a0f-4b5e-9d7e-2f4c1b9a3e55 --yes"`
}

// allocationColumns are the columns of allocations.
func allocationColumns() []column {
	return columnsOf("provider=provider.name resourceClass used consumer=consumer.uuid project=consumer.projectId +user=consumer.userId +type=consumer.type +providerUuid=provider.uuid")
}

type allocationListCommand struct {
	common
	paging
	Consumer string `xor:"of" ref:"consumer" placeholder:"CONSUMER" help:"Those of this consumer: its uuid, or the name of its resource."`
	Provider string `xor:"of" ref:"provider" placeholder:"PROVIDER" help:"Those on this provider."`
}

func (c *allocationListCommand) Run(run *session) error {
	if err := run.resolve(c); err != nil {
		return err
	}
	var all []*client.Allocation
	var err error
	switch {
	case c.Provider != "":
		all, err = client.Collect(client.AllocationsOf(run.ctx, run.api, c.Provider, c.first()), c.Limit)
	case c.Consumer != "":
		var of *client.Consumer
		if of, err = readConsumer(run, c.Consumer); err == nil {
			all = of.Allocations
		}
	default:
		return usagef("say whose: --consumer or --provider")
	}
	if err != nil {
		return err
	}
	return list(run, allocationColumns(), all)
}

// readConsumer returns a consumer.
func readConsumer(run *session, uuid string) (*client.Consumer, error) {
	answer, err := client.ReadConsumer(run.ctx, run.api, uuid)
	if err != nil {
		return nil, err
	}
	if answer.Consumer == nil {
		return nil, missing("consumer", uuid)
	}
	return answer.Consumer, nil
}

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
	return list(run, allocationColumns(), all)
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

type allocationDeleteCommand struct {
	common
	deletion
	Consumer string `arg:"" ref:"consumer" at:"input.consumer" help:"The uuid of the consumer, or the name of its resource."`
}

func (c *allocationDeleteCommand) Run(run *session) error {
	if err := run.resolve(c); err != nil {
		return err
	}
	if err := c.confirm(run, "yes", "Delete all allocations of the consumer %s?", c.Consumer); err != nil {
		return err
	}
	answer, err := change(run, c, client.DeleteAllocations)
	if err != nil {
		return err
	}
	return list(run, consumerColumns(), []*client.Consumer{answer.DeleteAllocations.Consumer})
}

type consumerCommand struct {
	List consumerListCommand `cmd:"" help:"List consumers." example:"cadastre consumer list --project demo --limit 3 ;; cadastre consumer list --provider compute-01:numa0 -q"`
	Show consumerShowCommand `cmd:"" help:"Show a consumer with its allocations." example:"cadastre consumer show wiki"`
}

// consumerColumns are the columns of consumers.
func consumerColumns() []column {
	return columnsOf("uuid resource=resource.name projectId userId type generation +allocations +createdAt +updatedAt")
}

type consumerListCommand struct {
	common
	paging
	sorting
	Project  *string `at:"filter.projectId" placeholder:"ID" help:"Only of the project with this id."`
	User     *string `at:"filter.userId" placeholder:"ID" help:"Only of the user with this id."`
	Type     *string `at:"filter.type" placeholder:"TYPE" help:"Only of this type."`
	Provider *string `at:"filter.provider" ref:"provider" placeholder:"PROVIDER" help:"Only with an allocation on this provider."`
}

func (c *consumerListCommand) Run(run *session) error {
	filter, err := argument[client.ConsumerFilter](run, c, "filter")
	if err != nil {
		return err
	}
	order, err := orderOf[client.ConsumerOrder](c.sorting)
	if err != nil {
		return err
	}
	all, err := client.Collect(client.Consumers(run.ctx, run.api, filter, order, c.first()), c.Limit)
	if err != nil {
		return err
	}
	return list(run, consumerColumns(), all)
}

type consumerShowCommand struct {
	common
	Consumer string `arg:"" ref:"consumer" help:"The uuid of the consumer, or the name of its resource."`
}

func (c *consumerShowCommand) Run(run *session) error {
	if err := run.resolve(c); err != nil {
		return err
	}
	of, err := readConsumer(run, c.Consumer)
	if err != nil {
		return err
	}
	return one(run, consumerColumns(), of)
}

type usageCommand struct {
	List usageListCommand `cmd:"" help:"List what consumers use, by project, user or type." example:"cadastre usage list ;; cadastre usage list --by project --type INSTANCE -c projectId,consumers,usages"`
	Show usageShowCommand `cmd:"" help:"Show what is used of a provider." example:"cadastre usage show compute-01:numa0"`
}

type usageListCommand struct {
	common
	Limit   int     `placeholder:"N" help:"At most so many rows; 0, the default, is all."`
	By      string  `at:"groupBy" default:"type" enum:"project,user,type" help:"What the consumers of a row have in common: ${enum}."`
	Project *string `at:"projectId" placeholder:"ID" help:"Only of the project with this id."`
	User    *string `at:"userId" placeholder:"ID" help:"Only of the user with this id."`
	Type    *string `at:"consumerType" placeholder:"TYPE" help:"Only of this type."`
}

func (c *usageListCommand) Run(run *session) error {
	all, err := client.Collect(client.Usages(run.ctx, run.api, c.Project, c.User, c.Type, client.UsageGrouping(constant(c.By))), c.Limit)
	if err != nil {
		return err
	}
	columns := map[string]string{
		"project": "projectId consumers=consumerCount usages +userId +consumerType",
		"user":    "userId consumers=consumerCount usages +projectId +consumerType",
		"type":    "consumerType consumers=consumerCount usages +projectId +userId",
	}
	return list(run, columnsOf(columns[c.By]), all)
}

type usageShowCommand struct {
	common
	oneProvider
}

func (c *usageShowCommand) Run(run *session) error {
	provider, err := readProvider(run, c, &c.Provider)
	if err != nil {
		return err
	}
	return list(run, columnsOf("resourceClass used capacity free"), provider.Inventories)
}

type capacityCommand struct {
	List capacityListCommand `cmd:"" help:"List what all providers together have, by resource class, aggregate, trait or tree." example:"cadastre capacity list ;; cadastre capacity list --by root --class VCPU --required HW_CPU_X86_AVX512F --limit 3"`
}

type capacityListCommand struct {
	common
	paging
	providerFilter
	By      string   `at:"groupBy" default:"resource-class" enum:"resource-class,aggregate,trait,root" help:"What the providers of a row have in common: ${enum}."`
	Classes []string `name:"class" at:"resourceClasses" of:"resource-class" sep:"none" placeholder:"CLASS" help:"Only of this resource class; can be given several times."`
}

func (c *capacityListCommand) Run(run *session) error {
	filter, err := c.filter(run, c)
	if err != nil {
		return err
	}
	all, err := client.Collect(client.Capacities(run.ctx, run.api, filter, client.CapacityGrouping(constant(c.By)), c.Classes, c.first()), c.Limit)
	if err != nil {
		return err
	}
	return list(run, capacityColumns(c.By), all)
}

// capacityColumns are the columns of sums of capacity, by what their providers have
// in common.
func capacityColumns(by string) []column {
	group := map[string]string{"resource-class": "", "aggregate": "aggregate ", "trait": "trait ", "root": "root=root.name "}
	return columnsOf(group[by] + "resourceClass total reserved capacity used free providers +shareUsed")
}

type auditCommand struct {
	List auditListCommand `cmd:"" help:"List the events of the audit log, the newest first." example:"cadastre audit list --kind resource-provider --since 1h -c action,key ;; cadastre audit list --action createNamespace --key Lab::Racks -c action,userId,kind"`
	Show auditShowCommand `cmd:"" help:"Show an event of the audit log, with what was before and after." example:"cadastre audit show \"$(cadastre audit list --action createTrait --limit 1 -c id -o value)\" -c action,userId,key,before,after"`
}

// auditColumns are the columns of events.
func auditColumns() []column {
	return columnsOf("createdAt userId projectId action kind key +id +before +after")
}

type auditListCommand struct {
	common
	paging
	User    *string `at:"filter.userId" placeholder:"ID" help:"Only done by this user."`
	Project *string `at:"filter.projectId" placeholder:"ID" help:"Only done for this project."`
	Action  *string `at:"filter.action" placeholder:"NAME" help:"Only done by this mutation, such as createNamespace."`
	Kind    *string `at:"filter.kind" placeholder:"KIND" help:"Only done to a thing of this kind, such as namespace or resource-provider."`
	Key     *string `at:"filter.key" placeholder:"KEY" help:"Only done to the thing with this name or uuid."`
	Since   *string `at:"filter.since" placeholder:"TIME" help:"Only done at this time or later: 2026-01-31T12:00:00Z, 2026-01-31, or 2h for two hours ago."`
	Until   *string `at:"filter.until" placeholder:"TIME" help:"Only done before this time."`
}

func (c *auditListCommand) Run(run *session) error {
	filter, err := argument[client.AuditFilter](run, c, "filter")
	if err != nil {
		return err
	}
	all, err := client.Collect(client.AuditEvents(run.ctx, run.api, filter, c.first()), c.Limit)
	if err != nil {
		return err
	}
	return list(run, auditColumns(), all)
}

type auditShowCommand struct {
	common
	ID string `arg:"" name:"id" at:"id" help:"The id of the event, which audit list -c id shows."`
}

func (c *auditShowCommand) Run(run *session) error {
	answer, err := client.ReadAuditEvent(run.ctx, run.api, c.ID)
	if err != nil {
		return err
	}
	if answer.Node == nil {
		return missing("audit event", c.ID)
	}
	event, ok := (*answer.Node).(*client.ReadAuditEventNodeAuditEvent)
	if !ok {
		return missing("audit event", c.ID)
	}
	return one(run, auditColumns(), event)
}
