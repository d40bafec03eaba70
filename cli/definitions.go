package cli

import (
	"context"

	"github.com/Khan/genqlient/graphql"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
)

// revision is the flag of what is changed only as it was last seen.
type revision struct {
	Revision *int `at:"input.revision" placeholder:"N" help:"Only if the namespace has this revision."`
}

// dryRun is the flag of changes of definitions that metadata may break.
type dryRun struct {
	DryRun bool `at:"input.dryRun" help:"Change nothing, and say which metadata would break."`
}

// scan returns which problems a dry run asks for; nil for a change.
func (d dryRun) scan() *client.MetadataProblemScan {
	if !d.DryRun {
		return nil
	}
	return &client.MetadataProblemScan{First: optional.Value(1000), Scan: optional.Value(1000)}
}

// shown shows what was changed, or notes what the change would break in a dry run.
func shown[T any](run *session, broken *client.BrokenMetadata, columns []column, thing *T) error {
	if broken == nil {
		return one(run, columns, thing)
	}
	for _, item := range brokenItems(broken.Nodes) {
		run.notef("would break: %s %s (%s): %s=%s: %s\n", item.Type, printable(item.Name), item.Resource, printable(item.Key), printable(item.Value), printable(item.Message))
	}
	more := ""
	if !broken.Complete {
		more = "; there may be more"
	}
	run.notef("dry run, nothing was done: metadata of %s would break definitions%s\n", counted(len(broken.Nodes), "resource"), more)
	return nil
}

type namespaceCommand struct {
	List    namespaceListCommand    `cmd:"" help:"List namespaces." example:"cadastre namespace list --resource-type OS::Nova::Flavor ;; cadastre namespace list --search disk --sort display-name:desc -c name,displayName"`
	Show    namespaceShowCommand    `cmd:"" help:"Show a namespace, and how much is in it." example:"cadastre namespace show Cadastre::VirtualCPUTopology"`
	Create  namespaceCreateCommand  `cmd:"" help:"Create a namespace." example:"cadastre namespace create Lab::Cooling --display-name 'Cooling' --description 'How hosts are cooled' --visibility public"`
	Set     namespaceSetCommand     `cmd:"" help:"Change a namespace." example:"cadastre namespace set Lab::Cooling --description 'How hosts are kept cool' ;; cadastre namespace set Lab::Cooling --visibility private --dry-run"`
	Share   namespaceShareCommand   `cmd:"" help:"Share a private namespace with a project." example:"cadastre namespace share Lab::Cooling research --role editor"`
	Unshare namespaceUnshareCommand `cmd:"" help:"Stop sharing a namespace with a project." example:"cadastre namespace unshare Lab::Cooling research"`
	Empty   namespaceEmptyCommand   `cmd:"" help:"Delete all properties, objects or tags of a namespace; asks first." example:"cadastre namespace empty Lab::Cooling properties tags --yes -q"`
	Delete  namespaceDeleteCommand  `cmd:"" help:"Delete namespaces with everything in them; asks first." example:"cadastre namespace delete Lab::Cooling --yes"`
}

// namespaceColumns are the columns of namespaces.
func namespaceColumns() []column {
	return columnsOf("name displayName visibility owner +description protected +origin revision +createdAt +updatedAt")
}

type namespaceListCommand struct {
	common
	paging
	sorting
	ResourceTypes []string `name:"resource-type" at:"filter.resourceTypes" of:"resource-type" sep:"none" placeholder:"NAME" help:"Only those that apply to this resource type; can be given several times."`
	Visibility    *string  `at:"filter.visibility" enum:"public,private" help:"Only these: ${enum}."`
	Owner         *string  `at:"filter.owner" placeholder:"ID" help:"Only those of the project with this id."`
	Search        *string  `at:"filter.search" placeholder:"TEXT" help:"Only those with this text in their names or descriptions."`
	Target        *string  `at:"filter.propertiesTarget" placeholder:"NAME" help:"Only those associated with this properties target."`
	DefinesKey    *string  `at:"filter.definesKey" placeholder:"KEY" help:"Only those that define this metadata key."`
	Tag           *string  `at:"filter.tag" placeholder:"NAME" help:"Only those with this tag."`
}

func (c *namespaceListCommand) Run(run *session) error {
	filter, err := argument[client.NamespaceFilter](run, c, "filter")
	if err != nil {
		return err
	}
	order, err := orderOf[client.NamespaceOrder](c.sorting)
	if err != nil {
		return err
	}
	all, err := client.Collect(client.Namespaces(run.ctx, run.api, filter, order, c.first()), c.Limit)
	if err != nil {
		return err
	}
	return list(run, namespaceColumns(), all)
}

type namespaceShowCommand struct {
	common
	Name string `arg:"" of:"namespace" help:"The name."`
}

