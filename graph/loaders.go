package graph

import (
	"context"
	"slices"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
)

// The loaders: one for each field that fetches its value for all parents at a
// place in one batch. Each has the name of its field, the key of a parent, and
// a function that fetches values by keys. Rows fetched by Many, One and
// connections are registered, so that they can be parents in turn. Held returns
// values that came together with a parent; these are not fetched, so a mutation
// shows its changes as its transaction left them.

// Definitions.
var (
	propertiesOfNamespace   = dataloader.NewMany("Namespace.properties", namespaceID, (*store.Store).PropertiesOf)
	objectsOfNamespace      = dataloader.NewMany("Namespace.objects", namespaceID, (*store.Store).ObjectsOf)
	tagsOfNamespace         = dataloader.NewMany("Namespace.tags", namespaceID, (*store.Store).TagsOf)
	associationsOfNamespace = dataloader.NewMany("Namespace.resourceTypeAssociations",
		namespaceID, (*store.Store).AssociationsOf)
	defaultsOfNamespace = dataloader.NewValue("Namespace.defaults", namespaceID, (*store.Store).DefaultsOf)
	membersOfNamespace  = dataloader.NewMany("Namespace.members", namespaceID, (*store.Store).MembersOf)

	propertiesOfObject = dataloader.NewMany("ObjectDefinition.properties", objectID, (*store.Store).PropertiesOfObjects)
	namespaceOfObject  = dataloader.NewOne("ObjectDefinition.namespace", func(o *metadef.ObjectDefinition) int64 {
		return o.NamespaceID
	}, (*store.Store).NamespacesByID).
		Held(func(o *metadef.ObjectDefinition) (*metadef.Namespace, bool) { return o.In, o.In != nil })
	namespaceOfProperty = dataloader.NewOne("PropertyDefinition.namespace", func(p *metadef.PropertyDefinition) int64 {
		return p.NamespaceID
	}, (*store.Store).NamespacesByID).
		Held(func(p *metadef.PropertyDefinition) (*metadef.Namespace, bool) { return p.In, p.In != nil })
	objectOfProperty = dataloader.NewOne("PropertyDefinition.object", func(p *metadef.PropertyDefinition) int64 {
		return p.ObjectID
	}, (*store.Store).ObjectsByID)

	parentOfTag = dataloader.NewOne("Tag.parent", func(t *metadef.Tag) int64 {
		return t.ParentID
	}, (*store.Store).TagsByID)
	childrenOfTag = dataloader.NewMany("Tag.children", tagID, (*store.Store).TagsBelow)
	tagsBesideTag = dataloader.NewMany("Tag.descendants", func(t *metadef.Tag) int64 {
		return t.NamespaceID
	}, (*store.Store).TagsOf)
	namespaceOfTag = dataloader.NewOne("Tag.namespace", func(t *metadef.Tag) int64 {
		return t.NamespaceID
	}, (*store.Store).NamespacesByID).
		Held(func(t *metadef.Tag) (*metadef.Namespace, bool) { return t.In, t.In != nil })
	countOfTagged     = dataloader.NewValue("Tag.resourceCount", tagID, (*store.Store).CountTagged)
	typeOfAssociation = dataloader.NewOne("ResourceTypeAssociation.resourceType",
		func(a *metadef.ResourceTypeAssociation) int64 { return a.ResourceTypeID }, (*store.Store).ResourceTypesByID)
	namespaceOfAssociation = dataloader.NewOne("ResourceTypeAssociation.namespace",
		func(a *metadef.ResourceTypeAssociation) int64 { return a.NamespaceID }, (*store.Store).NamespacesByID).
		Held(func(a *metadef.ResourceTypeAssociation) (*metadef.Namespace, bool) { return a.In, a.In != nil })

	namespacesOfType = newPages("ResourceType.namespaces", resourceTypeID,
		(*store.Store).NamespacesOfTypes, (*store.Store).NamespacesOfTypesBehind,
		func(s *store.Store, ctx context.Context, types []int64, _ page.Order) (map[int64]int, error) {
			return s.CountNamespacesOfTypes(ctx, types)
		})
	associationsOfType = newPages("ResourceType.associations", resourceTypeID,
		(*store.Store).AssociationsOfTypes, (*store.Store).AssociationsOfTypesBehind,
		(*store.Store).CountAssociationsOfTypes)
)

