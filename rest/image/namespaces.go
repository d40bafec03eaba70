package image

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/rest"
	"github.com/cadastre-dev/cadastre/store/metadefdb"
)

// usualLimit is the size of a page if the request sets no limit.
const usualLimit = 25

// orders are the orders of namespaces by sort_key.
var orders = map[string]string{
	"namespace": "NAME", "display_name": "DISPLAY_NAME", "created_at": "CREATED_AT", "updated_at": "UPDATED_AT",
}

// listNamespaces answers a page of namespaces with their associations. The
// marker is the name of the last namespace of the page before.
func (d *door) listNamespaces(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	var problems problem.Problems
	limit := sizeOf(r, 0, &problems)
	order := orderOf(r, orders, &problems)
	filter := metadef.NamespaceFilter{}
	types, byType := r.Last("resource_types")
	switch visibility := last(r, "visibility"); visibility {
	case "":
	case "public", "private":
		filter.Visibility = new(access.Visibility(strings.ToUpper(visibility)))
	default:
		problems.Add("visibility", "must be public or private, is %q", visibility)
	}
	if err := problems.Err(); err != nil {
		return rest.Answer{}, err
	}
	if byType {
		var err error
		if filter.ResourceTypes, err = d.knownTypes(ctx, strings.Split(types, ",")); err != nil {
			return rest.Answer{}, err
		}
	}
	wanted := page.Request{First: &limit}
	if marker, ok := r.Last("marker"); ok {
		last, err := d.store.NamespaceNamed(ctx, marker)
		if err != nil {
			return rest.Answer{}, err
		}
		wanted.After = new(metadefdb.NamespaceCursor(last, order))
	}
	found, err := d.store.Namespaces(ctx, filter, order, wanted)
	if err != nil {
		return rest.Answer{}, err
	}
	associations, err := d.store.AssociationsOf(ctx, rowsOf(found.Items))
	if err != nil {
		return rest.Answer{}, err
	}
	list := struct {
		Namespaces []namespaceForm `json:"namespaces"`
		First      string          `json:"first"`
		Next       string          `json:"next,omitempty"`
		Schema     string          `json:"schema"`
	}{[]namespaceForm{}, linkTo(r, ""), "", "/v2/schemas/metadefs/namespaces"}
	for _, n := range found.Items {
		form := formOfNamespace(n)
		form.Associations = shown(formsOfAssociations(associations[n.ID]), nil, anAssociation)
		list.Namespaces = append(list.Namespaces, form)
	}
	if found.HasMore && len(found.Items) > 0 {
		list.Next = linkTo(r, found.Items[len(found.Items)-1].Name)
	}
	return rest.Answer{Status: http.StatusOK, Body: list}, nil
}

// mostNames bounds the resource types of a filter.
const mostNames = 50

// knownTypes returns the names that a resource type has. The others match no
// namespace. It refuses more than mostNames names.
func (d *door) knownTypes(ctx context.Context, names []string) ([]string, error) {
	if len(names) > mostNames {
		return nil, problem.Invalid("resource_types", "must have at most %d names, has %d", mostNames, len(names))
	}
	filter := metadef.ResourceTypeFilter{Names: names, IgnoreUnknown: true}
	found, err := d.store.ResourceTypes(ctx, filter, page.Order{Field: "NAME"}, page.Request{First: new(page.MaxSize)})
	return lists.Map(found.Items, func(t *metadef.ResourceType) string { return t.Name }), err
}

// linkTo returns the path of a page of namespaces with the parameters of the
// request: the page after the marker, or the first page if the marker is "".
func linkTo(r *rest.Request, marker string) string {
	params := url.Values{}
	for _, one := range r.Query {
		params.Add(one.Key, one.Value)
	}
	params.Del("marker")
	if marker != "" {
		params.Set("marker", marker)
	}
	if len(params) == 0 {
		return "/v2/metadefs/namespaces"
	}
	return "/v2/metadefs/namespaces?" + params.Encode()
}

// last returns the last value of a parameter, "" if it is absent.
func last(r *rest.Request, key string) string {
	value, _ := r.Last(key)
	return value
}

