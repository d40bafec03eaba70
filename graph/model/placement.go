package model

import (
	"slices"

	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/resource"
)

// Consumer is a placement.Consumer as a node.
type Consumer struct{ *placement.Consumer }

// NodeID returns the global id.
func (c *Consumer) NodeID() string {
	return page.GlobalID(page.KindConsumer, c.UUID, "")
}

// ConsumerOf returns a consumer as a node, or nil for nil.
func ConsumerOf(consumer *placement.Consumer) *Consumer {
	if consumer == nil {
		return nil
	}
	return &Consumer{consumer}
}

// ConsumersOf returns consumers as nodes.
func ConsumersOf(consumers []*placement.Consumer) []*Consumer {
	out := make([]*Consumer, len(consumers))
	for i, consumer := range consumers {
		out[i] = &Consumer{consumer}
	}
	return out
}

// ResourceProvider is a provider in one world. All fields below it come from
// the same world.
type ResourceProvider struct {
	*placement.Provider
	World *placement.World
}

// ProviderIn returns a provider of the world as a node, or nil for nil.
func ProviderIn(world *placement.World, provider *placement.Provider) *ResourceProvider {
	if provider == nil {
		return nil
	}
	return &ResourceProvider{Provider: provider, World: world}
}

// ProviderAt returns the provider with a UUID as a node, or nil if the world
// has none.
func ProviderAt(world *placement.World, uuid string) *ResourceProvider {
	provider, _ := world.Provider(uuid)
	return ProviderIn(world, provider)
}

// ProvidersIn returns providers of the world as nodes.
func ProvidersIn(world *placement.World, providers []*placement.Provider) []*ResourceProvider {
	nodes := make([]ResourceProvider, len(providers))
	out := make([]*ResourceProvider, len(providers))
	for i, provider := range providers {
		nodes[i] = ResourceProvider{Provider: provider, World: world}
		out[i] = &nodes[i]
	}
	return out
}

// NodeID returns the global id. A provider of a what-if has a separate id,
// because its content differs from the stored provider's.
func (p *ResourceProvider) NodeID() string {
	return page.GlobalID(page.KindResourceProvider, p.UUID, p.World.Assumption)
}

// Parent returns the parent of the provider, or nil for a root.
func (p *ResourceProvider) Parent() *ResourceProvider {
	if p.Provider.Parent == "" {
		return nil
	}
	return ProviderAt(p.World, p.Provider.Parent)
}

// Root returns the root of the provider's tree, as the world has it and not as
// a mutation has just written it. If the world lacks the root, Root returns the
// provider itself.
func (p *ResourceProvider) Root() *ResourceProvider {
	if root := ProviderAt(p.World, p.Provider.Root); root != nil {
		return root
	}
	return p
}

// InUse reports whether the provider has children or allocations.
func (p *ResourceProvider) InUse() bool {
	isUsed := func(inventory placement.Inventory) bool { return inventory.Used != 0 }
	return slices.ContainsFunc(p.Provider.Inventories, isUsed) || p.World.HasChildren(p.UUID)
}

// Children returns a page of the children of the provider, ordered by name.
func (p *ResourceProvider) Children(first *int, after *string, last *int,
	before *string) (*ResourceProviderConnection, error) {
	return ConnectList("children of a provider", ProvidersIn(p.World, p.World.Children(p.UUID)),
		PageRequest(first, after, last, before), func(child *ResourceProvider) string { return child.Name },
		func(child *ResourceProvider) string { return child.UUID })
}

// Inventory returns the inventory of a resource class, or nil.
func (p *ResourceProvider) Inventory(resourceClass string) *Inventory {
	for i := range p.Provider.Inventories {
		if p.Provider.Inventories[i].ResourceClass == resourceClass {
			return &Inventory{Inventory: &p.Provider.Inventories[i], In: p}
		}
	}
	return nil
}

// Inventories returns all inventories of the provider.
func (p *ResourceProvider) Inventories() []Inventory {
	all := make([]Inventory, len(p.Provider.Inventories))
	for i := range all {
		all[i] = Inventory{Inventory: &p.Provider.Inventories[i], In: p}
	}
	return all
}

// Inventory is an inventory with its provider.
type Inventory struct {
	*placement.Inventory
	In *ResourceProvider
}

// Key returns the key of the inventory in the caches of clients.
func (i *Inventory) Key() string {
	parts := []string{i.In.UUID, i.ResourceClass}
	if of := i.In.World.Assumption; of != "" {
		parts = append(parts, of)
	}
	return page.Key("Inventory", parts...)
}

// ResourceProviderFilter selects providers by their own properties and by the
// resource of their root.
type ResourceProviderFilter struct {
	placement.ProviderFilter
	Resource *resource.Filter
}

// UpdateInventoriesInput is an update of the inventories of the providers that a
// filter selects.
type UpdateInventoriesInput struct {
	placement.InventoryUpdate
	Filter *ResourceProviderFilter
	DryRun bool
}
