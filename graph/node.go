package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
)

// maxNodes is how many nodes one field looks up.
const maxNodes = 100

// lookUp gives what a key names, and nil for what is not there or not visible:
// the two cannot be told apart.
func lookUp[K, T any](ctx context.Context, key K, find func(context.Context, K) (*T, error)) (*T, error) {
	found, err := find(ctx, key)
	if errors.Is(err, problem.ErrNotFound) {
		return nil, nil
	}
	if err == nil {
		register(ctx, found)
	}
	return found, err
}

// named is the first of the list with a name, or nil.
func named[T any](list []*T, name string, of func(*T) string) *T {
	if i := slices.IndexFunc(list, func(t *T) bool { return of(t) == name }); i >= 0 {
		return list[i]
	}
	return nil
}

func valueOf[T any](pointer *T) T {
	if pointer == nil {
		var zero T
		return zero
	}
	return *pointer
}

// finders find the nodes of each kind, by their keys; what is not there or not
// visible is left out.
func (r *Resolver) finders() map[page.Kind]func(context.Context, []string) (map[string]model.Node, error) {
	return map[page.Kind]func(context.Context, []string) (map[string]model.Node, error){
		page.KindAuditEvent:              byRow(r.Store.AuditEventsByID),
		page.KindNamespace:               byRow(r.Store.NamespacesByID),
		page.KindPropertyDefinition:      byRow(r.Store.PropertiesByID),
		page.KindObjectDefinition:        byRow(r.Store.ObjectsByID),
		page.KindTag:                     byRow(r.Store.TagsByID),
		page.KindResourceType:            byRow(r.Store.ResourceTypesByID),
		page.KindResourceTypeAssociation: byRow(r.Store.AssociationsByID),
		page.KindResourceProvider:        byKey(r.providers),
		page.KindConsumer:                byKey(r.consumers),
		page.KindResource:                byRow(r.Store.ResourcesByID),
		page.KindMetadataItem:            byRow(r.Store.MetadataByID),
		page.KindCapability:              byRow(r.Store.CapabilitiesByID),
	}
}

// byRow finds nodes whose keys are numbers of rows, and registers them.
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
			register(ctx, noun)
		}
		return nodes, err
	}
}

// byKey finds nodes whose keys are uuids, and registers them. A viewer without
// any role sees none.
func byKey[T any, P interface {
	*T
	model.Node
}](find func(context.Context, []string) (map[string]*T, error)) func(context.Context, []string) (map[string]model.Node, error) {
	return func(ctx context.Context, keys []string) (map[string]model.Node, error) {
		found, err := find(ctx, keys)
		if errors.Is(err, problem.ErrForbidden) {
			return nil, nil
		}
		nodes := make(map[string]model.Node, len(found))
		for key, noun := range found {
			nodes[key] = P(noun)
			register(ctx, noun)
		}
		return nodes, err
	}
}

// nodesOf looks nodes up, in the order of the ids, with one read for each kind.
func (r *Resolver) nodesOf(ctx context.Context, ids []string) ([]model.Node, error) {
	if len(ids) > maxNodes {
		return nil, problem.Invalid("ids", "must have at most %d ids, has %d", maxNodes, len(ids))
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
		nodes[i] = seenThrough(found[id.Kind][id.Key], found[page.KindResourceTypeAssociation][rowKey(id.Association)], id)
	}
	return nodes, nil
}

// seenThrough gives a definition as its id says: by itself, or through the
// association, which must be one of its namespace.
func seenThrough(node, association model.Node, id page.NodeID) model.Node {
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

// associationRow is the row of an association by its id; 0, which there is none
// of, for the id of another thing.
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
