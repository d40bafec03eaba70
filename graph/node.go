package graph

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
)

// maxNodes bounds the nodes of one field.
const maxNodes = 100

// lookUp returns the row of a key and registers it. It returns nil for a row
// that does not exist or is not visible, so that a viewer cannot distinguish
// the two.
func lookUp[K, T any](ctx context.Context, key K, find func(context.Context, K) (*T, error)) (*T, error) {
	found, err := find(ctx, key)
	if errors.Is(err, problem.ErrNotFound) {
		return nil, nil
	}
	if err == nil {
		dataloader.Register(ctx, found)
	}
	return found, err
}

// named returns the first element with the given name, or nil.
func named[T any](list []*T, name string, of func(*T) string) *T {
	if i := slices.IndexFunc(list, func(t *T) bool { return of(t) == name }); i >= 0 {
		return list[i]
	}
	return nil
}

// orEmpty returns the list, or an empty list for nil.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// valueOf returns the pointer's value, or the zero value for nil.
func valueOf[T any](pointer *T) T {
	if pointer == nil {
		var zero T
		return zero
	}
	return *pointer
}

// finder finds nodes by their ids. It omits nodes that do not exist or are not
// visible.
type finder func(context.Context, []page.NodeID) (map[page.NodeID]model.Node, error)

// finders returns the finders of the nodes of each kind.
func (r *Resolver) finders() map[page.Kind]finder {
	return map[page.Kind]finder{
		page.KindAuditEvent:              byUUID(r.Store.AuditEventsByUUID),
		page.KindNamespace:               byUUID(r.Store.NamespacesByUUID),
		page.KindPropertyDefinition:      byUUID(r.Store.PropertiesByUUID),
		page.KindObjectDefinition:        byUUID(r.Store.ObjectsByUUID),
		page.KindTag:                     byUUID(r.Store.TagsByUUID),
		page.KindResourceType:            byUUID(r.Store.ResourceTypesByUUID),
		page.KindResourceTypeAssociation: byUUID(r.Store.AssociationsByUUID),
		page.KindResourceProvider:        byKey(ofStore(r.Store, providersByUUID), storedProvider),
		page.KindConsumer:                byUUID(ofStore(r.Store, consumersByUUID)),
		page.KindResource:                byUUID(r.Store.ResourcesByUUID),
		page.KindMetadataItem:            byKey(r.Store.MetadataByKey, itemKey),
		page.KindCapability:              byUUID(r.Store.CapabilitiesByUUID),
	}
}

// itemKey returns the key of the metadata item with an id.
func itemKey(id page.NodeID) resource.ItemKey {
	return resource.ItemKey{Resource: id.UUID, Key: id.Part}
}

// storedProvider returns the uuid of the provider with an id, "" for a provider
// of a what-if.
func storedProvider(id page.NodeID) string {
	if id.Part != "" {
		return ""
	}
	return id.UUID
}

// ofStore binds a function to a store.
func ofStore[T any](
	s *store.Store, find func(*store.Store, context.Context, []string) (map[string]*T, error),
) func(context.Context, []string) (map[string]*T, error) {
	return func(ctx context.Context, uuids []string) (map[string]*T, error) { return find(s, ctx, uuids) }
}

// byUUID returns a finder of nodes that have a UUID as their key.
func byUUID[T any, P interface {
	*T
	model.Node
}](find func(context.Context, []string) (map[string]*T, error)) finder {
	return byKey[T, P](find, func(id page.NodeID) string { return id.UUID })
}

// byKey returns a finder of nodes. Key extracts the key from an id. The finder
// registers the nodes that it finds. A viewer who may not read the kind of node
// finds nothing.
func byKey[T any, P interface {
	*T
	model.Node
}, K comparable](find func(context.Context, []K) (map[K]*T, error), key func(page.NodeID) K) finder {
	return func(ctx context.Context, ids []page.NodeID) (map[page.NodeID]model.Node, error) {
		found, err := find(ctx, lists.Map(ids, key))
		if errors.Is(err, problem.ErrForbidden) {
			return nil, nil
		}
		nodes := make(map[page.NodeID]model.Node, len(found))
		registered := map[K]bool{}
		for _, id := range ids {
			noun := found[key(id)]
			if noun == nil {
				continue
			}
			nodes[id] = P(noun)
			if !registered[key(id)] {
				registered[key(id)] = true
				dataloader.Register(ctx, noun)
			}
		}
		return nodes, err
	}
}

