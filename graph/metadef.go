package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/catalog"
	"github.com/cadastre-dev/cadastre/graph/model"
)

func namespaceID(n *catalog.Namespace) int64     { return n.ID }
func objectID(o *catalog.ObjectDefinition) int64 { return o.ID }
func tagID(t *catalog.Tag) int64                 { return t.ID }

// namespaceOrder is the order that was asked for, or by name.
func namespaceOrder(by *model.NamespaceOrder) catalog.Order {
	if by == nil {
		return catalog.Order{Field: string(model.NamespaceOrderFieldName)}
	}
	return catalog.Order{Field: string(by.Field), Descending: descending(by.Direction)}
}

// propertiesLoad is the load of the properties of namespaces and of objects.
const propertiesLoad = "properties"

// registerApplied registers all that a metadata dialog shows, so that what hangs
// off it is fetched for all of it at once; the properties of objects are there.
func registerApplied(ctx context.Context, applied []*catalog.AppliedNamespace) {
	owned := map[int64][]*catalog.PropertyDefinition{}
	defer supply[catalog.ObjectDefinition](ctx, propertiesLoad, owned)
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

func placeOfProperty(p *catalog.PropertyDefinition) (name, id string) { return p.Name, p.NodeID() }
func placeOfObject(o *catalog.ObjectDefinition) (name, id string)     { return o.Name, o.NodeID() }
func placeOfTag(t *catalog.Tag) (name, id string)                     { return catalog.Fold(t.Name), t.NodeID() }