func (c *namespaceShowCommand) Run(run *session) error {
	answer, err := client.ReadNamespace(run.ctx, run.api, c.Name)
	if err != nil {
		return err
	}
	if answer.Namespace == nil {
		return missing("namespace", c.Name)
	}
	columns := append(namespaceColumns(), columnsOf("properties=propertyConnection.totalCount objects=objectConnection.totalCount tags=tagConnection.totalCount resourceTypes=resourceTypeAssociations.resourceType.name members")...)
	return one(run, columns, answer.Namespace)
}

type namespaceCreateCommand struct {
	common
	Name        string  `arg:"" at:"input.name" help:"The name, unique in the whole cloud, 1 to 80 characters."`
	DisplayName *string `at:"input.displayName" placeholder:"TEXT" help:"What to show people, up to 80 characters; the name when absent."`
	Description *string `at:"input.description" placeholder:"TEXT" help:"What the namespace is for, up to 500 characters."`
	Visibility  string  `at:"input.visibility" default:"private" enum:"private,public" help:"Who may see it: ${enum}."`
	Protected   bool    `at:"input.protected" help:"Refuse its deletion."`
	Owner       *string `at:"input.owner" placeholder:"ID" help:"The id of the project that owns it; your own when absent."`
}

func (c *namespaceCreateCommand) Run(run *session) error {
	answer, err := change(run, c, client.CreateNamespace)
	if err != nil {
		return err
	}
	return one(run, namespaceColumns(), answer.CreateNamespace.Namespace)
}

type namespaceSetCommand struct {
	common
	revision
	dryRun
	Name        string  `arg:"" at:"input.name" of:"namespace" help:"The name."`
	NewName     *string `name:"name" at:"input.newName" placeholder:"NAME" help:"The new name."`
	DisplayName *string `at:"input.displayName" placeholder:"TEXT" help:"What to show people; empty for the name."`
	Description *string `at:"input.description" placeholder:"TEXT" help:"What the namespace is for; empty for nothing."`
	Visibility  *string `at:"input.visibility" enum:"private,public" help:"Who may see it: ${enum}."`
	Protected   *bool   `at:"input.protected" negatable:"" help:"Refuse its deletion, or allow it."`
	Owner       *string `at:"input.owner" placeholder:"ID" help:"The id of the project that owns it."`
}

func (c *namespaceSetCommand) Run(run *session) error {
	answer, err := change(run, c, func(ctx context.Context, api graphql.Client, input *client.UpdateNamespaceInput) (*client.UpdateNamespaceResponse, error) {
		return client.UpdateNamespace(ctx, api, input, c.scan())
	})
	if err != nil {
		return err
	}
	return shown(run, answer.UpdateNamespace.Problems, namespaceColumns(), answer.UpdateNamespace.Namespace)
}

// memberColumns are the columns of projects that a namespace is shared with.
func memberColumns() []column { return columnsOf("projectId role createdAt") }

type namespaceShareCommand struct {
	common
	revision
	Namespace string `arg:"" at:"input.namespace" of:"namespace" help:"The name of the namespace."`
	Project   string `arg:"" at:"input.projectId" help:"The id of the project."`
	Role      string `at:"input.role" default:"reader" enum:"reader,editor" help:"What the project may do: ${enum}."`
}

func (c *namespaceShareCommand) Run(run *session) error {
	answer, err := change(run, c, client.ShareNamespace)
	if err != nil {
		return err
	}
	return one(run, memberColumns(), answer.ShareNamespace.NamespaceMember)
}

type namespaceUnshareCommand struct {
	common
	revision
	Namespace string `arg:"" at:"input.namespace" of:"namespace" help:"The name of the namespace."`
	Project   string `arg:"" at:"input.projectId" help:"The id of the project."`
}

func (c *namespaceUnshareCommand) Run(run *session) error {
	answer, err := change(run, c, client.UnshareNamespace)
	if err != nil {
		return err
	}
	return one(run, memberColumns(), answer.UnshareNamespace.NamespaceMember)
}

type namespaceEmptyCommand struct {
	common
	deletion
	revision
	Namespace string   `arg:"" at:"input.namespace" of:"namespace" help:"The name of the namespace."`
	Kinds     []string `arg:"" at:"input.kinds" enum:"properties,objects,tags" help:"What to delete: ${enum}."`
}

func (c *namespaceEmptyCommand) Run(run *session) error {
	if err := c.confirm(run, "yes", "Delete all %s of the namespace %q?", quoted(c.Kinds), c.Namespace); err != nil {
		return err
	}
	answer, err := change(run, c, client.DeleteNamespaceContents)
	if err != nil {
		return err
	}
	return one(run, namespaceColumns(), answer.DeleteNamespaceContents.Namespace)
}

type namespaceDeleteCommand struct {
	common
	deletion
	Names []string `arg:"" name:"name" of:"namespace" help:"The names."`
}

func (c *namespaceDeleteCommand) Run(run *session) error {
	return deleteEach(run, c.deletion, "namespace", namespaceColumns(), c.Names, func(name string) (*client.Namespace, error) {
		answer, err := client.DeleteNamespace(run.ctx, run.api, &client.DeleteNamespaceInput{Name: name})
		if err != nil {
			return nil, err
		}
		return answer.DeleteNamespace.Namespace, nil
	})
}

