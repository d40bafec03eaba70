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
	"github.com/cadastre-dev/cadastre/rest/placement/search"
)

// link is a link of a provider. It is not a map, because a list can have tens of
// thousands of links.
type link struct {
	Href string `json:"href"`
	Rel  string `json:"rel"`
}

// describe returns a provider in the form of the request's version.
func describe(r *rest.Request, p *placement.Provider) rest.Object {
	self := r.Mount + providersPath + "/" + p.UUID
	links := []link{{self, "self"}}
	for _, of := range []struct {
		rel   string
		since int
	}{{"inventories", 0}, {"usages", 0}, {"aggregates", 1}, {"traits", 6}, {"allocations", 11}} {
		if r.Since(of.since) {
			links = append(links, link{self + "/" + of.rel, of.rel})
		}
	}
	shown := rest.Object{"uuid": p.UUID, "name": p.Name, "generation": p.Generation, "links": links}
	shown.Set(r, 14, "parent_provider_uuid", rest.OrNull(p.Parent))
	shown.Set(r, 14, "root_provider_uuid", p.Root)
	return shown
}

func showProvider(r *rest.Request, p *placement.Provider) rest.Answer {
	return rest.Answer{Body: describe(r, p), Modified: p.UpdatedAt}
}

// leastProvider is less than the bytes of a provider in a list: it has three links
// or more.
const leastProvider = 300

