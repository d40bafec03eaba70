package graph

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/resource"
)

func resourceID(r *resource.Resource) int64        { return r.ID }
func resourceTypeID(t *metadef.ResourceType) int64 { return t.ID }
func capabilityID(c *resource.Capability) int64    { return c.ID }

// resourceOrder returns an order of resources: the one given or, for nil, by
// name.
func resourceOrder(orderBy *model.ResourceOrder) page.Order {
	if orderBy == nil {
		return page.Order{Field: string(model.ResourceOrderFieldName)}
	}
	return page.Order{Field: string(orderBy.Field), Descending: descending(orderBy.Direction)}
}

// argumentsKey returns the name of a load with its arguments.
func argumentsKey[Arguments any](name string, arguments Arguments) string {
	encoded, err := json.Marshal(arguments)
	if err != nil {
		panic(err) // arguments came as JSON
	}
	return name + string(encoded)
}

// resourcesWithin returns a connection of the resources that are children of a
// parent.
func resourcesWithin[Parent any](
	ctx context.Context, r *Resolver, scope resource.Scope, parent *Parent, key func(*Parent) int64,
	filter *resource.Filter, orderBy *model.ResourceOrder, request page.Request,
) (*model.ResourceConnection, error) {
	wanted, order := valueOf(filter), resourceOrder(orderBy)
	arguments := struct {
		Filter resource.Filter
		Order  page.Order
		Page   page.Request
	}{wanted, order, request}
	connection, err := connectWithin(ctx, argumentsKey(string(scope), arguments), parent, key, request,
		func(ctx context.Context, keys []int64) (map[int64]page.Page[*resource.Resource], error) {
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
	facets := func(names []string, first int) ([]*resource.MetadataFacet, error) {
		load := func(ctx context.Context, keys []int64) (map[int64][]*resource.MetadataFacet, error) {
			return r.Store.MetadataFacets(ctx, scope, keys, wanted, names, first)
		}
		name := argumentsKey(argumentsKey(fmt.Sprint(scope, " facets ", first), wanted), names)
		return dataloader.Many(ctx, name, parent, key, load)
	}
	return &model.ResourceConnection{Connection: connection, Facets: facets}, nil
}
