package cli

import (
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
	"github.com/cadastre-dev/cadastre/internal/lists"
)

type providerCommand struct {
	List   providerListCommand   `cmd:"" help:"List providers." example:"cadastre provider list --roots --required HW_CPU_X86_AVX512F --limit 3 ;; cadastre provider list --has-class VGPU --sort free:desc --by-class VGPU --limit 2 -c name,inventories"`
	Show   providerShowCommand   `cmd:"" help:"Show a provider." example:"cadastre provider show compute-01"`
	Create providerCreateCommand `cmd:"" help:"Create a provider." example:"cadastre provider create lab-host ;; cadastre provider create lab-host:numa0 --parent lab-host -c name,parent,root"`
	Load   providerLoadCommand   `cmd:"" help:"Create many providers with their inventories, traits and aggregates." example:"echo '{\"name\": \"lab-9\", \"traits\": [\"HW_CPU_X86_AVX2\"], \"inventories\": [{\"resourceClass\": \"VCPU\", \"total\": 8}]}' | cadastre provider load - ;; echo '{\"name\": \"lab-9\"}' | cadastre provider load - ;; echo '{\"name\": \"lab-9\", \"traits\": [\"HW_CPU_X86_AVX\"]}' | cadastre provider load --update - ;; echo '{\"name\": \"lab-10\", \"parentName\": \"none\"}' | cadastre provider load -"`
	Set    providerSetCommand    `cmd:"" help:"Change a provider." example:"cadastre provider set lab-host:numa0 --name lab-host:node0 -c name,generation"`
	Delete providerDeleteCommand `cmd:"" help:"Delete providers; asks first." example:"cadastre provider delete lab-host:node0 --yes"`
}

// providerColumns are the columns of providers.
func providerColumns() []column {
	return columnsOf("uuid name generation parent=parent.name root=root.name +traits +aggregates +inventories +createdAt +updatedAt")
}

// providerFilter are the flags that choose providers.
type providerFilter struct {
	Name      *string  `at:"filter.name" placeholder:"NAME" help:"Only with exactly this name."`
	Search    *string  `at:"filter.search" placeholder:"TEXT" help:"Only with this text in the name or the uuid."`
	InTree    *string  `at:"filter.inTree" ref:"provider" placeholder:"PROVIDER" help:"Only in the tree of this provider."`
	Roots     bool     `at:"filter.roots" help:"Only the roots of trees."`
	HasClass  *string  `at:"filter.hasClass" of:"resource-class" placeholder:"CLASS" help:"Only with an inventory of this resource class."`
	Resources []string `name:"resource" at:"filter.resources" of:"resource-class" sep:"none" placeholder:"CLASS=AMOUNT" help:"Only what could give this amount now; can be given several times."`
	Required  []string `of:"trait" sep:"none" placeholder:"TRAITS" help:"Only with these traits: A,B for all, in:A,B for any, !A for without; can be given several times."`
	MemberOf  []string `sep:"none" placeholder:"AGGREGATES" help:"Only in one of these aggregates, separated by commas; !A for not in it. Can be given several times: all must hold."`
	Of        *string  `name:"of" at:"filter.resource" placeholder:"FILTER" help:"Only in trees whose root is a resource that this ResourceFilter of the schema, as JSON or YAML, leaves."`
}

// filter returns what the flags choose; nil for everything.
func (f providerFilter) filter(run *session, command any) (*client.ResourceProviderFilter, error) {
	filter, err := argument[client.ResourceProviderFilter](run, command, "filter")
	if err != nil || f.Required == nil && f.MemberOf == nil {
		return filter, err
	}
	if filter == nil {
		filter = &client.ResourceProviderFilter{}
	}
	traits := traitsOf(f.Required)
	filter.RequiredAll, filter.RequiredAnySets, filter.Forbidden = optional.List(traits.all), optional.List(traits.anySets), optional.List(traits.forbidden)
	filter.MemberOf = optional.List(aggregatesOf(f.MemberOf))
	run.tellOf("filter.", f.Required, f.MemberOf)
	return filter, nil
}

// traits are required and forbidden traits.
type traits struct {
	all, forbidden []string
	anySets        []*client.TraitSetInput
}