type propertyCommand struct {
	List   propertyListCommand   `cmd:"" help:"List the properties of a namespace." example:"cadastre property list Cadastre::VirtualCPUTopology ;; cadastre property list Cadastre::VirtualCPUTopology --resource-type OS::Nova::Flavor -o value -c name"`
	Show   propertyShowCommand   `cmd:"" help:"Show a property." example:"cadastre property show Cadastre::VirtualCPUTopology cpu_cores"`
	Create propertyCreateCommand `cmd:"" help:"Create a property." example:"cadastre property create Lab::Racks height --title 'Height' --type integer --minimum 1 --maximum 48 ;; cadastre property create Lab::Racks row --title 'Row' --type string --enum north --enum south --default north -q"`
	Set    propertySetCommand    `cmd:"" help:"Change a property." example:"cadastre property set Lab::Racks height --maximum 52 --description 'In units of 44.45 mm' ;; cadastre property set Lab::Racks row --default '' --enum north --enum east --dry-run"`
	Delete propertyDeleteCommand `cmd:"" help:"Delete properties; asks first." example:"cadastre property delete Lab::Racks height --yes"`
}

// propertyColumns are the columns of properties.
func propertyColumns() []column {
	return columnsOf("name type title +description +itemType required +enum +itemEnum default minimum maximum +minLength +maxLength +pattern +minItems +maxItems +uniqueItems +additionalItems +readOnly +operators +namespace=namespace.name +object=object.name +createdAt +updatedAt")
}

// applied are the flags of definitions as they apply to a resource type.
type applied struct {
	ResourceType *string `of:"resource-type" at:"resourceType" placeholder:"NAME" help:"As they apply to this resource type, with its prefix."`
	Target       *string `at:"target" placeholder:"NAME" help:"Only through associations with this properties target; empty is one without."`
	Prefix       *string `at:"prefix" placeholder:"TEXT" help:"Only through associations with this prefix; empty is one without."`
}

type propertyListCommand struct {
	common
	paging
	applied
	Namespace string  `arg:"" of:"namespace" help:"The name of the namespace."`
	Object    *string `placeholder:"NAME" help:"The properties of this object, rather than those of the namespace itself."`
}

func (c *propertyListCommand) Run(run *session) error {
	if c.Object != nil {
		properties, err := objectProperties(run, c.Namespace, *c.Object, c.ResourceType)
		if err != nil {
			return err
		}
		return list(run, propertyColumns(), properties)
	}
	all, err := client.Collect(client.Properties(run.ctx, run.api, c.Namespace, c.ResourceType, c.Target, c.Prefix, c.first()), c.Limit)
	if err != nil {
		return err
	}
	return list(run, propertyColumns(), all)
}

// objectProperties returns the properties of an object.
func objectProperties(run *session, namespace, object string, resourceType *string) ([]*client.Property, error) {
	answer, err := client.ReadObjectProperties(run.ctx, run.api, namespace, object, resourceType)
	if err != nil {
		return nil, err
	}
	if answer.Namespace == nil {
		return nil, missing("namespace", namespace)
	}
	if answer.Namespace.Object == nil {
		return nil, missing("object of "+namespace, object)
	}
	return answer.Namespace.Object.Properties, nil
}

type propertyShowCommand struct {
	common
	Namespace    string  `arg:"" of:"namespace" help:"The name of the namespace."`
	Name         string  `arg:"" help:"The name of the property."`
	ResourceType *string `of:"resource-type" placeholder:"NAME" help:"As it applies to this resource type; the name has its prefix."`
	Object       *string `placeholder:"NAME" help:"The object that the property is of."`
}

func (c *propertyShowCommand) Run(run *session) error {
	if c.Object != nil {
		properties, err := objectProperties(run, c.Namespace, *c.Object, c.ResourceType)
		if err != nil {
			return err
		}
		for _, property := range properties {
			if property.Name == c.Name {
				return one(run, propertyColumns(), property)
			}
		}
		return missing("property of "+*c.Object, c.Name)
	}
	answer, err := client.ReadProperty(run.ctx, run.api, c.Namespace, c.Name, c.ResourceType)
	switch {
	case err != nil:
		return err
	case answer.Namespace == nil:
		return missing("namespace", c.Namespace)
	case answer.Namespace.Property == nil:
		return missing("property of "+c.Namespace, c.Name)
	}
	return one(run, propertyColumns(), answer.Namespace.Property)
}

