package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
)

// maxNodes bounds the nodes that one field looks up.
const maxNodes = 100

// lookUp returns the row of a key and registers it. It returns nil for a row
// that does not exist or is not visible: a viewer cannot distinguish the two.
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

// named returns the first of the list with a name, or nil.
func named[T any](list []*T, name string, of func(*T) string) *T {
	if i := slices.IndexFunc(list, func(t *T) bool { return of(t) == name }); i >= 0 {
		return list[i]
	}
	return nil
}

// valueOf returns what a pointer points to, and the zero value for nil.
func valueOf[T any](pointer *T) T {
	if pointer == nil {
		var zero T
		return zero
	}
	return *pointer
}

// finders returns the functions that find the nodes of each kind by their keys.
// They leave out what does not exist or is not visible.
func (r *Resolver) finders() map[page.Kind]func(context.Context, []string) (map[string]model.Node, error) {
	return map[page.Kind]func(context.Context, []string) (map[string]model.Node, error){
		page.KindAuditEvent:              byRow(r.Store.AuditEventsByID),
		page.KindNamespace:               byRow(r.Store.NamespacesByID),
		page.KindPropertyDefinition:      byRow(r.Store.PropertiesByID),
		page.KindObjectDefinition:        byRow(r.Store.ObjectsByID),
		page.KindTag:                     byRow(r.Store.TagsByID),
		page.KindResourceType:            byRow(r.Store.ResourceTypesByID),
		page.KindResourceTypeAssociation: byRow(r.Store.AssociationsByID),
		page.KindResourceProvider:        byKey(r.Store, providersByUUID),
		page.KindConsumer:                byKey(r.Store, consumersByUUID),
		page.KindResource:                byRow(r.Store.ResourcesByID),
		page.KindMetadataItem:            byRow(r.Store.MetadataByID),
		page.KindCapability:              byRow(r.Store.CapabilitiesByID),
	}
}

// byRow returns a finder of nodes whose keys are row ids. It registers what it
// finds.
func byRow[T any, P interface {
	*T
	model.Node
}](find func(context.Context, []int64) (map[int64]*T, error)) func(context.Context, []string) (map[string]model.Node, error) {
	return func(ctx context.Context, keys []string) (map[string]model.Node, error) {
		rows := make([]int64, len(keys))
		for i, key := range keys {
			rows[i] = page.NodeID{Key: key}.Row()
		}
		found, err := find(ctx, rows)
		nodes := make(map[string]model.Node, len(found))
		for row, noun := range found {
			nodes[strconv.FormatInt(row, 10)] = P(noun)
			dataloader.Register(ctx, noun)
		}
		return nodes, err
	}
}

// byKey returns a finder of nodes whose keys are UUIDs. It registers what it
// finds; a viewer without any role finds nothing.
func byKey[T any, P interface {
	*T
	model.Node
}](s *store.Store, find func(*store.Store, context.Context, []string) (map[string]*T, error)) func(context.Context, []string) (map[string]model.Node, error) {
	return func(ctx context.Context, keys []string) (map[string]model.Node, error) {
		found, err := find(s, ctx, keys)
		if errors.Is(err, problem.ErrForbidden) {
			return nil, nil
		}
		nodes := make(map[string]model.Node, len(found))
		for key, noun := range found {
			nodes[key] = P(noun)
			dataloader.Register(ctx, noun)
		}
		return nodes, err
	}
}

// nodesOf returns the nodes of the ids in their order, with one read for each
// kind; nil stands for what does not exist or is not visible.
func (r *Resolver) nodesOf(ctx context.Context, ids []string) ([]model.Node, error) {
	if len(ids) > maxNodes {
		return nil, problem.Invalid("ids", "has %d ids, the maximum is %d", len(ids), maxNodes)
	}
	var problems problem.Problems
	wanted := make([]page.NodeID, len(ids))
	keys := map[page.Kind][]string{}
	for i, id := range ids {
		node, ok := page.ParseNodeID(id)
		if !ok {
			problems.Add(fmt.Sprintf("ids[%d]", i), "is not an id")
		}
		wanted[i] = node
		keys[node.Kind] = append(keys[node.Kind], node.Key)
		if node.Association != 0 {
			keys[page.KindResourceTypeAssociation] = append(keys[page.KindResourceTypeAssociation], rowKey(node.Association))
		}
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	found := map[page.Kind]map[string]model.Node{}
	for kind, find := range r.finders() {
		if len(keys[kind]) == 0 {
			continue
		}
		nodes, err := find(ctx, keys[kind])
		if err != nil {
			return nil, err
		}
		found[kind] = nodes
	}
	nodes := make([]model.Node, len(ids))
	for i, id := range wanted {
		nodes[i] = throughAssociation(found[id.Kind][id.Key], found[page.KindResourceTypeAssociation][rowKey(id.Association)], id)
	}
	return nodes, nil
}

// throughAssociation returns the node of an id: itself or, where the id names
// an association, the definition as that association of its namespace shows it.
func throughAssociation(node, association model.Node, id page.NodeID) model.Node {
	if id.Association == 0 {
		return node
	}
	through, ok := association.(*metadef.ResourceTypeAssociation)
	if !ok {
		return nil
	}
	switch definition := node.(type) {
	case *metadef.PropertyDefinition:
		if definition.NamespaceID == through.NamespaceID {
			return metadef.PropertiesThrough([]*metadef.ResourceTypeAssociation{through}, []*metadef.PropertyDefinition{definition})[0]
		}
	case *metadef.ObjectDefinition:
		if definition.NamespaceID == through.NamespaceID {
			return metadef.ObjectsThrough([]*metadef.ResourceTypeAssociation{through}, []*metadef.ObjectDefinition{definition})[0]
		}
	}
	return nil
}

func rowKey(row int64) string { return strconv.FormatInt(row, 10) }

// associationRow returns the row id of an association, and 0, which no row has,
// for the id of another kind of node.
func associationRow(id string) (int64, error) {
	node, ok := page.ParseNodeID(id)
	if !ok {
		return 0, problem.Invalid("input.id", "is not an id")
	}
	if node.Kind != page.KindResourceTypeAssociation || node.Association != 0 {
		return 0, nil
	}
	return node.Row(), nil
}
