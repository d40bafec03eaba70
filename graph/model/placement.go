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
