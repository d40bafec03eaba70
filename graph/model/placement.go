package model

import (
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
)

// Consumer is a consumer.
type Consumer struct{ *placement.Consumer }

// NodeID is the global id.
func (c *Consumer) NodeID() string {
	return page.NodeID{Kind: page.KindConsumer, Key: c.UUID}.String()
}

// ConsumersOf are consumers as the API shows them.
func ConsumersOf(consumers []*placement.Consumer) []*Consumer {
	out := make([]*Consumer, len(consumers))
	for i, consumer := range consumers {
		out[i] = &Consumer{consumer}
	}
	return out
}

// ConsumerConnection is a page of consumers.
type ConsumerConnection struct{ *Connection[Consumer] }

// ConsumerEdge is a consumer in a page.
type ConsumerEdge struct{ Edge[Consumer] }

// Edges are the consumers with their cursors.
func (c *ConsumerConnection) Edges() []ConsumerEdge { return edges[ConsumerEdge](c.Connection) }

// AllocationConnection is a page of allocations.
type AllocationConnection struct {
	*Connection[placement.Allocation]
}

// AllocationEdge is an allocation in a page.
type AllocationEdge struct{ Edge[placement.Allocation] }

// Edges are the allocations with their cursors.
func (c *AllocationConnection) Edges() []AllocationEdge { return edges[AllocationEdge](c.Connection) }

// TraitConnection is a page of traits.
type TraitConnection struct{ *Connection[placement.Trait] }

// TraitEdge is a trait in a page.
type TraitEdge struct{ Edge[placement.Trait] }

// Edges are the traits with their cursors.
func (c *TraitConnection) Edges() []TraitEdge { return edges[TraitEdge](c.Connection) }

// ResourceClassConnection is a page of resource classes.
type ResourceClassConnection struct {
	*Connection[placement.ResourceClass]
}

// ResourceClassEdge is a resource class in a page.
type ResourceClassEdge struct{ Edge[placement.ResourceClass] }

// Edges are the resource classes with their cursors.
func (c *ResourceClassConnection) Edges() []ResourceClassEdge {
	return edges[ResourceClassEdge](c.Connection)
}