// keywords are the flags of what a property allows. An empty value clears one.
type keywords struct {
	Description     *string  `at:"input.description" placeholder:"TEXT" help:"What the property is for."`
	ItemType        *string  `at:"input.itemType" placeholder:"TYPE" help:"The type of each value of an array: string, integer, number or boolean."`
	Enum            []string `at:"input.enum" sep:"none" placeholder:"VALUE" help:"A valid value; can be given several times."`
	ItemEnum        []string `at:"input.itemEnum" sep:"none" placeholder:"VALUE" help:"A valid value of the items of an array; can be given several times."`
	EnumLabels      []string `name:"enum-label" at:"input.enumLabels" sep:"none" placeholder:"VALUE=LABEL" help:"What to show people in the place of a value; can be given several times."`
	Default         *string  `at:"input.default" placeholder:"VALUE" help:"The value to offer first."`
	Minimum         *string  `at:"input.minimum" placeholder:"N" help:"The least valid number."`
	Maximum         *string  `at:"input.maximum" placeholder:"N" help:"The greatest valid number."`
	MinLength       *string  `at:"input.minLength" placeholder:"N" help:"The least number of characters."`
	MaxLength       *string  `at:"input.maxLength" placeholder:"N" help:"The greatest number of characters."`
	Pattern         *string  `at:"input.pattern" placeholder:"REGEXP" help:"A regular expression that a valid text matches somewhere."`
	MinItems        *string  `at:"input.minItems" placeholder:"N" help:"The least number of items of an array."`
	MaxItems        *string  `at:"input.maxItems" placeholder:"N" help:"The greatest number of items of an array."`
	UniqueItems     *bool    `at:"input.uniqueItems" negatable:"" help:"The items of an array differ."`
	AdditionalItems *bool    `at:"input.additionalItems" negatable:"" help:"An array may have further items."`
	ReadOnly        *bool    `at:"input.readOnly" negatable:"" help:"Users should not be offered to change the value."`
	Operators       []string `name:"operator" at:"input.operators" sep:"none" placeholder:"OP" help:"An operator that a requirement can use; can be given several times."`
}

type propertyCreateCommand struct {
	common
	revision
	keywords
	Namespace string  `arg:"" at:"input.namespace" of:"namespace" help:"The name of the namespace."`
	Name      string  `arg:"" at:"input.name" help:"The name, 1 to 80 characters, no slash."`
	Title     string  `at:"input.title" required:"" placeholder:"TEXT" help:"What to show people."`
	Type      string  `at:"input.type" required:"" enum:"string,integer,number,boolean,array" placeholder:"TYPE" help:"The type of its values: ${enum}."`
	Object    *string `at:"input.object" placeholder:"NAME" help:"The object that it is to be a property of."`
}

func (c *propertyCreateCommand) Run(run *session) error {
	answer, err := change(run, c, client.CreateProperty)
	if err != nil {
		return err
	}
	return one(run, propertyColumns(), answer.CreateProperty.PropertyDefinition)
}

type propertySetCommand struct {
	common
	revision
	dryRun
	keywords
	Namespace string  `arg:"" at:"input.namespace" of:"namespace" help:"The name of the namespace."`
	Name      string  `arg:"" at:"input.name" help:"The name of the property."`
	NewName   *string `name:"name" at:"input.newName" placeholder:"NAME" help:"The new name."`
	Title     *string `at:"input.title" placeholder:"TEXT" help:"What to show people."`
	Type      *string `at:"input.type" enum:"string,integer,number,boolean,array" placeholder:"TYPE" help:"The type of its values: ${enum}."`
	Object    *string `at:"input.object" placeholder:"NAME" help:"The object that it is a property of."`
}

func (c *propertySetCommand) Run(run *session) error {
	answer, err := change(run, c, func(ctx context.Context, api graphql.Client, input *client.UpdatePropertyInput) (*client.UpdatePropertyResponse, error) {
		return client.UpdateProperty(ctx, api, input, c.scan())
	})
	if err != nil {
		return err
	}
	return shown(run, answer.UpdateProperty.Problems, propertyColumns(), answer.UpdateProperty.PropertyDefinition)
}

type propertyDeleteCommand struct {
	common
	deletion
	Namespace string   `arg:"" of:"namespace" help:"The name of the namespace."`
	Names     []string `arg:"" name:"name" help:"The names of properties."`
	Object    *string  `at:"input.object" placeholder:"NAME" help:"The object that they are properties of."`
}

func (c *propertyDeleteCommand) Run(run *session) error {
	return deleteEach(run, c.deletion, "property", propertyColumns(), c.Names, func(name string) (*client.Property, error) {
		answer, err := client.DeleteProperty(run.ctx, run.api, &client.DeletePropertyInput{Namespace: c.Namespace, Object: optional.From(c.Object), Name: name})
		if err != nil {
			return nil, err
		}
		return answer.DeleteProperty.PropertyDefinition, nil
	})
}

type objectCommand struct {
	List   objectListCommand   `cmd:"" help:"List the objects of a namespace." example:"cadastre object list Cadastre::DatabaseSoftware"`
	Show   objectShowCommand   `cmd:"" help:"Show an object." example:"cadastre object show Cadastre::DatabaseSoftware MySQL"`
	Create objectCreateCommand `cmd:"" help:"Create an object." example:"cadastre object create Lab::Racks Door --description 'A door of a rack' --property '{name: door_side, title: Side, type: STRING, enum: [left, right]}'"`
	Set    objectSetCommand    `cmd:"" help:"Change an object." example:"cadastre object set Lab::Racks Door --required door_side --description ''"`
	Delete objectDeleteCommand `cmd:"" help:"Delete objects; asks first." example:"cadastre object delete Lab::Racks Door --yes -q"`
}

