package model

import "github.com/cadastre-dev/cadastre/placement"

// CapacityBucketConnection is a page of the capacity history.
type CapacityBucketConnection struct {
	*Connection[placement.CapacityBucket]
	IsIncomplete bool
}
