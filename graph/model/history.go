package model

import "github.com/cadastre-dev/cadastre/placement"

// CapacityBucketConnection is a page of the capacity history.
type CapacityBucketConnection struct {
	*Connection[placement.CapacityBucket]
	IsIncomplete bool
}

// CapacityBucketEdge is a row of the capacity history with its cursor.
type CapacityBucketEdge struct {
	Edge[placement.CapacityBucket]
}

// Edges returns the rows with their cursors.
func (c *CapacityBucketConnection) Edges() []CapacityBucketEdge {
	return edges[CapacityBucketEdge](c.Connection)
}
