package cli

import (
	"github.com/cadastre-dev/cadastre/client"
)

type resourceCommand struct {
	List    resourceListCommand    `cmd:"" help:"List resources." example:"cadastre resource list --type OS::Manila::Share --metadata share_purpose=home ;; cadastre resource list --type physical:host --where '{capability: {name: gpu, contains: A100}}' --sort name:desc -c name,metadata -o yaml ;; cadastre resource list --type OS::Nova::Flavor --name-contains large -q"`
	Show    resourceShowCommand    `cmd:"" help:"Show a resource with what is written on it." example:"cadastre resource show home ;; cadastre resource show ebf728f5-376a-5438-8ef0-c3a299ba60eb -o json"`
	Create  resourceCreateCommand  `cmd:"" help:"Create a resource." example:"cadastre resource create bench-1 --type physical:rack --project demo --visibility public --metadata height=42 --tag linux"`
	Load    resourceLoadCommand    `cmd:"" help:"Create many resources with what is written on them." example:"echo '{\"type\": \"physical:host\", \"name\": \"bench-9\", \"uuid\": \"0f9f1d6c-8a5e-4d53-9c43-0d2f5d9b7c11\", \"metadata\": [{\"key\": \"rack\", \"value\": \"r1\"}]}' | cadastre resource load - ;; echo '{\"type\": \"physical:host\", \"name\": \"bench-9\", \"uuid\": \"0f9f1d6c-8a5e-4d53-9c43-0d2f5d9b7c11\", \"metadata\": [{\"key\": \"rack\", \"value\": \"r2\"}], \"serviceMetadata\": [{\"key\": \"asset\", \"value\": \"7\"}]}' | cadastre resource load --update - ;; echo '{\"type\": \"none\", \"name\": \"x\"}' | cadastre resource load -"`
	Set     resourceSetCommand     `cmd:"" help:"Change a resource." example:"cadastre resource set bench-1 --description 'Beside the window' --name bench-2"`
	Tag     resourceTagCommand     `cmd:"" help:"Replace the tags of a resource." example:"cadastre resource tag bench-2 linux test"`
	Explain resourceExplainCommand `cmd:"" help:"Say how many resources each condition of a list leaves." example:"cadastre resource explain --type physical:host --metadata rack=none --where '{capability: {name: gpu, exists: true}}'"`
	Delete  resourceDeleteCommand  `cmd:"" help:"Delete resources with what is written on them; asks first." example:"cadastre resource delete bench-2 --yes"`
}

// resourceColumns are the columns of resources.
func resourceColumns() []column {
	return columnsOf("uuid name type=type.name projectId visibility +description +parent=parent.name +tags +revision +createdAt +updatedAt +metadata")
}

// resourceFilter are the flags that choose resources.
type resourceFilter struct {
	Types        []string `name:"type" at:"filter.types" of:"resource-type" sep:"none" placeholder:"NAME" help:"Only of this type; can be given several times."`
	Projects     []string `name:"project" at:"filter.projectIds" sep:"none" placeholder:"ID" help:"Only of the project with this id; can be given several times."`
	Visibility   *string  `at:"filter.visibility" enum:"public,private" placeholder:"public|private" help:"Only these: ${enum}."`
	Name         *string  `at:"filter.name" placeholder:"NAME" help:"Only with exactly this name."`
	NameContains *string  `at:"filter.nameContains" placeholder:"TEXT" help:"Only with this text in the name, whatever its case."`
	Search       *string  `at:"filter.search" placeholder:"TEXT" help:"Only with this text in the name, the description or a metadata value."`
	Parent       *string  `at:"filter.parent" ref:"resource" placeholder:"RESOURCE" help:"Only directly below this resource."`
	Ancestor     *string  `at:"filter.ancestor" ref:"resource" placeholder:"RESOURCE" help:"Only below this resource, at any depth."`
	Metadata     []string `at:"filter.metadata" sep:"none" placeholder:"KEY=VALUE" help:"Only with this metadata item; can be given several times: values of one key are alternatives."`
	Tags         []string `name:"tag" at:"filter.tags" sep:"none" placeholder:"NAME[/]" help:"Only with this tag or, with a slash, one below it; can be given several times."`
	AnyTags      []string `name:"any-tag" at:"filter.anyTags" sep:"none" placeholder:"NAME[/]" help:"Only with one of these tags; can be given several times."`
	Requirements []string `name:"requirement" at:"filter.requirements" sep:"none" placeholder:"NAME=REQUIREMENT" help:"Only with a capability that meets this, as in the extra specs of a flavor, such as gpu='<in> A100'."`
	Matching     *string  `at:"filter.matching" placeholder:"JSON" help:"Only where this expression on capabilities holds, as in reservations."`
	Where        *string  `at:"filter.where" placeholder:"CONDITION" help:"Only where this condition holds: a ResourceCondition of the schema as JSON or YAML, such as {metadata: {key: rack, exists: false}}."`
	UpdatedSince *string  `at:"filter.updatedSince" placeholder:"TIME" help:"Only changed since: 2026-01-31T12:00:00Z, 2026-01-31, or 2h for two hours."`
}

type resourceListCommand struct {
	common
	paging
	sorting
	resourceFilter
}

func (c *resourceListCommand) Run(run *session) error {
	filter, err := argument[client.ResourceFilter](run, c, "filter")
	if err != nil {
		return err
	}
	order, err := orderOf[client.ResourceOrder](c.sorting)
	if err != nil {
		return err
	}
	all, err := client.Collect(client.Resources(run.ctx, run.api, filter, order, c.first(), run.shows("metadata")), c.Limit)
	if err != nil {
		return err
	}
	return list(run, resourceColumns(), all)
}

