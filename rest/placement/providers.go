package placement

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/rest"
)

// show returns a provider as a request of its version sees it.
func show(r *rest.Request, p *placement.Provider) object {
	self := r.Mount + providersPath + "/" + p.UUID
	links := []object{{"rel": "self", "href": self}}
	for _, of := range []struct {
		rel   string
		since int
	}{{"inventories", 0}, {"usages", 0}, {"aggregates", 1}, {"traits", 6}, {"allocations", 11}} {
		if r.Since(of.since) {
			links = append(links, object{"rel": of.rel, "href": self + "/" + of.rel})
		}
	}
	shown := object{"uuid": p.UUID, "name": p.Name, "generation": p.Generation, "links": links}
	if r.Since(14) {
		shown["parent_provider_uuid"], shown["root_provider_uuid"] = orNull(p.Parent), p.Root
	}
	return shown
}

// orNull returns nil for an empty string.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func (d *door) provider(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	_, provider, err := d.find(ctx, r)
	if err != nil {
		return rest.Answer{}, err
	}
	return rest.Answer{Body: show(r, provider), Modified: provider.UpdatedAt}, nil
}

func (d *door) providers(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	schema := &rest.Schema{Type: "object", Properties: map[string]*rest.Schema{"name": text, "uuid": uuid}}
	for name, of := range map[string]struct {
		since  int
		schema *rest.Schema
	}{"member_of": {3, text}, "resources": {4, text}, "in_tree": {14, uuid}, "required": {18, text}} {
		if r.Since(of.since) {
			schema.Properties[name] = of.schema
		}
	}
	if err := d.checkQuery(r, schema); err != nil {
		return rest.Answer{}, err
	}
	filter, err := filterOf(r)
	if err != nil {
		return rest.Answer{}, err
	}
	world, err := d.World(ctx)
	if err != nil {
		return rest.Answer{}, err
	}
	if err := checkProblems(filter.Validate(world, "")); err != nil {
		return rest.Answer{}, err
	}
	found := world.Filter(filter)
	list, modified := make([]object, len(found)), time.Time{}
	for i, provider := range found {
		list[i] = show(r, provider)
		if provider.UpdatedAt.After(modified) {
			modified = provider.UpdatedAt
		}
	}
	if modified.IsZero() {
		modified = rest.Now()
	}
	return rest.Answer{Body: object{"resource_providers": list}, Modified: modified}, nil
}

// filterOf returns the filter of a request for providers.
func filterOf(r *rest.Request) (placement.ProviderFilter, error) {
	var filter placement.ProviderFilter
	group, err := groupOf(r, "")
	if err != nil {
		return filter, err
	}
	if name, ok := r.Last("name"); ok {
		filter.Name = &name
	}
	if uuid, ok := r.Last("uuid"); ok {
		filter.UUIDs = []string{uuid}
	}
	filter.InTree, filter.MemberOf, filter.Resources = group.InTree, group.MemberOf, group.Resources
	filter.RequiredAll, filter.RequiredAnySets, filter.Forbidden = group.RequiredAll, group.RequiredAnySets, group.Forbidden
	return filter, nil
}

// providerBody is the body of a request that creates or changes a provider.
type providerBody struct {
	Name   string  `json:"name"`
	UUID   *string `json:"uuid"`
	Parent *string `json:"parent_provider_uuid"`
	given  bool    // whether the parent is given
}

