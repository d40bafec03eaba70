package graph

import (
	"context"
	"encoding/json"

	"github.com/cadastre-dev/cadastre/catalog"
)

// ResourceConnection is a page of resources.
type ResourceConnection struct {
	*Connection[catalog.Resource]
}

// ResourceEdge is a resource in a page.
type ResourceEdge struct{ Edge[catalog.Resource] }

// Edges are the resources with their cursors.
func (c *ResourceConnection) Edges() []ResourceEdge { return edges[ResourceEdge](c.Connection) }

func resourceID(r *catalog.Resource) int64         { return r.ID }
func resourceTypeID(t *catalog.ResourceType) int64 { return t.ID }
func capabilityID(c *catalog.Capability) int64     { return c.ID }

// resourceOrder is the order that is asked for, by name when none is.
func resourceOrder(orderBy *ResourceOrder) catalog.Order {
	if orderBy == nil {
		return catalog.Order{Field: string(ResourceOrderFieldName)}
	}
	return catalog.Order{Field: string(orderBy.Field), Descending: descending(orderBy.Direction)}
}

// argumentsKey tells loads apart that differ in their arguments.
func argumentsKey[Arguments any](name string, arguments Arguments) string {
	text, err := json.Marshal(arguments)
	if err != nil {
		panic(err) // arguments came as JSON
	}
	return name + string(text)
}

// resourcesWithin is a connection of the resources that hang off a parent.
func resourcesWithin[Parent any](
	ctx context.Context, r *Resolver, scope catalog.ResourceScope, parent *Parent, key func(*Parent) int64,
	filter *catalog.ResourceFilter, orderBy *ResourceOrder, request catalog.PageRequest,
) (*ResourceConnection, error) {
	wanted, order := valueOf(filter), resourceOrder(orderBy)
	arguments := struct {
		Filter catalog.ResourceFilter
		Order  catalog.Order
		Page   catalog.PageRequest
	}{wanted, order, request}
	connection, err := connectWithin(ctx, argumentsKey(string(scope), arguments), parent, key, request,
		func(ctx context.Context, keys []int64) (map[int64]catalog.Page[*catalog.Resource], error) {
			return r.Store.ResourcesWithin(ctx, scope, keys, wanted, order, request)
		},
		func(ctx context.Context, keys []int64) (map[int64]bool, error) {
			return r.Store.ResourcesBehind(ctx, scope, keys, wanted, order, request)
		},
		func(ctx context.Context, keys []int64) (map[int64]int, error) {
			return r.Store.CountResourcesWithin(ctx, scope, keys, wanted)
		})
	return &ResourceConnection{connection}, err
}
