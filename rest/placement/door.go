// Package placement serves the API of OpenStack's Placement service, 1.0 to
// 1.39, over the placement data of the store. The store and package placement
// have the rules. This package has the paths, versions, forms and error codes of
// that API.
package placement

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/rest"
	"github.com/cadastre-dev/cadastre/rest/placement/search"
	"github.com/cadastre-dev/cadastre/store"
)

// Mount is the path of the service.
const Mount = "/openstack/placement"

// latest is the highest minor version.
const latest = 39

// door answers the routes of the Placement service.
type door struct {
	*store.Store
	compat bool // whether to answer like the reference where it is wrong
}

// New returns the door of a store. Compat selects the answers of the reference
// where Cadastre would answer differently; docs/openstack.md has the table.
func New(s *store.Store, compat bool, log *slog.Logger) *rest.Door {
	d := &door{s, compat}
	return &rest.Door{Service: "placement", Mount: Mount, Latest: latest, Routes: d.routes(), Store: s, Log: log}
}

// The paths with more than one method.
const (
	providersPath   = "/resource_providers"
	providerPath    = "/resource_providers/{uuid}"
	inventoriesPath = "/resource_providers/{uuid}/inventories"
	inventoryPath   = "/resource_providers/{uuid}/inventories/{class}"
	aggregatesPath  = "/resource_providers/{uuid}/aggregates"
	ofTraitsPath    = "/resource_providers/{uuid}/traits"
	classPath       = "/resource_classes/{name}"
	traitPath       = "/traits/{name}"
	consumerPath    = "/allocations/{consumer}"
)

func (d *door) routes() []rest.Route {
	const get, post, put, remove = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	const some = rest.Statements
	traits, classes := d.traits(), d.classes()
	return []rest.Route{
		{Method: get, Path: "/", Handle: d.root},
		{Method: get, Path: providersPath, Field: "resourceProviders", Handle: d.in(d.providers)},
		{Method: post, Path: providersPath, Field: "createResourceProvider", Work: some, Handle: d.createProvider},
		{Method: get, Path: providerPath, Field: "resourceProvider", Handle: d.showing(showProvider)},
		{Method: put, Path: providerPath, Field: "updateResourceProvider", Work: some, Handle: d.on(d.updateProvider)},
		{Method: remove, Path: providerPath, Field: "deleteResourceProvider",
			Work: some, Handle: d.in(d.deleteProvider)},
		{Method: get, Path: inventoriesPath, Field: "resourceProvider", Handle: d.showing(showInventories)},
		{Method: post, Path: inventoriesPath, Field: "setInventory", Work: some, Handle: d.on(d.createInventory)},
		{Method: put, Path: inventoriesPath, Field: "setInventories", Work: some, Handle: d.on(d.setInventories)},
		{Method: remove, Path: inventoriesPath, Since: 5, Before: http.StatusMethodNotAllowed, Field: "setInventories",
			Work: some, Handle: d.on(d.deleteInventories)},
		{Method: get, Path: inventoryPath, Field: "resourceProvider", Handle: d.on(d.inventory)},
		{Method: put, Path: inventoryPath, Field: "setInventory", Work: some, Handle: d.on(d.updateInventory)},
		{Method: remove, Path: inventoryPath, Field: "deleteInventory", Work: some, Handle: d.on(d.deleteInventory)},
		{Method: get, Path: aggregatesPath, Since: 1, Field: "resourceProvider", Handle: d.showing(showAggregates)},
		{Method: put, Path: aggregatesPath, Since: 1, Field: "setProviderAggregates", Work: some,
			Handle: d.on(d.setAggregates)},
		{Method: get, Path: ofTraitsPath, Since: 6, Field: "resourceProvider", Handle: d.showing(showTraits)},
		{Method: put, Path: ofTraitsPath, Since: 6, Field: "setProviderTraits",
			Work: some, Handle: d.setProviderTraits},
		{Method: remove, Path: ofTraitsPath, Since: 6, Field: "setProviderTraits", Work: some,
			Handle: d.on(d.deleteProviderTraits)},
		{Method: get, Path: "/resource_providers/{uuid}/usages",
			Field: "resourceProvider", Handle: d.showing(showUsages)},
		{Method: get, Path: "/resource_providers/{uuid}/allocations", Field: "resourceProvider", Work: some,
			Handle: d.on(d.providerAllocations)},
		{Method: get, Path: "/resource_classes", Since: 2, Field: "resourceClasses", Handle: d.in(d.listClasses)},
		{Method: post, Path: "/resource_classes", Since: 2,
			Field: "createResourceClass", Work: some, Handle: d.createClass},
		{Method: get, Path: classPath, Since: 2, Field: "resourceClasses", Handle: d.in(classes.show)},
		{Method: put, Path: classPath, Since: 2, Until: 6, Field: "createResourceClass", Work: some,
			Handle: d.in(d.renameClass)},
		{Method: put, Path: classPath, Since: 7, Field: "createResourceClass", Work: some, Handle: classes.put},
		{Method: remove, Path: classPath, Since: 2, Field: "deleteResourceClass",
			Work: some, Handle: d.in(classes.remove)},
		{Method: get, Path: "/traits", Since: 6, Field: "traits", Handle: d.in(d.listTraits)},
		{Method: get, Path: traitPath, Since: 6, Field: "traits", Handle: d.in(traits.show)},
		{Method: put, Path: traitPath, Since: 6, Field: "createTrait", Work: some, Handle: traits.put},
		{Method: remove, Path: traitPath, Since: 6, Field: "deleteTrait", Work: some, Handle: d.in(traits.remove)},
		{Method: get, Path: consumerPath, Field: "consumer", Work: some, Handle: d.allocations},
		{Method: put, Path: consumerPath, Field: "setAllocations", Handle: d.putAllocations},
		{Method: remove, Path: consumerPath, Field: "deleteAllocations", Handle: d.deleteAllocations},
		{Method: post, Path: "/allocations", Since: 13, Field: "setAllocations", Handle: d.postAllocations},
		{Method: get, Path: "/usages", Since: 9, Field: "usages", Work: some, Handle: d.usages},
		{Method: get, Path: "/allocation_candidates", Since: 10, Field: "allocationCandidates", Work: rest.Searches,
			Handle: d.in(d.candidates)},
		{Method: post, Path: "/reshaper", Since: 30, Field: "reshape", Work: some, Handle: d.in(d.reshape)},
	}
}