// Permissions: the viewer's standing at a namespace or a resource.
var (
	standingAtMember = dataloader.NewValue("NamespaceMember.viewerCanUpdate",
		func(m *metadef.NamespaceMember) int64 { return m.NamespaceID }, (*store.Store).Standings)
	standingAtProperty = dataloader.NewValue("PropertyDefinition.viewerCanUpdate",
		func(p *metadef.PropertyDefinition) int64 { return p.NamespaceID }, (*store.Store).Standings)
	standingAtObject = dataloader.NewValue("ObjectDefinition.viewerCanUpdate",
		func(o *metadef.ObjectDefinition) int64 { return o.NamespaceID }, (*store.Store).Standings)
	standingAtTag = dataloader.NewValue("Tag.viewerCanUpdate", func(t *metadef.Tag) int64 {
		return t.NamespaceID
	}, (*store.Store).Standings)
	standingAtAssociation = dataloader.NewValue("ResourceTypeAssociation.viewerCanUpdate",
		func(a *metadef.ResourceTypeAssociation) int64 { return a.NamespaceID }, (*store.Store).Standings)

	usesOfType = dataloader.NewValue("ResourceType.viewerCanDelete",
		resourceTypeID, (*store.Store).ResourceTypesInUse)
	usesOfResource = dataloader.NewValue("Resource.viewerCanDelete", resourceID, (*store.Store).ResourcesInUse)
	resourceOfItem = dataloader.NewOne("MetadataItem.viewerCanUpdate", func(item *resource.MetadataItem) int64 {
		return item.ResourceID
	}, (*store.Store).ResourcesByID)
	resourceOfCapability = dataloader.NewOne("ResourceCapability.viewerCanUpdate",
		func(c *resource.ResourceCapability) int64 { return c.ResourceID }, (*store.Store).ResourcesByID)
)

// Resources and metadata.
var (
	typeOfResource = dataloader.NewOne("Resource.type", func(r *resource.Resource) int64 {
		return r.TypeID
	}, (*store.Store).TypesOfResources)
	parentOfResource = dataloader.NewOne("Resource.parent", func(r *resource.Resource) int64 {
		return r.ParentID
	}, (*store.Store).ResourcesByID)
	metadataOfResource = dataloader.NewManyBy("Resource.metadata", resourceID, (*store.Store).MetadataOf).
				Held(heldMetadata).
				Owned(func(of *resource.Resource, items []*resource.MetadataItem) { resource.ItemsOf(of.UUID, items) })
	reportOfResource = dataloader.Registering(dataloader.NewOne("Resource.metadataReport", resourceID,
		(*store.Store).MetadataReports), definitionsOfReport)
	originOfResource = dataloader.NewValue("Resource.origin", resourceID, (*store.Store).OriginsOf)
	tagsOfResource   = dataloader.NewValue("Resource.tags", resourceID, (*store.Store).TagsOfResources).
				Held(func(r *resource.Resource) ([]string, bool) { return r.Tags, r.Tags != nil })
	definitionsOfItem = dataloader.NewMany("MetadataItem.definitions", func(item *resource.MetadataItem) int64 {
		return item.ID
	}, (*store.Store).DefinitionsOfItems)
	derivationOfItem = dataloader.NewOne("MetadataItem.derivedFrom", func(item *resource.MetadataItem) int64 {
		return item.DerivedFrom
	}, (*store.Store).NamespacesByID)
	providerOfResource = dataloader.NewOne("Resource.provider", resourceID, providersOfResources)

	childrenOfResource = newResourcePages("Resource.children", resource.ChildrenOfResource, resourceID)
	resourcesOfType    = newResourcePages("ResourceType.resources", resource.ResourcesOfType, resourceTypeID)
)

// Capabilities.
var (
	typeOfCapability = dataloader.NewOne("Capability.resourceType", func(c *resource.Capability) int64 {
		return c.ResourceTypeID
	}, (*store.Store).ResourceTypesByID)
	valuesOfCapability = newPages("Capability.values", capabilityID,
		(*store.Store).CapabilityValues, (*store.Store).CapabilityValuesBehind, (*store.Store).CountCapabilityValues).
		owned(func(of *resource.Capability, value *resource.CapabilityValue) { value.Capability = of })
	countOfCapability = dataloader.NewValue("Capability.valueCount", capabilityID,
		func(s *store.Store, ctx context.Context, capabilities []int64) (map[int64]int, error) {
			return s.CountCapabilityValues(ctx, capabilities, "")
		})
	resourceOfRemoved = dataloader.NewOne("RemovedCapability.resource", func(r *resource.RemovedCapability) int64 {
		return r.ResourceID
	}, (*store.Store).ResourcesByID)
	capabilitiesOfResource = dataloader.NewManyBy("Resource.capabilities", resourceID, (*store.Store).CapabilitiesOf).
				Held((*store.Store).HeldCapabilities)
	capabilitiesOfType = dataloader.NewManyBy("ResourceType.capabilities",
		resourceTypeID, (*store.Store).Capabilities)
	capabilityOfType = dataloader.NewRowsBy("ResourceType.capability",
		resourceTypeID, (*store.Store).CapabilitiesNamed,
		func(answer resource.CapabilityAnswer) []*resource.Capability {
			if answer.Capability == nil {
				return nil
			}
			return []*resource.Capability{answer.Capability}
		})
)

