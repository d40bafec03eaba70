package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/text"
)

func (r *capabilityResolver) Values(ctx context.Context, obj *resource.Capability, startsWith *string, first *int, after *string, last *int, before *string) (*model.Connection[resource.CapabilityValue], error) {
	return valuesOfCapability.connect(ctx, r.Store, obj, valueOf(startsWith),
		model.PageRequest(first, after, last, before))
}

func (r *capabilityValueResolver) ID(ctx context.Context, obj *resource.CapabilityValue) (string, error) {
	return page.Key("CapabilityValue", obj.Capability.NodeID(), obj.Value), nil
}

func (r *mutationResolver) SetCapabilities(ctx context.Context, input resource.CapabilitiesChange) (*model.SetCapabilitiesPayload, error) {
	resource, err := r.Store.SetCapabilities(ctx, input.Resource, input.Capabilities, input.Revision)
	return &model.SetCapabilitiesPayload{Resource: registered(ctx, resource)}, err
}

func (r *mutationResolver) UnsetCapabilities(ctx context.Context, input model.UnsetCapabilitiesInput) (*model.UnsetCapabilitiesPayload, error) {
	resource, err := r.Store.UnsetCapabilities(ctx, input.Resource, input.Names, input.Revision.Value())
	return &model.UnsetCapabilitiesPayload{Resource: registered(ctx, resource)}, err
}

func (r *mutationResolver) CreateCapability(ctx context.Context, input model.CreateCapabilityInput) (*model.CreateCapabilityPayload, error) {
	capability, err := r.Store.CreateCapability(ctx, input.ResourceType, input.Name, input.Private.Value())
	return &model.CreateCapabilityPayload{Capability: registered(ctx, capability)}, err
}

func (r *mutationResolver) SetCapabilityVisibility(ctx context.Context, input model.SetCapabilityVisibilityInput) (*model.SetCapabilityVisibilityPayload, error) {
	capability, err := r.Store.SetCapabilityVisibility(ctx, input.ResourceType, input.Name, input.Private)
	return &model.SetCapabilityVisibilityPayload{Capability: registered(ctx, capability)}, err
}

func (r *mutationResolver) DeleteCapability(ctx context.Context, input model.DeleteCapabilityInput) (*model.DeleteCapabilityPayload, error) {
	deletion, err := r.Store.DeleteCapability(ctx, input.ResourceType, input.Name, input.Force)
	if err != nil {
		return nil, err
	}
	dataloader.Register(ctx, deletion.Capability)
	dataloader.Register(ctx, deletion.Removed...)
	return &model.DeleteCapabilityPayload{Capability: deletion.Capability, Removed: deletion.Removed,
		RemovedCount: deletion.RemovedCount}, nil
}

func (r *resourceResolver) Capabilities(ctx context.Context, obj *resource.Resource, includePrivate *bool) ([]*resource.ResourceCapability, error) {
	return capabilitiesOfResource.Load(ctx, r.Store, obj, valueOf(includePrivate))
}

func (r *resourceTypeResolver) Capabilities(ctx context.Context, obj *metadef.ResourceType, includePrivate *bool) ([]*resource.Capability, error) {
	return capabilitiesOfType.Load(ctx, r.Store, obj, valueOf(includePrivate))
}

func (r *resourceTypeResolver) Capability(ctx context.Context, obj *metadef.ResourceType, name string) (*resource.Capability, error) {
	if err := text.CheckAny("name", name); err != nil {
		return nil, err
	}
	answer, err := capabilityOfType.Load(ctx, r.Store, obj, name)
	if err != nil {
		return nil, err
	}
	return answer.Capability, answer.Refused
}
