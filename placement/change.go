package placement

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// With is the World after a change. It costs what the change touches: the trees whose shape or aggregates
// changed, and one chunk of each list that a changed provider is in; a change of use alone leaves trees as
// they are. A state with a lower Version than the one held is ignored, so repeated and reordered news is
// harmless. A provider whose parent is unknown stands as a root until the parent arrives.
func (w *World) With(change Update) *World {
	next := *w
	b := &builder{World: &next, edit: new(edit), broken: map[*tree]bool{}, loose: map[int32]bool{}}
	for _, name := range change.Added.Traits {
		b.traitNames.set(b.edit, name, true)
	}
	for _, name := range change.Added.ResourceClasses {
		b.classNames.set(b.edit, name, true)
	}
	for _, name := range change.Removed.Traits {
		b.traitNames.remove(b.edit, name)
	}
	for _, name := range change.Removed.ResourceClasses {
		b.classNames.remove(b.edit, name)
	}
	for _, uuid := range change.Deleted {
		b.remove(uuid)
	}
	for i := range change.Providers {
		b.put(&change.Providers[i])
	}
	b.rebuild()
	return b.World
}

// builder is a World being made.
type builder struct {
	*World
	edit   *edit
	broken map[*tree]bool // trees to be built again
	loose  map[int32]bool // providers in no tree yet
}

// remove takes a provider out; children it may have left become roots.
func (u *builder) remove(uuid string) {
	id, found := u.byUUID.get(uuid)
	if !found {
		return
	}
	n := u.nodes.at(id)
	u.reindex(n, &node{provider: new(Provider), id: id})
	u.byUUID.remove(u.edit, uuid)
	u.unname(n)
	u.nodes.set(u.edit, id, nil)
	u.vacant = append(slices.Clip(u.vacant), id)
	delete(u.loose, id)
	if n.tree != nil {
		u.broken[n.tree] = true
	}
}

// put brings a provider's new state in.
func (u *builder) put(state *Provider) {
	provider := *state
	if !slices.IsSortedFunc(provider.Inventories, compareInventories) {
		provider.Inventories = slices.Clone(provider.Inventories)
		slices.SortFunc(provider.Inventories, compareInventories)
	}
	if !slices.IsSorted(provider.Traits) {
		provider.Traits = sortedSet(provider.Traits)
	}
	if !slices.IsSorted(provider.Aggregates) {
		provider.Aggregates = sortedSet(provider.Aggregates)
	}

	id, known := u.byUUID.get(provider.UUID)
	old := &node{provider: new(Provider)}
	if known {
		old = u.nodes.at(id)
		if old.provider.Version > provider.Version {
			return
		}
		provider.Root = old.provider.Root
	} else {
		id = u.take()
		provider.Root = provider.UUID
		u.byUUID.set(u.edit, provider.UUID, id)
	}
	n := u.node(id, &provider)
	n.tree, n.place = old.tree, old.place
	u.nodes.set(u.edit, id, n)
	u.reindex(old, n)
	if old.provider.Name != provider.Name || !known {
		u.unname(old)
		u.byName.set(u.edit, provider.Name, id)
	}
	if !known || old.provider.Parent != provider.Parent {
		u.loose[id] = true
		if parent, found := u.byUUID.get(provider.Parent); found {
			if t := u.nodes.at(parent).tree; t != nil {
				u.broken[t] = true
			}
		}
	}
	if n.tree != nil && (u.loose[id] || !slices.Equal(old.aggregates, n.aggregates)) {
		u.broken[n.tree] = true
	}
}

func compareInventories(a, b Inventory) int { return cmp.Compare(a.ResourceClass, b.ResourceClass) }

// take gives out a dense id.
func (u *builder) take() int32 {
	if last := len(u.vacant) - 1; last >= 0 {
		id := u.vacant[last]
		u.vacant = u.vacant[:last:last]
		return id
	}
	u.limit++
	return u.limit - 1
}

// unname takes the node's name out, unless it already is another's.
func (u *builder) unname(n *node) {
	if id, found := u.byName.get(n.provider.Name); found && id == n.id && n.provider.UUID != "" {
		u.byName.remove(u.edit, n.provider.Name)
	}
}

// node makes the decision's view of a provider.
func (u *builder) node(id int32, provider *Provider) *node {
	n := &node{
		provider:   provider,
		id:         id,
		traits:     make([]int32, len(provider.Traits)),
		aggregates: make([]int32, len(provider.Aggregates)),
		stocks:     make([]stock, len(provider.Inventories)),
	}
	for i, name := range provider.Traits {
		n.traits[i] = u.traits.intern(u.edit, name)
		n.sharing = n.sharing || name == TraitShares
	}
	slices.Sort(n.traits)
	for i, uuid := range provider.Aggregates {
		n.aggregates[i] = u.aggregates.intern(u.edit, uuid)
	}
	slices.Sort(n.aggregates)
	for i, inventory := range provider.Inventories {
		n.stocks[i] = stock{
			class:    u.classes.intern(u.edit, inventory.ResourceClass),
			free:     inventory.Free(),
			minUnit:  int64(inventory.MinUnit),
			maxUnit:  int64(inventory.MaxUnit),
			stepSize: int64(inventory.StepSize),
		}
	}
	return n
}