// Placement.
var (
	providerOfAllocation = dataloader.NewOne("Allocation.provider", func(a *placement.Allocation) string {
		return a.Provider
	}, providersByUUID)
	unplacedConsumer = dataloader.NewOne("UnplacedConsumer.consumer", func(u *placement.Unplaced) string {
		return u.Consumer
	}, consumersByUUID)
	movedConsumer = dataloader.NewOne("DrainMove.consumer", func(m *model.DrainMove) string {
		return m.Move.Consumer
	}, consumersByUUID)
	rebalancedConsumer = dataloader.NewOne("RebalanceMove.consumer", func(m *model.RebalanceMove) string {
		return m.Move.Consumer
	}, consumersByUUID)
	consumerOfAllocation = dataloader.NewOne("Allocation.consumer", func(a *placement.Allocation) string {
		return a.Consumer
	}, consumersByUUID).
		Held(func(a *placement.Allocation) (*model.Consumer, bool) {
			return model.ConsumerOf(a.Holder), a.Holder != nil
		})
	allocationsOfConsumer = dataloader.NewMany("Consumer.allocations", func(c *model.Consumer) string {
		return c.UUID
	}, (*store.Store).AllocationsOfConsumers).
		Held(func(c *model.Consumer) ([]*placement.Allocation, bool) { return c.Held, c.Held != nil })
	mappingsOfConsumer = dataloader.NewRowsBy("Consumer.mappings", func(c *model.Consumer) string {
		return c.UUID
	}, mappingsOfConsumers, model.ProvidersOfMappings).
		Held(heldMappings)
	resourceOfConsumer = dataloader.NewOne("Consumer.resource", func(c *model.Consumer) string {
		return c.UUID
	}, (*store.Store).ResourcesByUUID)
	consumerOfResource    = dataloader.NewOne("Resource.consumer", resourceUUID, consumersOfResources)
	allocationsOfResource = dataloader.NewMany("Resource.allocations", resourceUUID, allocationsOfResources)
	resourceOfProvider    = dataloader.NewOne("ResourceProvider.resource", providerLink,
		(*store.Store).ResourcesByUUID).Among(trees(func(p *placement.Provider) string { return p.Resource }))

	heldOfProvider = dataloader.NewValue("Inventory.held", providerUUID, (*store.Store).HeldOfProviders).
			Among(trees(func(p *placement.Provider) string { return p.UUID }))

	allocationsOfProvider = newPages("ResourceProvider.allocations", providerUUID,
		func(s *store.Store, ctx context.Context, uuids []string, _ dataloader.None,
			request page.Request) (map[string]page.Page[*placement.Allocation], error) {
			return s.AllocationsOfProviders(ctx, uuids, request)
		},
		func(s *store.Store, ctx context.Context, uuids []string, _ dataloader.None,
			request page.Request) (map[string]bool, error) {
			return s.AllocationsBehind(ctx, uuids, request)
		},
		func(s *store.Store, ctx context.Context, uuids []string, _ dataloader.None) (map[string]int, error) {
			return s.CountAllocationsOfProviders(ctx, uuids)
		}).among(trees(func(p *placement.Provider) string { return p.UUID }))
)

// heldMetadata returns the items of a resource that has them in memory,
// filtered by keys; nil keys are all.
func heldMetadata(_ *store.Store, _ context.Context, of *resource.Resource,
	keys []string) ([]*resource.MetadataItem, bool) {
	if of.Items == nil || keys == nil {
		return of.Items, of.Items != nil
	}
	wanted := []*resource.MetadataItem{}
	for _, item := range of.Items {
		if slices.Contains(keys, item.Key) {
			wanted = append(wanted, item)
		}
	}
	return wanted, true
}
