package placement

import (
	"cmp"
	"slices"
)

// MaxNearest is the maximum number of near misses of an explanation.
const MaxNearest = 5

// NearMiss is a tree that lacks little to serve a request, counting the
// providers that share with it. Traits lists the missing required traits,
// including those missing on the root and every trait of an any-of set.
type NearMiss struct {
	Provider *Provider // the root
	Missing  []Shortage
	Traits   []string
}

// Shortage is the number of units of a class that are missing on the provider
// that lacks least for a slot.
type Shortage struct {
	ResourceClass string
	Short         int64
}

// nearestMisses returns the trees that lack least, at most MaxNearest: by
// number of missing things, then of units, then by the root's uuid. It omits
// trees that more units and traits would not help, because forbidden traits,
// aggregates or inTree exclude them. It computes how much is missing for all
// trees together, and lists the missing things for the returned trees alone.
func (e *explainer) nearestMisses(r *Request, p *plan, slots []servers) []NearMiss {
	f := &missFinder{search: newSearch(p), relaxed: compile(e.World, r.relaxed()),
		request: r, groups: bySuffix(r.Groups)}
	misses := []NearMiss{}
	for _, root := range e.nearestRoots(f, slots) {
		if miss, ok := f.missOfTree(e.nodes.at(root).tree); ok {
			misses = append(misses, miss)
		}
	}
	return misses
}

// relaxed returns the request without required traits. Its slots and the taints
// that it tolerates are the same.
func (r *Request) relaxed() *Request {
	relax := func(g Group) Group {
		g.RequiredAll, g.RequiredAny, g.RequiredAnySets = nil, nil, nil
		return g
	}
	relaxed := *r
	relaxed.Tolerates, relaxed.RootRequired = r.tolerated(), nil
	relaxed.Unsuffixed = relax(r.Unsuffixed)
	relaxed.Groups = make([]Group, len(r.Groups))
	for i := range r.Groups {
		relaxed.Groups[i] = relax(r.Groups[i])
	}
	return &relaxed
}

// things returns the number of classes and traits that are missing.
func (m *NearMiss) things() int { return len(m.Missing) + len(m.Traits) }

// units returns the number of units that are missing, over all classes.
func (m *NearMiss) units() int64 {
	var units int64
	for _, shortage := range m.Missing {
		units += shortage.Short
	}
	return units
}

func compareMisses(a, b NearMiss) int {
	return cmp.Or(cmp.Compare(a.things(), b.things()), cmp.Compare(a.units(), b.units()))
}

// missFinder computes what trees lack. Relaxed is the plan of the request
// without required traits, groups are the suffixed groups in slot order.
type missFinder struct {
	*search
	relaxed *plan
	request *Request
	groups  []Group
	able    []*node // reused from slot to slot
}

// missOfTree returns the things missing from an anchor's tree and its sharing
// providers. It reports false if more units and traits would not help.
func (f *missFinder) missOfTree(anchor *providerTree) (NearMiss, bool) {
	miss := NearMiss{Provider: f.world.nodes.at(anchor.members[0]).provider}
	for _, trait := range f.request.RootRequired {
		if !slices.Contains(miss.Provider.Traits, trait) {
			miss.Traits = append(miss.Traits, trait)
		}
	}
	f.listAllOptions(anchor)
	met := make([]bool, len(f.clauses))
	for i := range f.slots {
		if !f.addMissOfSlot(i, anchor, &miss) {
			return miss, false
		}
		if f.slots[i].unsuffixed {
			for c, clause := range f.clauses {
				met[c] = met[c] ||
					slices.ContainsFunc(f.able, func(n *node) bool { return intersects(clause, n.traits) })
			}
		}
	}
	if f.classSlots > 0 {
		for c, clause := range f.request.Unsuffixed.clauses() {
			if !met[c] {
				miss.Traits = append(miss.Traits, clause...)
			}
		}
	}
	slices.SortFunc(miss.Missing, func(a, b Shortage) int {
		return cmp.Or(cmp.Compare(a.ResourceClass, b.ResourceClass), cmp.Compare(a.Short, b.Short))
	})
	miss.Traits = sortedSet(miss.Traits)
	return miss, true
}

// addMissOfSlot adds the things missing for a slot. It sets able to the
// providers that serve the slot or, if none does, that could with more units
// and traits. It reports false if able is empty.
func (f *missFinder) addMissOfSlot(i int, anchor *providerTree, miss *NearMiss) bool {
	f.able = f.able[:0]
	for _, o := range f.options[i] {
		f.able = append(f.able, o.node)
	}
	if len(f.able) > 0 {
		return true
	}
	slot := f.relaxed.slots[i]
	slot.demands = nil
	for _, id := range anchor.members {
		if n := f.world.nodes.at(id); f.relaxed.serves(&slot, n, anchor) {
			f.able = append(f.able, n)
		}
	}
	for _, n := range f.world.sharingWith(anchor) {
		if n.tree != anchor && f.relaxed.serves(&slot, n, anchor) {
			f.able = append(f.able, n)
		}
	}
	if len(f.able) == 0 {
		return false
	}
	misses := make([]NearMiss, len(f.able))
	for k, n := range f.able {
		misses[k] = f.missOfProvider(n, i)
	}
	least := slices.MinFunc(misses, compareMisses)
	miss.Missing = append(miss.Missing, least.Missing...)
	miss.Traits = append(miss.Traits, least.Traits...)
	return true
}

// missOfProvider returns the things that a provider lacks for a slot.
func (f *missFinder) missOfProvider(n *node, i int) NearMiss {
	var miss NearMiss
	for _, d := range f.slots[i].demands {
		if short := d.amount - n.inventoryOf(d.class).available(d.amount); short > 0 {
			miss.Missing = append(miss.Missing, Shortage{ResourceClass: d.name, Short: short})
		}
	}
	if i >= f.classSlots {
		for _, clause := range f.groups[i-f.classSlots].clauses() {
			if !n.provider.hasAnyTrait(clause) {
				miss.Traits = append(miss.Traits, clause...)
			}
		}
	}
	return miss
}

// available returns the largest amount up to the one asked that the inventory,
// which may be nil, can take.
func (i *nodeInventory) available(amount int64) int64 {
	if i == nil {
		return 0
	}
	available := min(amount, i.free, int64(i.maxUnit))
	if i.stepSize > 1 {
		available -= available % int64(i.stepSize)
	}
	if available < int64(i.minUnit) {
		return 0
	}
	return available
}