// traitsOf returns the traits that are written as A,B for all, in:A,B for any, and
// !A for none.
func traitsOf(written []string) (of traits) {
	for _, text := range written {
		if names, ok := strings.CutPrefix(text, "in:"); ok {
			of.anySets = append(of.anySets, &client.TraitSetInput{AnyOf: strings.Split(names, ",")})
			continue
		}
		for _, name := range strings.Split(text, ",") {
			if forbidden, ok := strings.CutPrefix(name, "!"); ok {
				of.forbidden = append(of.forbidden, forbidden)
			} else {
				of.all = append(of.all, name)
			}
		}
	}
	return of
}

// aggregatesOf returns filters that are written as A,B or in:A,B for any of them,
// and !A or !in:A,B for none of them.
func aggregatesOf(written []string) (of []*client.AggregateFilter) {
	for _, text := range written {
		names, none := strings.CutPrefix(text, "!")
		names = strings.TrimPrefix(names, "in:")
		if filter := (&client.AggregateFilter{}); none {
			filter.NoneOf = optional.List(strings.Split(names, ","))
			of = append(of, filter)
		} else {
			filter.AnyOf = optional.List(strings.Split(names, ","))
			of = append(of, filter)
		}
	}
	return of
}

// tellOf notes which flags traits and aggregates were given with.
func (s *session) tellOf(prefix string, required, memberOf []string) {
	for _, field := range []string{"requiredAll", "requiredAny", "requiredAnySets", "forbidden"} {
		s.tell(prefix+field, "--required "+strings.Join(required, " --required "))
	}
	s.tell(prefix+"memberOf", "--member-of "+strings.Join(memberOf, " --member-of "))
}

type providerListCommand struct {
	common
	paging
	sorting
	providerFilter
	ByClass *string `at:"orderBy.resourceClass" of:"resource-class" placeholder:"CLASS" help:"The resource class whose free amount or used share --sort means."`
}

func (c *providerListCommand) Run(run *session) error {
	filter, err := c.filter(run, c)
	if err != nil {
		return err
	}
	order, err := orderOf[client.ResourceProviderOrder](c.sorting)
	if err != nil {
		return err
	}
	if order != nil {
		order.ResourceClass = optional.From(c.ByClass)
	}
	all, err := client.Collect(client.Providers(run.ctx, run.api, filter, order, c.first()), c.Limit)
	if err != nil {
		return err
	}
	return list(run, providerColumns(), all)
}

// oneProvider is the argument of what is about one provider.
type oneProvider struct {
	Provider string `arg:"" ref:"provider" at:"input.provider" help:"The uuid or the name of the provider, or the beginning of one."`
}

// readProvider returns the provider of a command.
func readProvider(run *session, command any, uuid *string) (*client.Provider, error) {
	if err := run.resolve(command); err != nil {
		return nil, err
	}
	answer, err := client.ReadProvider(run.ctx, run.api, uuid, nil)
	if err != nil {
		return nil, err
	}
	if answer.ResourceProvider == nil {
		return nil, missing("provider", *uuid)
	}
	return &answer.ResourceProvider.Provider, nil
}

type providerShowCommand struct {
	common
	oneProvider
}

func (c *providerShowCommand) Run(run *session) error {
	if err := run.resolve(c); err != nil {
		return err
	}
	answer, err := client.ReadProvider(run.ctx, run.api, &c.Provider, nil)
	if err != nil {
		return err
	}
	if answer.ResourceProvider == nil {
		return missing("provider", c.Provider)
	}
	return one(run, append(providerColumns(), columnsOf("resource=resource.name")...), answer.ResourceProvider)
}

type providerCreateCommand struct {
	common
	Name     string  `arg:"" at:"input.name" help:"The name, unique, 1 to 200 characters."`
	UUID     *string `name:"uuid" at:"input.uuid" placeholder:"UUID" help:"Its uuid; a new one when absent."`
	Parent   *string `at:"input.parent" ref:"provider" placeholder:"PROVIDER" help:"The provider that it is a part of."`
	Resource *string `at:"input.resource" ref:"resource" placeholder:"RESOURCE" help:"The resource that it is."`
}

func (c *providerCreateCommand) Run(run *session) error {
	answer, err := change(run, c, client.CreateResourceProvider)
	if err != nil {
		return err
	}
	return one(run, providerColumns(), answer.CreateResourceProvider.ResourceProvider)
}

type providerSetCommand struct {
	common
	oneProvider
	NewName  *string `name:"name" at:"input.newName" placeholder:"NAME" help:"The new name."`
	Parent   *string `at:"input.parent" ref:"provider" placeholder:"PROVIDER" help:"The provider that it is a part of; empty for none."`
	Resource *string `at:"input.resource" ref:"resource" placeholder:"RESOURCE" help:"The resource that it is; empty for none."`
}

