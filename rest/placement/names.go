package placement

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/rest"
	"github.com/cadastre-dev/cadastre/rest/placement/search"
)

// kind is a kind of names: traits or resource classes.
type kind struct {
	path   string // path of the collection
	has    func(*placement.World, string) bool
	check  func(name string) error // refuses a name that clients cannot create
	create func(ctx context.Context, name string) error
	delete func(ctx context.Context, name string) error
	shown  func(r *rest.Request, name string) rest.Answer
	dated  bool // whether the answer to a creation has a time
	// Formats of the messages of refusals. Their argument is the name.
	unknown, standard, used string
}

// missing returns the fault for a name that does not exist.
func (k *kind) missing(name string) error {
	return rest.Refuse(http.StatusNotFound, "", k.unknown, name)
}

// find refuses a name that does not exist.
func (k *kind) find(world *placement.World, name string) error {
	if !k.has(world, name) {
		return k.missing(name)
	}
	return nil
}

func (k *kind) show(_ context.Context, r *rest.Request, world *placement.World) (rest.Answer, error) {
	return k.shown(r, r.Path["name"]), k.find(world, r.Path["name"])
}

// put creates a name unless it exists.
func (k *kind) put(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	name := r.Path["name"]
	if err := k.check(name); err != nil {
		return rest.Answer{}, err
	}
	answer := rest.Answer{Status: http.StatusCreated, Location: r.Mount + k.path + name}
	if k.dated {
		answer.Modified = rest.Now()
	}
	err := k.create(ctx, name)
	if errors.Is(err, problem.ErrAlreadyExists) {
		answer.Status, err = http.StatusNoContent, nil
	}
	return answer, err
}

func (k *kind) remove(ctx context.Context, r *rest.Request, world *placement.World) (rest.Answer, error) {
	name := r.Path["name"]
	if err := k.find(world, name); err != nil {
		return rest.Answer{}, err
	}
	if !placement.IsCustomName(name) {
		return rest.Answer{}, rest.Bad(k.standard, name)
	}
	err := instead(k.delete(ctx, name), problem.ErrNotFound, k.missing(name))
	return nothing, instead(err, problem.ErrInUse, rest.Refuse(http.StatusConflict, "", k.used, name))
}

func (d *door) traits() *kind {
	return &kind{
		path: "/traits/", has: (*placement.World).HasTrait, dated: true,
		check: func(name string) error {
			if placement.IsCustomName(name) {
				return nil
			}
			return rest.Bad("The trait is invalid. A valid trait must be no longer than 255 characters, " +
				"start with the prefix \"CUSTOM_\" and use following characters: \"A\"-\"Z\", \"0\"-\"9\" and \"_\"")
		},
		create: func(ctx context.Context, name string) error { _, err := d.CreateTrait(ctx, name); return err },
		delete: func(ctx context.Context, name string) error { _, err := d.DeleteTrait(ctx, name); return err },
		shown: func(*rest.Request, string) rest.Answer {
			return rest.Answer{Status: http.StatusNoContent, Modified: rest.Now()}
		},
		unknown: "No such trait(s): %s.", standard: "Cannot delete standard trait %s.",
		used: "The trait %s is in use by a resource provider.",
	}
}

func (d *door) classes() *kind {
	return &kind{
		path: "/resource_classes/", has: (*placement.World).HasResourceClass,
		check: func(name string) error {
			if wrong := custom.Check(map[string]any{"name": name}); wrong != "" {
				return rest.Bad("JSON does not validate: %s", wrong)
			}
			return nil
		},
		create:   func(ctx context.Context, n string) error { _, err := d.CreateResourceClass(ctx, n); return err },
		delete:   func(ctx context.Context, n string) error { _, err := d.DeleteResourceClass(ctx, n); return err },
		shown:    func(r *rest.Request, name string) rest.Answer { return rest.Computed(showClass(r, name)) },
		unknown:  "No such resource class %s.",
		standard: "Error in delete resource class: Cannot delete standard resource class %s.",
		used:     "Error in delete resource class: Class is in use in inventory: %s",
	}
}

func (d *door) listTraits(_ context.Context, r *rest.Request, world *placement.World) (rest.Answer, error) {
	schema := rest.Members(r.Version, rest.May(0, "name", text), rest.May(0, "associated", text))
	if err := search.CheckQuery(r, schema, d.compat); err != nil {
		return rest.Answer{}, err
	}
	names := slices.Clone(world.Names().Traits)
	if name, ok := r.Last("name"); ok {
		operator, value, ok := strings.Cut(name, ":")
		if !ok {
			return rest.Answer{},
				rest.Bad("Badly formatted name parameter. Expected name query string parameter in form: "+
					"?name=[in|startswith]:[name1,name2|prefix]. Got: \"%s\"", name)
		}
		wanted := strings.Split(value, ",")
		names = slices.DeleteFunc(names, func(name string) bool {
			return operator == "in" && !slices.Contains(wanted, name) ||
				operator == "startswith" && !strings.HasPrefix(name, value)
		})
	}
	if associated, ok := r.Last("associated"); ok {
		want := strings.EqualFold(associated, "true")
		if !want && !strings.EqualFold(associated, "false") {
			return rest.Answer{}, rest.Bad(`The query parameter "associated" only accepts "true" or "false"`)
		}
		names = slices.DeleteFunc(names, func(name string) bool { return world.UsesTrait(name) != want })
	}
	return rest.Computed(rest.Object{"traits": append([]string{}, names...)}), nil
}

func showClass(r *rest.Request, name string) rest.Object {
	links := []rest.Object{{"rel": "self", "href": r.Mount + "/resource_classes/" + name}}
	return rest.Object{"name": name, "links": links}
}

func (d *door) listClasses(_ context.Context, r *rest.Request, world *placement.World) (rest.Answer, error) {
	list := lists.Map(world.Names().ResourceClasses, func(name string) rest.Object { return showClass(r, name) })
	return rest.Computed(rest.Object{"resource_classes": list}), nil
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
	err = instead(err, problem.ErrAlreadyExists,
		rest.Refuse(http.StatusConflict, "", "Conflicting resource class already exists: %s", body.Name))
	return rest.Answer{Status: http.StatusCreated, Location: r.Mount + "/resource_classes/" + body.Name}, err
}

// renameClass renames a custom class, unless a provider has an inventory of it.
func (d *door) renameClass(ctx context.Context, r *rest.Request, world *placement.World) (rest.Answer, error) {
	var body className
	name := r.Path["name"]
	if err := r.ReadJSON(custom, &body); err != nil {
		return rest.Answer{}, err
	}
	if err := d.classes().find(world, name); err != nil {
		return rest.Answer{}, err
	}
	if !placement.IsCustomName(name) {
		return rest.Answer{}, rest.Bad("Cannot update standard resource class %s", name)
	}
	_, err := d.RenameResourceClass(ctx, name, body.Name)
	err = instead(err, problem.ErrAlreadyExists,
		rest.Refuse(http.StatusConflict, "", "Resource class already exists: %s", body.Name))
	return rest.Answer{Body: showClass(r, body.Name)}, err
}