func readProvider(r *rest.Request, withUUID bool) (providerBody, error) {
	schema := closed([]string{"name"}, map[string]*rest.Schema{"name": {Type: "string", MaxSize: placement.MaxProviderNameLength}})
	if withUUID {
		schema.Properties["uuid"] = uuid
	}
	if r.Since(14) {
		schema.Properties["parent_provider_uuid"] = &rest.Schema{Type: "string", UUID: true, Null: true}
	}
	var body providerBody
	if err := r.ReadJSON(schema, &body); err != nil {
		return body, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(r.Body, &members); err != nil {
		return body, err
	}
	_, body.given = members["parent_provider_uuid"]
	for _, of := range []*string{body.UUID, body.Parent} {
		if of != nil {
			*of, _ = placement.CanonicalUUID(*of)
		}
	}
	return body, nil
}

func (d *door) createProvider(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	body, err := readProvider(r, true)
	if err != nil {
		return rest.Answer{}, err
	}
	_, created, err := d.CreateResourceProvider(ctx, placement.NewProvider{Name: body.Name, UUID: body.UUID, Parent: body.Parent})
	if err != nil {
		return rest.Answer{}, d.refusedCreation(ctx, err, body)
	}
	location := r.Mount + providersPath + "/" + created.UUID
	if r.Since(20) {
		return rest.Answer{Body: show(r, created), Location: location, Modified: created.UpdatedAt}, nil
	}
	return rest.Answer{Status: http.StatusCreated, Location: location}, nil
}

// refusedCreation returns the fault of a provider that was not created.
func (d *door) refusedCreation(ctx context.Context, err error, body providerBody) error {
	var taken []string
	for _, one := range problem.InError(err) {
		switch {
		case one.Field == "input.uuid" && errors.Is(one.Kind, problem.ErrAlreadyExists):
			taken = append(taken, "uuid: "+*body.UUID)
		case one.Field == "input.name" && errors.Is(one.Kind, problem.ErrAlreadyExists):
			taken = append(taken, "name: "+body.Name)
		}
	}
	if taken != nil {
		return rest.Refuse(http.StatusConflict, "duplicate_name", "Conflicting resource provider %s already exists.", strings.Join(taken, ", "))
	}
	world, failed := d.World(ctx)
	if failed != nil {
		return failed
	}
	uuid, own := "", ""
	if body.UUID != nil {
		uuid, own = *body.UUID, ", "+*body.UUID
	}
	err = parentFault(err, world, uuid, body.Parent, "parent provider UUID cannot be same as UUID")
	return prefixed(err, fmt.Sprintf("Unable to create resource provider %q%s: ", body.Name, own))
}

const loop = "creating loop in the provider tree is not allowed."

// parentFault returns the fault for a parent that a provider cannot have. itself
// is the message for the provider itself.
func parentFault(err error, world *placement.World, provider string, parent *string, itself string) error {
	isParent := func(one problem.Problem) bool { return one.Field == "input.parent" }
	if parent == nil || !slices.ContainsFunc(problem.InError(err), isParent) {
		return err
	}
	if *parent == provider {
		return rest.Bad("%s", itself)
	}
	if _, ok := world.Provider(*parent); ok {
		return rest.Bad(loop)
	}
	return rest.Bad("parent provider UUID does not exist")
}

func (d *door) updateProvider(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	world, before, err := d.find(ctx, r)
	if err != nil {
		return rest.Answer{}, err
	}
	body, err := readProvider(r, false)
	if err != nil {
		return rest.Answer{}, err
	}
	words := "Unable to save resource provider " + before.UUID + ": "
	patch := placement.ProviderPatch{Provider: before.UUID, NewName: &body.Name}
	if body.given {
		parent := ""
		if body.Parent != nil {
			parent = *body.Parent
		}
		if err := mayMove(r, before.Parent, parent); err != nil {
			return rest.Answer{}, prefixed(err, words)
		}
		if patch.Parent = &parent; parent == before.Parent {
			patch.Parent = nil
		}
	}
	_, after, err := d.UpdateResourceProvider(ctx, patch)
	if errors.Is(err, problem.ErrAlreadyExists) {
		err = rest.Refuse(http.StatusConflict, "duplicate_name", "Conflicting resource provider %s already exists.", body.Name)
	}
	if err != nil {
		return rest.Answer{}, prefixed(parentFault(err, world, before.UUID, body.Parent, loop), words)
	}
	return rest.Answer{Body: show(r, after), Modified: after.UpdatedAt}, nil
}

// mayMove refuses a move that needs a later version.
func mayMove(r *rest.Request, before, after string) error {
	switch {
	case r.Since(37) || before == "" || before == after:
		return nil
	case after == "":
		return rest.Bad("un-parenting a provider is not currently allowed")
	}
	return rest.Bad("re-parenting a provider is not currently allowed")
}

func (d *door) deleteProvider(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	gone := rest.Refuse(http.StatusNotFound, "", "No resource provider with uuid %s found for delete", r.Path["uuid"])
	world, provider, err := d.find(ctx, r)
	if err != nil {
		if _, ok := rest.FaultOf(err); ok {
			err = gone
		}
		return rest.Answer{}, err
	}
	_, _, err = d.DeleteResourceProvider(ctx, provider.UUID)
	switch {
	case errors.Is(err, problem.ErrInUse) && world.HasChildren(provider.UUID):
		err = rest.Refuse(http.StatusConflict, "resource_provider.cannot_delete_parent",
			"Unable to delete parent resource provider %s: It has child resource providers.", provider.UUID)
	case errors.Is(err, problem.ErrInUse):
		err = rest.Refuse(http.StatusConflict, "resource_provider.inuse", "Unable to delete resource provider %s: Resource provider has allocations.", provider.UUID)
	case errors.Is(err, problem.ErrNotFound):
		err = gone
	}
	return nothing, err
}
