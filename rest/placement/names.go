package placement

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/rest"
)

// usedOf returns the classes of a provider that have allocations.
func usedOf(p *placement.Provider) string {
	var used []string
	for _, one := range p.Inventories {
		if one.Used > 0 {
			used = append(used, one.ResourceClass)
		}
	}
	const first = "VCPU MEMORY_MB DISK_GB" // the order of the reference
	slices.SortStableFunc(used, func(a, b string) int {
		return cmp.Or(cmp.Compare(uint(strings.Index(first, a)), uint(strings.Index(first, b))), cmp.Compare(a, b))
	})
	return strings.Join(used, ", ")
}

// only returns the inventory of a class.
func only(p *placement.Provider, class string) []placement.Inventory {
	return slices.DeleteFunc(slices.Clone(p.Inventories), func(i placement.Inventory) bool { return i.ResourceClass != class })
}

func (d *door) aggregates(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	_, provider, err := d.find(ctx, r)
	if err != nil {
		return rest.Answer{}, err
	}
	return showAggregates(r, provider), nil
}

func showAggregates(r *rest.Request, p *placement.Provider) rest.Answer {
	shown := object{"aggregates": orEmpty(p.Aggregates)}
	if r.Since(19) {
		shown["resource_provider_generation"] = p.Generation
	}
	return rest.Answer{Body: shown, Modified: rest.Now()}
}

func (d *door) setAggregates(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	_, provider, err := d.find(ctx, r)
	if err != nil {
		return rest.Answer{}, err
	}
	change := placement.ProviderAggregates{Provider: provider.UUID}
	if r.Since(19) {
		var body struct {
			generated
			Aggregates []string `json:"aggregates"`
		}
		schema := closed([]string{"aggregates", "resource_provider_generation"}, map[string]*rest.Schema{"aggregates": uuidSet, "resource_provider_generation": integer})
		if err := r.ReadJSON(schema, &body); err != nil {
			return rest.Answer{}, err
		}
		if _, err := d.findAt(ctx, r, body.Generation); err != nil {
			return rest.Answer{}, err
		}
		change.Aggregates, change.Generation = body.Aggregates, &body.Generation
	} else if err := r.ReadJSON(uuidSet, &change.Aggregates); err != nil {
		return rest.Answer{}, err
	}
	_, after, err := d.SetProviderAggregates(ctx, change)
	if errors.Is(err, problem.ErrConcurrentUpdate) {
		err = errGeneration
	}
	if err != nil {
		return rest.Answer{}, err
	}
	answer := *after
	answer.Aggregates = change.Aggregates // in the order of the request
	return showAggregates(r, &answer), nil
}

func (d *door) providerTraits(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	_, provider, err := d.find(ctx, r)
	if err != nil {
		return rest.Answer{}, err
	}
	return showTraits(provider), nil
}

func showTraits(p *placement.Provider) rest.Answer {
	return rest.Answer{Body: object{"traits": orEmpty(p.Traits), "resource_provider_generation": p.Generation}, Modified: p.UpdatedAt}
}

func (d *door) setProviderTraits(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	var body struct {
		generated
		Traits []string `json:"traits"`
	}
	schema := closed([]string{"traits", "resource_provider_generation"}, map[string]*rest.Schema{
		"traits": {Type: "array", Items: owner}, "resource_provider_generation": integer})
	if err := r.ReadJSON(schema, &body); err != nil {
		return rest.Answer{}, err
	}
	provider, err := d.findAt(ctx, r, body.Generation)
	if err != nil {
		return rest.Answer{}, err
	}
	_, after, err := d.SetProviderTraits(ctx, placement.ProviderTraits{Provider: provider.UUID, Generation: &body.Generation, Traits: body.Traits})
	switch {
	case errors.Is(err, problem.ErrConcurrentUpdate):
		err = errGeneration
	case errors.Is(err, problem.ErrInvalidInput):
		world, _ := d.World(ctx)
		unknown := slices.DeleteFunc(slices.Clone(body.Traits), world.HasTrait)
		err = rest.Bad("No such trait %s", strings.Join(unknown, ", "))
	}
	if err != nil {
		return rest.Answer{}, err
	}
	return showTraits(after), nil
}

func (d *door) deleteProviderTraits(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	_, provider, err := d.find(ctx, r)
	if err != nil {
		return rest.Answer{}, err
	}
	_, _, err = d.SetProviderTraits(ctx, placement.ProviderTraits{Provider: provider.UUID, Generation: &provider.Generation})
	return nothing, err
}

func (d *door) traits(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	if err := d.checkQuery(r, closed(nil, map[string]*rest.Schema{"name": text, "associated": text})); err != nil {
		return rest.Answer{}, err
	}
	world, err := d.World(ctx)
	if err != nil {
		return rest.Answer{}, err
	}
	names := world.Names().Traits
	if name, ok := r.Last("name"); ok {
		operator, value, ok := strings.Cut(name, ":")
		if !ok {
			return rest.Answer{}, rest.Bad("Badly formatted name parameter. Expected name query string parameter in form: "+
				"?name=[in|startswith]:[name1,name2|prefix]. Got: \"%s\"", name)
		}
		wanted := strings.Split(value, ",")
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			return operator == "in" && !slices.Contains(wanted, name) || operator == "startswith" && !strings.HasPrefix(name, value)
		})
	}
	if associated, ok := r.Last("associated"); ok {
		want := strings.EqualFold(associated, "true")
		if !want && !strings.EqualFold(associated, "false") {
			return rest.Answer{}, rest.Bad(`The query parameter "associated" only accepts "true" or "false"`)
		}
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return world.UsesTrait(name) != want })
	}
	return rest.Answer{Body: object{"traits": orEmpty(names)}, Modified: rest.Now()}, nil
}

