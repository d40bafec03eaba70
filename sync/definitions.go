package sync

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/origin"
)

// definition is a namespace of metadata definitions and its file, "" if its own
// page does not exist.
type definition struct{ name, file string }

// definitionOf returns the thing of a namespace. The server's resource for the
// thing shows whether the namespace is absent or gone.
func definitionOf(r row) Thing {
	name := r.text("namespace")
	return Thing{ID: name, Name: name, Project: r.text("owner"), IsPublic: r.text("visibility") == "public"}
}

// followDefinitions reads the namespaces, and writes their things and their
// contents. If the resource of a gone namespace was deleted, the namespace
// loses the contents of the cloud. The next pass deletes it, if it is empty
// then.
func (p *Pass) followDefinitions(ctx context.Context, pass string, result *Result) error {
	definitions, things, err := p.readDefinitions(ctx)
	if err != nil {
		return err
	}
	result.Seen = len(things)
	of := Result{Seen: len(things)}
	if err := p.write(ctx, pass, things, nil, true, &of); err != nil {
		return err
	}
	result.Returned, result.SyncCounts.Absent, result.LeftOut = of.Returned, of.SyncCounts.Absent, of.LeftOut
	result.Gone, result.Refused, result.Deleted = of.Gone, of.Refused, of.Deleted
	result.Changes = slices.DeleteFunc(of.Changes, func(change origin.Change) bool {
		return change.Effect == origin.Created || change.Effect == origin.Updated
	})
	stored := map[string]*client.Namespace{}
	for one, err := range client.Namespaces(ctx, p.Server, nil, nil, new(1000)) {
		if err != nil {
			return err
		}
		stored[one.Name] = one
	}
	if err := p.writeDefinitions(ctx, definitions, stored, result); err != nil {
		return err
	}
	return p.endDefinitions(ctx, things, stored, result)
}

// readDefinitions returns the namespaces and their things, both sorted by name.
func (p *Pass) readDefinitions(ctx context.Context) (definitions []definition, things []Thing, err error) {
	service, err := p.Cloud.serviceOf(ctx, p.Kind)
	if err != nil {
		return nil, nil, err
	}
	things, _, err = p.Cloud.readLists(ctx, service, p.Kind, p.Progress)
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(things, func(a, b Thing) int { return strings.Compare(a.ID, b.ID) })
	things = slices.CompactFunc(things, func(a, b Thing) bool { return a.ID == b.ID })
	for _, thing := range things {
		one := definition{name: thing.ID}
		address := service.ServiceURL("metadefs", "namespaces", url.PathEscape(thing.ID))
		answer, err := get(ctx, service, address, "namespace")
		switch {
		case err == nil:
			one.file, err = fileOf(answer)
		// deleted meanwhile, or its name fits into no address
		case gophercloud.ResponseCodeIs(err, http.StatusNotFound):
			err = nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read the definitions %s: %w", thing.ID, err)
		}
		definitions = append(definitions, one)
	}
	return definitions, things, nil
}

// fileOf returns the answer of a namespace as a definition file, with its members
// in a fixed order and without the fields that only Glance writes.
func fileOf(answer row) (string, error) {
	withoutReadOnly(answer)
	for _, list := range []string{"resource_type_associations", "objects", "tags"} {
		members, _ := answer[list].([]any)
		for _, one := range members {
			object, _ := one.(map[string]any)
			withoutReadOnly(object)
		}
	}
	for name, property := range answer.objects("properties") {
		if property.text("name") == name { // of a property that was created separately
			delete(property, "name")
		}
	}
	var file bytes.Buffer
	encoder := json.NewEncoder(&file)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(answer)
	return file.String(), err
}

// withoutReadOnly removes the fields of an object that only Glance writes.
func withoutReadOnly(object row) {
	for _, field := range []string{"created_at", "updated_at", "self", "schema"} {
		delete(object, field)
	}
}

// bundle returns the origin of the namespaces that the pass imports.
func (p *Pass) bundle() string {
	return origin.Scope{Origin: p.Origin, Region: p.Cloud.At.Region, Kind: p.Kind.Name}.Key()
}

// owns reports whether a namespace of the server came from the pass's cloud and
// region.
func (p *Pass) owns(one *client.Namespace) bool {
	return one.Origin != nil && *one.Origin == p.bundle()
}

// maxDefinitions is the maximum number of namespaces in one request.
const maxDefinitions = 20

// writeDefinitions imports the namespaces that the server lacks or that earlier
// passes imported. It notes the others as left out. The error has the failed
// imports. They do not stop the others.
func (p *Pass) writeDefinitions(ctx context.Context, definitions []definition,
	stored map[string]*client.Namespace, result *Result) error {
	var fresh, followed []definition
	var refused []error
	for _, one := range definitions {
		is := stored[one.name]
		switch {
		case one.file == "":
			refused = append(refused,
				fmt.Errorf("definitions %s: the cloud lists them, but their page does not exist", one.name))
		case is == nil:
			fresh = append(fresh, one)
		case p.owns(is):
			followed = append(followed, one)
		default:
			result.Unchanged++
			result.LeftOut = append(result.LeftOut,
				LeftOut{ID: one.name, Why: "the namespace of the server has another origin and is not changed"})
		}
	}
	return errors.Join(append(refused, p.importAll(ctx, client.ImportModePreferNew, followed, result),
		p.importAll(ctx, client.ImportModeSkip, fresh, result))...)
}

