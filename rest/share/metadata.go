package share

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/rest"
)

// handler answers a request about one resource.
type handler func(ctx context.Context, r *rest.Request, of *resource.Resource, k kind) (rest.Answer, error)

// on returns the handler of a route for resources of a kind. A resource of
// another kind, or below another parent than the path names, is not found.
func (d door) on(k kind, handle handler) rest.Handler {
	return func(ctx context.Context, r *rest.Request) (rest.Answer, error) {
		of, err := d.find(ctx, r.Path["id"], k)
		if err != nil {
			return rest.Answer{}, err
		}
		if k.inside != "" {
			parent, err := d.find(ctx, r.Path["parent"], kindAt(k.inside))
			if err != nil {
				return rest.Answer{}, err
			}
			if of.ParentID != parent.ID {
				return rest.Answer{}, unknown(k, of.UUID)
			}
		}
		return handle(ctx, r, of, k)
	}
}

func kindAt(path string) kind {
	return kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.path == path })]
}

func unknown(k kind, id string) error {
	return problem.Refuse(problem.ErrNotFound, "%s %s does not exist", k.name, id)
}

func (d door) find(ctx context.Context, id string, k kind) (*resource.Resource, error) {
	found, err := d.store.ResourceByUUID(ctx, id)
	if err != nil {
		return nil, err
	}
	types, err := d.store.TypesOfResources(ctx, []int64{found.TypeID})
	if err != nil {
		return nil, err
	}
	if of := types[found.TypeID]; of == nil || of.Name != k.resource {
		return nil, unknown(k, id)
	}
	return found, nil
}

// itemsOf returns the metadata of a resource.
func (d door) itemsOf(ctx context.Context, of *resource.Resource) (map[string]string, error) {
	found, err := d.store.MetadataOf(ctx, []int64{of.ID}, nil)
	return pairs(found[of.ID]), err
}

func pairs(items []*resource.MetadataItem) map[string]string {
	return lists.Index(items, func(item *resource.MetadataItem) (key, value string) { return item.Key, item.Value })
}

func (d door) metadata(ctx context.Context, _ *rest.Request, of *resource.Resource, _ kind) (rest.Answer, error) {
	values, err := d.itemsOf(ctx, of)
	return rest.Answer{Body: map[string]any{"metadata": values}}, err
}

func (d door) item(ctx context.Context, r *rest.Request, of *resource.Resource, _ kind) (rest.Answer, error) {
	values, err := d.itemsOf(ctx, of)
	if err != nil {
		return rest.Answer{}, err
	}
	value, ok := values[r.Path["key"]]
	if !ok {
		return rest.Answer{}, problem.Refuse(problem.ErrNotFound, "the resource has no metadata key %q", r.Path["key"])
	}
	return rest.Answer{Body: map[string]any{"meta": map[string]string{r.Path["key"]: value}}}, nil
}

func (d door) merge(ctx context.Context, r *rest.Request, of *resource.Resource, _ kind) (rest.Answer, error) {
	items, err := read(r, "metadata")
	if err != nil {
		return rest.Answer{}, err
	}
	if len(items) == 0 {
		return d.metadata(ctx, r, of, kind{})
	}
	return d.change(ctx, resource.MetadataChange{Resource: of.UUID, Mode: resource.MergeMetadata, Items: items})
}

func (d door) replace(ctx context.Context, r *rest.Request, of *resource.Resource, _ kind) (rest.Answer, error) {
	items, err := read(r, "metadata")
	if err != nil {
		return rest.Answer{}, err
	}
	return d.change(ctx, resource.MetadataChange{Resource: of.UUID, Mode: resource.ReplaceMetadata, Items: items})
}

// setItem sets the item that the path names. The body must have only this item.
func (d door) setItem(ctx context.Context, r *rest.Request, of *resource.Resource, _ kind) (rest.Answer, error) {
	items, err := read(r, "metadata", "meta")
	if err != nil {
		return rest.Answer{}, err
	}
	if key := r.Path["key"]; len(items) != 1 || items[0].Key != key {
		return rest.Answer{}, problem.Invalid("metadata", "must have exactly the key %q of the path", key)
	}
	return d.change(ctx, resource.MetadataChange{Resource: of.UUID, Mode: resource.MergeMetadata, Items: items})
}

func (d door) deleteItem(ctx context.Context, r *rest.Request, of *resource.Resource, _ kind) (rest.Answer, error) {
	_, err := d.change(ctx,
		resource.MetadataChange{Resource: of.UUID, Mode: resource.DeleteMetadata, Keys: []string{r.Path["key"]}})
	return rest.Answer{Status: http.StatusOK}, err
}

// change makes a change and answers all metadata of the resource.
func (d door) change(ctx context.Context, change resource.MetadataChange) (rest.Answer, error) {
	after, _, err := d.store.ChangeMetadata(ctx, change)
	if err != nil {
		return rest.Answer{}, err
	}
	if after.Items != nil {
		return rest.Answer{Body: map[string]any{"metadata": pairs(after.Items)}}, nil
	}
	values, err := d.itemsOf(ctx, after)
	return rest.Answer{Body: map[string]any{"metadata": values}}, err
}

// read returns the pairs of one member of the body, an object of strings: the
// member with the first of the names that the body has.
func read(r *rest.Request, names ...string) ([]metadef.KeyValue, error) {
	if err := r.CheckJSON(); err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(r.Body, &members); err != nil || members == nil {
		return nil, problem.Invalid("", "the body must be a JSON object")
	}
	for _, name := range names {
		if content, ok := members[name]; ok {
			return readPairs(name, content)
		}
	}
	return nil, problem.Invalid(names[0], "is required")
}

// readPairs reads an object of strings in its order.
func readPairs(name string, content json.RawMessage) ([]metadef.KeyValue, error) {
	if content = bytes.TrimSpace(content); content[0] != '{' {
		return nil, problem.Invalid(name, "must be an object")
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	_, _ = decoder.Token() // the brace
	var items []metadef.KeyValue
	var problems problem.Problems
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, problem.Invalid(name, "is not JSON")
		}
		var value any
		if err := decoder.Decode(&value); err != nil {
			return nil, problem.Invalid(name, "is not JSON")
		}
		text, ok := value.(string)
		if !ok {
			problems.AddBounded(problem.Join(name, key.(string)), "must be a string")
		}
		items = append(items, metadef.KeyValue{Key: key.(string), Value: text})
	}
	return items, problems.Err()
}