func (d *door) trait(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	world, err := d.World(ctx)
	if err == nil && !world.HasTrait(r.Path["name"]) {
		err = noTrait(r.Path["name"])
	}
	return rest.Answer{Status: http.StatusNoContent, Modified: rest.Now()}, err
}

func noTrait(name string) error {
	return rest.Refuse(http.StatusNotFound, "", "No such trait(s): %s.", name)
}

func (d *door) putTrait(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	name, status := r.Path["name"], http.StatusCreated
	if !placement.IsCustomName(name) {
		return rest.Answer{}, rest.Bad("The trait is invalid. A valid trait must be no longer than 255 characters, start with the prefix \"CUSTOM_\" " +
			"and use following characters: \"A\"-\"Z\", \"0\"-\"9\" and \"_\"")
	}
	_, err := d.CreateTrait(ctx, name)
	if errors.Is(err, problem.ErrAlreadyExists) {
		status, err = http.StatusNoContent, nil
	}
	return rest.Answer{Status: status, Location: r.Mount + "/traits/" + name, Modified: rest.Now()}, err
}

func (d *door) deleteTrait(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	name := r.Path["name"]
	world, err := d.World(ctx)
	if err != nil {
		return rest.Answer{}, err
	}
	if !placement.IsCustomName(name) {
		if world.HasTrait(name) {
			return rest.Answer{}, rest.Bad("Cannot delete standard trait %s.", name)
		}
		return rest.Answer{}, noTrait(name)
	}
	_, err = d.DeleteTrait(ctx, name)
	switch {
	case errors.Is(err, problem.ErrNotFound):
		err = noTrait(name)
	case errors.Is(err, problem.ErrInUse):
		err = rest.Refuse(http.StatusConflict, "", "The trait %s is in use by a resource provider.", name)
	}
	return nothing, err
}

func showClass(r *rest.Request, name string) object {
	return object{"name": name, "links": []object{{"rel": "self", "href": r.Mount + "/resource_classes/" + name}}}
}

func (d *door) classes(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	world, err := d.World(ctx)
	if err != nil {
		return rest.Answer{}, err
	}
	list := []object{}
	for _, name := range world.Names().ResourceClasses {
		list = append(list, showClass(r, name))
	}
	return rest.Answer{Body: object{"resource_classes": list}, Modified: rest.Now()}, nil
}

func (d *door) class(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	if err := d.hasClass(ctx, r.Path["name"]); err != nil {
		return rest.Answer{}, err
	}
	return rest.Answer{Body: showClass(r, r.Path["name"]), Modified: rest.Now()}, nil
}

// hasClass refuses a class that does not exist.
func (d *door) hasClass(ctx context.Context, name string) error {
	world, err := d.World(ctx)
	if err == nil && !world.HasResourceClass(name) {
		err = rest.Refuse(http.StatusNotFound, "", "No such resource class %s.", name)
	}
	return err
}

// className is the body with the name of a class.
type className struct {
	Name string `json:"name"`
}

func (d *door) createClass(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	var body className
	if err := r.ReadJSON(custom, &body); err != nil {
		return rest.Answer{}, err
	}
	_, err := d.CreateResourceClass(ctx, body.Name)
	if errors.Is(err, problem.ErrAlreadyExists) {
		err = rest.Refuse(http.StatusConflict, "", "Conflicting resource class already exists: %s", body.Name)
	}
	return rest.Answer{Status: http.StatusCreated, Location: r.Mount + "/resource_classes/" + body.Name}, err
}

func (d *door) putClass(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	name, status := r.Path["name"], http.StatusCreated
	if wrong := custom.Check(map[string]any{"name": name}); wrong != "" {
		return rest.Answer{}, rest.Bad("JSON does not validate: %s", wrong)
	}
	_, err := d.CreateResourceClass(ctx, name)
	if errors.Is(err, problem.ErrAlreadyExists) {
		status, err = http.StatusNoContent, nil
	}
	return rest.Answer{Status: status, Location: r.Mount + "/resource_classes/" + name}, err
}

// renameClass renames a class. A class that a provider has an inventory of
// keeps its name.
func (d *door) renameClass(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	var body className
	name := r.Path["name"]
	if err := r.ReadJSON(custom, &body); err != nil {
		return rest.Answer{}, err
	}
	if err := d.hasClass(ctx, name); err != nil {
		return rest.Answer{}, err
	}
	if !placement.IsCustomName(name) {
		return rest.Answer{}, rest.Bad("Cannot update standard resource class %s", name)
	}
	_, err := d.RenameResourceClass(ctx, name, body.Name)
	if errors.Is(err, problem.ErrAlreadyExists) {
		err = rest.Refuse(http.StatusConflict, "", "Resource class already exists: %s", body.Name)
	}
	return rest.Answer{Body: showClass(r, body.Name)}, err
}

func (d *door) deleteClass(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	name := r.Path["name"]
	if err := d.hasClass(ctx, name); err != nil {
		return rest.Answer{}, err
	}
	if !placement.IsCustomName(name) {
		return rest.Answer{}, rest.Bad("Error in delete resource class: Cannot delete standard resource class %s.", name)
	}
	_, err := d.DeleteResourceClass(ctx, name)
	switch {
	case errors.Is(err, problem.ErrNotFound):
		err = rest.Refuse(http.StatusNotFound, "", "No such resource class %s.", name)
	case errors.Is(err, problem.ErrInUse):
		err = rest.Refuse(http.StatusConflict, "", "Error in delete resource class: Class is in use in inventory: %s", name)
	}
	return nothing, err
}
