package image

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/rest"
)

// within returns the namespace of the path, and the list that read returns of it.
func within[T any](ctx context.Context, d *door, r *rest.Request,
	read func(context.Context, []int64) (map[int64][]T, error)) (*metadef.Namespace, []T, error) {
	n, err := d.store.NamespaceNamed(ctx, r.Path["namespace"])
	if err != nil {
		return nil, nil, err
	}
	of, err := read(ctx, []int64{n.ID})
	return n, of[n.ID], err
}

func (d *door) listProperties(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	_, properties, err := within(ctx, d, r, d.store.PropertiesOf)
	return rest.Answer{Status: http.StatusOK, Body: map[string]any{"properties": d.namedForms(properties)}}, err
}

// showProperty answers a property. With the parameter resource_type, its name
// in the path begins with the prefix of that type's association.
func (d *door) showProperty(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	n, found, err := within(ctx, d, r, d.store.PropertiesOf)
	if err != nil {
		return rest.Answer{}, err
	}
	name := r.Path["property"]
	if resourceType := last(r, "resource_type"); resourceType != "" {
		associations, err := d.store.AssociationsOf(ctx, []int64{n.ID})
		if err != nil {
			return rest.Answer{}, err
		}
		chosen := metadef.AssociationFilter{ResourceTypes: []string{resourceType}}.Of(n.Name, associations[n.ID])
		chosen = slices.DeleteFunc(slices.Clone(chosen), func(a *metadef.ResourceTypeAssociation) bool {
			return a.Prefix == nil
		})
		found = metadef.PropertiesThrough(chosen, found)
	}
	i := slices.IndexFunc(found, func(p *metadef.PropertyDefinition) bool { return p.Name == name })
	if i < 0 {
		return rest.Answer{}, unknown("property", name, n)
	}
	return rest.Answer{Status: http.StatusOK, Body: d.formOfProperty(found[i].BaseName, found[i].Keywords)}, nil
}

func unknown(what, name string, in *metadef.Namespace) error {
	return problem.Refuse(problem.ErrNotFound, "%s %q does not exist in namespace %q", what, name, in.Name)
}

func (d *door) createProperty(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	property, err := readProperty(r.Body)
	if err != nil {
		return rest.Answer{}, err
	}
	made, _, err := d.store.CreateProperty(ctx,
		metadef.NewProperty{Namespace: r.Path["namespace"], PropertyInput: property.Input()})
	if err != nil {
		return rest.Answer{}, err
	}
	return rest.Answer{Status: http.StatusCreated, Body: d.formOfProperty(made.Name, made.Keywords)}, nil
}

func (d *door) updateProperty(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	property, err := readProperty(r.Body)
	if err != nil {
		return rest.Answer{}, err
	}
	changed, _, err := d.store.UpdateProperty(ctx, metadef.PropertyChange{
		Namespace: r.Path["namespace"], Name: r.Path["property"],
		NewName: metadef.Change[*string]{Set: true, Value: &property.Name}, PropertyPatch: property.Patch(),
	})
	if err != nil {
		return rest.Answer{}, err
	}
	return rest.Answer{Status: http.StatusOK, Body: d.formOfProperty(changed.Name, changed.Keywords)}, nil
}

func (d *door) deleteProperty(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	_, _, err := d.store.DeleteProperty(ctx, r.Path["namespace"], nil, r.Path["property"], nil)
	return rest.Answer{Status: http.StatusNoContent}, err
}

// ordersOfContents are the orders of objects and tags by sort_key. With
// updated_at, the time of creation decides.
var ordersOfContents = map[string]string{"name": "NAME", "created_at": "CREATED_AT", "updated_at": "CREATED_AT"}

// listObjects answers all objects of a namespace. The parameters of pages are
// checked but have no effect, as in the reference.
func (d *door) listObjects(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	var problems problem.Problems
	sizeOf(r, 1, &problems)
	orderOf(r, ordersOfContents, &problems)
	if visibility := last(r, "visibility"); !slices.Contains([]string{"", "public", "private", "shared"}, visibility) {
		problems.Add("visibility", "must be public, private or shared, is %q", visibility)
	}
	if err := problems.Err(); err != nil {
		return rest.Answer{}, err
	}
	n, err := d.store.NamespaceNamed(ctx, r.Path["namespace"])
	if err != nil {
		return rest.Answer{}, err
	}
	objects, properties, err := d.objectsOf(ctx, n)
	if err != nil {
		return rest.Answer{}, err
	}
	forms := []objectForm{}
	for _, o := range objects {
		forms = append(forms, d.formOfObject(n.Name, o, properties[o.ID]))
	}
	return rest.Answer{Status: http.StatusOK,
		Body: map[string]any{"objects": forms, "schema": "v2/schemas/metadefs/objects"}}, nil
}

func (d *door) showObject(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	n, err := d.store.NamespaceNamed(ctx, r.Path["namespace"])
	if err != nil {
		return rest.Answer{}, err
	}
	objects, properties, err := d.objectsOf(ctx, n)
	if err != nil {
		return rest.Answer{}, err
	}
	for _, o := range objects {
		if o.Name == r.Path["object"] {
			return rest.Answer{Status: http.StatusOK, Body: d.formOfObject(n.Name, o, properties[o.ID])}, nil
		}
	}
	return rest.Answer{}, unknown("object", r.Path["object"], n)
}

