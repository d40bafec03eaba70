package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/resource"
)

func (r *capabilityResolver) ViewerCanUpdate(ctx context.Context, obj *resource.Capability) (bool, error) {
	return may(ctx, "setCapabilityVisibility"), nil
}

func (r *capabilityResolver) ViewerCanDelete(ctx context.Context, obj *resource.Capability) (bool, error) {
	return may(ctx, "deleteCapability"), nil
}

func (r *consumerResolver) ViewerCanUpdate(ctx context.Context, obj *model.Consumer) (bool, error) {
	return may(ctx, "setAllocations"), nil
}

func (r *consumerResolver) ViewerCanDelete(ctx context.Context, obj *model.Consumer) (bool, error) {
	return may(ctx, "deleteAllocations"), nil
}

func (r *inventoryResolver) ViewerCanUpdate(ctx context.Context, obj *model.Inventory) (bool, error) {
	return may(ctx, "setInventory"), nil
}

func (r *inventoryResolver) ViewerCanDelete(ctx context.Context, obj *model.Inventory) (bool, error) {
	return may(ctx, "deleteInventory") && obj.Used == 0, nil
}

func (r *metadataItemResolver) ViewerCanUpdate(ctx context.Context, obj *resource.MetadataItem) (bool, error) {
	return mayChangeItem(ctx, r.Store, obj, "setMetadata")
}

func (r *metadataItemResolver) ViewerCanDelete(ctx context.Context, obj *resource.MetadataItem) (bool, error) {
	return mayChangeItem(ctx, r.Store, obj, "deleteMetadata")
}

func (r *namespaceResolver) ViewerCanUpdate(ctx context.Context, obj *metadef.Namespace) (bool, error) {
	members, err := r.Members(ctx, obj)
	return r.Store.Standing(ctx, obj, members).At("updateNamespace").MayDefine(), err
}

func (r *namespaceResolver) ViewerCanDelete(ctx context.Context, obj *metadef.Namespace) (bool, error) {
	members, err := r.Members(ctx, obj)
	return r.Store.Standing(ctx, obj, members).At("deleteNamespace").MayDelete(), err
}

func (r *namespaceMemberResolver) ViewerCanUpdate(ctx context.Context, obj *metadef.NamespaceMember) (bool, error) {
	standing, err := standingAtMember.Load(ctx, r.Store, obj)
	return standing.At("shareNamespace").MayManage(), err
}

func (r *namespaceMemberResolver) ViewerCanDelete(ctx context.Context, obj *metadef.NamespaceMember) (bool, error) {
	standing, err := standingAtMember.Load(ctx, r.Store, obj)
	return standing.At("unshareNamespace").MayManage(), err
}

func (r *objectDefinitionResolver) ViewerCanUpdate(ctx context.Context, obj *metadef.ObjectDefinition) (bool, error) {
	standing, err := standingAtObject.Load(ctx, r.Store, obj)
	return standing.At("updateObject").MayDefine(), err
}

func (r *objectDefinitionResolver) ViewerCanDelete(ctx context.Context, obj *metadef.ObjectDefinition) (bool, error) {
	standing, err := standingAtObject.Load(ctx, r.Store, obj)
	return standing.At("deleteObject").MayUndefine(), err
}

func (r *propertyDefinitionResolver) ViewerCanUpdate(ctx context.Context, obj *metadef.PropertyDefinition) (bool, error) {
	standing, err := standingAtProperty.Load(ctx, r.Store, obj)
	return standing.At("updateProperty").MayDefine(), err
}

func (r *propertyDefinitionResolver) ViewerCanDelete(ctx context.Context, obj *metadef.PropertyDefinition) (bool, error) {
	standing, err := standingAtProperty.Load(ctx, r.Store, obj)
	return standing.At("deleteProperty").MayUndefine(), err
}

func (r *resourceResolver) ViewerCanUpdate(ctx context.Context, obj *resource.Resource) (bool, error) {
	return mayWrite(ctx, obj, "updateResource"), nil
}