// objectColumns are the columns of objects.
func objectColumns() []column {
	return columnsOf("name description required properties +namespace=namespace.name +createdAt +updatedAt")
}

type objectListCommand struct {
	common
	paging
	applied
	Namespace string `arg:"" of:"namespace" help:"The name of the namespace."`
}

func (c *objectListCommand) Run(run *session) error {
	all, err := client.Collect(client.Objects(run.ctx, run.api, c.Namespace, c.ResourceType, c.Target, c.Prefix, c.first()), c.Limit)
	if err != nil {
		return err
	}
	return list(run, objectColumns(), all)
}

type objectShowCommand struct {
	common
	Namespace    string  `arg:"" of:"namespace" help:"The name of the namespace."`
	Name         string  `arg:"" help:"The name of the object."`
	ResourceType *string `of:"resource-type" placeholder:"NAME" help:"As it applies to this resource type."`
}

func (c *objectShowCommand) Run(run *session) error {
	answer, err := client.ReadObject(run.ctx, run.api, c.Namespace, c.Name, c.ResourceType)
	switch {
	case err != nil:
		return err
	case answer.Namespace == nil:
		return missing("namespace", c.Namespace)
	case answer.Namespace.Object == nil:
		return missing("object of "+c.Namespace, c.Name)
	}
	return one(run, objectColumns(), answer.Namespace.Object)
}

type objectCreateCommand struct {
	common
	revision
	Namespace   string   `arg:"" at:"input.namespace" of:"namespace" help:"The name of the namespace."`
	Name        string   `arg:"" at:"input.name" help:"The name, 1 to 80 characters, no slash."`
	Description *string  `at:"input.description" placeholder:"TEXT" help:"What the object is for."`
	Required    []string `at:"input.required" sep:"none" placeholder:"NAME" help:"A property that whoever uses the object should give; can be given several times."`
	Properties  []string `name:"property" at:"input.properties" sep:"none" placeholder:"JSON" help:"A property as JSON or YAML, with the fields of PropertyInput; can be given several times."`
}

func (c *objectCreateCommand) Run(run *session) error {
	answer, err := change(run, c, client.CreateObject)
	if err != nil {
		return err
	}
	return one(run, objectColumns(), answer.CreateObject.ObjectDefinition)
}

type objectSetCommand struct {
	common
	revision
	dryRun
	Namespace   string   `arg:"" at:"input.namespace" of:"namespace" help:"The name of the namespace."`
	Name        string   `arg:"" at:"input.name" help:"The name of the object."`
	NewName     *string  `name:"name" at:"input.newName" placeholder:"NAME" help:"The new name."`
	Description *string  `at:"input.description" placeholder:"TEXT" help:"What the object is for; empty for nothing."`
	Required    []string `at:"input.required" sep:"none" placeholder:"NAME" help:"A property that whoever uses the object should give; can be given several times, empty for none."`
	Properties  []string `name:"property" at:"input.properties" sep:"none" placeholder:"JSON" help:"A property as JSON or YAML, in the place of all that are there; can be given several times."`
}

func (c *objectSetCommand) Run(run *session) error {
	answer, err := change(run, c, func(ctx context.Context, api graphql.Client, input *client.UpdateObjectInput) (*client.UpdateObjectResponse, error) {
		return client.UpdateObject(ctx, api, input, c.scan())
	})
	if err != nil {
		return err
	}
	return shown(run, answer.UpdateObject.Problems, objectColumns(), answer.UpdateObject.ObjectDefinition)
}

type objectDeleteCommand struct {
	common
	deletion
	Namespace string   `arg:"" of:"namespace" help:"The name of the namespace."`
	Names     []string `arg:"" name:"name" help:"The names of objects."`
}

func (c *objectDeleteCommand) Run(run *session) error {
	return deleteEach(run, c.deletion, "object", objectColumns(), c.Names, func(name string) (*client.Object, error) {
		answer, err := client.DeleteObject(run.ctx, run.api, &client.DeleteObjectInput{Namespace: c.Namespace, Name: name})
		if err != nil {
			return nil, err
		}
		return answer.DeleteObject.ObjectDefinition, nil
	})
}

type tagCommand struct {
	List   tagListCommand   `cmd:"" help:"List the tags of a namespace, or of all." example:"cadastre tag list --search sql ;; cadastre tag list Cadastre::DatabaseSoftware -c name,parent"`
	Show   tagShowCommand   `cmd:"" help:"Show a tag." example:"cadastre tag show Cadastre::DatabaseSoftware MySQL"`
	Create tagCreateCommand `cmd:"" help:"Add tags to a namespace." example:"cadastre tag create Lab::Racks Tall ;; cadastre tag create Lab::Racks Taller Tallest --parent Tall"`
	Set    tagSetCommand    `cmd:"" help:"Change a tag." example:"cadastre tag set Lab::Racks Tallest --name Highest --parent ''"`
	Delete tagDeleteCommand `cmd:"" help:"Delete tags; asks first." example:"cadastre tag delete Lab::Racks Highest --yes"`
}

