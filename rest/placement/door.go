// Package placement serves the API of OpenStack's Placement service, 1.0 to
// 1.39, over the placement data of the store. It decides nothing: the store and
// package placement have the rules. This package knows the paths, versions,
// forms and error codes of that API.
package placement

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/rest"
	"github.com/cadastre-dev/cadastre/store"
)

// Mount is the path of the service.
const Mount = "/openstack/placement"

// latest is the highest minor version.
const latest = 39

// door has what handlers use.
type door struct {
	*store.Store
	compat bool // whether to answer as the reference where the reference is wrong
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
	return []rest.Route{
		{Method: get, Path: "/", Handle: d.root},
		{Method: get, Path: providersPath, Field: "resourceProviders", Handle: d.providers},
		{Method: post, Path: providersPath, Field: "createResourceProvider", Work: rest.Statements, Handle: d.createProvider},
		{Method: get, Path: providerPath, Field: "resourceProvider", Handle: d.provider},
		{Method: put, Path: providerPath, Field: "updateResourceProvider", Work: rest.Statements, Handle: d.updateProvider},
		{Method: remove, Path: providerPath, Field: "deleteResourceProvider", Work: rest.Statements, Handle: d.deleteProvider},
		{Method: get, Path: inventoriesPath, Field: "resourceProvider", Handle: d.inventories},
		{Method: post, Path: inventoriesPath, Field: "setInventory", Work: rest.Statements, Handle: d.createInventory},
		{Method: put, Path: inventoriesPath, Field: "setInventories", Work: rest.Statements, Handle: d.setInventories},
		{Method: remove, Path: inventoriesPath, Since: 5, Before: http.StatusMethodNotAllowed, Field: "setInventories", Work: rest.Statements, Handle: d.deleteInventories},
		{Method: get, Path: inventoryPath, Field: "resourceProvider", Handle: d.inventory},
		{Method: put, Path: inventoryPath, Field: "setInventory", Work: rest.Statements, Handle: d.updateInventory},
		{Method: remove, Path: inventoryPath, Field: "deleteInventory", Work: rest.Statements, Handle: d.deleteInventory},
		{Method: get, Path: aggregatesPath, Since: 1, Field: "resourceProvider", Handle: d.aggregates},
		{Method: put, Path: aggregatesPath, Since: 1, Field: "setProviderAggregates", Work: rest.Statements, Handle: d.setAggregates},
		{Method: get, Path: ofTraitsPath, Since: 6, Field: "resourceProvider", Handle: d.providerTraits},
		{Method: put, Path: ofTraitsPath, Since: 6, Field: "setProviderTraits", Work: rest.Statements, Handle: d.setProviderTraits},
		{Method: remove, Path: ofTraitsPath, Since: 6, Field: "setProviderTraits", Work: rest.Statements, Handle: d.deleteProviderTraits},
		{Method: get, Path: "/resource_providers/{uuid}/usages", Field: "resourceProvider", Handle: d.providerUsages},
		{Method: get, Path: "/resource_providers/{uuid}/allocations", Field: "resourceProvider", Work: rest.Statements, Handle: d.providerAllocations},
		{Method: get, Path: "/resource_classes", Since: 2, Field: "resourceClasses", Handle: d.classes},
		{Method: post, Path: "/resource_classes", Since: 2, Field: "createResourceClass", Work: rest.Statements, Handle: d.createClass},
		{Method: get, Path: classPath, Since: 2, Field: "resourceClasses", Handle: d.class},
		{Method: put, Path: classPath, Since: 2, Until: 6, Field: "createResourceClass", Work: rest.Statements, Handle: d.renameClass},
		{Method: put, Path: classPath, Since: 7, Field: "createResourceClass", Work: rest.Statements, Handle: d.putClass},
		{Method: remove, Path: classPath, Since: 2, Field: "deleteResourceClass", Work: rest.Statements, Handle: d.deleteClass},
		{Method: get, Path: "/traits", Since: 6, Field: "traits", Handle: d.traits},
		{Method: get, Path: traitPath, Since: 6, Field: "traits", Handle: d.trait},
		{Method: put, Path: traitPath, Since: 6, Field: "createTrait", Work: rest.Statements, Handle: d.putTrait},
		{Method: remove, Path: traitPath, Since: 6, Field: "deleteTrait", Work: rest.Statements, Handle: d.deleteTrait},
		{Method: get, Path: consumerPath, Field: "consumer", Work: rest.Statements, Handle: d.allocations},
		{Method: put, Path: consumerPath, Field: "setAllocations", Handle: d.putAllocations},
		{Method: remove, Path: consumerPath, Field: "deleteAllocations", Handle: d.deleteAllocations},
		{Method: post, Path: "/allocations", Since: 13, Field: "setAllocations", Handle: d.postAllocations},
		{Method: get, Path: "/usages", Since: 9, Field: "usages", Work: rest.Statements, Handle: d.usages},
		{Method: get, Path: "/allocation_candidates", Since: 10, Field: "allocationCandidates", Work: rest.Searches, Handle: d.candidates},
		{Method: post, Path: "/reshaper", Since: 30, Field: "reshape", Work: rest.Statements, Handle: d.reshape},
	}
}