// nodesOf returns the nodes of the ids in their order, with one read for each
// kind. A node that does not exist or is not visible is nil.
func (r *Resolver) nodesOf(ctx context.Context, ids []string) ([]model.Node, error) {
	if len(ids) > maxNodes {
		return nil, problem.Invalid("ids", "has %d ids, the maximum is %d", len(ids), maxNodes)
	}
	var problems problem.Problems
	wanted := make([]page.NodeID, len(ids))
	wantedOf := map[page.Kind][]page.NodeID{}
	for i, id := range ids {
		node, ok := page.ParseNodeID(id)
		if !ok {
			problems.Add(fmt.Sprintf("ids[%d]", i), "is not an id")
		}
		wanted[i] = node
		wantedOf[node.Kind] = append(wantedOf[node.Kind], node)
		if association, ok := associationOf(node); ok {
			wantedOf[association.Kind] = append(wantedOf[association.Kind], association)
		}
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	found := map[page.NodeID]model.Node{}
	for kind, find := range r.finders() {
		if len(wantedOf[kind]) == 0 {
			continue
		}
		nodes, err := find(ctx, wantedOf[kind])
		if err != nil {
			return nil, err
		}
		maps.Copy(found, nodes)
	}
	nodes := make([]model.Node, len(ids))
	for i, id := range wanted {
		nodes[i] = found[id]
		if association, ok := associationOf(id); ok {
			nodes[i] = throughAssociation(found[id], found[association])
		}
	}
	return nodes, nil
}

// associationOf returns the id of the association through which a definition is
// seen. It returns false if the id names none.
func associationOf(id page.NodeID) (page.NodeID, bool) {
	ok := id.Part != "" && (id.Kind == page.KindPropertyDefinition || id.Kind == page.KindObjectDefinition)
	return page.NodeID{Kind: page.KindResourceTypeAssociation, UUID: id.Part}, ok
}

// throughAssociation returns a definition as an association shows it. It
// returns nil if either is nil, or if they belong to different namespaces.
func throughAssociation(node, association model.Node) model.Node {
	through, ok := association.(*metadef.ResourceTypeAssociation)
	if !ok {
		return nil
	}
	switch definition := node.(type) {
	case *metadef.PropertyDefinition:
		if definition.NamespaceID == through.NamespaceID {
			return metadef.PropertiesThrough([]*metadef.ResourceTypeAssociation{through},
				[]*metadef.PropertyDefinition{definition})[0]
		}
	case *metadef.ObjectDefinition:
		if definition.NamespaceID == through.NamespaceID {
			return metadef.ObjectsThrough([]*metadef.ResourceTypeAssociation{through},
				[]*metadef.ObjectDefinition{definition})[0]
		}
	}
	return nil
}

// associationRef returns the reference to an association by its id or by its
// names; exactly one of them is required. The id of another kind of node finds
// nothing.
func associationRef(id *string, name *metadef.AssociationName) (metadef.AssociationRef, error) {
	ref := metadef.AssociationRef{Name: name}
	switch {
	case id == nil && name == nil:
		return ref, problem.Invalid("input.id", "is required without association")
	case id == nil:
		return ref, nil
	case name != nil:
		return ref, problem.Invalid("input.association", "cannot be combined with id")
	}
	node, ok := page.ParseNodeID(*id)
	if !ok {
		return ref, problem.Invalid("input.id", "is not an id")
	}
	if node.Kind == page.KindResourceTypeAssociation {
		ref.UUID = node.UUID
	}
	return ref, nil
}

// lookUps returns how many statements look up nodes by their ids: one for each
// kind, one for the associations through which definitions are seen, and one
// for the objects that own properties. It also reports whether any of the nodes
// is in the placement world.
func lookUps(ids []any) (statements int, world bool) {
	kinds := map[page.Kind]bool{}
	for _, id := range ids[:min(len(ids), maxNodes)] {
		text, _ := id.(string)
		node, ok := page.ParseNodeID(text)
		if !ok {
			continue
		}
		kinds[node.Kind] = true
		if association, ok := associationOf(node); ok {
			kinds[association.Kind] = true
		}
	}
	statements = len(kinds)
	if kinds[page.KindPropertyDefinition] {
		statements++ // the objects that own the properties
	}
	return statements, kinds[page.KindResourceProvider]
}
