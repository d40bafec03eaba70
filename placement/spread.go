package placement

import (
	"iter"
	"slices"
)

// ZoneSpread spreads consumers over zones. Exactly one of Aggregates, Capability
// and Level is set. It follows `ZoneSpreadInput`.
//
// With Aggregates, a host is in a zone if any provider of its tree is in the
// aggregate. With Capability, it is in the zones of the values that its resource
// has. With Level, consumers are in the zones above their providers. A candidate
// in no zone is not allowed.
type ZoneSpread struct {
	Aggregates []string // the zones
	Capability *string
	// Values are the zones of Capability; nil means all of HostValues.
	Values []string
	// HostValues has the values of Capability by the row id of the resource
	// that a root is linked to. The caller looks them up.
	HostValues map[int64][]string
	// Level is a depth in trees, 0 for roots. The zones are the providers there
	// that have, themselves or below, an inventory of a class of the request.
	// Inventories of sharing providers do not count. A consumer is in the zones
	// that are its providers or above them, without sharing providers. Under
	// SameHost, once the consumers are on one host, only its zones count.
	Level *int
	// Shares are the target shares of the named zones; empty means that all are 1.
	Shares []int
	// MaxSkew limits the number of consumers in each zone of the candidate, with the
	// one to place, less the least number in any zone before. Both are divided by
	// the shares of their zones.
	MaxSkew int
}

func (s *ZoneSpread) share(zone int) int {
	if len(s.Shares) == 0 {
		return 1
	}
	return s.Shares[zone]
}

func (v *validator) checkSpread(path string, s *ZoneSpread) {
	given := 0
	if s.Aggregates != nil {
		v.require(len(s.Aggregates) > 0, under(path, "aggregates"), "must name at least one aggregate")
		v.checkDistinctUUIDs(MaxZones, under(path, "aggregates"), s.Aggregates)
		given++
	}
	if s.Capability != nil {
		given++
	}
	if s.Level != nil {
		v.require(0 <= *s.Level && *s.Level <= MaxLevel, under(path, "level"), "must be between 0 and 100")
		given++
	}
	v.require(given == 1, path, "must have exactly one of aggregates, capability and level")
	v.require(len(s.Values) == 0 || s.Capability != nil, under(path, "values"), "must be absent without capability")
	v.require(s.Values == nil || len(s.Values) > 0, under(path, "values"), "must name at least one value")
	v.atMost(MaxZones, under(path, "values"), len(s.Values))
	seen := map[string]bool{}
	for i, value := range s.Values {
		v.duplicate(seen, at(under(path, "values"), i), "duplicate value %q", value)
	}
	v.require(len(s.Shares) == 0 || len(s.Shares) == len(s.Aggregates)+len(s.Values), under(path, "shares"),
		"must have one entry for each of aggregates or values")
	for i, share := range s.Shares {
		v.require(1 <= share && share <= MaxShare, at(under(path, "shares"), i), "must be between 1 and 1000")
	}
	v.require(1 <= s.MaxSkew && s.MaxSkew <= MaxSkew, under(path, "maxSkew"), "must be between 1 and 1000")
}

// zones are the numbered zones of a spread in one world.
type zones struct {
	world   *World
	spread  *ZoneSpread
	size    int
	members []mask         // of Aggregates: the roots
	numbers map[string]int // of Capability: by value
	tops    map[int32]int  // of Level: by the id of a provider
	hosts   []int32        // of Level: the root of each zone
}

// zonesOf returns the zones of a valid spread for a request.
func (w *World) zonesOf(spread *ZoneSpread, r *Request) *zones {
	z := &zones{world: w, spread: spread}
	switch {
	case spread.Level != nil:
		z.findTops(r)
		z.size = len(z.hosts)
	case spread.Capability != nil:
		z.numbers = map[string]int{}
		for _, value := range spread.Values {
			z.numbers[value] = len(z.numbers)
		}
		if len(spread.Values) == 0 {
			z.numberAll()
		}
		z.size = len(z.numbers)
	default:
		for _, aggregate := range spread.Aggregates {
			z.members = append(z.members, w.rootsWith(Preference{Aggregate: aggregate}))
		}
		z.size = len(z.members)
	}
	return z
}

// numberAll numbers all values of hosts.
func (z *zones) numberAll() {
	for _, values := range z.spread.HostValues {
		for _, value := range values {
			if _, ok := z.numbers[value]; !ok {
				z.numbers[value] = len(z.numbers)
			}
		}
	}
}

// findTops finds the zones of a level.
func (z *zones) findTops(r *Request) {
	z.tops = map[int32]int{}
	for _, name := range r.classes() {
		free := z.world.column(z.world.classes.lookup(name)).free
		for id := range z.world.idLimit {
			if free.at(id) == 0 || z.world.nodes.at(id).sharing {
				continue
			}
			top, ok := z.world.above(z.world.nodes.at(id), *z.spread.Level)
			if _, known := z.tops[top]; ok && !known {
				z.tops[top] = len(z.hosts)
				z.hosts = append(z.hosts, z.world.nodes.at(id).tree.members[0])
			}
		}
	}
}

// of yields the zones of a provider: of its host or, with Level, of its path.
func (z *zones) of(id int32) iter.Seq[int] {
	return func(yield func(int) bool) {
		n := z.world.nodes.at(id)
		root := n.tree.members[0]
		for zone, members := range z.members {
			if members.has(root) && !yield(zone) {
				return
			}
		}
		if z.numbers != nil {
			for _, value := range z.spread.HostValues[z.world.resources.at(root)] {
				if zone, ok := z.numbers[value]; ok && !yield(zone) {
					return
				}
			}
		}
		if z.tops != nil {
			top, ok := z.world.above(n, *z.spread.Level)
			if zone, known := z.tops[top]; ok && known {
				yield(zone)
			}
		}
	}
}

// above returns the provider at a depth on the path from the root to a node. It
// reports false if the node is nearer to the root.
func (w *World) above(n *node, depth int) (id int32, ok bool) {
	index := n.index
	for i := n.index; i >= 0; i = n.tree.parents[i] {
		if depth < 0 {
			index = n.tree.parents[index]
		}
		depth--
	}
	return n.tree.members[index], depth < 0
}

// classes returns the names of the classes of a request, of all alternatives.
func (r *Request) classes() (names []string) {
	for _, g := range append([]Group{r.Unsuffixed}, r.Groups...) {
		amounts := slices.Clone(g.Resources)
		for i := range g.FirstOf {
			amounts = append(amounts, g.FirstOf[i].Resources...)
		}
		for _, amount := range amounts {
			names = append(names, amount.ResourceClass)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
