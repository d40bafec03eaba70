package model

import "github.com/cadastre-dev/cadastre/placement"

// Capacity is a sum of capacity of one world: the root is selected from that
// same world.
type Capacity struct {
	*placement.CapacitySum
	World *placement.World
}

// Root returns the root of the tree that the sum is of, nil where it is not of
// one tree.
func (c *Capacity) Root() *ResourceProvider { return ProviderIn(c.World, c.CapacitySum.Root) }

// CapacitiesIn returns sums of a world as nodes.
func CapacitiesIn(world *placement.World, sums []*placement.CapacitySum) []*Capacity {
	nodes := make([]*Capacity, len(sums))
	for i, sum := range sums {
		nodes[i] = &Capacity{sum, world}
	}
	return nodes
}

// TreeCapacity returns what the provider and all providers below it have between
// them. Below a provider that a mutation has written the sums are of the world
// after it, which may have later writes, and so is the root that stands beside
// them.
func (p *ResourceProvider) TreeCapacity() []*Capacity {
	root, found := p.World.Provider(p.UUID)
	if !found {
		root = p.Provider
	}
	sums := p.World.TreeCapacities(p.UUID)
	for _, sum := range sums {
		sum.Root = root
	}
	return CapacitiesIn(p.World, sums)
}

// CapacityConnection is a page of sums of capacity.
type CapacityConnection struct{ *Connection[Capacity] }

// CapacityEdge is a sum of capacity with its cursor.
type CapacityEdge struct{ Edge[Capacity] }

// Edges returns the sums with their cursors.
func (c *CapacityConnection) Edges() []CapacityEdge { return edges[CapacityEdge](c.Connection) }

// Roots returns the roots of the trees that the sums of the page are of.
func (c *CapacityConnection) Roots() []*ResourceProvider {
	var roots []*ResourceProvider
	for _, sum := range c.Page.Items {
		if root := sum.Root(); root != nil {
			roots = append(roots, root)
		}
	}
	return roots
}
