package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/text"
)

func namespaceID(n *metadef.Namespace) int64     { return n.ID }
func objectID(o *metadef.ObjectDefinition) int64 { return o.ID }
func tagID(t *metadef.Tag) int64                 { return t.ID }

// namespaceOrder returns an order of namespaces; nil orders by name.
func namespaceOrder(by *model.NamespaceOrder) page.Order {
	if by == nil {
		return page.Order{Field: string(model.NamespaceOrderFieldName)}
	}
	return page.Order{Field: string(by.Field), Descending: descending(by.Direction)}
}

// registerApplied registers all rows of an answer to `definitions`, so that
// their children are fetched in one batch. It supplies the properties of
// objects, which need no fetch.
func registerApplied(ctx context.Context, applied []*metadef.AppliedNamespace) {
	owned := map[int64][]*metadef.PropertyDefinition{}
	defer propertiesOfObject.Supply(ctx, owned)
	for _, of := range applied {
		dataloader.Register(ctx, of.Namespace)
		dataloader.Register(ctx, of.Association)
		dataloader.Register(ctx, of.Definitions()...)
		for _, object := range of.Objects {
			dataloader.Register(ctx, object.ObjectDefinition)
			owned[object.ID] = object.Properties
		}
		for _, conflict := range of.Conflicts {
			dataloader.Register(ctx, conflict.Definitions...)
		}
	}
}

// inNamespace registers a part of a namespace that a mutation wrote, and returns
// it. It returns nil for nil.
func inNamespace[Row any, Part interface {
	*Row
	Within(*metadef.Namespace) *Row
}](ctx context.Context, part Part, namespace *metadef.Namespace) *Row {
	if part == nil {
		return nil
	}
	return registered(ctx, part.Within(namespace))
}

// validationOf returns the arguments of validateMetadata.
func validationOf(uuid, project, resourceType, target *string, values []*metadef.KeyValue) resource.Validation {
	return resource.Validation{ResourceType: resourceType, Target: target, Resource: uuid,
		Project: project, Values: model.Values(values)}
}

// definitionsOfReport returns the definitions that a report shows.
func definitionsOfReport(report *metadef.MetadataReport) []*metadef.PropertyDefinition {
	var definitions []*metadef.PropertyDefinition
	for _, item := range report.Items {
		definitions = append(definitions, item.Definitions...)
	}
	return definitions
}

// The keys that order definitions in their connections.

func nameOfProperty(p *metadef.PropertyDefinition) string { return p.Name }
func nameOfObject(o *metadef.ObjectDefinition) string     { return o.Name }
func keyOfTag(t *metadef.Tag) string                      { return text.Fold(t.Name) }

// FileBytes is the maximum number of bytes of definition files in one import or
// export.
const FileBytes = metadef.MaxDocument

type fileExport struct{}

// WithFileExport returns a context in which exportNamespaces returns a file of
// up to FileBytes.
func WithFileExport(ctx context.Context) context.Context {
	return context.WithValue(ctx, fileExport{}, true)
}

// IsFileExport reports whether ctx comes from WithFileExport.
func IsFileExport(ctx context.Context) bool { return ctx.Value(fileExport{}) != nil }

// maxExport returns the maximum number of bytes that exportNamespaces returns.
func maxExport(ctx context.Context) int {
	if IsFileExport(ctx) {
		return FileBytes
	}
	return metadef.MaxExport
}

// connectProblems returns the connection of a page of problems and registers
// its rows. It returns nil for nil.
func connectProblems(ctx context.Context, found *resource.ProblemPage) *model.MetadataProblemConnection {
	if found == nil {
		return nil
	}
	dataloader.Register(ctx, found.Resources()...)
	dataloader.Register(ctx, found.Definitions()...)
	return &model.MetadataProblemConnection{ProblemPage: found}
}

// change makes a change of definitions. In a dry run it only tries the change,
// and returns the problems that it would cause.
func (r *Resolver) change(ctx context.Context, dryRun bool, problems *model.MetadataProblemScan,
	change store.DefinitionChange) (*model.MetadataProblemConnection, error) {
	switch {
	case dryRun:
		found, err := r.Store.WouldBreak(ctx, "problems", model.ProblemScanOf(problems), change)
		return connectProblems(ctx, found), err
	case problems != nil:
		return nil, problem.Invalid("problems", "requires dryRun")
	}
	return nil, change.Make(ctx)
}

// changed registers a row that a change of definitions changed, and returns it.
// In a dry run it returns nil: normalised caches would keep the content, which
// is not stored, under the id of the row.
func changed[T any](ctx context.Context, dryRun bool, row *T) *T {
	if dryRun {
		return nil
	}
	return registered(ctx, row)
}