func (r *resourceResolver) ViewerCanDelete(ctx context.Context, obj *resource.Resource) (bool, error) {
	inUse, err := usesOfResource.Load(ctx, r.Store, obj)
	return mayWrite(ctx, obj, "deleteResource") && !inUse, err
}

func (r *resourceCapabilityResolver) ViewerCanUpdate(ctx context.Context, obj *resource.ResourceCapability) (bool, error) {
	of, err := resourceOfCapability.Load(ctx, r.Store, obj)
	return mayWrite(ctx, of, "setCapabilities"), err
}

func (r *resourceCapabilityResolver) ViewerCanDelete(ctx context.Context, obj *resource.ResourceCapability) (bool, error) {
	of, err := resourceOfCapability.Load(ctx, r.Store, obj)
	return mayWrite(ctx, of, "unsetCapabilities"), err
}

func (r *resourceClassResolver) ViewerCanDelete(ctx context.Context, obj *placement.ResourceClass) (bool, error) {
	world, err := r.Store.World(ctx)
	return err == nil && may(ctx, "deleteResourceClass") && obj.Custom && !world.UsesResourceClass(obj.Name), err
}

func (r *resourceProviderResolver) ViewerCanUpdate(ctx context.Context, obj *model.ResourceProvider) (bool, error) {
	return may(ctx, "updateResourceProvider"), nil
}

func (r *resourceProviderResolver) ViewerCanDelete(ctx context.Context, obj *model.ResourceProvider) (bool, error) {
	return may(ctx, "deleteResourceProvider") && !obj.InUse(), nil
}

func (r *resourceTypeResolver) ViewerCanUpdate(ctx context.Context, obj *metadef.ResourceType) (bool, error) {
	return may(ctx, "updateResourceType"), nil
}

func (r *resourceTypeResolver) ViewerCanDelete(ctx context.Context, obj *metadef.ResourceType) (bool, error) {
	inUse, err := usesOfType.Load(ctx, r.Store, obj)
	return may(ctx, "deleteResourceType") && !obj.Protected && !inUse, err
}

func (r *resourceTypeAssociationResolver) ViewerCanUpdate(ctx context.Context, obj *metadef.ResourceTypeAssociation) (bool, error) {
	standing, err := standingAtAssociation.Load(ctx, r.Store, obj)
	return standing.At("updateResourceTypeAssociation").MayManage(), err
}

func (r *resourceTypeAssociationResolver) ViewerCanDelete(ctx context.Context, obj *metadef.ResourceTypeAssociation) (bool, error) {
	standing, err := standingAtAssociation.Load(ctx, r.Store, obj)
	return standing.At("disassociateResourceType").MayDelete(), err
}

func (r *tagResolver) ViewerCanUpdate(ctx context.Context, obj *metadef.Tag) (bool, error) {
	standing, err := standingAtTag.Load(ctx, r.Store, obj)
	return standing.At("updateTag").MayDefine(), err
}

func (r *tagResolver) ViewerCanDelete(ctx context.Context, obj *metadef.Tag) (bool, error) {
	standing, err := standingAtTag.Load(ctx, r.Store, obj)
	return standing.At("deleteTag").MayUndefine(), err
}

func (r *traitResolver) ViewerCanDelete(ctx context.Context, obj *placement.Trait) (bool, error) {
	world, err := r.Store.World(ctx)
	return err == nil && may(ctx, "deleteTrait") && obj.Custom && !world.UsesTrait(obj.Name), err
}

func (r *viewerResolver) Rules(ctx context.Context, obj *access.Viewer) ([]model.AccessRule, error) {
	return model.RulesOf(*obj), nil
}

func (r *viewerResolver) Can(ctx context.Context, obj *access.Viewer, operation model.Operation) (bool, error) {
	return obj.Can(operation.Field(), r.Store.OwnersWrite()), nil
}
