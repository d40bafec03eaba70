// Package placementdb keeps resource providers, their inventories, traits and
// aggregates, and consumers with their allocations; and the resident world, on
// which candidates are decided.
package placementdb
