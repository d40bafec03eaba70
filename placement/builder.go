package placement

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sync/atomic"
)

// With returns the World after an update. Its cost depends mostly on the
// update: With rebuilds the trees whose shape or aggregates changed, and copies
// one chunk and the chunk pointers of each list that a changed provider is in.
// A change of use alone rebuilds no tree. A state with a lower Version than the
// one held is ignored, so that repeated and late states do no harm. Deletions
// have no version; the caller must order them. A provider whose parent is
// unknown is a root until the parent is added.
func (w *World) With(update Update) *World {
	next := *w
	next.lone = &loneTrees{}
	b := &builder{World: &next, edit: new(edit), stale: map[*providerTree]bool{}}
	for _, name := range update.Added.Traits {
		b.traitNames.set(b.edit, name, true)
	}
	for _, name := range update.Added.ResourceClasses {
		b.classNames.set(b.edit, name, true)
	}
	for _, name := range update.Removed.Traits {
		b.traitNames.remove(b.edit, name)
	}
	for _, name := range update.Removed.ResourceClasses {
		b.classNames.remove(b.edit, name)
	}
	for _, uuid := range update.Deleted {
		b.remove(uuid)
	}
	for _, i := range byUUID(update.Providers) {
		b.put(&update.Providers[i])
	}
	b.rebuildTrees()
	if b.isReshaped {
		b.shape = new(byte)
	}
	return b.World
}

// byUUID returns the indices of providers in the order of their uuids. New
// providers get their ids in this order, so that a scan by uuid reads memory in
// order.
func byUUID(providers []Provider) []int32 {
	type place struct {
		key uint64 // the first bytes of the uuid
		at  int32
	}
	places := make([]place, len(providers))
	for i := range providers {
		var first [8]byte
		copy(first[:], providers[i].UUID)
		places[i] = place{binary.BigEndian.Uint64(first[:]), int32(i)}
	}
	slices.SortStableFunc(places, func(a, b place) int {
		if a.key != b.key {
			return cmp.Compare(a.key, b.key)
		}
		return cmp.Compare(providers[a.at].UUID, providers[b.at].UUID)
	})
	order := make([]int32, len(places))
	for i, p := range places {
		order[i] = p.at
	}
	return order
}

// builder is a World under construction.
type builder struct {
	*World
	edit     *edit
	stale    map[*providerTree]bool // trees to rebuild
	detached idSet                  // providers to put into a new tree
	ownsFree bool                   // whether freeIDs is no longer shared with older Worlds

	isReshaped bool // whether anything that a search reads has changed, except use
}

// idSet is a set of dense ids, without a maximum.
type idSet mask

func (s idSet) has(id int32) bool { return int(id/64) < len(s) && mask(s).has(id) }

func (s *idSet) add(id int32) {
	if missing := int(id/64) + 1 - len(*s); missing > 0 {
		*s = append(*s, make(idSet, missing)...)
	}
	mask(*s).add(id)
}

func (s idSet) remove(id int32) {
	if s.has(id) {
		mask(s).remove(id)
	}
}

// remove removes a provider; its children become roots.
func (b *builder) remove(uuid string) {
	id, ok := b.byUUID.get(uuid)
	if !ok {
		return
	}
	b.isReshaped = true
	n := b.nodes.at(id)
	b.reindex(n, &node{provider: new(Provider), id: id})
	b.byUUID.remove(b.edit, uuid)
	b.removeName(n)
	b.nodes.set(b.edit, id, nil)
	b.resources.set(b.edit, id, 0)
	b.rootOf.set(b.edit, id, 0)
	if !b.ownsFree {
		b.freeIDs, b.ownsFree = slices.Clone(b.freeIDs), true
	}
	b.freeIDs = append(b.freeIDs, id)
	b.detached.remove(id)
	if n.tree != nil {
		b.stale[n.tree] = true
	}
}