// sizeOf returns the limit of a page, by default usualLimit. A limit below
// least is a problem; one above page.MaxSize is lowered to it.
func sizeOf(r *rest.Request, least int, problems *problem.Problems) int {
	text, ok := r.Last("limit")
	if !ok {
		return usualLimit
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < least {
		problems.Add("limit", "must be an integer of at least %d, is %q", least, text)
	}
	return min(limit, page.MaxSize)
}

// orderOf returns the order of a list: by default the newest first.
func orderOf(r *rest.Request, orders map[string]string, problems *problem.Problems) page.Order {
	order := page.Order{Field: "CREATED_AT", Descending: true}
	if key, ok := r.Last("sort_key"); ok {
		if order.Field, ok = orders[key]; !ok {
			problems.Add("sort_key", "cannot sort by %q", key)
		}
	}
	if direction, ok := r.Last("sort_dir"); ok {
		order.Descending = direction == "desc"
		if direction != "desc" && direction != "asc" {
			problems.Add("sort_dir", "must be asc or desc, is %q", direction)
		}
	}
	return order
}

func rowsOf(namespaces []*metadef.Namespace) []int64 {
	return lists.Map(namespaces, func(n *metadef.Namespace) int64 { return n.ID })
}

func formsOfAssociations(associations []*metadef.ResourceTypeAssociation) []associationForm {
	return lists.Map(associations, formOfAssociation)
}

// showNamespace answers a namespace with its contents. With the parameter
// resource_type the names of properties have the prefix of the association.
func (d *door) showNamespace(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	n, err := d.store.NamespaceNamed(ctx, r.Path["namespace"])
	if err != nil {
		return rest.Answer{}, err
	}
	form, err := d.whole(ctx, n, last(r, "resource_type"), nil)
	return rest.Answer{Status: http.StatusOK, Body: form}, err
}

// whole returns a namespace with its contents, as a resource type sees it; ""
// means no type. given has the members of the body that created the namespace,
// and is nil for an answer to a read.
func (d *door) whole(ctx context.Context, n *metadef.Namespace, resourceType string,
	given map[string]json.RawMessage) (namespaceForm, error) {
	held, err := d.contents(ctx, n)
	if err != nil {
		return namespaceForm{}, err
	}
	form := formOfNamespace(n)
	form.Associations = shown(formsOfAssociations(held.associations), given, anAssociation)
	form.Tags = shown(namesOfTags(held.tags), given, aTag)
	properties, objects := held.through(resourceType)
	form.Properties = shown(d.formsOf(properties), given, aProperty)
	for _, o := range objects {
		form.Objects = append(form.Objects,
			d.formOfObject(n.Name, o, metadef.PropertiesOfObject(o, held.ofObjects[o.ID])))
	}
	form.Objects = shown(form.Objects, given, anObject)
	return form, nil
}

// contents are the contents of a namespace.
type contents struct {
	associations []*metadef.ResourceTypeAssociation
	properties   []*metadef.PropertyDefinition
	objects      []*metadef.ObjectDefinition
	ofObjects    map[int64][]*metadef.PropertyDefinition
	tags         []*metadef.Tag
}

func (d *door) contents(ctx context.Context, n *metadef.Namespace) (held contents, err error) {
	rows := []int64{n.ID}
	associations, err := d.store.AssociationsOf(ctx, rows)
	if err != nil {
		return held, err
	}
	properties, err := d.store.PropertiesOf(ctx, rows)
	if err != nil {
		return held, err
	}
	tags, err := d.store.TagsOf(ctx, rows)
	if err != nil {
		return held, err
	}
	held = contents{associations: associations[n.ID], properties: properties[n.ID], tags: tags[n.ID]}
	held.objects, held.ofObjects, err = d.objectsOf(ctx, n)
	return held, err
}

// objectsOf returns the objects of a namespace, and their properties by the row
// id of the object.
func (d *door) objectsOf(ctx context.Context,
	n *metadef.Namespace) ([]*metadef.ObjectDefinition, map[int64][]*metadef.PropertyDefinition, error) {
	objects, err := d.store.ObjectsOf(ctx, []int64{n.ID})
	if err != nil {
		return nil, nil, err
	}
	rows := lists.Map(objects[n.ID], func(o *metadef.ObjectDefinition) int64 { return o.ID })
	properties, err := d.store.PropertiesOfObjects(ctx, rows)
	return objects[n.ID], properties, err
}

// through returns the properties and objects as a resource type sees them, each
// name once: objects by the first association of the type. A type without an
// association sees them without a prefix, as in the reference.
func (c contents) through(resourceType string) ([]*metadef.PropertyDefinition, []*metadef.ObjectDefinition) {
	chosen := metadef.AssociationFilter{ResourceTypes: []string{resourceType}}.Of("", c.associations)
	if resourceType == "" || len(chosen) == 0 {
		return c.properties, c.objects
	}
	named := map[string]bool{}
	properties := slices.DeleteFunc(metadef.PropertiesThrough(chosen, c.properties),
		func(p *metadef.PropertyDefinition) bool {
			isRepeated := named[p.Name]
			named[p.Name] = true
			return isRepeated
		})
	return properties, metadef.ObjectsThrough(chosen[:1], c.objects)
}

func (d *door) createNamespace(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	document, given, err := readNamespace(r.Body)
	if err != nil {
		return rest.Answer{}, err
	}
	n, err := d.store.CreateNamespaceOf(ctx, document)
	if err != nil {
		return rest.Answer{}, err
	}
	form, err := d.whole(ctx, n, "", given)
	return rest.Answer{Status: http.StatusCreated, Body: form, Location: r.Mount + namespacePath(n.Name)}, err
}

// shown returns a list of a namespace's contents for an answer. As in the
// reference, an empty list is nil, so JSON omits it, unless given has the list.
func shown[T ~[]E, E any](list T, given map[string]json.RawMessage, k kind) T {
	switch {
	case len(list) > 0:
		return list
	case given[k.list] != nil:
		return T{}
	}
	return nil
}

// updateNamespace replaces the fields of a namespace. Absent fields get their
// defaults. As in the reference, it does not read contents in the body.
func (d *door) updateNamespace(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	document, _, err := readNamespace(r.Body)
	if err != nil {
		return rest.Answer{}, err
	}
	owner := cmp.Or(document.Owner, new(access.ViewerFrom(ctx).ProjectID))
	n, err := d.store.UpdateNamespace(ctx, metadef.NamespaceChange{
		Name: r.Path["namespace"], NewName: metadef.Change[*string]{Set: true, Value: &document.Name},
		NamespacePatch: metadef.NamespacePatch{
			DisplayName: metadef.Change[*string]{Set: true, Value: document.DisplayName},
			Description: metadef.Change[*string]{Set: true, Value: document.Description},
			Visibility:  metadef.Change[*access.Visibility]{Set: true, Value: document.Visibility},
			Protected:   metadef.Change[*bool]{Set: true, Value: document.Protected},
			Owner:       metadef.Change[*string]{Set: true, Value: owner},
		},
	})
	if err != nil {
		return rest.Answer{}, err
	}
	return rest.Answer{Status: http.StatusOK, Body: formOfNamespace(n)}, nil
}

func (d *door) deleteNamespace(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	_, err := d.store.DeleteNamespace(ctx, r.Path["namespace"], nil)
	return rest.Answer{Status: http.StatusNoContent}, err
}

// deleteContents returns the handler that deletes one kind of contents.
func deleteContents(kind metadef.ContentKind) func(*door, context.Context, *rest.Request) (rest.Answer, error) {
	return func(d *door, ctx context.Context, r *rest.Request) (rest.Answer, error) {
		_, err := d.store.DeleteNamespaceContents(ctx, r.Path["namespace"], []metadef.ContentKind{kind}, nil)
		return rest.Answer{Status: http.StatusNoContent}, err
	}
}

// listResourceTypes answers all resource types that the viewer may know.
func (d *door) listResourceTypes(ctx context.Context, _ *rest.Request) (rest.Answer, error) {
	found, err := rest.All(mostTypes, func(request page.Request) (page.Page[*metadef.ResourceType], error) {
		return d.store.ResourceTypes(ctx, metadef.ResourceTypeFilter{}, page.Order{Field: "NAME"}, request)
	})
	forms := lists.Map(found, func(t *metadef.ResourceType) datedName {
		return datedName{t.Name, timeForm(t.CreatedAt), timeForm(t.UpdatedAt)}
	})
	return rest.Answer{Status: http.StatusOK, Body: map[string]any{"resource_types": forms}}, err
}

// mostTypes bounds the list of resource types, which has no pages.
const mostTypes = 10_000

func (d *door) listAssociations(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	_, associations, err := within(ctx, d, r, d.store.AssociationsOf)
	return rest.Answer{Status: http.StatusOK,
		Body: map[string]any{"resource_type_associations": formsOfAssociations(associations)}}, err
}

// associate associates a resource type with a namespace. Here a namespace has
// at most one association with each type.
func (d *door) associate(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	document, err := anAssociation.read(r.Body)
	if err != nil {
		return rest.Answer{}, err
	}
	wanted := document.Associations[0]
	n, there, err := within(ctx, d, r, d.store.AssociationsOf)
	if err != nil {
		return rest.Answer{}, err
	}
	if slices.ContainsFunc(there, func(a *metadef.ResourceTypeAssociation) bool {
		return a.ResourceTypeName == wanted.ResourceType
	}) {
		return rest.Answer{}, problem.Refuse(problem.ErrAlreadyExists,
			"namespace %q is already associated with %q", n.Name, wanted.ResourceType)
	}
	made, _, err := d.store.AssociateResourceType(ctx,
		metadef.NewAssociation{Namespace: n.Name, AnyPrefix: true, DocumentAssociation: wanted})
	if err != nil {
		return rest.Answer{}, err
	}
	return rest.Answer{Status: http.StatusCreated, Body: formOfAssociation(made)}, nil
}

// disassociate deletes the associations of a namespace with a resource type.
func (d *door) disassociate(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	n, there, err := within(ctx, d, r, d.store.AssociationsOf)
	if err != nil {
		return rest.Answer{}, err
	}
	found := false
	for _, a := range there {
		if a.ResourceTypeName == r.Path["type"] {
			found = true
			if _, _, err := d.store.DisassociateResourceType(ctx,
				metadef.AssociationRef{UUID: a.UUID}, nil); err != nil {
				return rest.Answer{}, err
			}
		}
	}
	if !found {
		return rest.Answer{}, problem.Refuse(problem.ErrNotFound,
			"namespace %q is not associated with %q", n.Name, r.Path["type"])
	}
	return rest.Answer{Status: http.StatusNoContent}, nil
}
