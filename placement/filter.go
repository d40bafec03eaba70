package placement

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
)

// ProviderFilter selects single providers. Only a provider's own inventories,
// traits and aggregates count, not the ones of sharing providers or of the
// root. All fields must hold; the zero value selects every provider.
type ProviderFilter struct {
	Name *string
	// UUIDs selects among these uuids; nil is no constraint, an empty list
	// selects nothing.
	UUIDs           []string
	InTree          string
	MemberOf        []AggregateFilter
	RequiredAll     []string
	RequiredAny     []string
	RequiredAnySets []TraitSet
	Forbidden       []string
	Resources       []Amount
	// Hosts selects the providers of the trees of some roots; nil means every
	// tree.
	Hosts *Hosts
	// Roots true selects the roots of trees, false selects all other providers.
	Roots *bool
	// HasClass selects providers with an inventory of the class.
	HasClass *string
	// Search selects providers whose name or uuid contains the string, ignoring
	// case. World.Filter does not implement it, because the World does not fold
	// strings; the caller must.
	Search *string
}

// Validate returns every problem of the filter's fields other than Name and
// Search, each at its path below path. Requiring and forbidding the same trait
// is valid and matches nothing, as for `GET /resource_providers` in the
// Placement reference.
func (f *ProviderFilter) Validate(w *World, path string) []Problem {
	v := validator{world: w}
	v.checkUUIDs(MaxFilterList, under(path, "uuids"), f.UUIDs)
	g := f.asGroup()
	v.checkConstraints(path, &g)
	if f.HasClass != nil {
		v.checkClass(under(path, "hasClass"), *f.HasClass)
	}
	return v.problems
}

// asGroup returns the suffixed group with the constraints of the filter.
func (f *ProviderFilter) asGroup() Group {
	return Group{
		Resources:       f.Resources,
		RequiredAll:     f.RequiredAll,
		RequiredAny:     f.RequiredAny,
		RequiredAnySets: f.RequiredAnySets,
		Forbidden:       f.Forbidden,
		MemberOf:        f.MemberOf,
		InTree:          f.InTree,
	}
}

// selects reports whether a provider meets Roots and HasClass, which a group of
// a request cannot express.
func (f *ProviderFilter) selects(n *node) bool {
	if f.Roots != nil && *f.Roots != (n.index == 0) {
		return false
	}
	return f.HasClass == nil ||
		slices.ContainsFunc(n.provider.Inventories, func(i Inventory) bool { return i.ResourceClass == *f.HasClass })
}

// Filter returns the providers that a valid filter selects, by name.
func (w *World) Filter(f ProviderFilter) []*Provider { return slices.Collect(w.FilterFrom(f, "")) }

// FilterFrom yields the providers that a valid filter selects, by name, from a
// name on.
func (w *World) FilterFrom(f ProviderFilter, name string) iter.Seq[*Provider] {
	g := f.asGroup()
	s := w.groupSlot(&g)
	p := &plan{world: w}
	hosts := w.linked(f.Hosts)
	var uuids map[string]bool
	if f.UUIDs != nil {
		uuids = map[string]bool{}
		for _, uuid := range f.UUIDs {
			uuids[canonicalOr(uuid)] = true
		}
	}

	ids := func(yield func(int32) bool) {
		for _, id := range w.byName.from(name) {
			if !yield(id) {
				return
			}
		}
	}
	if f.Name != nil || uuids != nil {
		ids = slices.Values(w.namedFrom(name, f.Name, uuids))
	}
	return func(yield func(*Provider) bool) {
		for id := range ids {
			n := w.nodes.at(id)
			if (uuids == nil || uuids[n.provider.UUID]) && hosts.has(n.tree.members[0]) &&
				f.selects(n) && p.serves(&s, n, n.tree) && !yield(n.provider) {
				return
			}
		}
	}
}

// namedFrom returns ids of providers, by name, from a name on: the provider
// named *one if one is not nil, otherwise the providers with the uuids.
func (w *World) namedFrom(name string, one *string, uuids map[string]bool) (ids []int32) {
	nameOf := func(id int32) string { return w.nodes.at(id).provider.Name }
	if one != nil {
		if id, ok := w.byName.get(*one); ok {
			ids = append(ids, id)
		}
	} else {
		for uuid := range uuids {
			if id, ok := w.byUUID.get(uuid); ok {
				ids = append(ids, id)
			}
		}
	}
	slices.SortFunc(ids, func(a, b int32) int { return cmp.Compare(nameOf(a), nameOf(b)) })
	return slices.DeleteFunc(ids, func(id int32) bool { return nameOf(id) < name })
}

// The fields of a ProviderOrder that compare inventories of a resource class.
const (
	OrderByFree      = "FREE"
	OrderByShareUsed = "SHARE_USED"
)

// ProviderOrder is the order of a list of providers.
type ProviderOrder struct {
	Field      string
	Descending bool
	// ResourceClass is the class whose inventories are compared, for OrderByFree
	// and OrderByShareUsed; else nil.
	ResourceClass *string
}

// ofClass reports whether the order compares inventories of a resource class.
func (o ProviderOrder) ofClass() bool {
	return o.Field == OrderByFree || o.Field == OrderByShareUsed
}

// Validate returns every problem of the order, each at its path below path: a
// class that is missing, unknown, or not allowed with the field.
func (o ProviderOrder) Validate(w *World, path string) []Problem {
	v := validator{world: w}
	path = under(path, "resourceClass")
	switch {
	case o.ofClass() && o.ResourceClass == nil:
		v.add(path, "is required to order by %s", o.Field)
	case o.ofClass():
		v.checkClass(path, *o.ResourceClass)
	case o.ResourceClass != nil:
		v.add(path, "is not allowed when ordering by %s", o.Field)
	}
	return v.problems
}

// Key returns a sort key for OrderByFree and OrderByShareUsed. Keys compare
// like the values, so a descending list reverses them. Providers without an
// inventory of the class, or with no capacity for a share, are last in either
// direction.
func (o ProviderOrder) Key(p *Provider) string {
	first, last := "0", "1"
	if o.Descending {
		first, last = last, first
	}
	for _, inventory := range p.Inventories {
		if inventory.ResourceClass != *o.ResourceClass {
			continue
		}
		number := uint64(inventory.Free()) ^ 1<<63 // sorts as the signed number does
		if o.Field == OrderByShareUsed {
			if inventory.Capacity <= 0 {
				return last
			}
			number = math.Float64bits(float64(inventory.Used) / float64(inventory.Capacity))
		}
		return fmt.Sprintf("%s%020d", first, number)
	}
	return last
}