// checkQuery checks the parameters of a URL. The reference ignores all but one
// value of most parameters. Without compat that is an error.
func (d *door) checkQuery(r *rest.Request, schema *rest.Schema) error {
	seen := map[string]bool{}
	for _, one := range r.Query {
		isList := strings.HasPrefix(one.Key, "member_of") || strings.HasPrefix(one.Key, "required") && r.Since(39) ||
			one.Key == "same_subtree" || one.Key == "root_required"
		if seen[one.Key] && !isList && !d.compat {
			return rest.Refuse(http.StatusBadRequest, "query.duplicate_key", "Query parameter '%s' may be specified only once.", one.Key)
		}
		seen[one.Key] = true
	}
	return r.CheckQuery(schema)
}

// object is a JSON object.
type object map[string]any

// root describes the versions. It needs no token.
func (d *door) root(context.Context, *rest.Request) (rest.Answer, error) {
	one := object{"id": "v1.0", "min_version": "1.0", "max_version": "1.39", "status": "CURRENT", "links": []object{{"rel": "self", "href": ""}}}
	return rest.Answer{Body: object{"versions": []object{one}}, Modified: rest.Now()}, nil
}

// nothing is the answer without a body.
var nothing = rest.Answer{Status: http.StatusNoContent}

// generated is the generation of a provider in a body.
type generated struct {
	Generation int64 `json:"resource_provider_generation"`
}

// find returns the world and the provider that the path names.
func (d *door) find(ctx context.Context, r *rest.Request) (*placement.World, *placement.Provider, error) {
	world, err := d.World(ctx)
	if err != nil {
		return nil, nil, err
	}
	provider, ok := world.Provider(r.Path["uuid"])
	if !ok {
		return nil, nil, rest.Refuse(http.StatusNotFound, "", "No resource provider with uuid %s found", r.Path["uuid"])
	}
	return world, provider, nil
}

// findAt is find for a request with a generation. It refuses a generation
// before the provider's. The store decides about a later one, which another
// server may have made.
func (d *door) findAt(ctx context.Context, r *rest.Request, generation int64) (*placement.Provider, error) {
	_, provider, err := d.find(ctx, r)
	if err == nil && generation < provider.Generation {
		err = errGeneration
	}
	return provider, err
}

// errGeneration is the fault of an outdated generation of a provider.
var errGeneration = conflict("resource provider generation conflict: Resource provider's generation already changed. " +
	"Please update the generation and try again.")

func conflict(detail string) error {
	return rest.Refuse(http.StatusConflict, "concurrent_update", "%s", detail)
}

// named returns the name of a trait or class that does not exist in problems.
func named(problems []placement.Problem, name func(placement.Problem) string) string {
	var names []string
	for _, one := range problems {
		if unknown := name(one); unknown != "" && !slices.Contains(names, unknown) {
			names = append(names, unknown)
		}
	}
	return strings.Join(names, ", ")
}

// checkProblems returns the fault for the problems of a search.
func checkProblems(problems []placement.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	if class := named(problems, func(p placement.Problem) string { return p.ResourceClass }); class != "" {
		return rest.Bad("Invalid resource class in resources parameter: No such resource class %s.", class)
	}
	if trait := named(problems, func(p placement.Problem) string { return p.Trait }); trait != "" {
		return rest.Bad("Invalid trait(s) in \"required\" parameter: No such trait(s): %s.", trait)
	}
	return rest.Bad("Invalid query string parameters: %s", problems[0].String())
}

// orEmpty returns a list that is not nil, for JSON.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// prefixed returns an error with words before the message of a refusal. Faults
// and internal errors stay as they are.
func prefixed(err error, words string) error {
	fault, ok := rest.FaultOf(err)
	if !ok {
		return err
	}
	said := *fault
	said.Detail = words + said.Detail
	return &said
}
