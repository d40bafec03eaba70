package placement

import (
	"cmp"
	"slices"
)

// Filter selects the providers that meet a valid filter, each judged alone, by name.
func (w *World) Filter(f ProviderFilter) []*Provider {
	g := f.group()
	s := slot{
		demands: w.demands(g.Resources),
		allowed: w.alone(g.clauses(), g.Forbidden, g.MemberOf),
		bound:   g.InTree != "",
		tree:    w.treeOf(g.InTree),
	}
	p := &plan{world: w}
	var uuids map[string]bool
	if f.UUIDs != nil {
		uuids = map[string]bool{}
		for _, uuid := range f.UUIDs {
			uuids[canonicalOr(uuid)] = true
		}
	}

	var selected []*Provider
	consider := func(id int32) {
		n := w.nodes.at(id)
		if (uuids == nil || uuids[n.provider.UUID]) && p.serves(&s, n, n.tree) {
			selected = append(selected, n.provider)
		}
	}
	switch {
	case f.Name != nil:
		if id, found := w.byName.get(*f.Name); found {
			consider(id)
		}
	case uuids != nil:
		for uuid := range uuids {
			if id, found := w.byUUID.get(uuid); found {
				consider(id)
			}
		}
		slices.SortFunc(selected, func(a, b *Provider) int { return cmp.Compare(a.Name, b.Name) })
	default:
		for _, id := range w.byName.all() {
			consider(id)
		}
	}
	return selected
}
