package cli

import (
	"slices"
	"sync"
)

// grammar is the table of all commands.
var grammar = sync.OnceValue(func() []noun {
	all := []noun{
		{name: "serve", group: "Server", help: "Serve the GraphQL API and the IDE.", command: serveCommand{}},
		{name: "query", group: "Any operation", help: "Send a GraphQL document and show the answer.", command: queryCommand{}},
	}
	all = append(all, definitionNouns()...)
	all = append(all, resourceNouns()...)
	all = append(all, placementNouns()...)
	return append(all,
		noun{name: "audit", group: "Other", help: "Who changed what.", columns: "createdAt userId projectId action kind key +id +before +after", verbs: []verb{
			{name: "list", help: "List the events of the audit log, the newest first.", send: "ListAuditEvents"},
			{name: "show", help: "Show an event of the audit log, with the object before and after.", send: "ReadAuditEvent", flags: "<id>"},
		}},
		noun{name: "watch", group: "Other", help: "Follow changes until you press Ctrl-C.", verbs: watchVerbs()},
		noun{name: "login", group: "Other", command: loginCommand{},
			help: "Save a server and a token for later commands, in a file of mode 0600: $$CADASTRE_CONFIG, or cadastre/contexts.yaml in the user's configuration folder."},
		noun{name: "whoami", group: "Other", help: "Show who you are to the server.", command: whoamiCommand{}},
		noun{name: "context", group: "Other", help: "The servers that you are logged in at.", verbs: []verb{
			{name: "list", help: "List contexts.", command: contextListCommand{}},
			{name: "use", help: "Choose the context of later commands.", command: contextUseCommand{}},
			{name: "delete", aliases: "logout", help: "Delete contexts with their tokens.", command: contextDeleteCommand{}},
		}},
		noun{name: "completion", group: "Other", help: "Print a script that completes commands, flags and names in a shell.", command: completionCommand{}},
		noun{name: "schema", group: "Other", help: "Print the GraphQL schema.", command: schemaCommand{}},
		noun{name: "help", group: "Other", help: "Explain a command.", command: helpCommand{}},
		noun{name: "version", group: "Other", help: "Print the version and the commit.", command: versionCommand{}},
	)
})