func (c *providerSetCommand) Run(run *session) error {
	answer, err := change(run, c, client.UpdateResourceProvider)
	if err != nil {
		return err
	}
	return one(run, providerColumns(), answer.UpdateResourceProvider.ResourceProvider)
}

type providerDeleteCommand struct {
	common
	deletion
	Providers []string `arg:"" name:"provider" ref:"provider" help:"The uuids or the names of providers, or the beginnings of one."`
}

func (c *providerDeleteCommand) Run(run *session) error {
	if err := run.resolve(c); err != nil {
		return err
	}
	return deleteEach(run, c.deletion, "provider", providerColumns(), c.Providers, func(uuid string) (*client.Provider, error) {
		answer, err := client.DeleteResourceProvider(run.ctx, run.api, &client.DeleteResourceProviderInput{Provider: uuid})
		if err != nil {
			return nil, err
		}
		return answer.DeleteResourceProvider.ResourceProvider, nil
	})
}

type inventoryCommand struct {
	List    inventoryListCommand    `cmd:"" help:"List the inventories of a provider." example:"cadastre inventory list compute-01:numa0"`
	Show    inventoryShowCommand    `cmd:"" help:"Show an inventory." example:"cadastre inventory show compute-01:numa0 VCPU"`
	Set     inventorySetCommand     `cmd:"" help:"Set an inventory; what is not given stays as it is." example:"cadastre inventory set lab-host VCPU --total 32 --allocation-ratio 4 ;; cadastre inventory set lab-host VCPU --reserved 2 -c total,reserved,capacity"`
	Replace inventoryReplaceCommand `cmd:"" help:"Replace all inventories of a provider; asks first." example:"cadastre inventory replace lab-host VCPU=16 MEMORY_MB=65536 --yes"`
	Delete  inventoryDeleteCommand  `cmd:"" help:"Delete inventories; asks first." example:"cadastre inventory delete lab-host MEMORY_MB --yes"`
}

// inventoryColumns are the columns of inventories.
func inventoryColumns() []column {
	return columnsOf("resourceClass total reserved allocationRatio capacity used free +minUnit +maxUnit +stepSize")
}

type inventoryListCommand struct {
	common
	oneProvider
}

func (c *inventoryListCommand) Run(run *session) error {
	provider, err := readProvider(run, c, &c.Provider)
	if err != nil {
		return err
	}
	return list(run, inventoryColumns(), provider.Inventories)
}

type inventoryShowCommand struct {
	common
	oneProvider
	Class string `arg:"" of:"resource-class" help:"The name of the resource class."`
}

func (c *inventoryShowCommand) Run(run *session) error {
	provider, err := readProvider(run, c, &c.Provider)
	if err != nil {
		return err
	}
	found := inventoryOf(provider, c.Class)
	if found == nil {
		return missing("inventory of "+provider.Name, c.Class)
	}
	return one(run, inventoryColumns(), found)
}

// inventoryOf returns the inventory of a class; nil where there is none.
func inventoryOf(provider *client.Provider, class string) *client.Inventory {
	i := slices.IndexFunc(provider.Inventories, func(of *client.Inventory) bool { return of.ResourceClass == class })
	if i < 0 {
		return nil
	}
	return provider.Inventories[i]
}

type inventorySetCommand struct {
	common
	oneProvider
	Class           string   `arg:"" at:"input.inventory.resourceClass" of:"resource-class" help:"The name of the resource class."`
	Total           *int     `at:"input.inventory.total" placeholder:"N" help:"What there is in all; required for a new inventory."`
	Reserved        *int     `at:"input.inventory.reserved" placeholder:"N" help:"What is kept back of it."`
	MinUnit         *int     `at:"input.inventory.minUnit" placeholder:"N" help:"The least that one allocation may take."`
	MaxUnit         *int     `at:"input.inventory.maxUnit" placeholder:"N" help:"The most that one allocation may take."`
	StepSize        *int     `at:"input.inventory.stepSize" placeholder:"N" help:"What an allocation must be a multiple of."`
	AllocationRatio *float64 `at:"input.inventory.allocationRatio" placeholder:"X" help:"How often the same unit may be given away."`
	Generation      *int     `at:"input.generation" placeholder:"N" help:"Only if the provider has this generation; that which was read when absent."`
}