// tagColumns are the columns of tags.
func tagColumns() []column {
	return columnsOf("name parent=parent.name namespace=namespace.name resourceCount +createdAt")
}

type tagListCommand struct {
	common
	paging
	Namespace *string `arg:"" optional:"" of:"namespace" help:"The name of the namespace; all of them when absent."`
	Search    *string `at:"search" placeholder:"TEXT" help:"Only tags with this text in their names; not of one namespace."`
}

func (c *tagListCommand) Run(run *session) error {
	if c.Namespace != nil && c.Search != nil {
		return usagef("--search and a namespace exclude each other")
	}
	tags := client.Tags(run.ctx, run.api, c.Search, c.first())
	if c.Namespace != nil {
		tags = client.TagsOf(run.ctx, run.api, *c.Namespace, c.first())
	}
	all, err := client.Collect(tags, c.Limit)
	if err != nil {
		return err
	}
	return list(run, tagColumns(), all)
}

type tagShowCommand struct {
	common
	Namespace string `arg:"" of:"namespace" help:"The name of the namespace."`
	Name      string `arg:"" help:"The name of the tag, whatever its case."`
}

func (c *tagShowCommand) Run(run *session) error {
	answer, err := client.ReadTag(run.ctx, run.api, c.Namespace, c.Name)
	switch {
	case err != nil:
		return err
	case answer.Namespace == nil:
		return missing("namespace", c.Namespace)
	case answer.Namespace.Tag == nil:
		return missing("tag of "+c.Namespace, c.Name)
	}
	return one(run, append(tagColumns(), columnsOf("children")...), answer.Namespace.Tag)
}

type tagCreateCommand struct {
	common
	Namespace string   `arg:"" at:"input.namespace" of:"namespace" help:"The name of the namespace."`
	Names     []string `arg:"" name:"name" at:"input.tags" help:"The names, 1 to 80 characters each."`
	Parent    *string  `placeholder:"NAME" help:"The tag that they are kinds of."`
	Revision  *int     `at:"input.revision" placeholder:"N" help:"Only if the namespace has this revision."`
}

func (c *tagCreateCommand) Run(run *session) error {
	input := &client.SetTagsInput{Namespace: c.Namespace, Mode: optional.Value(client.SetTagsModeAppend), Revision: optional.From(c.Revision)}
	for _, name := range c.Names {
		input.Tags = append(input.Tags, &client.TagInput{Name: name, Parent: optional.From(c.Parent)})
	}
	answer, err := client.SetTags(run.ctx, run.api, input)
	if err != nil {
		return err
	}
	return list(run, tagColumns(), answer.SetTags.Tags)
}

type tagSetCommand struct {
	common
	revision
	Namespace string  `arg:"" at:"input.namespace" of:"namespace" help:"The name of the namespace."`
	Name      string  `arg:"" at:"input.name" help:"The name of the tag, whatever its case."`
	NewName   *string `name:"name" at:"input.newName" placeholder:"NAME" help:"The new name."`
	Parent    *string `at:"input.parent" placeholder:"NAME" help:"The tag that it is a kind of; empty for none."`
}

func (c *tagSetCommand) Run(run *session) error {
	answer, err := change(run, c, client.UpdateTag)
	if err != nil {
		return err
	}
	return one(run, tagColumns(), answer.UpdateTag.Tag)
}

type tagDeleteCommand struct {
	common
	deletion
	Namespace string   `arg:"" of:"namespace" help:"The name of the namespace."`
	Names     []string `arg:"" name:"name" help:"The names of tags."`
}

func (c *tagDeleteCommand) Run(run *session) error {
	return deleteEach(run, c.deletion, "tag", tagColumns(), c.Names, func(name string) (*client.Tag, error) {
		answer, err := client.DeleteTag(run.ctx, run.api, &client.DeleteTagInput{Namespace: c.Namespace, Name: name})
		if err != nil {
			return nil, err
		}
		return answer.DeleteTag.Tag, nil
	})
}

type associationCommand struct {
	List   associationListCommand   `cmd:"" help:"List the resource types that a namespace applies to, or the namespaces of a resource type." example:"cadastre association list Cadastre::VirtualCPUTopology ;; cadastre association list --resource-type physical:host"`
	Show   associationShowCommand   `cmd:"" help:"Show how a namespace applies to a resource type." example:"cadastre association show Cadastre::VirtualCPUTopology OS::Nova::Flavor"`
	Create associationCreateCommand `cmd:"" help:"Let a namespace apply to a resource type." example:"cadastre association create Lab::Racks physical:rack --prefix lab_"`
	Set    associationSetCommand    `cmd:"" help:"Change how a namespace applies to a resource type." example:"cadastre association set Lab::Racks physical:rack --new-prefix 'lab:'"`
	Delete associationDeleteCommand `cmd:"" help:"Let a namespace no longer apply to a resource type; asks first." example:"cadastre association delete Lab::Racks physical:rack --yes"`
}