// definitionNouns are those of metadata definitions.
func definitionNouns() []noun {
	const (
		group   = "Definitions"
		members = "projectId role createdAt"
	)
	return []noun{
		{name: "namespace", group: group, help: "Namespaces: named sets of definitions.",
			columns: "name displayName visibility owner +description protected +origin revision +createdAt +updatedAt",
			verbs: []verb{
				{name: "list", help: "List namespaces.", send: "ListNamespaces"},
				{name: "show", help: "Show a namespace, and how much is in it.", send: "ReadNamespace", flags: "<name@namespace>",
					columns: "& properties=propertyConnection.totalCount objects=objectConnection.totalCount tags=tagConnection.totalCount resourceTypes=resourceTypeAssociations.resourceType.name members"},
				{name: "create", help: "Create a namespace.", send: "CreateNamespace", flags: "<name> -properties -objects -tags -resourceTypeAssociations"},
				{name: "set", help: "Change a namespace.", send: "UpdateNamespace", flags: "<name@namespace>"},
				{name: "share", help: "Share a private namespace with a project.", send: "ShareNamespace", flags: "<namespace> <project=projectId>", columns: members},
				{name: "unshare", help: "Stop sharing a namespace with a project.", send: "UnshareNamespace", flags: "<namespace> <project=projectId>", columns: members},
				{name: "empty", help: "Delete all properties, objects or tags of a namespace; asks first.", send: "DeleteNamespaceContents",
					flags: "<namespace> <kinds>", ask: "Delete all {kinds} of the namespace {namespace}?", run: emptyNamespace},
				{name: "delete", help: "Delete namespaces with everything in them; asks first.", send: "DeleteNamespace", flags: "<name...@namespace> -revision"},
			}},
		{name: "property", group: group, help: "Properties: which metadata keys exist and what they may hold.",
			columns: "name type title +description +itemType required +enum +itemEnum default minimum maximum +minLength +maxLength +pattern +minItems +maxItems +uniqueItems +additionalItems +readOnly +operators +namespace=namespace.name +object=object.name +createdAt +updatedAt",
			verbs: []verb{
				{name: "list", help: "List the properties of a namespace.", send: "ListProperties", flags: "<namespace>", extra: ofObject{}, run: listProperties},
				{name: "show", help: "Show a property.", send: "ReadProperty", flags: "<namespace> <name>", extra: ofObject{}, run: showProperty},
				{name: "create", help: "Create a property.", send: "CreateProperty", flags: "<namespace> <name>"},
				{name: "set", help: "Change a property.", send: "UpdateProperty", flags: "<namespace> <name>"},
				{name: "delete", help: "Delete properties; asks first.", send: "DeleteProperty", flags: "<namespace> <name...> -revision"},
			}},
		{name: "object", group: group, help: "Objects: properties that are used together.",
			columns: "name description required properties +namespace=namespace.name +createdAt +updatedAt", verbs: []verb{
				{name: "list", help: "List the objects of a namespace.", send: "ListObjects", flags: "<namespace>"},
				{name: "show", help: "Show an object.", send: "ReadObject", flags: "<namespace> <name>"},
				{name: "create", help: "Create an object.", send: "CreateObject", flags: "<namespace> <name>"},
				{name: "set", help: "Change an object.", send: "UpdateObject", flags: "<namespace> <name>"},
				{name: "delete", help: "Delete objects; asks first.", send: "DeleteObject", flags: "<namespace> <name...> -revision"},
			}},
		{name: "tag", group: group, help: "Tags that namespaces define.", columns: "name parent=parent.name namespace=namespace.name resourceCount +createdAt", verbs: []verb{
			{name: "list", help: "List the tags of a namespace, or of all.", send: "ListTags ListTagsOf", flags: "[namespace]"},
			{name: "show", help: "Show a tag.", send: "ReadTag", flags: "<namespace> <name>", columns: "& children"},
			{name: "create", help: "Add tags to a namespace.", send: "SetTags", flags: "<namespace> <name=tags>", extra: ofParent{}, run: createTags},
			{name: "set", help: "Change a tag.", send: "UpdateTag", flags: "<namespace> <name>"},
			{name: "delete", help: "Delete tags; asks first.", send: "DeleteTag", flags: "<namespace> <name...> -revision"},
		}},
		{name: "association", group: group, help: "Which resource types namespaces apply to.",
			columns: "namespace=namespace.name resourceType=resourceType.name prefix propertiesTarget +createdAt +updatedAt", verbs: []verb{
				{name: "list", help: "List the resource types that a namespace applies to, or the namespaces of a resource type.", send: "ListAssociationsOfType ListAssociations",
					flags: "[namespace] -filter", run: listAssociations},
				{name: "show", help: "Show how a namespace applies to a resource type.", send: "ListAssociations", flags: associationFlags, run: showAssociation},
				{name: "create", help: "Apply a namespace to a resource type.", send: "AssociateResourceType", flags: "<namespace> <resource-type=resourceType>"},
				{name: "set", help: "Change how a namespace applies to a resource type.", send: "UpdateResourceTypeAssociation ListAssociations", flags: associationFlags + " -input.id", run: setAssociation},
				{name: "delete", help: "Stop applying a namespace to a resource type; asks first.", send: "DisassociateResourceType ListAssociations", flags: associationFlags + " -input.id",
					ask: "Delete the association of {namespace} with {resource-type}?", run: deleteAssociation},
			}},
		{name: "resource-type", group: group, help: "Resource types.", columns: "name strict protected +createdAt +updatedAt", verbs: []verb{
			{name: "list", help: "List resource types.", send: "ListResourceTypes", flags: "[name=names]"},
			{name: "show", help: "Show a resource type.", send: "ReadResourceType", flags: "<name@resource-type>"},
			{name: "create", help: "Create a resource type.", send: "CreateResourceType", flags: "<name>"},
			{name: "set", help: "Change a resource type.", send: "UpdateResourceType", flags: "<name@resource-type>"},
			{name: "delete", help: "Delete resource types; asks first.", send: "DeleteResourceType", flags: "<name...@resource-type>"},
		}},
		{name: "metadefs", group: group, help: "Load, export and unload definition files.", verbs: []verb{
			{name: "export", help: "Write the namespaces of a server as definition files.", command: exportCommand{}},
			{name: "load", help: "Load definition files, or the product's own definitions, into a server.", command: loadCommand{}},
			{name: "unload", help: "Delete namespaces with everything in them; asks first.", command: unloadCommand{}},
			{name: "schema", help: "Print the JSON Schema of a definition file, for editors.", command: metadefsSchemaCommand{}},
		}},
	}
}