func (c *inventorySetCommand) Run(run *session) error {
	provider, err := readProvider(run, c, &c.Provider)
	if err != nil {
		return err
	}
	input := &client.InventoryInput{ResourceClass: c.Class, MinUnit: optional.Value(1), MaxUnit: optional.Value(maxUnit), StepSize: optional.Value(1), AllocationRatio: optional.Value(float64(1))}
	if of := inventoryOf(provider, c.Class); of != nil {
		*input = client.InventoryInput{ResourceClass: c.Class, Total: of.Total, Reserved: optional.Value(of.Reserved), MinUnit: optional.Value(of.MinUnit), MaxUnit: optional.Value(of.MaxUnit), StepSize: optional.Value(of.StepSize), AllocationRatio: optional.Value(of.AllocationRatio)}
	} else if c.Total == nil {
		return usagef("--total: %s has no inventory of %s; say how much there is", provider.Name, c.Class)
	}
	if _, err := argumentInto(run, c, "input.inventory", input); err != nil {
		return err
	}
	generation := &provider.Generation
	if c.Generation != nil {
		generation = c.Generation
	}
	answer, err := client.SetInventory(run.ctx, run.api, &client.SetInventoryInput{Provider: c.Provider, Generation: optional.From(generation), Inventory: input})
	if err != nil {
		return err
	}
	return one(run, inventoryColumns(), inventoryOf(answer.SetInventory.ResourceProvider, c.Class))
}

// maxUnit is the most that an allocation may take where nothing else is said.
const maxUnit = 1<<31 - 1

type inventoryReplaceCommand struct {
	common
	deletion
	oneProvider
	Totals     []string `arg:"" optional:"" name:"class=total" sep:"none" at:"input.inventories" of:"resource-class" help:"Resource classes with what there is in all, as CLASS=TOTAL; none deletes all."`
	Generation *int     `at:"input.generation" placeholder:"N" help:"Only if the provider has this generation."`
}

func (c *inventoryReplaceCommand) Run(run *session) error {
	if err := run.resolve(c); err != nil {
		return err
	}
	input := &client.SetInventoriesInput{Provider: c.Provider, Generation: optional.From(c.Generation), Inventories: []*client.InventoryInput{}}
	for _, text := range c.Totals {
		of, err := amountOf(text)
		if err != nil {
			return usagef("%w", err)
		}
		input.Inventories = append(input.Inventories, &client.InventoryInput{ResourceClass: of.ResourceClass, Total: of.Amount, MinUnit: optional.Value(1), MaxUnit: optional.Value(maxUnit), StepSize: optional.Value(1), AllocationRatio: optional.Value(float64(1))})
	}
	if err := c.confirm(run, "yes", "Replace all inventories of the provider %s?", c.Provider); err != nil {
		return err
	}
	answer, err := client.SetInventories(run.ctx, run.api, input)
	if err != nil {
		return err
	}
	return list(run, inventoryColumns(), answer.SetInventories.ResourceProvider.Inventories)
}

type inventoryDeleteCommand struct {
	common
	deletion
	oneProvider
	Class      string `arg:"" at:"input.resourceClass" of:"resource-class" help:"The name of the resource class."`
	Generation *int   `at:"input.generation" placeholder:"N" help:"Only if the provider has this generation."`
}

func (c *inventoryDeleteCommand) Run(run *session) error {
	if err := run.resolve(c); err != nil {
		return err
	}
	if err := c.confirm(run, "yes", "Delete the inventory of %s of the provider %s?", c.Class, c.Provider); err != nil {
		return err
	}
	answer, err := change(run, c, client.DeleteInventory)
	if err != nil {
		return err
	}
	return list(run, inventoryColumns(), answer.DeleteInventory.ResourceProvider.Inventories)
}

type traitCommand struct {
	List   traitListCommand   `cmd:"" help:"List traits, or those of a provider." example:"cadastre trait list --starts-with HW_CPU_X86_AVX --limit 4 ;; cadastre trait list --provider compute-01 -q"`
	Show   traitShowCommand   `cmd:"" help:"Show a trait." example:"cadastre trait show HW_CPU_X86_AVX2"`
	Create traitCreateCommand `cmd:"" help:"Create a trait." example:"cadastre trait create CUSTOM_LAB"`
	Set    traitSetCommand    `cmd:"" help:"Replace the traits of a provider." example:"cadastre trait set lab-host CUSTOM_LAB HW_CPU_X86_AVX2 -q ;; cadastre trait set lab-host -q"`
	Delete traitDeleteCommand `cmd:"" help:"Delete traits; asks first." example:"cadastre trait delete CUSTOM_LAB --yes"`
}

