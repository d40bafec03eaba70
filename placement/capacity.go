package placement

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// CapacityGrouping selects how sums of capacity are grouped, in addition to the
// resource class.
type CapacityGrouping string

// The groupings. A provider counts once in the group of each of its aggregates
// or traits. A provider that has none counts in a group with a nil key.
const (
	CapacityByClass     CapacityGrouping = "RESOURCE_CLASS" // by resource class alone
	CapacityByAggregate CapacityGrouping = "AGGREGATE"
	CapacityByTrait     CapacityGrouping = "TRAIT"
	CapacityByRoot      CapacityGrouping = "ROOT" // one group per tree

	// capacityByRootAggregate groups whole trees by the aggregates of the root.
	// Only the capacity history has this grouping.
	capacityByRootAggregate CapacityGrouping = "ROOT_AGGREGATE"
)

// CapacitySum is the total of several providers' inventories of one resource
// class. Sums saturate at the bounds of int64.
type CapacitySum struct {
	ResourceClass string
	// Aggregate, Trait or Root is the group of the providers. All three are nil
	// for the group of providers without aggregate or trait, and for
	// CapacityByClass.
	Aggregate *string
	Trait     *string
	Root      *Provider

	Total     int64
	Reserved  int64
	Capacity  int64
	Used      int64
	Free      int64    // capacity less used; negative if more is used
	ShareUsed *float64 // used divided by capacity; nil if the capacity is 0
	Providers int      // number of providers with an inventory of the class
}

// Group returns the key that groups are ordered by: an aggregate, a trait or
// the name of a root, or "" for none.
func (c *CapacitySum) Group() string {
	switch {
	case c.Aggregate != nil:
		return *c.Aggregate
	case c.Trait != nil:
		return *c.Trait
	case c.Root != nil:
		return c.Root.Name
	}
	return ""
}

type capacityKey struct{ group, class string }

// classSum adds up inventories of one class.
type classSum struct {
	total, reserved, capacity, used, free wideSum
	providers                             int
}

// Capacities sums the inventories of providers, by group and class, and returns
// the sums in the order of group, then class. Nil classes mean all resource
// classes.
func (w *World) Capacities(providers []*Provider, by CapacityGrouping, classes []string) []*CapacitySum {
	wanted := map[string]bool{}
	for _, class := range classes {
		wanted[class] = true
	}
	sums := map[capacityKey]*classSum{}
	for _, provider := range providers {
		groups := w.groupsOf(provider, by)
		for _, inventory := range provider.Inventories {
			if classes != nil && !wanted[inventory.ResourceClass] {
				continue
			}
			for _, group := range groups {
				key := capacityKey{group, inventory.ResourceClass}
				sum := sums[key]
				if sum == nil {
					sum = &classSum{}
					sums[key] = sum
				}
				sum.add(inventory)
			}
		}
	}
	capacities := make([]*CapacitySum, 0, len(sums))
	for key, sum := range sums {
		capacities = append(capacities, sum.of(w, by, key))
	}
	slices.SortFunc(capacities, compareSums)
	return capacities
}

// compareSums orders sums of one grouping by group, then class.
func compareSums(a, b *CapacitySum) int {
	return cmp.Or(cmp.Compare(a.Group(), b.Group()), cmp.Compare(a.ResourceClass, b.ResourceClass))
}

// hasAmountsOf reports whether two sums have equal amounts.
func (c *CapacitySum) hasAmountsOf(other *CapacitySum) bool {
	return c.Total == other.Total && c.Reserved == other.Reserved && c.Capacity == other.Capacity &&
		c.Used == other.Used && c.Providers == other.Providers
}

// groupsOf returns the keys of the groups that a provider counts in: one "" if
// it has no aggregate or trait, and for CapacityByClass.
func (w *World) groupsOf(provider *Provider, by CapacityGrouping) []string {
	var groups []string
	switch by {
	case CapacityByAggregate:
		groups = provider.Aggregates
	case CapacityByTrait:
		groups = provider.Traits
	case CapacityByRoot:
		groups = []string{provider.Root}
	case capacityByRootAggregate:
		if root, ok := w.Provider(provider.Root); ok {
			groups = root.Aggregates
		}
	}
	if len(groups) == 0 {
		return []string{""}
	}
	return groups
}

func (s *classSum) add(inventory Inventory) {
	s.total.add(int64(inventory.Total))
	s.reserved.add(int64(inventory.Reserved))
	s.capacity.add(inventory.Capacity)
	s.used.add(inventory.Used)
	s.free.add(inventory.Free())
	s.providers++
}

// of returns the sum as a CapacitySum, with the group of the key.
func (s *classSum) of(w *World, by CapacityGrouping, key capacityKey) *CapacitySum {
	c := &CapacitySum{ResourceClass: key.class, Total: s.total.int64(),
		Reserved: s.reserved.int64(), Capacity: s.capacity.int64(),
		Used: s.used.int64(), Free: s.free.int64(), Providers: s.providers}
	if capacity := s.capacity.float64(); capacity > 0 {
		share := s.used.float64() / capacity
		c.ShareUsed = &share
	}
	switch {
	case key.group == "":
	case by == CapacityByAggregate, by == capacityByRootAggregate:
		c.Aggregate = &key.group
	case by == CapacityByTrait:
		c.Trait = &key.group
	case by == CapacityByRoot:
		c.Root, _ = w.Provider(key.group)
	}
	return c
}

// TreeCapacities sums the inventories of a provider and all its descendants, by
// resource class; nil for an unknown uuid.
func (w *World) TreeCapacities(uuid string) []*CapacitySum {
	id, ok := w.byUUID.get(uuid)
	if !ok {
		return nil
	}
	n := w.nodes.at(id)
	var providers []*Provider
	for _, member := range n.tree.members[n.index:n.tree.ends[n.index]] {
		providers = append(providers, w.nodes.at(member).provider)
	}
	return w.Capacities(providers, CapacityByClass, nil)
}

// ValidateClasses returns every problem of a list of resource classes: too many
// names for a filter, and names that are malformed or do not exist.
func ValidateClasses(w *World, path string, names []string) []Problem {
	v := validator{world: w}
	v.atMost(MaxFilterList, path, len(names))
	for i, name := range names {
		v.checkClass(at(path, i), name)
	}
	return v.problems
}

// wideSum is a sum of int64s in 128 bits, which cannot overflow.
type wideSum struct {
	high int64
	low  uint64
}

func (s *wideSum) add(n int64) {
	low, carry := bits.Add64(s.low, uint64(n), 0)
	s.low, s.high = low, s.high+n>>63+int64(carry)
}

// int64 returns the sum, saturated at the bounds of int64.
func (s wideSum) int64() int64 {
	switch {
	case s.high == int64(s.low)>>63:
		return int64(s.low)
	case s.high < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}

func (s wideSum) float64() float64 { return float64(s.high)*(1<<64) + float64(s.low) }
