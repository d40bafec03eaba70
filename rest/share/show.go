package share

import (
	"context"
	"encoding/json"
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