// importAll imports namespaces in requests that fit, and counts them in the
// result. If the server refuses a request, it imports each namespace alone. The
// error has the failed imports.
func (p *Pass) importAll(ctx context.Context, mode client.ImportMode, definitions []definition, result *Result) error {
	var refused []error
	for files := range pages(lists.Map(definitions, func(one definition) string { return one.file }), maxDefinitions) {
		some := definitions[:len(files)]
		definitions = definitions[len(files):]
		reports, err := p.importFiles(ctx, mode, files)
		switch {
		case err == nil:
			for i, report := range reports {
				refused = append(refused, result.count(some[i].name, report))
			}
		case !isOfContent(err):
			return errors.Join(append(refused, err)...)
		case len(some) == 1:
			refused = append(refused, fmt.Errorf("definitions %s: %w", some[0].name, err))
		default:
			for i := range some {
				refused = append(refused, p.importAll(ctx, mode, some[i:i+1], result))
			}
		}
	}
	return errors.Join(refused...)
}

// isOfContent reports whether the server refuses a request for its content, such
// as its size.
func isOfContent(err error) bool {
	return slices.Contains([]client.ErrorCode{client.BadRequest, client.BadUserInput, client.QueryTooComplex},
		client.Code(err))
}

// importFiles imports definition files with the origin of the pass.
func (p *Pass) importFiles(ctx context.Context, mode client.ImportMode,
	files []string) ([]*client.ImportReport, error) {
	answer, err := client.ImportNamespaces(ctx, p.Server,
		&client.ImportNamespacesInput{Documents: optional.Value(files), Mode: optional.Value(mode),
			Origin: optional.Value(p.bundle()), DryRun: optional.Value(p.DryRun)}, nil)
	if err != nil {
		return nil, err
	}
	return answer.ImportNamespaces.Reports, nil
}

// count adds the import of a namespace to the result, or returns why it failed.
func (r *Result) count(name string, report *client.ImportReport) error {
	switch report.Outcome {
	case client.ImportOutcomeCreated:
		r.Created++
		r.note(origin.Created, name, name)
	case client.ImportOutcomeUpdated:
		r.Updated++
		r.note(origin.Updated, name, name, report.Differences...)
	case client.ImportOutcomeFailed:
		return fmt.Errorf("definitions %s: %s", name, strings.Join(report.Errors, "; "))
	default:
		r.Unchanged++
		return nil
	}
	for _, warning := range report.Warnings {
		r.LeftOut = append(r.LeftOut, LeftOut{ID: name, Why: warning})
	}
	return nil
}

// endDefinitions removes the contents of the cloud from the namespaces whose
// resource was deleted. It deletes a namespace that an earlier pass has
// emptied, unless that namespace changes meanwhile. Without things, it does
// nothing.
func (p *Pass) endDefinitions(ctx context.Context, things []Thing,
	stored map[string]*client.Namespace, result *Result) error {
	kept, err := p.origins(ctx, p.Kind, nil)
	if err != nil || len(things) == 0 {
		return err
	}
	there := lists.Set(things, func(thing Thing) string { return thing.ID })
	var refused []error
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		if _, isKept := kept[name]; isKept || there[name] || !p.owns(stored[name]) {
			continue
		}
		file, _ := json.Marshal(row{"namespace": name, "protected": false}) // cannot fail: a string and a bool
		reports, err := p.importFiles(ctx, client.ImportModePreferNew, []string{string(file)})
		if err != nil {
			return err
		}
		if report := reports[0]; report.Outcome != client.ImportOutcomeUnchanged {
			refused = append(refused, result.count(name, report))
		} else if len(report.Warnings) == 0 {
			refused = append(refused, p.deleteDefinitions(ctx, stored[name], result))
		}
	}
	return errors.Join(refused...)
}

// deleteDefinitions deletes an empty namespace, unless it was changed or
// deleted meanwhile.
func (p *Pass) deleteDefinitions(ctx context.Context, empty *client.Namespace, result *Result) error {
	if !p.DryRun {
		_, err := client.DeleteNamespace(ctx, p.Server,
			&client.DeleteNamespaceInput{Name: empty.Name, Revision: optional.Value(empty.Revision)})
		if code := client.Code(err); code == client.ConcurrentUpdate || code == client.NotFound {
			return nil
		} else if err != nil {
			return err
		}
	}
	result.Deleted++
	result.note(origin.Deleted, empty.Name, empty.Name)
	return nil
}