// root describes the versions. It needs no token.
func (d *door) root(context.Context, *rest.Request) (rest.Answer, error) {
	one := rest.Object{"id": "v1.0", "min_version": "1.0", "max_version": "1.39", "status": "CURRENT",
		"links": []rest.Object{{"rel": "self", "href": ""}}}
	return rest.Computed(rest.Object{"versions": []rest.Object{one}}), nil
}

// nothing is the answer without a body.
var nothing = rest.Answer{Status: http.StatusNoContent}

// generated is the generation of a provider in a body.
type generated struct {
	Generation int64 `json:"resource_provider_generation"`
}

// in returns the handler of a route that reads the world.
func (d *door) in(handle func(context.Context, *rest.Request, *placement.World) (rest.Answer, error)) rest.Handler {
	return func(ctx context.Context, r *rest.Request) (rest.Answer, error) {
		world, err := d.World(ctx)
		if err != nil {
			return rest.Answer{}, err
		}
		return handle(ctx, r, world)
	}
}

// on returns the handler of a route for the provider that the path names.
func (d *door) on(handle func(context.Context, *rest.Request, *placement.Provider) (rest.Answer, error)) rest.Handler {
	return func(ctx context.Context, r *rest.Request) (rest.Answer, error) {
		provider, err := d.find(ctx, r)
		if err != nil {
			return rest.Answer{}, err
		}
		return handle(ctx, r, provider)
	}
}

// view returns an answer about a provider.
type view func(*rest.Request, *placement.Provider) rest.Answer

// showing returns the handler of a route that reads a provider.
func (d *door) showing(show view) rest.Handler {
	return d.on(func(_ context.Context, r *rest.Request, provider *placement.Provider) (rest.Answer, error) {
		return show(r, provider), nil
	})
}

// after returns the answer to a change of a provider.
func (show view) after(r *rest.Request, provider *placement.Provider, err error) (rest.Answer, error) {
	if err != nil {
		return rest.Answer{}, err
	}
	return show(r, provider), nil
}

// find returns the provider that the path names.
func (d *door) find(ctx context.Context, r *rest.Request) (*placement.Provider, error) {
	world, err := d.World(ctx)
	if err != nil {
		return nil, err
	}
	provider, ok := world.Provider(r.Path["uuid"])
	if !ok {
		return nil, rest.Refuse(http.StatusNotFound, "", "No resource provider with uuid %s found", r.Path["uuid"])
	}
	return provider, nil
}

// errGeneration is the fault of an outdated generation of a provider.
var errGeneration = conflict("resource provider generation conflict: Resource provider's generation already changed. " +
	"Please update the generation and try again.")

// outdated refuses a generation lower than the provider's. The store decides
// about a higher generation, which another server may have made.
func outdated(provider *placement.Provider, generation int64) error {
	if generation < provider.Generation {
		return errGeneration
	}
	return nil
}

func conflict(detail string) error {
	return rest.Refuse(http.StatusConflict, "concurrent_update", "%s", detail)
}

// instead returns the fault for an error of the kind, and other errors unchanged.
func instead(err, kind, fault error) error {
	if errors.Is(err, kind) {
		return fault
	}
	return err
}

// prefixed returns the fault for a fault or a refusal, with a prefix before its
// message. It does not change internal errors.
func prefixed(err error, words string) error {
	fault, ok := rest.FaultOf(err)
	if !ok {
		return err
	}
	said := *fault
	said.Detail = words + said.Detail
	return &said
}

func (d *door) candidates(_ context.Context, r *rest.Request, world *placement.World) (rest.Answer, error) {
	return search.Candidates(world, r, d.compat)
}