// associationFlags name one association: several of one namespace and type differ
// by prefix or target.
const associationFlags = "<namespace> <resource-type=filter.resourceTypes!> prefix=filter.prefix target=filter.propertiesTarget -filter.namespaces"

// resourceNouns are those of resources and what is written on them.
func resourceNouns() []noun {
	const (
		group = "Resources"
		items = "key value userModifiable"
		own   = "name value private"
	)
	return []noun{
		{name: "resource", group: group, help: "Resources.", columns: "uuid name type=type.name projectId visibility +description +parent=parent.name +tags +revision +createdAt +updatedAt", verbs: []verb{
			{name: "list", help: "List resources.", send: "ListResources", flags: "-projectId", columns: "& +metadata"},
			{name: "show", help: "Show a resource with its metadata, capabilities and provider.", send: "ReadResource", flags: "<resource=uuid@resource>", extra: withCandidates{},
				columns: "& +metadata provider=provider.uuid consumer=consumer.uuid capabilities", run: showResource},
			{name: "create", help: "Create a resource.", send: "CreateResource", flags: "<name> type@resource-type uuid", run: createResource},
			{name: "load", help: "Create many resources with their metadata and capabilities.", command: resourceLoadCommand{}},
			{name: "set", help: "Change a resource.", send: "UpdateResource", flags: "<resource=uuid@resource>"},
			{name: "tag", help: "Replace the tags of a resource.", send: "SetResourceTags", flags: "<resource> [tags]"},
			{name: "explain", help: "Show how many resources each condition of a list leaves.", send: "ExplainResources", flags: "-projectId", run: explainResources},
			{name: "delete", help: "Delete resources with their metadata and capabilities; asks first.", send: "DeleteResource", flags: "<resource...=uuid@resource> -revision"},
		}},
		{name: "capability", group: group, help: "What hosts and other resources can do, and who discovers it.", columns: "name private", verbs: []verb{
			{name: "list", help: "List the capabilities of a resource type.", send: "ListCapabilities", flags: "<type=resourceType> all=includePrivate", extra: inDetail{}, run: listCapabilities},
			{name: "show", aliases: "get", help: "Show the values of one capability.", send: "ReadCapability", flags: "<type=resourceType> <name@capability>", run: showCapability},
			{name: "create", help: "Register a capability. With neither --private nor --public the server's default holds.", send: "CreateCapability",
				flags: "<type=resourceType> <name> -private", extra: visibility{}, isTable: true, run: setVisibility},
			{name: "set", help: "Set who discovers a capability.", send: "SetCapabilityVisibility", flags: "<type=resourceType> <name@capability> -private",
				extra: visibility{}, isTable: true, run: setVisibility},
			{name: "delete", help: "Delete a capability; asks first.", send: "DeleteCapability", flags: "<type=resourceType> <name@capability>",
				ask: "Delete the capability {name} of {type}?", columns: "name=capability.name private=capability.private removed=removedCount"},
			{name: "of", help: "List the capabilities of a resource.", send: "ReadResourceCapabilities", flags: "<resource=uuid@resource> all=includePrivate", columns: own, run: capabilitiesOf},
			{name: "assign", help: "Give capabilities with values to a resource; the others stay.", send: "SetCapabilities", flags: "<resource> <capabilities>", columns: own, rows: "capabilities"},
			{name: "unassign", help: "Take capabilities from a resource; asks first.", send: "UnsetCapabilities", flags: "<resource> <names>", columns: own, rows: "capabilities",
				ask: "Take {names} from the resource {resource}?"},
		}},
		{name: "metadata", group: group, help: "Metadata items of resources.", columns: items, verbs: []verb{
			{name: "list", aliases: "get", help: "List the metadata of a resource.", send: "ReadMetadata", flags: "<resource> [keys]", run: listMetadata},
			{name: "show", help: "Show one metadata item of a resource.", send: "ReadMetadata", flags: "<resource> <key=keys!>", run: showMetadata},
			{name: "set", help: "Set metadata items of a resource; the others stay.", send: "SetMetadata", flags: "<resource> <items>", extra: ownership{}, run: setMetadata},
			{name: "replace", help: "Replace the metadata of a resource: items that are not named are deleted.", send: "ReplaceMetadata", flags: "<resource> [items]",
				ask: "Delete all metadata of the resource {resource}?", run: replaceMetadata},
			{name: "delete", aliases: "unset", help: "Delete metadata items of a resource; asks first.", send: "DeleteMetadata", flags: "<resource> <keys>",
				ask: "Delete {keys} of the resource {resource}?"},
			{name: "keys", help: "List the metadata keys that resources have, and how many have each.", send: "ListMetadataKeys", flags: "type=resourceType -filter", columns: "key resourceCount"},
			{name: "check", help: "Check metadata against their definitions, before they are written.", send: "ValidateMetadata", flags: "<type=resourceType> <items=values> -resource -project", run: checkMetadata},
			{name: "problems", help: "List metadata that break their definitions.", command: metadataProblemsCommand{}},
		}},
	}
}