type resourceShowCommand struct {
	common
	Resource string `arg:"" ref:"resource" help:"The uuid or the name of the resource, or the beginning of one."`
}

func (c *resourceShowCommand) Run(run *session) error {
	if err := run.resolve(c); err != nil {
		return err
	}
	answer, err := client.ReadResource(run.ctx, run.api, c.Resource)
	if err != nil {
		return err
	}
	if answer.Resource == nil {
		return missing("resource", c.Resource)
	}
	return one(run, append(resourceColumns(), columnsOf("provider=provider.uuid consumer=consumer.uuid")...), answer.Resource)
}

// ownResourceColumns are the columns of a resource that was changed.
func ownResourceColumns() []column {
	columns := resourceColumns()
	return columns[:len(columns)-1] // without the metadata, which the payload has not
}

type resourceCreateCommand struct {
	common
	Name            string   `arg:"" at:"input.name" help:"The name, 1 to 255 characters."`
	Type            string   `at:"input.type" required:"" of:"resource-type" placeholder:"NAME" help:"The name of its type."`
	Description     *string  `at:"input.description" placeholder:"TEXT" help:"What it is for."`
	Project         *string  `at:"input.projectId" placeholder:"ID" help:"The id of the project that owns it; your own when absent."`
	Visibility      *string  `at:"input.visibility" enum:"public,private" placeholder:"public|private" help:"Who may see it: ${enum}; private when absent."`
	Parent          *string  `at:"input.parent" ref:"resource" placeholder:"RESOURCE" help:"The resource that it is a part of."`
	UUID            *string  `name:"uuid" at:"input.uuid" placeholder:"UUID" help:"Its uuid; a new one when absent."`
	Metadata        []string `at:"input.metadata" sep:"none" placeholder:"KEY=VALUE" help:"A metadata item; can be given several times."`
	ServiceMetadata []string `at:"input.serviceMetadata" sep:"none" placeholder:"KEY=VALUE" help:"A metadata item that only administrators and services change; can be given several times."`
	Capabilities    []string `name:"capability" at:"input.capabilities" sep:"none" placeholder:"NAME=VALUE" help:"A capability; can be given several times."`
	Tags            []string `name:"tag" at:"input.tags" sep:"none" placeholder:"NAME" help:"A tag; can be given several times."`
}

func (c *resourceCreateCommand) Run(run *session) error {
	answer, err := change(run, c, client.CreateResource)
	if err != nil {
		return err
	}
	return one(run, ownResourceColumns(), answer.CreateResource.Resource)
}

type resourceSetCommand struct {
	common
	Resource    string  `arg:"" ref:"resource" at:"input.uuid" help:"The uuid or the name of the resource, or the beginning of one."`
	NewName     *string `name:"name" at:"input.newName" placeholder:"NAME" help:"The new name."`
	Description *string `at:"input.description" placeholder:"TEXT" help:"What it is for; empty for nothing."`
	Visibility  *string `at:"input.visibility" enum:"public,private" placeholder:"public|private" help:"Who may see it: ${enum}."`
	Parent      *string `at:"input.parent" ref:"resource" placeholder:"RESOURCE" help:"The resource that it is a part of; empty for none."`
	Revision    *int    `at:"input.revision" placeholder:"N" help:"Only if the resource has this revision."`
}

func (c *resourceSetCommand) Run(run *session) error {
	answer, err := change(run, c, client.UpdateResource)
	if err != nil {
		return err
	}
	return one(run, ownResourceColumns(), answer.UpdateResource.Resource)
}

type resourceTagCommand struct {
	common
	Resource string   `arg:"" ref:"resource" at:"input.resource" help:"The uuid or the name of the resource, or the beginning of one."`
	Tags     []string `arg:"" optional:"" at:"input.tags" help:"The tags; none takes all away."`
	Revision *int     `at:"input.revision" placeholder:"N" help:"Only if the resource has this revision."`
}

func (c *resourceTagCommand) Run(run *session) error {
	if c.Tags == nil {
		c.Tags = []string{}
	}
	answer, err := change(run, c, client.SetResourceTags)
	if err != nil {
		return err
	}
	return one(run, ownResourceColumns(), answer.SetResourceTags.Resource)
}

type resourceExplainCommand struct {
	common
	resourceFilter
}

func (c *resourceExplainCommand) Run(run *session) error {
	filter, err := argument[client.ResourceFilter](run, c, "filter")
	if err != nil {
		return err
	}
	if filter == nil {
		return usagef("give conditions to explain, such as --type")
	}
	answer, err := client.ExplainResources(run.ctx, run.api, filter)
	if err != nil {
		return err
	}
	run.notef("%s considered\n", counted(answer.ExplainResources.Considered, "resource"))
	return list(run, columnsOf("kind clause passing remaining +path +ignored +notNumbers"), answer.ExplainResources.Clauses)
}

type resourceDeleteCommand struct {
	common
	deletion
	Resources []string `arg:"" name:"resource" ref:"resource" help:"The uuids or the names of resources, or the beginnings of one."`
}

func (c *resourceDeleteCommand) Run(run *session) error {
	if err := run.resolve(c); err != nil {
		return err
	}
	return deleteEach(run, c.deletion, "resource", ownResourceColumns(), c.Resources, func(uuid string) (*client.Resource, error) {
		answer, err := client.DeleteResource(run.ctx, run.api, &client.DeleteResourceInput{Uuid: uuid})
		if err != nil {
			return nil, err
		}
		return answer.DeleteResource.Resource, nil
	})
}
