package placement

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Difference explains the first difference between two worlds, "" if there is none: in names, in any field
// of any provider, in trees, or in what a world keeps beside its providers. It is for tests that compare a
// followed world with one built anew, and looks at everything.
func (w *World) Difference(other *World) string {
	if d := difference("traits", w.traitNames.keys(), other.traitNames.keys()); d != "" {
		return d
	}
	if d := difference("resource classes", w.classNames.keys(), other.classNames.keys()); d != "" {
		return d
	}
	if d := difference("uuids", w.byUUID.keys(), other.byUUID.keys()); d != "" {
		return d
	}
	if d := difference("names", w.byName.keys(), other.byName.keys()); d != "" {
		return d
	}
	for uuid, id := range w.byUUID.all() {
		theirs, _ := other.Provider(uuid)
		if d := w.nodes.at(id).provider.difference(theirs); d != "" {
			return fmt.Sprintf("provider %s: %s", uuid, d)
		}
	}
	if d := difference("roots", w.trees.keys(), other.trees.keys()); d != "" {
		return d
	}
	for root := range w.trees.all() {
		if d := difference("tree "+root, uuids(w.Tree(root)), uuids(other.Tree(root))); d != "" {
			return d
		}
	}
	if d := w.inconsistency(); d != "" {
		return "in the first: " + d
	}
	if d := other.inconsistency(); d != "" {
		return "in the second: " + d
	}
	return ""
}

func uuids(providers []*Provider) []string {
	list := make([]string, len(providers))
	for i, p := range providers {
		list[i] = p.UUID
	}
	return list
}

func difference(what string, a, b []string) string {
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(b):
			return fmt.Sprintf("%s: only the first has %s", what, a[i])
		case i >= len(a):
			return fmt.Sprintf("%s: only the second has %s", what, b[i])
		case a[i] != b[i]:
			return fmt.Sprintf("%s: the first has %s where the second has %s", what, a[i], b[i])
		}
	}
	return ""
}

// difference names the first field that differs. Empty and absent lists are equal, and so are the same
// instants.
func (p *Provider) difference(other *Provider) string {
	a, b := *p, *other
	if !a.CreatedAt.Equal(b.CreatedAt) || !a.UpdatedAt.Equal(b.UpdatedAt) {
		return fmt.Sprintf("created %v and %v, updated %v and %v", a.CreatedAt, b.CreatedAt, a.UpdatedAt, b.UpdatedAt)
	}
	b.CreatedAt, b.UpdatedAt = a.CreatedAt, a.UpdatedAt
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		mine, theirs := x.Field(i), y.Field(i)
		if mine.Kind() == reflect.Slice && mine.Len() == 0 && theirs.Len() == 0 {
			continue
		}
		if !reflect.DeepEqual(mine.Interface(), theirs.Interface()) {
			return fmt.Sprintf("%s is %v and %v", x.Type().Field(i).Name, mine.Interface(), theirs.Interface())
		}
	}
	return ""
}

// inconsistency compares everything derived with what the providers say.
func (w *World) inconsistency() string {
	members := map[string][]int32{} // by trait and aggregate
	sharers := map[string][]int32{}
	roots := map[string]map[string]bool{}
	rooms := map[string]map[int32]int64{}
	for uuid, id := range w.byUUID.all() {
		n := w.nodes.at(id)
		p := n.provider
		if n.id != id || p.UUID != uuid || n.tree == nil || n.tree.members[n.place] != id || p.Root != n.tree.root {
			return fmt.Sprintf("provider %s is out of place", uuid)
		}
		if held, found := w.byName.get(p.Name); !found || held != id {
			return fmt.Sprintf("the name %s of %s leads elsewhere", p.Name, uuid)
		}
		for _, trait := range p.Traits {
			members["trait "+trait] = append(members["trait "+trait], id)
		}
		for _, aggregate := range p.Aggregates {
			members["aggregate "+aggregate] = append(members["aggregate "+aggregate], id)
			if slices.Contains(p.Traits, TraitShares) {
				sharers[aggregate] = append(sharers[aggregate], id)
			}
			if roots[aggregate] == nil {
				roots[aggregate] = map[string]bool{}
			}
			roots[aggregate][p.Root] = true
		}
		for _, inventory := range p.Inventories {
			if rooms[inventory.ResourceClass] == nil {
				rooms[inventory.ResourceClass] = map[int32]int64{}
			}
			rooms[inventory.ResourceClass][id] = n.stock(w.classes.lookup(inventory.ResourceClass)).room()
		}
	}
	for root, t := range w.trees.all() {
		if t.root != root || !slices.Equal(t.ends, w.endsOf(t)) {
			return fmt.Sprintf("the tree of %s has wrong intervals", root)
		}
	}
	for name, id := range w.traits.ids.all() {
		set := w.traitMembers.at(id)
		if want := sortedIDs(members["trait "+name]); !slices.Equal(w.idsIn(&set), want) {
			return fmt.Sprintf("trait %s is on %v, kept are %v", name, want, w.idsIn(&set))
		}
	}
	for uuid, id := range w.aggregates.ids.all() {
		entry := w.aggregated.at(id)
		if want := sortedIDs(members["aggregate "+uuid]); !slices.Equal(w.idsIn(&entry.members), want) {
			return fmt.Sprintf("aggregate %s has %v, kept are %v", uuid, want, w.idsIn(&entry.members))
		}
		if want := sortedIDs(sharers[uuid]); !slices.Equal(entry.sharers, want) {
			return fmt.Sprintf("aggregate %s has the sharers %v, kept are %v", uuid, want, entry.sharers)
		}
		if want := slices.Sorted(maps.Keys(roots[uuid])); !slices.Equal(entry.roots.keys(), want) {
			return fmt.Sprintf("aggregate %s reaches %v, kept are %v", uuid, want, entry.roots.keys())
		}
	}
	for name, class := range w.classes.ids.all() {
		c := w.columns.at(class)
		for id := range w.limit {
			if got := c.rooms.at(id); got != rooms[name][id] {
				return fmt.Sprintf("the room of %s in %d is %d, kept is %d", name, id, rooms[name][id], got)
			}
		}
	}
	return ""
}

func sortedIDs(ids []int32) []int32 {
	slices.Sort(ids)
	return ids
}

func (w *World) idsIn(set *bitset) []int32 {
	var ids []int32
	for id := range w.limit {
		if set.has(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// endsOf works a tree's intervals out from the parents of its providers.
func (w *World) endsOf(t *tree) []int32 {
	ends := make([]int32, len(t.members))
	for place := range t.members {
		for at := int32(place); at >= 0; at = t.parents[at] {
			ends[at] = max(ends[at], int32(place)+1)
		}
	}
	return ends
}