// associationColumns are the columns of associations.
func associationColumns() []column {
	return columnsOf("namespace=namespace.name resourceType=resourceType.name prefix propertiesTarget +createdAt +updatedAt")
}

type associationListCommand struct {
	common
	paging
	Namespace    *string `arg:"" optional:"" of:"namespace" help:"The name of the namespace."`
	ResourceType *string `at:"filter.resourceTypes" of:"resource-type" placeholder:"NAME" help:"The resource type; with a namespace, only what concerns both."`
}

func (c *associationListCommand) Run(run *session) error {
	if c.Namespace != nil {
		found, err := associations(run, *c.Namespace, c.ResourceType, nil, nil)
		if err != nil {
			return err
		}
		return list(run, associationColumns(), found)
	}
	if c.ResourceType == nil {
		return usagef("name a namespace, or --resource-type")
	}
	all, err := client.Collect(client.AssociationsOfType(run.ctx, run.api, *c.ResourceType, c.first()), c.Limit)
	if err != nil {
		return err
	}
	return list(run, associationColumns(), all)
}

// associations returns those of a namespace that flags leave.
func associations(run *session, namespace string, resourceType, prefix, target *string) ([]*client.Association, error) {
	filter := &client.ResourceTypeAssociationFilter{Prefix: optional.From(prefix), PropertiesTarget: optional.From(target)}
	if resourceType != nil {
		filter.ResourceTypes = optional.List([]string{*resourceType})
	}
	answer, err := client.ListAssociations(run.ctx, run.api, namespace, filter)
	if err != nil {
		return nil, err
	}
	if answer.Namespace == nil {
		return nil, missing("namespace", namespace)
	}
	return answer.Namespace.ResourceTypeAssociations, nil
}

// association names one association: several of one namespace and type differ by
// prefix or target.
type association struct {
	Namespace    string  `arg:"" of:"namespace" help:"The name of the namespace."`
	ResourceType string  `arg:"" at:"filter.resourceTypes" of:"resource-type" help:"The name of the resource type."`
	Prefix       *string `placeholder:"TEXT" help:"The association with this prefix, where there are several; empty is none."`
	Target       *string `placeholder:"NAME" help:"The association with this properties target, where there are several; empty is none."`
}

// find returns the association.
func (a association) find(run *session) (*client.Association, error) {
	found, err := associations(run, a.Namespace, &a.ResourceType, a.Prefix, a.Target)
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, missing("association of "+a.Namespace+" with", a.ResourceType)
	case len(found) == 1:
		return found[0], nil
	}
	lines := ""
	for _, of := range found {
		lines += "\n  --prefix '" + textOf(of.Prefix) + "' --target '" + textOf(of.PropertiesTarget) + "'"
	}
	return nil, usagef("%s applies to %s in %d ways; name one:%s", a.Namespace, a.ResourceType, len(found), lines)
}

// textOf returns a text, empty for none.
func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

type associationShowCommand struct {
	common
	association
}

func (c *associationShowCommand) Run(run *session) error {
	found, err := c.find(run)
	if err != nil {
		return err
	}
	return one(run, associationColumns(), found)
}

type associationCreateCommand struct {
	common
	revision
	Namespace    string  `arg:"" at:"input.namespace" of:"namespace" help:"The name of the namespace."`
	ResourceType string  `arg:"" at:"input.resourceType" of:"resource-type" help:"The name of the resource type."`
	Prefix       *string `at:"input.prefix" placeholder:"TEXT" help:"What the names of properties begin with on the type, ending in one of : _ . - /"`
	Target       *string `at:"input.propertiesTarget" placeholder:"NAME" help:"Which of several sets of key-values of the type is meant."`
}

func (c *associationCreateCommand) Run(run *session) error {
	answer, err := change(run, c, client.AssociateResourceType)
	if err != nil {
		return err
	}
	return one(run, associationColumns(), answer.AssociateResourceType.ResourceTypeAssociation)
}

type associationSetCommand struct {
	common
	association
	revision
	NewPrefix *string `at:"input.newPrefix" placeholder:"TEXT" help:"What the names of properties begin with on the type; empty for nothing."`
	NewTarget *string `at:"input.newPropertiesTarget" placeholder:"NAME" help:"Which of several sets of key-values of the type is meant; empty for none."`
}

func (c *associationSetCommand) Run(run *session) error {
	input, err := argument[client.UpdateResourceTypeAssociationInput](run, c, "input")
	if err != nil {
		return err
	}
	if input == nil {
		return usagef("say what changes: --new-prefix or --new-target")
	}
	found, err := c.find(run)
	if err != nil {
		return err
	}
	input.Id = found.Id
	answer, err := client.UpdateResourceTypeAssociation(run.ctx, run.api, input)
	if err != nil {
		return err
	}
	return one(run, associationColumns(), answer.UpdateResourceTypeAssociation.ResourceTypeAssociation)
}