// nameColumns are the columns of traits and resource classes.
func nameColumns() []column { return columnsOf("name custom") }

type traitListCommand struct {
	common
	paging
	StartsWith *string `at:"filter.startsWith" of:"trait" placeholder:"TEXT" help:"Only those whose names begin with this."`
	Associated *bool   `at:"filter.associated" negatable:"" help:"Only those that a provider has, or that none has."`
	Custom     *bool   `at:"filter.custom" negatable:"" help:"Only custom ones, or standard ones."`
	Provider   string  `ref:"provider" placeholder:"PROVIDER" help:"Those of this provider."`
}

func (c *traitListCommand) Run(run *session) error {
	if c.Provider != "" {
		provider, err := readProvider(run, c, &c.Provider)
		if err != nil {
			return err
		}
		return list(run, nameColumns(), traitsOfProvider(provider))
	}
	filter, err := argument[client.TraitFilter](run, c, "filter")
	if err != nil {
		return err
	}
	all, err := client.Collect(client.Traits(run.ctx, run.api, filter, c.first()), c.Limit)
	if err != nil {
		return err
	}
	return list(run, nameColumns(), all)
}

// traitsOfProvider returns the traits of a provider: custom ones say so in their
// names.
func traitsOfProvider(provider *client.Provider) []*client.Trait {
	return lists.Map(provider.Traits, func(name string) *client.Trait {
		return &client.Trait{Name: name, Custom: strings.HasPrefix(name, "CUSTOM_")}
	})
}

type traitShowCommand struct {
	common
	Name string `arg:"" at:"filter.names" of:"trait" help:"The name."`
}

func (c *traitShowCommand) Run(run *session) error {
	all, err := client.Collect(client.Traits(run.ctx, run.api, &client.TraitFilter{Names: optional.List([]string{c.Name})}, nil), 1)
	if client.Code(err) == client.BadUserInput || err == nil && len(all) == 0 {
		return missing("trait", c.Name)
	}
	if err != nil {
		return err
	}
	return one(run, nameColumns(), all[0])
}

type traitCreateCommand struct {
	common
	Name string `arg:"" at:"input.name" help:"The name: CUSTOM_ and A-Z, 0-9 and _."`
}

func (c *traitCreateCommand) Run(run *session) error {
	answer, err := change(run, c, client.CreateTrait)
	if err != nil {
		return err
	}
	return one(run, nameColumns(), answer.CreateTrait.Trait)
}

type traitSetCommand struct {
	common
	oneProvider
	Traits     []string `arg:"" optional:"" name:"trait" at:"input.traits" of:"trait" help:"The names of traits; none takes all away."`
	Generation *int     `at:"input.generation" placeholder:"N" help:"Only if the provider has this generation."`
}

func (c *traitSetCommand) Run(run *session) error {
	if c.Traits == nil {
		c.Traits = []string{}
	}
	answer, err := change(run, c, client.SetProviderTraits)
	if err != nil {
		return err
	}
	return list(run, nameColumns(), traitsOfProvider(answer.SetProviderTraits.ResourceProvider))
}

type traitDeleteCommand struct {
	common
	deletion
	Names []string `arg:"" name:"name" of:"trait" help:"The names."`
}

func (c *traitDeleteCommand) Run(run *session) error {
	return deleteEach(run, c.deletion, "trait", nameColumns(), c.Names, func(name string) (*client.Trait, error) {
		answer, err := client.DeleteTrait(run.ctx, run.api, &client.DeleteTraitInput{Name: name})
		if err != nil {
			return nil, err
		}
		return answer.DeleteTrait.Trait, nil
	})
}

type resourceClassCommand struct {
	List   resourceClassListCommand   `cmd:"" help:"List resource classes." example:"cadastre resource-class list --custom ;; cadastre resource-class list --limit 3 -q"`
	Create resourceClassCreateCommand `cmd:"" help:"Create a resource class." example:"cadastre resource-class create CUSTOM_LAB_SEAT"`
	Delete resourceClassDeleteCommand `cmd:"" help:"Delete resource classes; asks first." example:"cadastre resource-class delete CUSTOM_LAB_SEAT --yes"`
}

type resourceClassListCommand struct {
	common
	paging
	Custom *bool `at:"filter.custom" negatable:"" help:"Only custom ones, or standard ones."`
}

