package placement

import (
	"fmt"
	"maps"
	"slices"
)

// Inconsistency returns the first difference between the indexes of a world and
// its providers, "" if there is none.
func (w *World) Inconsistency() string {
	for _, check := range []func() string{w.wrongNodes, w.wrongTrees, w.wrongTraits,
		w.wrongAggregates, w.wrongColumns} {
		if wrong := check(); wrong != "" {
			return wrong
		}
	}
	return ""
}

func (w *World) wrongNodes() string {
	for uuid, id := range w.byUUID.all() {
		n := w.nodes.at(id)
		p := n.provider
		if n.id != id || p.UUID != uuid || n.tree == nil || n.tree.members[n.index] != id || p.Root != n.tree.root {
			return fmt.Sprintf("provider %s is out of place", uuid)
		}
		if w.rootOf.at(id) != n.tree.members[0]+1 {
			return fmt.Sprintf("the root of %s is kept as %d", uuid, w.rootOf.at(id)-1)
		}
		if named, ok := w.byName.get(p.Name); !ok || named != id {
			return fmt.Sprintf("the name %s of %s leads to another provider", p.Name, uuid)
		}
	}
	if w.byName.size != w.byUUID.size {
		return fmt.Sprintf("%d names of %d providers", w.byName.size, w.byUUID.size)
	}
	return ""
}

// wrongTrees compares trees with intervals computed from the parents of
// providers.
func (w *World) wrongTrees() string {
	for root, t := range w.trees.all() {
		ends := make([]int32, len(t.members))
		for i := range t.members {
			for above := int32(i); above >= 0; above = t.parents[above] {
				ends[above] = max(ends[above], int32(i)+1)
			}
		}
		if t.root != root || !slices.Equal(t.ends, ends) {
			return fmt.Sprintf("the tree of %s has wrong intervals", root)
		}
	}
	return ""
}

func (w *World) wrongTraits() string {
	for name, trait := range w.traits.ids.all() {
		set := w.traitMembers.at(trait)
		want := w.idsOf(func(p *Provider) bool { return slices.Contains(p.Traits, name) })
		if got := w.idsIn(&set); !slices.Equal(got, want) {
			return fmt.Sprintf("trait %s is on %v, kept are %v", name, want, got)
		}
	}
	return ""
}

func (w *World) wrongAggregates() string {
	for uuid, id := range w.aggregates.ids.all() {
		entry := w.aggregateIndex.at(id)
		isMember := func(p *Provider) bool { return slices.Contains(p.Aggregates, uuid) }
		if want, got := w.idsOf(isMember), w.idsIn(&entry.members); !slices.Equal(got, want) {
			return fmt.Sprintf("aggregate %s has %v, kept are %v", uuid, want, got)
		}
		sharing := w.idsOf(func(p *Provider) bool { return isMember(p) && slices.Contains(p.Traits, TraitShares) })
		if !slices.Equal(entry.sharing, sharing) {
			return fmt.Sprintf("aggregate %s has the sharing providers %v, kept are %v", uuid, sharing, entry.sharing)
		}
		roots := map[string]bool{}
		for p := range w.Providers() {
			if isMember(p) {
				roots[p.Root] = true
			}
		}
		if want := slices.Sorted(maps.Keys(roots)); !slices.Equal(entry.roots.keys(), want) {
			return fmt.Sprintf("aggregate %s reaches %v, kept are %v", uuid, want, entry.roots.keys())
		}
	}
	return ""
}

func (w *World) wrongColumns() string {
	for name, class := range w.classes.ids.all() {
		c, kept := w.column(class), w.picky.at(class)
		for id := range w.idLimit {
			var want int64
			picky := false
			n := w.nodes.at(id)
			if n != nil {
				if i := slices.IndexFunc(n.provider.Inventories, func(i Inventory) bool {
					return i.ResourceClass == name
				}); i >= 0 {
					inventory := n.provider.Inventories[i]
					want = max(0, min(inventory.Free(), int64(inventory.MaxUnit))) + 1
					picky = inventory.MinUnit > 1 || inventory.StepSize > 1
				}
			}
			if got := c.free.at(id); got != want || kept.has(id) != picky {
				return fmt.Sprintf("the column of %s in %d is %d, picky %v, kept is %d, picky %v",
					name, id, want, picky, got, kept.has(id))
			}
			if n == nil && w.rootOf.at(id) != 0 {
				return fmt.Sprintf("the root of nobody in %d is kept as %d", id, w.rootOf.at(id)-1)
			}
		}
	}
	return ""
}

// idsOf returns the ids of the providers for which has holds.
func (w *World) idsOf(has func(p *Provider) bool) []int32 {
	var ids []int32
	for id := range w.idLimit {
		if n := w.nodes.at(id); n != nil && has(n.provider) {
			ids = append(ids, id)
		}
	}
	return ids
}

// idsIn returns the ids in a set.
func (w *World) idsIn(set *bitset) []int32 {
	var ids []int32
	for id := range w.idLimit {
		if set.words.at(id/64)&(1<<(id%64)) != 0 {
			ids = append(ids, id)
		}
	}
	return ids
}
