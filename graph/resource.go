package graph

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/cadastre-dev/cadastre/catalog"
	"github.com/cadastre-dev/cadastre/graph/model"
)

func resourceID(r *catalog.Resource) int64         { return r.ID }
func resourceTypeID(t *catalog.ResourceType) int64 { return t.ID }
func capabilityID(c *catalog.Capability) int64     { return c.ID }

// resourceOrder is the order that is asked for, by name when none is.
func resourceOrder(orderBy *model.ResourceOrder) catalog.Order {
	if orderBy == nil {
		return catalog.Order{Field: string(model.ResourceOrderFieldName)}
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
	filter *catalog.ResourceFilter, orderBy *model.ResourceOrder, request catalog.PageRequest,
) (*model.ResourceConnection, error) {
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
	return &model.ResourceConnection{Connection: connection, Facets: facets}, nil
}
