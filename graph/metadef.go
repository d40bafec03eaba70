package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/text"
)

func namespaceID(n *metadef.Namespace) int64     { return n.ID }
func objectID(o *metadef.ObjectDefinition) int64 { return o.ID }
func tagID(t *metadef.Tag) int64                 { return t.ID }

// namespaceOrder is the order that was asked for, or by name.
func namespaceOrder(by *model.NamespaceOrder) page.Order {
	if by == nil {
		return page.Order{Field: string(model.NamespaceOrderFieldName)}
	}
	return page.Order{Field: string(by.Field), Descending: descending(by.Direction)}
}

// propertiesLoad is the load of the properties of namespaces and of objects.
const propertiesLoad = "properties"

// registerApplied registers all that a metadata dialog shows, so that what hangs
// off it is fetched for all of it at once; the properties of objects are there.
func registerApplied(ctx context.Context, applied []*metadef.AppliedNamespace) {
	owned := map[int64][]*metadef.PropertyDefinition{}
	defer supply[metadef.ObjectDefinition](ctx, propertiesLoad, owned)
	for _, of := range applied {
		register(ctx, of.Namespace)
		register(ctx, of.Association)
		register(ctx, of.Definitions()...)
		for _, object := range of.Objects {
			register(ctx, object.ObjectDefinition)
			owned[object.ID] = object.Properties
		}
		for _, conflict := range of.Conflicts {
			register(ctx, conflict.Definitions...)
		}
	}
}

// Where definitions stand in their connections: by name, then by id.

func placeOfProperty(p *metadef.PropertyDefinition) (name, id string) { return p.Name, p.NodeID() }
func placeOfObject(o *metadef.ObjectDefinition) (name, id string)     { return o.Name, o.NodeID() }
func placeOfTag(t *metadef.Tag) (name, id string)                     { return text.Fold(t.Name), t.NodeID() }