type associationDeleteCommand struct {
	common
	deletion
	association
	Revision *int `at:"input.revision" placeholder:"N" help:"Only if the namespace has this revision."`
}

func (c *associationDeleteCommand) Run(run *session) error {
	found, err := c.find(run)
	if err != nil {
		return err
	}
	if err := c.confirm(run, "yes", "Delete the association of %s with %s?", c.Namespace, c.ResourceType); err != nil {
		return err
	}
	answer, err := client.DisassociateResourceType(run.ctx, run.api, &client.DisassociateResourceTypeInput{Id: found.Id, Revision: optional.From(c.Revision)})
	if err != nil {
		return err
	}
	return list(run, associationColumns(), []*client.Association{answer.DisassociateResourceType.ResourceTypeAssociation})
}

type resourceTypeCommand struct {
	List   resourceTypeListCommand   `cmd:"" help:"List resource types." example:"cadastre resource-type list ;; cadastre resource-type list --sort created-at:desc --limit 3 -q"`
	Show   resourceTypeShowCommand   `cmd:"" help:"Show a resource type." example:"cadastre resource-type show physical:host -c name,strict"`
	Create resourceTypeCreateCommand `cmd:"" help:"Create a resource type." example:"cadastre resource-type create lab:bench --strict"`
	Set    resourceTypeSetCommand    `cmd:"" help:"Change a resource type." example:"cadastre resource-type set lab:bench --no-strict --name lab:desk"`
	Delete resourceTypeDeleteCommand `cmd:"" help:"Delete resource types; asks first." example:"cadastre resource-type delete lab:desk --yes"`
}

// resourceTypeColumns are the columns of resource types.
func resourceTypeColumns() []column {
	return columnsOf("name strict protected +createdAt +updatedAt")
}

type resourceTypeListCommand struct {
	common
	paging
	sorting
	Names []string `arg:"" optional:"" name:"name" at:"filter.names" of:"resource-type" help:"Only these."`
}

func (c *resourceTypeListCommand) Run(run *session) error {
	filter, err := argument[client.ResourceTypeFilter](run, c, "filter")
	if err != nil {
		return err
	}
	order, err := orderOf[client.ResourceTypeOrder](c.sorting)
	if err != nil {
		return err
	}
	all, err := client.Collect(client.ResourceTypes(run.ctx, run.api, filter, order, c.first()), c.Limit)
	if err != nil {
		return err
	}
	return list(run, resourceTypeColumns(), all)
}

type resourceTypeShowCommand struct {
	common
	Name string `arg:"" of:"resource-type" help:"The name."`
}

func (c *resourceTypeShowCommand) Run(run *session) error {
	answer, err := client.ReadResourceType(run.ctx, run.api, c.Name)
	if err != nil {
		return err
	}
	if answer.ResourceType == nil {
		return missing("resource type", c.Name)
	}
	return one(run, resourceTypeColumns(), answer.ResourceType)
}

type resourceTypeCreateCommand struct {
	common
	Name      string `arg:"" at:"input.name" help:"The name."`
	Strict    bool   `at:"input.strict" help:"Refuse metadata that definitions do not allow."`
	Protected bool   `at:"input.protected" help:"Refuse its deletion."`
}

func (c *resourceTypeCreateCommand) Run(run *session) error {
	answer, err := change(run, c, client.CreateResourceType)
	if err != nil {
		return err
	}
	return one(run, resourceTypeColumns(), answer.CreateResourceType.ResourceType)
}

type resourceTypeSetCommand struct {
	common
	dryRun
	Name      string  `arg:"" at:"input.name" of:"resource-type" help:"The name."`
	NewName   *string `name:"name" at:"input.newName" placeholder:"NAME" help:"The new name."`
	Strict    *bool   `at:"input.strict" negatable:"" help:"Refuse metadata that definitions do not allow, or take them."`
	Protected *bool   `at:"input.protected" negatable:"" help:"Refuse its deletion, or allow it."`
}

func (c *resourceTypeSetCommand) Run(run *session) error {
	answer, err := change(run, c, func(ctx context.Context, api graphql.Client, input *client.UpdateResourceTypeInput) (*client.UpdateResourceTypeResponse, error) {
		return client.UpdateResourceType(ctx, api, input, c.scan())
	})
	if err != nil {
		return err
	}
	return shown(run, answer.UpdateResourceType.Problems, resourceTypeColumns(), answer.UpdateResourceType.ResourceType)
}

type resourceTypeDeleteCommand struct {
	common
	deletion
	Names []string `arg:"" name:"name" of:"resource-type" help:"The names."`
}

func (c *resourceTypeDeleteCommand) Run(run *session) error {
	return deleteEach(run, c.deletion, "resource type", resourceTypeColumns(), c.Names, func(name string) (*client.ResourceType, error) {
		answer, err := client.DeleteResourceType(run.ctx, run.api, &client.DeleteResourceTypeInput{Name: name})
		if err != nil {
			return nil, err
		}
		return answer.DeleteResourceType.ResourceType, nil
	})
}
