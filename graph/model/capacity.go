package model

import "github.com/cadastre-dev/cadastre/placement"

// Capacity is a sum of capacity in one world. Its root comes from the same
// world.
type Capacity struct {
	*placement.CapacitySum
	World *placement.World
}

// Root returns the root of the tree of the sum. It is nil if the sum is not
// about one tree.
func (c *Capacity) Root() *ResourceProvider { return ProviderIn(c.World, c.CapacitySum.Root) }

// capacityIn returns a sum of a world as a node, or nil for nil.
func capacityIn(world *placement.World, sum *placement.CapacitySum) *Capacity {
	if sum == nil {
		return nil
	}
	return &Capacity{sum, world}
}

// CapacitiesIn returns the sums of a world as nodes.
func CapacitiesIn(world *placement.World, sums []*placement.CapacitySum) []*Capacity {
	nodes := make([]*Capacity, len(sums))
	for i, sum := range sums {
		nodes[i] = &Capacity{sum, world}
	}
	return nodes
}

// TreeCapacity returns the capacity sums of the provider and all providers
// below it. For a provider that a mutation has written, the sums and their root
// come from the world after the mutation, which may include later writes.
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

// CapacityConnection is a page of capacity sums.
type CapacityConnection struct{ *Connection[Capacity] }

// Roots returns the roots of the trees of the page's sums.
func (c *CapacityConnection) Roots() []*ResourceProvider {
	return rootsAmong(c.Page.Items)
}

func rootsAmong[Row interface{ Root() *ResourceProvider }](rows []Row) []*ResourceProvider {
	var roots []*ResourceProvider
	for _, row := range rows {
		if root := row.Root(); root != nil {
			roots = append(roots, root)
		}
	}
	return roots
}

// WhatIf is a world with changes that are not stored.
type WhatIf struct{ *placement.Foreseen }

// CapacityDifference is a sum of capacity before and after the changes of a
// what-if. Now or Then is nil if no provider has the class and group.
type CapacityDifference struct{ Now, Then *Capacity }

// Difference returns the first sums that the changes change, at most most.
func (w *WhatIf) Difference(by placement.CapacityGrouping, most int) []*CapacityDifference {
	found := w.Foreseen.Difference(by)
	differences := make([]*CapacityDifference, min(len(found), most))
	for i := range differences {
		differences[i] = &CapacityDifference{capacityIn(w.Before, found[i].Now), capacityIn(w.World, found[i].Then)}
	}
	return differences
}

// DifferenceRoots returns the roots of the trees of all sums.
func DifferenceRoots(differences []*CapacityDifference) []*ResourceProvider {
	var sums []*Capacity
	for _, difference := range differences {
		for _, sum := range []*Capacity{difference.Now, difference.Then} {
			if sum != nil {
				sums = append(sums, sum)
			}
		}
	}
	return rootsAmong(sums)
}
