package placement

import (
	"cmp"
	"slices"
)

// rebuildTrees rebuilds the trees whose shape or aggregates changed.
func (b *builder) rebuildTrees() {
	if len(b.detached) > 0 {
		b.detachOrphans()
	}
	if len(b.stale) == 0 && len(b.detached) == 0 {
		return
	}
	b.detachStale()
	members := slices.SortedFunc(mask(b.detached).all(), func(x, y int32) int {
		return cmp.Compare(b.nodes.at(x).provider.UUID, b.nodes.at(y).provider.UUID)
	})
	children := map[int32][]int32{}
	var roots, orphans []int32
	for _, id := range members { // by uuid, so children are by uuid too
		provider := b.nodes.at(id).provider
		if parent, ok := b.parentOf(provider); ok && parent != id {
			children[parent] = append(children[parent], id)
			continue
		}
		roots = append(roots, id)
		if provider.Parent != "" {
			orphans = append(orphans, id)
		}
	}
	for _, root := range roots {
		b.buildTree(root, children)
	}
	for _, id := range members { // the rest are loops, which no store should send
		if b.detached.has(id) {
			orphans = append(orphans, id)
			b.buildTree(id, children)
		}
	}
	for _, id := range b.orphans {
		if n := b.nodes.at(id); n != nil && n.provider.Parent != "" && n.index == 0 {
			orphans = append(orphans, id)
		}
	}
	slices.Sort(orphans)
	b.orphans = slices.Compact(orphans)
}

// detachOrphans marks the tree of an orphan as stale if its parent is now
// known.
func (b *builder) detachOrphans() {
	for _, id := range b.orphans {
		if n := b.nodes.at(id); n != nil && n.tree != nil && b.byUUID.has(n.provider.Parent) {
			b.stale[n.tree] = true
		}
	}
}

// detachStale removes the stale trees and detaches the providers in them.
func (b *builder) detachStale() {
	for t := range b.stale {
		b.trees.remove(b.edit, t.root)
		for _, id := range t.aggregates {
			entry := b.aggregateIndex.at(id)
			entry.roots.remove(b.edit, t.root)
			b.aggregateIndex.set(b.edit, id, entry)
		}
		for _, id := range t.members {
			if b.nodes.at(id) != nil {
				b.detached.add(id)
			}
		}
	}
}

// buildTree builds the tree below a root out of detached providers.
func (b *builder) buildTree(root int32, children map[int32][]int32) {
	t := &providerTree{root: b.nodes.at(root).provider.UUID}
	type visit struct{ id, parent int32 }
	stack := []visit{{root, -1}}
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if !b.detached.has(v.id) {
			continue
		}
		b.detached.remove(v.id)
		index := int32(len(t.members))
		t.members = append(t.members, v.id)
		t.parents = append(t.parents, v.parent)
		t.aggregates = append(t.aggregates, b.attach(v.id, t, index).aggregates...)
		for _, child := range slices.Backward(children[v.id]) {
			stack = append(stack, visit{child, index})
		}
	}
	t.ends = make([]int32, len(t.members))
	for i := int32(len(t.members)) - 1; i >= 0; i-- {
		t.ends[i] = max(t.ends[i], i+1)
		if parent := t.parents[i]; parent >= 0 {
			t.ends[parent] = max(t.ends[parent], t.ends[i])
		}
	}
	slices.Sort(t.aggregates)
	t.aggregates = slices.Compact(t.aggregates)
	b.trees.set(b.edit, t.root, t)
	for _, id := range t.aggregates {
		entry := b.aggregateIndex.at(id)
		entry.roots.set(b.edit, t.root, root)
		b.aggregateIndex.set(b.edit, id, entry)
	}
}

// attach records the provider's place in a tree and returns its node.
func (b *builder) attach(id int32, t *providerTree, index int32) *node {
	n := *b.nodes.at(id)
	n.tree, n.index = t, index
	if n.provider.Root != t.root {
		provider := *n.provider
		provider.Root = t.root
		n.provider = &provider
	}
	b.nodes.set(b.edit, id, &n)
	b.rootOf.set(b.edit, id, t.members[0]+1)
	return &n
}