// placementNouns are those of placement.
func placementNouns() []noun {
	const (
		group       = "Placement"
		inventories = "resourceClass total reserved allocationRatio capacity used free +minUnit +maxUnit +stepSize"
		names       = "name custom"
	)
	return []noun{
		{name: "candidates", group: group, help: "Find where a request fits, in the manner of openstack allocation candidate list.", command: candidatesCommand{}},
		{name: "provider", group: group, help: "Providers: owners of inventories, such as hosts, in trees.", columns: providerColumns, verbs: []verb{
			{name: "list", help: "List providers.", send: "ListProviders", flags: providerFlags + " by-class=orderBy.resourceClass"},
			{name: "show", help: "Show a provider.", send: "ReadProvider", flags: "<provider=uuid@provider> -name", columns: "& resource=resource.name"},
			{name: "create", help: "Create a provider.", send: "CreateResourceProvider", flags: "<name> -parentName -inventories -traits -aggregates"},
			{name: "load", help: "Create many providers with their inventories, traits and aggregates.", command: providerLoadCommand{}},
			{name: "set", help: "Change a provider.", send: "UpdateResourceProvider", flags: "<provider>"},
			{name: "delete", help: "Delete providers; asks first.", send: "DeleteResourceProvider", flags: "<provider...>"},
		}},
		{name: "inventory", group: group, help: "How much providers have of a resource class.", columns: inventories, verbs: []verb{
			{name: "list", help: "List the inventories of a provider.", send: "ReadProvider", flags: "<provider=uuid@provider> -name", rows: "inventories"},
			{name: "show", help: "Show an inventory.", send: "ReadProvider", flags: "<provider=uuid@provider> <class=name@resource-class>", run: showInventory},
			{name: "set", help: "Set an inventory; what is not given stays as it is.", send: "SetInventory", run: setInventory,
				flags: "<provider> <class=input.inventory.resourceClass> -inventory " + inventoryFlags},
			{name: "replace", help: "Replace all inventories of a provider; asks first.", send: "SetInventories", flags: "<provider> [class=total=inventories@resource-class]",
				ask: "Replace all inventories of the provider {provider}?", rows: "inventories"},
			{name: "delete", help: "Delete inventories; asks first.", send: "DeleteInventory", flags: "<provider> <class=resourceClass>",
				ask: "Delete the inventory of {class} of the provider {provider}?", rows: "inventories"},
		}},
		{name: "trait", group: group, help: "Traits: qualities that requests ask for.", columns: names, verbs: []verb{
			{name: "list", help: "List traits, or those of a provider.", send: "ListTraits", flags: "starts-with=startsWith@trait -names", extra: ofProvider{}, run: listTraits},
			{name: "show", help: "Show a trait.", send: "ListTraits", flags: "<name=names!> -startsWith -associated -custom -first", run: showTrait},
			{name: "create", help: "Create a trait.", send: "CreateTrait", flags: "<name>"},
			{name: "set", help: "Replace the traits of a provider.", send: "SetProviderTraits", flags: "<provider> [trait=traits]", run: setTraits},
			{name: "delete", help: "Delete traits; asks first.", send: "DeleteTrait", flags: "<name...@trait>"},
		}},
		{name: "resource-class", group: group, help: "Resource classes: the units of inventories.", columns: names, verbs: []verb{
			{name: "list", help: "List resource classes.", send: "ListResourceClasses", flags: "-names"},
			{name: "create", help: "Create a resource class.", send: "CreateResourceClass", flags: "<name>"},
			{name: "delete", help: "Delete resource classes; asks first.", send: "DeleteResourceClass", flags: "<name...@resource-class>"},
		}},
		{name: "aggregate", group: group, help: "Aggregates: sets of providers.", columns: "aggregate=", verbs: []verb{
			{name: "list", help: "List aggregates with their capacity, or those of a provider.", send: "ListCapacity", flags: "-filter -groupBy", extra: ofProvider{}, run: listAggregates},
			{name: "show", help: "List the providers of an aggregate.", send: "ListProviders", flags: "<aggregate=memberOf@aggregate> -filter -orderBy", columns: providerColumns, run: showAggregate},
			{name: "set", help: "Replace the aggregates of a provider.", send: "SetProviderAggregates", flags: "<provider> [aggregate=aggregates]", rows: "aggregates"},
		}},
		{name: "allocation", group: group, help: "What consumers use of providers.",
			columns: "provider=provider.name resourceClass used consumer=consumer.uuid project=consumer.projectId +user=consumer.userId +type=consumer.type +providerUuid=provider.uuid", verbs: []verb{
				{name: "list", help: "List the allocations of a consumer, or on a provider.", send: "ReadConsumer ListAllocationsOf", flags: "consumer=uuid@consumer provider", rows: "allocations"},
				{name: "set", help: "Replace the allocations of a consumer; asks first where it has some.", command: allocationSetCommand{}},
				{name: "delete", help: "Delete the allocations of a consumer, and so the consumer; asks first.", send: "DeleteAllocations", flags: "<consumer>",
					ask: "Delete all allocations of the consumer {consumer}?", columns: consumerColumns},
			}},
		{name: "consumer", group: group, help: "Who uses resources, such as instances.", columns: consumerColumns, verbs: []verb{
			{name: "list", help: "List consumers.", send: "ListConsumers"},
			{name: "show", help: "Show a consumer with its allocations.", send: "ReadConsumer", flags: "<consumer=uuid@consumer>"},
		}},
		{name: "usage", group: group, help: "What is used in all.", columns: "resourceClass used capacity free", verbs: []verb{
			{name: "list", help: "List what consumers use, by project, user or type.", send: "ListUsages", flags: "by=groupBy:type", run: listUsages},
			{name: "show", help: "Show what is used of a provider.", send: "ReadProvider", flags: "<provider=uuid@provider> -name", rows: "inventories"},
		}},
		{name: "capacity", group: group, help: "What there is in all, and how much of it is free.", verbs: []verb{
			{name: "list", help: "List what all providers together have, by resource class, aggregate, trait or tree.", send: "ListCapacity", flags: capacityFlags, run: listCapacity},
		}},
	}
}

const (
	providerColumns = "uuid name generation parent=parent.name root=root.name +traits +aggregates +inventories +createdAt +updatedAt"
	consumerColumns = "uuid resource=resource.name projectId userId type generation +allocations +createdAt +updatedAt"
	inventoryFlags  = "total=input.inventory.total reserved=input.inventory.reserved min-unit=input.inventory.minUnit " +
		"max-unit=input.inventory.maxUnit step-size=input.inventory.stepSize allocation-ratio=input.inventory.allocationRatio"
	providerFlags = "of=filter.resource"
	capacityFlags = providerFlags + " by=groupBy:resource-class"
)

// nounNamed returns a noun of the grammar.
func nounNamed(name string) noun {
	i := slices.IndexFunc(grammar(), func(of noun) bool { return of.name == name })
	return grammar()[i]
}