// put adds a provider, or replaces its state unless the held state is newer.
func (b *builder) put(state *Provider) {
	provider := withSortedLists(*state)
	old := &node{provider: new(Provider)}
	id, ok := b.byUUID.get(provider.UUID)
	if ok {
		old = b.nodes.at(id)
		if old.provider.Version > provider.Version {
			return
		}
		provider.Root = old.provider.Root
	} else {
		id = b.newID()
		provider.Root = provider.UUID
		b.byUUID.set(b.edit, provider.UUID, id)
	}
	n := b.newNode(id, &provider)
	n.tree, n.index = old.tree, old.index
	b.isReshaped = b.isReshaped || !n.hasShapeOf(old)
	b.nodes.set(b.edit, id, n)
	if b.resources.at(id) != provider.ResourceRow {
		b.resources.set(b.edit, id, provider.ResourceRow)
	}
	b.reindex(old, n)
	if !ok || old.provider.Name != provider.Name {
		b.removeName(old)
		b.byName.set(b.edit, provider.Name, id)
	}
	if !ok || old.provider.Parent != provider.Parent {
		b.detached.add(id)
		if parent, ok := b.parentOf(&provider); ok {
			if t := b.nodes.at(parent).tree; t != nil {
				b.stale[t] = true
			}
		}
	}
	if n.tree != nil && (b.detached.has(id) || !slices.Equal(old.aggregates, n.aggregates)) {
		b.stale[n.tree] = true
	}
}

// hasShapeOf reports whether two states of a provider differ at most in the use
// of inventories and in fields that a search does not read.
func (n *node) hasShapeOf(old *node) bool {
	return n.provider.UUID == old.provider.UUID && n.provider.Parent == old.provider.Parent &&
		n.provider.ResourceRow == old.provider.ResourceRow && slices.Equal(n.traits, old.traits) &&
		slices.Equal(n.aggregates, old.aggregates) &&
		slices.EqualFunc(n.inventories, old.inventories, func(a, b nodeInventory) bool {
			a.free, b.free = 0, 0
			return a == b
		})
}

// parentOf returns the id of a provider's parent. It reports false if the
// provider has no parent or the parent is unknown.
func (b *builder) parentOf(p *Provider) (int32, bool) {
	if p.Parent == "" {
		return 0, false
	}
	return b.byUUID.get(p.Parent)
}

// withSortedLists returns the provider with its lists sorted. It copies only
// unsorted lists.
func withSortedLists(p Provider) Provider {
	byClass := func(a, b Inventory) int { return cmp.Compare(a.ResourceClass, b.ResourceClass) }
	if !slices.IsSortedFunc(p.Inventories, byClass) {
		p.Inventories = slices.SortedFunc(slices.Values(p.Inventories), byClass)
	}
	if !slices.IsSorted(p.Traits) {
		p.Traits = sortedSet(p.Traits)
	}
	if !slices.IsSorted(p.Aggregates) {
		p.Aggregates = sortedSet(p.Aggregates)
	}
	return p
}

// newID returns an unused id. It reuses ids of removed providers first, so that
// ids stay dense.
func (b *builder) newID() int32 {
	if last := len(b.freeIDs) - 1; last >= 0 {
		id := b.freeIDs[last]
		b.freeIDs = b.freeIDs[:last:last]
		return id
	}
	b.idLimit++
	return b.idLimit - 1
}

// removeName removes the name of a node, unless another provider has it now.
func (b *builder) removeName(n *node) {
	if n.provider.UUID == "" { // the provider is new and had no name
		return
	}
	if id, ok := b.byName.get(n.provider.Name); ok && id == n.id {
		b.byName.remove(b.edit, n.provider.Name)
	}
}

var stamps atomic.Uint64