func (d *door) createObject(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	document, err := anObject.read(r.Body)
	if err != nil {
		return rest.Answer{}, err
	}
	object := document.Objects[0]
	made, n, err := d.store.CreateObject(ctx, metadef.NewObject{
		Namespace:   r.Path["namespace"],
		ObjectInput: metadef.ObjectInput{Name: object.Name, ObjectPatch: object.Patch()},
	})
	return d.answerObject(ctx, http.StatusCreated, made, n, err)
}

func (d *door) updateObject(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	document, err := anObject.read(r.Body)
	if err != nil {
		return rest.Answer{}, err
	}
	object := document.Objects[0]
	changed, n, err := d.store.UpdateObject(ctx, metadef.ObjectChange{
		Namespace: r.Path["namespace"], Name: r.Path["object"],
		NewName: metadef.Change[*string]{Set: true, Value: &object.Name}, ObjectPatch: object.Patch(),
	})
	return d.answerObject(ctx, http.StatusOK, changed, n, err)
}

// answerObject answers an object that was written, with its properties.
func (d *door) answerObject(ctx context.Context, status int, o *metadef.ObjectDefinition,
	n *metadef.Namespace, err error) (rest.Answer, error) {
	if err != nil {
		return rest.Answer{}, err
	}
	properties, err := d.store.PropertiesOfObjects(ctx, []int64{o.ID})
	return rest.Answer{Status: status, Body: d.formOfObject(n.Name, o, properties[o.ID])}, err
}

func (d *door) deleteObject(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	_, _, err := d.store.DeleteObject(ctx, r.Path["namespace"], r.Path["object"], nil)
	return rest.Answer{Status: http.StatusNoContent}, err
}

// listTags answers a page of the tags of a namespace. The marker is the name of
// the last tag of the page before.
func (d *door) listTags(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	var problems problem.Problems
	limit := sizeOf(r, 0, &problems)
	if _, ok := r.Last("limit"); !ok {
		limit = metadef.MaxDefinitions
	}
	order := orderOf(r, ordersOfContents, &problems)
	if err := problems.Err(); err != nil {
		return rest.Answer{}, err
	}
	n, tags, err := within(ctx, d, r, d.store.TagsOf)
	if err != nil {
		return rest.Answer{}, err
	}
	tags = slices.Clone(tags)
	slices.SortStableFunc(tags, func(a, b *metadef.Tag) int {
		by := strings.Compare(a.Name, b.Name)
		if order.Field == "CREATED_AT" {
			by = cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
		}
		if order.Descending {
			return -by
		}
		return by
	})
	if marker, ok := r.Last("marker"); ok {
		i := slices.IndexFunc(tags, func(t *metadef.Tag) bool { return t.Name == marker })
		if i < 0 {
			return rest.Answer{}, unknown("tag", marker, n)
		}
		tags = tags[i+1:]
	}
	return rest.Answer{Status: http.StatusOK,
		Body: map[string]any{"tags": namesOfTags(tags[:min(limit, len(tags))])}}, nil
}

func (d *door) showTag(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	n, tags, err := within(ctx, d, r, d.store.TagsOf)
	if err != nil {
		return rest.Answer{}, err
	}
	for _, t := range tags {
		if t.Name == r.Path["tag"] {
			return rest.Answer{Status: http.StatusOK, Body: formOfTag(t)}, nil
		}
	}
	return rest.Answer{}, unknown("tag", r.Path["tag"], n)
}

// createTag creates the tag that the path names.
func (d *door) createTag(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	name := r.Path["tag"]
	tags, _, err := d.store.SetTags(ctx,
		metadef.TagsChange{Namespace: r.Path["namespace"], Tags: []metadef.TagInput{{Name: name}}, Append: true})
	if err != nil {
		return rest.Answer{}, err
	}
	i := slices.IndexFunc(tags, func(t *metadef.Tag) bool { return t.Name == name })
	return rest.Answer{Status: http.StatusCreated, Body: formOfTag(tags[i])}, nil
}

// setTags replaces the tags of a namespace, or adds tags with the header
// X-Openstack-Append. An empty list changes nothing, as in the reference.
func (d *door) setTags(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	tags, err := readTags(r.Body)
	if err != nil {
		return rest.Answer{}, err
	}
	adds := slices.Contains([]string{"1", "t", "true", "on", "y", "yes"},
		strings.ToLower(strings.TrimSpace(r.Header.Get("X-Openstack-Append"))))
	if _, _, err := d.store.SetTags(ctx,
		metadef.TagsChange{Namespace: r.Path["namespace"], Tags: tags, Append: adds || len(tags) == 0}); err != nil {
		return rest.Answer{}, err
	}
	names := lists.Map(tags, func(tag metadef.TagInput) tagName { return tagName{tag.Name} })
	return rest.Answer{Status: http.StatusCreated, Body: map[string]any{"tags": names}}, nil
}

func (d *door) updateTag(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	document, err := aTag.read(r.Body)
	if err != nil {
		return rest.Answer{}, err
	}
	changed, _, err := d.store.UpdateTag(ctx, metadef.TagChange{
		Namespace: r.Path["namespace"], Name: r.Path["tag"],
		NewName: metadef.Change[*string]{Set: true, Value: &document.Tags[0].Name},
	})
	if err != nil {
		return rest.Answer{}, err
	}
	return rest.Answer{Status: http.StatusOK, Body: formOfTag(changed)}, nil
}

func (d *door) deleteTag(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	_, _, err := d.store.DeleteTag(ctx, r.Path["namespace"], r.Path["tag"], nil)
	return rest.Answer{Status: http.StatusNoContent}, err
}
