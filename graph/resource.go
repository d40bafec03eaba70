package graph

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/catalog"
)

// ResourceConnection is a page of resources.
type ResourceConnection struct {
	*Connection[catalog.Resource]
	facets func(keys []string, first int) ([]*catalog.MetadataFacet, error)
}

// MetadataFacets are the values of metadata keys on all resources of the list.
func (c *ResourceConnection) MetadataFacets(_ context.Context, keys []string, first *int) ([]*catalog.MetadataFacet, error) {
	if first == nil {
		return c.facets(keys, catalog.DefaultFacetValues)
	}
	return c.facets(keys, *first)
}

// MetadataKeyConnection is a page of metadata keys.
type MetadataKeyConnection struct {
	*Connection[catalog.MetadataKey]
}

// MetadataKeyEdge is a metadata key in a page.
type MetadataKeyEdge struct{ Edge[catalog.MetadataKey] }

// Edges are the keys with their cursors.
func (c *MetadataKeyConnection) Edges() []MetadataKeyEdge {
	return edges[MetadataKeyEdge](c.Connection)
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
	if err != nil {
		return nil, err
	}
	facets := func(names []string, first int) ([]*catalog.MetadataFacet, error) {
		load := func(ctx context.Context, keys []int64) (map[int64][]*catalog.MetadataFacet, error) {
			return r.Store.MetadataFacets(ctx, scope, keys, wanted, names, first)
		}
		name := argumentsKey(argumentsKey(fmt.Sprint(scope, " facets ", first), wanted), names)
		return loadMany(ctx, name, parent, key, load)
	}
	return &ResourceConnection{connection, facets}, nil
}

// changeOf is what an argument says about a field: absent keeps, null clears.
func changeOf[T any](argument graphql.Omittable[T]) catalog.Change[T] {
	value, set := argument.ValueOK()
	return catalog.Change[T]{Set: set, Value: value}
}