// reindex moves the traits, aggregates and columns from a node's old state to its new one.
func (u *builder) reindex(old, n *node) {
	differences(old.traits, n.traits, func(trait int32, member bool) {
		members := u.traitMembers.at(trait)
		members.put(u.edit, n.id, member)
		u.traitMembers.set(u.edit, trait, members)
	})
	differences(old.aggregates, n.aggregates, func(id int32, member bool) {
		entry := u.aggregated.at(id)
		entry.members.put(u.edit, n.id, member)
		u.aggregated.set(u.edit, id, entry)
	})
	oldShares, shares := old.aggregates, n.aggregates
	if !old.sharing {
		oldShares = nil
	}
	if !n.sharing {
		shares = nil
	}
	differences(oldShares, shares, func(id int32, shares bool) {
		entry := u.aggregated.at(id)
		if shares {
			entry.sharers = insertSorted(entry.sharers, n.id)
		} else {
			entry.sharers = removeSorted(entry.sharers, n.id)
		}
		u.aggregated.set(u.edit, id, entry)
	})
	for i := range old.stocks {
		if n.stock(old.stocks[i].class) == nil {
			u.setRoom(old.stocks[i].class, n.id, 0)
		}
	}
	for i := range n.stocks {
		room := n.stocks[i].room()
		if before := old.stock(n.stocks[i].class); before == nil || before.room() != room {
			u.setRoom(n.stocks[i].class, n.id, room)
		}
	}
}

func (s *stock) room() int64 { return max(0, min(s.free, math.MaxInt64-1)) + 1 }

func (u *builder) setRoom(class, id int32, room int64) {
	c := u.columns.at(class)
	c.rooms.set(u.edit, id, room)
	u.columns.set(u.edit, class, c)
}

// differences calls what for each element that is only in the old sorted list (false) or the new (true).
func differences(old, new []int32, what func(element int32, added bool)) {
	for len(old) > 0 || len(new) > 0 {
		switch {
		case len(new) == 0 || len(old) > 0 && old[0] < new[0]:
			what(old[0], false)
			old = old[1:]
		case len(old) == 0 || new[0] < old[0]:
			what(new[0], true)
			new = new[1:]
		default:
			old, new = old[1:], new[1:]
		}
	}
}

// rebuild makes the trees anew whose shape or aggregates changed.
func (u *builder) rebuild() {
	for _, id := range u.orphans {
		if n := u.nodes.at(id); n != nil && n.tree != nil && len(u.loose) > 0 && u.byUUID.has(n.provider.Parent) {
			u.broken[n.tree] = true
		}
	}
	if len(u.broken) == 0 && len(u.loose) == 0 {
		return
	}
	loose := u.loose
	for t := range u.broken {
		u.trees.remove(u.edit, t.root)
		for _, id := range t.aggregates {
			entry := u.aggregated.at(id)
			entry.roots.remove(u.edit, t.root)
			u.aggregated.set(u.edit, id, entry)
		}
		for _, id := range t.members {
			if u.nodes.at(id) != nil {
				loose[id] = true
			}
		}
	}

	members := slices.SortedFunc(maps.Keys(loose), func(a, b int32) int {
		return cmp.Compare(u.nodes.at(a).provider.UUID, u.nodes.at(b).provider.UUID)
	})
	children := make(map[int32][]int32, len(members))
	var roots, orphans []int32
	for _, id := range members { // by uuid, hence children by uuid
		provider := u.nodes.at(id).provider
		if parent, found := u.byUUID.get(provider.Parent); found && parent != id {
			children[parent] = append(children[parent], id)
			continue
		}
		roots = append(roots, id)
		if provider.Parent != "" {
			orphans = append(orphans, id)
		}
	}
	for _, root := range roots {
		u.plant(root, children, loose)
	}
	for _, id := range members { // what is left are loops, which no store should send; break them
		if loose[id] {
			orphans = append(orphans, id)
			u.plant(id, children, loose)
		}
	}
	for _, id := range u.orphans {
		if n := u.nodes.at(id); n != nil && n.provider.Parent != "" && n.place == 0 && !slices.Contains(orphans, id) {
			orphans = append(orphans, id)
		}
	}
	slices.Sort(orphans)
	u.orphans = orphans
}

// plant builds the tree below a root out of loose providers.
func (u *builder) plant(root int32, children map[int32][]int32, loose map[int32]bool) {
	t := &tree{root: u.nodes.at(root).provider.UUID}
	type visit struct{ id, parent int32 }
	stack := []visit{{root, -1}}
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if !loose[v.id] {
			continue
		}
		delete(loose, v.id)
		place := int32(len(t.members))
		t.members = append(t.members, v.id)
		t.parents = append(t.parents, v.parent)
		n := *u.nodes.at(v.id)
		n.tree, n.place = t, place
		if n.provider.Root != t.root {
			provider := *n.provider
			provider.Root = t.root
			n.provider = &provider
		}
		u.nodes.set(u.edit, v.id, &n)
		t.aggregates = append(t.aggregates, n.aggregates...)
		for _, child := range slices.Backward(children[v.id]) {
			stack = append(stack, visit{child, place})
		}
	}
	t.ends = make([]int32, len(t.members))
	for place := int32(len(t.members)) - 1; place >= 0; place-- {
		t.ends[place] = max(t.ends[place], place+1)
		if parent := t.parents[place]; parent >= 0 {
			t.ends[parent] = max(t.ends[parent], t.ends[place])
		}
	}
	slices.Sort(t.aggregates)
	t.aggregates = slices.Compact(t.aggregates)
	u.trees.set(u.edit, t.root, t)
	for _, id := range t.aggregates {
		entry := u.aggregated.at(id)
		entry.roots.set(u.edit, t.root, root)
		u.aggregated.set(u.edit, id, entry)
	}
}
