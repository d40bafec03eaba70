package share

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
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

// formOf returns the attributes of a resource that Cadastre knows, as the service
// names them.
func formOf(of *resource.Resource, metadata map[string]string) map[string]any {
	return map[string]any{
		"id": of.UUID, "name": of.Name, "description": of.Description, "project_id": of.ProjectID,
		"is_public": of.Visibility == access.Public, "metadata": metadata,
		"created_at": timeForm(of.CreatedAt), "updated_at": timeForm(of.UpdatedAt),
	}
}

// timeForm returns a time as the service writes it.
func timeForm(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000") }

func (d door) show(ctx context.Context, _ *rest.Request, of *resource.Resource, k kind) (rest.Answer, error) {
	values, err := d.itemsOf(ctx, of)
	return rest.Answer{Body: map[string]any{k.name: formOf(of, values)}}, err
}

// list answers the resources of a kind with their metadata. The parameters
// metadata, name, limit, offset and all_tenants select them. Only viewers who
// reach all resources can set all_tenants. Without it, a list has the resources
// of the viewer's project, except for lists below a parent.
func (d door) list(ctx context.Context, r *rest.Request, k kind) (rest.Answer, error) {
	var problems problem.Problems
	filter := resource.Filter{Types: []string{k.resource}}
	if text, ok := r.Last("metadata"); ok {
		filter.Metadata = readLiteral(text, &problems)
	}
	if name, ok := r.Last("name"); ok {
		filter.Name = &name
	}
	number := func(key string, usual int) int {
		text, ok := r.Last(key)
		if !ok {
			return usual
		}
		value, err := strconv.Atoi(text)
		if err != nil || value < 0 {
			problems.Add(key, "must be an integer of at least 0, is %q", text)
		}
		return value
	}
	limit, offset := min(number("limit", page.MaxSize), page.MaxSize), number("offset", 0)
	if offset > mostOffset {
		problems.Add("offset", "must be at most %d", mostOffset)
	}
	if err := problems.Err(); err != nil {
		return rest.Answer{}, err
	}
	viewer := access.ViewerFrom(ctx)
	if all, ok := r.Last("all_tenants"); !ok || all == "0" || !resource.ReachOf(viewer).All {
		filter.ProjectID = &viewer.ProjectID
	}
	if k.inside != "" {
		parent, err := d.find(ctx, r.Path["parent"], kindAt(k.inside))
		if err != nil {
			return rest.Answer{}, err
		}
		filter.Parent, filter.ProjectID = &parent.UUID, nil
	}
	items, err := d.resources(ctx, filter, limit, offset)
	if err != nil {
		return rest.Answer{}, err
	}
	metadata, err := d.store.MetadataOf(ctx, lists.Map(items, func(of *resource.Resource) int64 { return of.ID }), nil)
	if err != nil {
		return rest.Answer{}, err
	}
	forms := lists.Map(items, func(of *resource.Resource) map[string]any { return formOf(of, pairs(metadata[of.ID])) })
	return rest.Answer{Body: map[string]any{k.list: forms}}, nil
}

// mostOffset bounds the resources that a list skips.
const mostOffset = 100_000

// resources returns resources after an offset, the newest first. It reads the
// skipped ones page by page.
func (d door) resources(ctx context.Context, filter resource.Filter, limit, offset int) ([]*resource.Resource, error) {
	request := page.Request{}
	for {
		size := limit
		if offset > 0 {
			size = min(offset, page.MaxSize)
		}
		request.First = &size
		found, err := d.store.Resources(ctx, filter, page.Order{Field: "CREATED_AT", Descending: true}, request)
		switch {
		case err != nil:
			return nil, err
		case offset <= 0:
			return found.Items, nil
		case !found.HasMore:
			return nil, nil
		}
		offset -= size
		request.After = &found.Cursors[size-1]
	}
}

// readLiteral reads a dictionary of strings in Python's form, which clients of
// the service send, or in JSON.
func readLiteral(text string, problems *problem.Problems) []metadef.KeyValue {
	var values map[string]string
	if err := json.Unmarshal([]byte(jsonOf(text)), &values); err != nil {
		problems.Add("metadata", "must be a dictionary of strings, such as {'team': 'blue'}")
		return nil
	}
	items := make([]metadef.KeyValue, 0, len(values))
	for key, value := range values {
		items = append(items, metadef.KeyValue{Key: key, Value: value})
	}
	slices.SortFunc(items, func(a, b metadef.KeyValue) int { return strings.Compare(a.Key, b.Key) })
	return items
}

// jsonOf returns the JSON of a dictionary in the form of Python: strings in
// single quotes get double ones.
func jsonOf(text string) string {
	var out strings.Builder
	quote := byte(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
			out.WriteByte('"')
		case quote == 0:
			out.WriteByte(c)
		case c == quote:
			quote = 0
			out.WriteByte('"')
		case c == '\\' && i+1 < len(text):
			i++
			if text[i] == '\'' {
				out.WriteByte('\'')
			} else {
				out.WriteString(text[i-1 : i+1])
			}
		case c == '"':
			out.WriteString(`\"`)
		default:
			out.WriteByte(c)
		}
	}
	return out.String()
}
