package model

import (
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
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

// ConsumerConnection is a page of consumers.
type ConsumerConnection struct{ *Connection[Consumer] }

// ConsumerEdge is a consumer with its cursor.
type ConsumerEdge struct{ Edge[Consumer] }

// Edges returns the consumers with their cursors.
func (c *ConsumerConnection) Edges() []ConsumerEdge { return edges[ConsumerEdge](c.Connection) }

// AllocationConnection is a page of allocations.
type AllocationConnection struct {
	*Connection[placement.Allocation]
}

// AllocationEdge is an allocation with its cursor.
type AllocationEdge struct{ Edge[placement.Allocation] }

// Edges returns the allocations with their cursors.
func (c *AllocationConnection) Edges() []AllocationEdge { return edges[AllocationEdge](c.Connection) }

// TraitConnection is a page of traits.
type TraitConnection struct{ *Connection[placement.Trait] }

// TraitEdge is a trait with its cursor.
type TraitEdge struct{ Edge[placement.Trait] }

// Edges returns the traits with their cursors.
func (c *TraitConnection) Edges() []TraitEdge { return edges[TraitEdge](c.Connection) }

// ResourceClassConnection is a page of resource classes.
type ResourceClassConnection struct {
	*Connection[placement.ResourceClass]
}

// ResourceClassEdge is a resource class with its cursor.
type ResourceClassEdge struct{ Edge[placement.ResourceClass] }

// Edges returns the resource classes with their cursors.
func (c *ResourceClassConnection) Edges() []ResourceClassEdge {
	return edges[ResourceClassEdge](c.Connection)
}