func (b *builder) newNode(id int32, provider *Provider) *node {
	n := &node{
		provider:    provider,
		id:          id,
		stamp:       stamps.Add(1),
		hash:        hashOf(provider.UUID),
		traits:      b.traits.internAll(b.edit, provider.Traits),
		aggregates:  b.aggregates.internAll(b.edit, provider.Aggregates),
		sharing:     slices.Contains(provider.Traits, TraitShares),
		inventories: make([]nodeInventory, len(provider.Inventories)),
	}
	for i, inventory := range provider.Inventories {
		n.inventories[i] = nodeInventory{
			class:    b.classes.intern(b.edit, inventory.ResourceClass),
			free:     inventory.Free(),
			capacity: inventory.Capacity,
			minUnit:  inventory.MinUnit,
			maxUnit:  inventory.MaxUnit,
			stepSize: inventory.StepSize,
		}
	}
	return n
}

// reindex changes the sets and columns of traits, aggregates and classes from
// the old state of a node to the new one.
func (b *builder) reindex(old, n *node) {
	differences(old.traits, n.traits, func(trait int32, added bool) {
		members := b.traitMembers.at(trait)
		members.put(b.edit, n.id, added)
		b.traitMembers.set(b.edit, trait, members)
	})
	differences(old.aggregates, n.aggregates, func(id int32, added bool) {
		entry := b.aggregateIndex.at(id)
		entry.members.put(b.edit, n.id, added)
		b.aggregateIndex.set(b.edit, id, entry)
	})
	differences(old.sharedAggregates(), n.sharedAggregates(), func(id int32, added bool) {
		entry := b.aggregateIndex.at(id)
		entry.sharing = withMember(entry.sharing, n.id, added)
		b.aggregateIndex.set(b.edit, id, entry)
	})
	for i := range old.inventories {
		if class := old.inventories[i].class; n.inventoryOf(class) == nil {
			b.setColumn(class, n.id, 0, false)
		}
	}
	for i := range n.inventories {
		inventory := &n.inventories[i]
		before := old.inventoryOf(inventory.class)
		value, picky := inventory.columnValue(), inventory.isPicky()
		if before == nil || before.columnValue() != value || before.isPicky() != picky {
			b.setColumn(inventory.class, n.id, value, picky)
		}
	}
}

// sharedAggregates returns the aggregates of a sharing provider, nil for any
// other provider.
func (n *node) sharedAggregates() []int32 {
	if n.sharing {
		return n.aggregates
	}
	return nil
}

// columnValue returns the value for the column of the class: the largest amount
// that free units and maxUnit allow in one allocation, plus 1.
func (i *nodeInventory) columnValue() int64 {
	return max(0, min(i.free, int64(i.maxUnit))) + 1
}

// isPicky reports whether minUnit or stepSize may refuse an amount that free
// units and maxUnit allow.
func (i *nodeInventory) isPicky() bool { return i.minUnit > 1 || i.stepSize > 1 }

func (b *builder) setColumn(class, id int32, value int64, picky bool) {
	c := b.column(class)
	if c.free.owner != b.edit {
		c = &column{free: c.free}
		b.columns.set(b.edit, class, c)
	}
	c.free.set(b.edit, id, value)
	if set := b.picky.at(class); set.has(id) != picky {
		set.put(b.edit, id, picky)
		b.picky.set(b.edit, class, set)
	}
}

// differences calls yield for each element that only one of two sorted lists
// has; added is true for elements of the second list.
func differences(before, after []int32, yield func(element int32, added bool)) {
	for len(before) > 0 || len(after) > 0 {
		switch {
		case len(after) == 0 || len(before) > 0 && before[0] < after[0]:
			yield(before[0], false)
			before = before[1:]
		case len(before) == 0 || after[0] < before[0]:
			yield(after[0], true)
			after = after[1:]
		default:
			before, after = before[1:], after[1:]
		}
	}
}

// withMember returns the sorted list with the id added or removed. It does not
// modify the given list, which other Worlds may share.
func withMember(list []int32, id int32, member bool) []int32 {
	i, ok := slices.BinarySearch(list, id)
	switch {
	case ok == member:
		return list
	case member:
		return slices.Insert(slices.Clip(list), i, id)
	}
	return slices.Concat(list[:i], list[i+1:])
}

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