func (c *resourceClassListCommand) Run(run *session) error {
	filter, err := argument[client.ResourceClassFilter](run, c, "filter")
	if err != nil {
		return err
	}
	all, err := client.Collect(client.ResourceClasses(run.ctx, run.api, filter, c.first()), c.Limit)
	if err != nil {
		return err
	}
	return list(run, nameColumns(), all)
}

type resourceClassCreateCommand struct {
	common
	Name string `arg:"" at:"input.name" help:"The name: CUSTOM_ and A-Z, 0-9 and _."`
}

func (c *resourceClassCreateCommand) Run(run *session) error {
	answer, err := change(run, c, client.CreateResourceClass)
	if err != nil {
		return err
	}
	return one(run, nameColumns(), answer.CreateResourceClass.ResourceClass)
}

type resourceClassDeleteCommand struct {
	common
	deletion
	Names []string `arg:"" name:"name" of:"resource-class" help:"The names."`
}

func (c *resourceClassDeleteCommand) Run(run *session) error {
	return deleteEach(run, c.deletion, "resource class", nameColumns(), c.Names, func(name string) (*client.ResourceClass, error) {
		answer, err := client.DeleteResourceClass(run.ctx, run.api, &client.DeleteResourceClassInput{Name: name})
		if err != nil {
			return nil, err
		}
		return answer.DeleteResourceClass.ResourceClass, nil
	})
}

type aggregateCommand struct {
	List aggregateListCommand `cmd:"" help:"List aggregates with their capacity, or those of a provider." example:"cadastre aggregate list --class VCPU ;; cadastre aggregate list --provider archive-storage -q"`
	Show aggregateShowCommand `cmd:"" help:"List the providers of an aggregate." example:"cadastre aggregate show \"$(cadastre aggregate list --provider archive-storage --limit 1 -q)\" --limit 2"`
	Set  aggregateSetCommand  `cmd:"" help:"Replace the aggregates of a provider." example:"cadastre aggregate set lab-host 5b1cd38e-6d3b-5b4f-9c1d-8f5b3f6f0a11 ;; cadastre aggregate set lab-host"`
}

type aggregateListCommand struct {
	common
	paging
	Classes  []string `name:"class" at:"resourceClasses" of:"resource-class" sep:"none" placeholder:"CLASS" help:"Only the capacity of this resource class; can be given several times."`
	Provider string   `ref:"provider" placeholder:"PROVIDER" help:"Those of this provider."`
}

func (c *aggregateListCommand) Run(run *session) error {
	if c.Provider != "" {
		provider, err := readProvider(run, c, &c.Provider)
		if err != nil {
			return err
		}
		of := provider.Aggregates
		if c.Limit > 0 {
			of = of[:min(len(of), c.Limit)]
		}
		return list(run, columnsOf("aggregate="), of)
	}
	all, err := client.Collect(client.Capacities(run.ctx, run.api, nil, client.CapacityGroupingAggregate, c.Classes, c.first()), c.Limit)
	if err != nil {
		return err
	}
	return list(run, columnsOf("aggregate resourceClass capacity used free providers +total +reserved +shareUsed"), all)
}

type aggregateShowCommand struct {
	common
	paging
	Aggregate string `arg:"" at:"filter.memberOf" help:"The uuid of the aggregate."`
}

func (c *aggregateShowCommand) Run(run *session) error {
	filter := &client.ResourceProviderFilter{MemberOf: optional.List(aggregatesOf([]string{c.Aggregate}))}
	all, err := client.Collect(client.Providers(run.ctx, run.api, filter, nil, c.first()), c.Limit)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return missing("aggregate", c.Aggregate)
	}
	return list(run, providerColumns(), all)
}

type aggregateSetCommand struct {
	common
	oneProvider
	Aggregates []string `arg:"" optional:"" name:"aggregate" at:"input.aggregates" help:"The uuids of aggregates; none takes the provider out of all."`
	Generation *int     `at:"input.generation" placeholder:"N" help:"Only if the provider has this generation."`
}

func (c *aggregateSetCommand) Run(run *session) error {
	if c.Aggregates == nil {
		c.Aggregates = []string{}
	}
	answer, err := change(run, c, client.SetProviderAggregates)
	if err != nil {
		return err
	}
	return list(run, columnsOf("aggregate="), answer.SetProviderAggregates.ResourceProvider.Aggregates)
}