func (d *door) providers(_ context.Context, r *rest.Request, world *placement.World) (rest.Answer, error) {
	found, err := search.Providers(world, r, d.compat)
	if err != nil {
		return rest.Answer{}, err
	}
	if len(found) > r.Most(leastProvider) {
		return rest.Answer{}, r.TooLong()
	}
	list, modified := []rest.Object{}, time.Time{}
	for _, provider := range found {
		list = append(list, describe(r, provider))
		modified = later(modified, provider.UpdatedAt)
	}
	if len(list) == 0 {
		modified = rest.Now()
	}
	return rest.Answer{Body: rest.Object{"resource_providers": list}, Modified: modified}, nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// providerBody is the body of a request that creates or changes a provider.
type providerBody struct {
	Name   string  `json:"name"`
	UUID   *string `json:"uuid"`
	Parent *string `json:"parent_provider_uuid"`
	given  bool    // whether the parent is given
}

// readProvider reads a provider from a body. It permits further members besides
// the common ones.
func readProvider(r *rest.Request, more ...rest.Member) (body providerBody, err error) {
	if err := r.ReadJSON(providerSchema(r.Version, more...), &body); err != nil {
		return body, err
	}
	var sent map[string]json.RawMessage
	if err := json.Unmarshal(r.Body, &sent); err != nil {
		return body, err
	}
	_, body.given = sent["parent_provider_uuid"]
	for _, of := range []*string{body.UUID, body.Parent} {
		if of != nil {
			*of, _ = placement.CanonicalUUID(*of)
		}
	}
	return body, nil
}

func (d *door) createProvider(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	body, err := readProvider(r, rest.May(0, "uuid", uuid))
	if err != nil {
		return rest.Answer{}, err
	}
	input := placement.NewProvider{Name: body.Name, UUID: body.UUID, Parent: body.Parent}
	_, created, err := d.CreateResourceProvider(ctx, input)
	if err != nil {
		return rest.Answer{}, d.refusedCreation(ctx, err, body)
	}
	answer := rest.Answer{Status: http.StatusCreated}
	if r.Since(20) {
		answer = showProvider(r, created)
	}
	answer.Location = r.Mount + providersPath + "/" + created.UUID
	return answer, nil
}

// refusedCreation returns the fault of a provider that was not created.
func (d *door) refusedCreation(ctx context.Context, err error, body providerBody) error {
	var uuid, own string
	if body.UUID != nil {
		uuid, own = *body.UUID, ", "+*body.UUID
	}
	var taken []string
	for _, one := range problem.InError(err) {
		value, ok := map[string]string{"input.uuid": "uuid: " + uuid, "input.name": "name: " + body.Name}[one.Field]
		if ok && errors.Is(one.Kind, problem.ErrAlreadyExists) {
			taken = append(taken, value)
		}
	}
	if taken != nil {
		return nameTaken(strings.Join(taken, ", "))
	}
	err = d.parentFault(ctx, err, uuid, body.Parent, "parent provider UUID cannot be same as UUID")
	return prefixed(err, fmt.Sprintf("Unable to create resource provider %q%s: ", body.Name, own))
}

func nameTaken(name string) error {
	return rest.Refuse(http.StatusConflict, "duplicate_name", "Conflicting resource provider %s already exists.", name)
}

const loop = "creating loop in the provider tree is not allowed."

// parentFault returns the fault for an invalid parent, and other errors
// unchanged. itself is the message if the parent is the provider itself.
func (d *door) parentFault(ctx context.Context, err error, provider string, parent *string, itself string) error {
	isParent := func(one problem.Problem) bool { return one.Field == "input.parent" }
	if parent == nil || !slices.ContainsFunc(problem.InError(err), isParent) {
		return err
	}
	if *parent == provider {
		return rest.Bad("%s", itself)
	}
	world, failed := d.World(ctx)
	if failed != nil {
		return failed
	}
	if _, ok := world.Provider(*parent); ok {
		return rest.Bad(loop)
	}
	return rest.Bad("parent provider UUID does not exist")
}

func (d *door) updateProvider(ctx context.Context, r *rest.Request, before *placement.Provider) (rest.Answer, error) {
	body, err := readProvider(r)
	if err != nil {
		return rest.Answer{}, err
	}
	words := "Unable to save resource provider " + before.UUID + ": "
	patch := placement.ProviderPatch{Provider: before.UUID, NewName: &body.Name}
	if body.given {
		var parent string
		set(&parent, body.Parent)
		if err := mayMove(r, before.Parent, parent); err != nil {
			return rest.Answer{}, prefixed(err, words)
		}
		if parent != before.Parent {
			patch.Parent = &parent
		}
	}
	_, after, err := d.UpdateResourceProvider(ctx, patch)
	err = instead(err, problem.ErrAlreadyExists, nameTaken(body.Name))
	if err != nil {
		err = prefixed(d.parentFault(ctx, err, before.UUID, body.Parent, loop), words)
	}
	return view(showProvider).after(r, after, err)
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

func (d *door) deleteProvider(ctx context.Context, r *rest.Request, world *placement.World) (rest.Answer, error) {
	gone := rest.Refuse(http.StatusNotFound, "", "No resource provider with uuid %s found for delete", r.Path["uuid"])
	provider, ok := world.Provider(r.Path["uuid"])
	if !ok {
		return rest.Answer{}, gone
	}
	used := rest.Refuse(http.StatusConflict, "resource_provider.inuse",
		"Unable to delete resource provider %s: Resource provider has allocations.", provider.UUID)
	if world.HasChildren(provider.UUID) {
		used = rest.Refuse(http.StatusConflict, "resource_provider.cannot_delete_parent",
			"Unable to delete parent resource provider %s: It has child resource providers.", provider.UUID)
	}
	_, _, err := d.DeleteResourceProvider(ctx, provider.UUID)
	return nothing, instead(instead(err, problem.ErrInUse, used), problem.ErrNotFound, gone)
}

func showAggregates(r *rest.Request, p *placement.Provider) rest.Answer {
	shown := rest.Object{"aggregates": append([]string{}, p.Aggregates...)}
	shown.Set(r, 19, "resource_provider_generation", p.Generation)
	return rest.Computed(shown)
}

func (d *door) setAggregates(ctx context.Context, r *rest.Request, provider *placement.Provider) (rest.Answer, error) {
	change := placement.ProviderAggregates{Provider: provider.UUID}
	if r.Since(19) {
		var body struct {
			generated
			Aggregates []string `json:"aggregates"`
		}
		if err := r.ReadJSON(rest.Members(0, rest.Must(0, "aggregates", uuidSet), generation), &body); err != nil {
			return rest.Answer{}, err
		}
		if err := outdated(provider, body.Generation); err != nil {
			return rest.Answer{}, err
		}
		change.Aggregates, change.Generation = body.Aggregates, &body.Generation
	} else if err := r.ReadJSON(uuidSet, &change.Aggregates); err != nil {
		return rest.Answer{}, err
	}
	_, after, err := d.SetProviderAggregates(ctx, change)
	if err != nil {
		return rest.Answer{}, instead(err, problem.ErrConcurrentUpdate, errGeneration)
	}
	answer := *after
	answer.Aggregates = change.Aggregates // in the order of the request
	return showAggregates(r, &answer), nil
}

func showTraits(_ *rest.Request, p *placement.Provider) rest.Answer {
	body := rest.Object{"traits": append([]string{}, p.Traits...), "resource_provider_generation": p.Generation}
	return rest.Answer{Body: body, Modified: p.UpdatedAt}
}

func (d *door) setProviderTraits(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	var body struct {
		generated
		Traits []string `json:"traits"`
	}
	list := &rest.Schema{Type: "array", Items: owner}
	if err := r.ReadJSON(rest.Members(0, rest.Must(0, "traits", list), generation), &body); err != nil {
		return rest.Answer{}, err
	}
	provider, err := d.find(ctx, r)
	if err == nil {
		err = outdated(provider, body.Generation)
	}
	if err != nil {
		return rest.Answer{}, err
	}
	change := placement.ProviderTraits{Provider: provider.UUID, Generation: &body.Generation, Traits: body.Traits}
	_, after, err := d.SetProviderTraits(ctx, change)
	err = instead(err, problem.ErrConcurrentUpdate, errGeneration)
	if errors.Is(err, problem.ErrInvalidInput) {
		world, _ := d.World(ctx)
		unknown := slices.DeleteFunc(body.Traits, world.HasTrait)
		err = rest.Bad("No such trait %s", strings.Join(unknown, ", "))
	}
	return view(showTraits).after(r, after, err)
}

func (d *door) deleteProviderTraits(ctx context.Context, _ *rest.Request, p *placement.Provider) (rest.Answer, error) {
	_, _, err := d.SetProviderTraits(ctx, placement.ProviderTraits{Provider: p.UUID, Generation: &p.Generation})
	return nothing, err
}
