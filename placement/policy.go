package placement

import (
	"iter"
	"slices"
)

// HostPolicy decides which hosts consumers may share.
type HostPolicy string

// The policies on hosts.
const (
	AnyHost       HostPolicy = "ANY"
	DistinctHosts HostPolicy = "DISTINCT"
	SameHost      HostPolicy = "SAME"
)

// Policy restricts hosts and zones, depending on where other consumers are: the
// named consumers, the consumers of a group, and the consumers that the same
// Placing has already placed. It follows `PlacePolicyInput`.
//
// A host is a root. A consumer is on the root of each tree that it has allocations
// in, except allocations on sharing providers. A candidate is on its Root.
type Policy struct {
	// Consumers are uuids. A consumer without allocations is on no host.
	Consumers []string
	// Group selects further consumers; nil selects none.
	Group *ConsumerGroup
	// Held has a list for each consumer of Consumers and Group, in any order: the
	// uuids of its providers. The caller looks them up.
	Held [][]string
	// Hosts: DistinctHosts requires a host without any of the other consumers.
	// SameHost requires the only host that has some, or any host while none has; if
	// several hosts have some, it allows no host.
	Hosts  HostPolicy
	Spread *ZoneSpread
}

// ConsumerGroup selects the consumers of a project, optionally of one user or
// one type. It follows `ConsumerGroupInput`.
type ConsumerGroup struct {
	ProjectID string
	UserID    *string
	Type      *string
}

// Has reports whether a consumer is in the group.
func (g *ConsumerGroup) Has(of *LedgerConsumer) bool {
	return of.ProjectID == g.ProjectID && (g.UserID == nil || of.UserID == *g.UserID) &&
		(g.Type == nil || of.Type != nil && *of.Type == *g.Type)
}

// MaxZones is the maximum number of named zones. MaxShare, MaxSkew and MaxLevel
// are the largest values of a share, a skew and a level.
const (
	MaxZones = 250
	MaxShare = 1000
	MaxSkew  = 1000
	MaxLevel = 100
)

// Validate returns every problem of the policy's form, each at its path below
// path ("input.policy").
func (p *Policy) Validate(path string) []Problem {
	var v validator
	v.checkDistinctUUIDs(MaxConsumers, under(path, "consumers"), p.Consumers)
	hosts := []HostPolicy{"", AnyHost, DistinctHosts, SameHost}
	v.require(slices.Contains(hosts, p.Hosts), under(path, "hosts"), "must be ANY, DISTINCT or SAME")
	if p.Group != nil {
		path := under(path, "group")
		v.require(isText(p.Group.ProjectID, MaxNameLength), under(path, "projectId"), idRule)
		v.require(p.Group.UserID == nil || isText(*p.Group.UserID, MaxNameLength), under(path, "userId"), idRule)
		v.require(p.Group.Type == nil || isName(*p.Group.Type), under(path, "type"), nameRule)
	}
	if p.Spread != nil {
		v.checkSpread(under(path, "spread"), p.Spread)
	}
	return v.problems
}

func (v *validator) checkDistinctUUIDs(limit int, path string, uuids []string) {
	v.atMost(limit, path, len(uuids))
	seen := map[string]bool{}
	for i, uuid := range uuids {
		v.checkDistinctUUID(seen, at(path, i), uuid)
	}
}

// Tally counts consumers by host and zone, and decides which candidates a Policy
// allows for one more consumer.
type Tally struct {
	world  *World
	policy *Policy
	on     map[int32]int // consumers by the id of a root
	zones  *zones        // nil without a spread
	counts []int         // consumers by zone
	least  int           // the zone that leastZone has found, -1 if unknown
}

// Tally returns the tally of the policy of a valid placing, with the consumers
// that the policy names; nil without a policy.
func (p *Placing) Tally(w *World) *Tally {
	if p.Policy == nil {
		return nil
	}
	t := &Tally{world: w, policy: p.Policy, on: map[int32]int{}, least: -1}
	if p.Policy.Spread != nil {
		t.zones = w.zonesOf(p.Policy.Spread, &p.Request)
		t.counts = make([]int, t.zones.size)
	}
	for _, providers := range p.Policy.Held {
		t.add(t.holders(providers))
	}
	return t
}

// holders returns the ids of the providers that exist and do not share.
func (t *Tally) holders(providers []string) (ids []int32) {
	for _, uuid := range providers {
		if id, ok := t.world.byUUID.get(uuid); ok && !t.world.nodes.at(id).sharing {
			ids = append(ids, id)
		}
	}
	return ids
}

// add counts a consumer, once on each root and once in each zone of some
// providers.
func (t *Tally) add(providers []int32) {
	roots := map[int32]bool{}
	for _, id := range providers {
		roots[t.world.nodes.at(id).tree.members[0]] = true
	}
	for root := range roots {
		t.on[root]++
	}
	for zone := range t.zonesOf(providers) {
		t.counts[zone]++
	}
	t.least = -1
}

func (t *Tally) zonesOf(providers []int32) map[int]bool {
	found := map[int]bool{}
	if t.zones != nil {
		for _, id := range providers {
			for zone := range t.zones.of(id) {
				found[zone] = true
			}
		}
	}
	return found
}

// inZones returns the providers whose zones a candidate is in.
func (t *Tally) inZones(candidate *Candidate, root int32) []int32 {
	if !t.isByLevel() {
		return []int32{root}
	}
	return t.holders(candidate.providers())
}

// isByLevel reports whether the zones of a candidate depend on its providers.
func (t *Tally) isByLevel() bool { return t != nil && t.zones != nil && t.zones.spread.Level != nil }

// Place counts a consumer with a candidate.
func (t *Tally) Place(candidate *Candidate) { t.add(t.holders(candidate.providers())) }

// Allows reports whether the policy allows a candidate for one more consumer.
func (t *Tally) Allows(candidate *Candidate) bool {
	root, ok := t.world.byUUID.get(candidate.Root)
	if !ok || !t.allowsHost(root) {
		return false
	}
	zones := t.zonesOf(t.inZones(candidate, root))
	for zone := range zones {
		if !t.isOpen(zone) {
			return false
		}
	}
	return t.zones == nil || len(zones) > 0
}

func (t *Tally) allowsHost(root int32) bool {
	switch t.policy.Hosts {
	case DistinctHosts:
		return t.on[root] == 0
	case SameHost:
		return len(t.on) == 0 || len(t.on) == 1 && t.on[root] > 0
	}
	return true
}

// never is the zone of a root that a tally does not allow any more.
const never = -1

// refuses reports whether the policy allows no candidate on a root, until a zone
// is open or, if that is never, for good. Unless zones are providers of a level,
// the policy otherwise allows every candidate there. A nil tally refuses none.
func (t *Tally) refuses(root int32) (zone int, isRefused bool) {
	switch {
	case t == nil:
		return never, false
	case !t.allowsHost(root):
		return never, true
	case t.zones == nil:
		return never, false
	case t.isByLevel() && *t.zones.spread.Level > 0:
		return never, !t.zones.roots.has(root)
	}
	zone = never
	for zone = range t.zones.of(root) {
		if !t.isOpen(zone) {
			return zone, true
		}
	}
	return zone, zone == never
}

// mayServe reports whether a provider may serve one more consumer: with zones
// of a level, whether every zone of the provider is open.
func (t *Tally) mayServe(n *node) bool {
	if !t.isByLevel() || n.sharing {
		return true
	}
	for zone := range t.zones.of(n.id) {
		if !t.isOpen(zone) {
			return false
		}
	}
	return true
}

// isOpen reports whether a zone keeps the maximum skew with one more consumer.
func (t *Tally) isOpen(zone int) bool {
	spread, least := t.zones.spread, t.leastZone()
	own, other := spread.share(zone), spread.share(least)
	return (t.counts[zone]+1)*other-t.counts[least]*own <= spread.MaxSkew*own*other
}

// leastZone returns a zone with the fewest consumers, divided by its share, among
// the zones that count (see ZoneSpread.Level).
func (t *Tally) leastZone() int {
	if t.least >= 0 {
		return t.least
	}
	isOne := t.policy.Hosts == SameHost && len(t.on) == 1 && t.isByLevel()
	for i, n := range t.counts {
		if isOne && t.on[t.zones.hosts[i]] == 0 {
			continue
		}
		if t.least < 0 || n*t.zones.spread.share(t.least) < t.counts[t.least]*t.zones.spread.share(i) {
			t.least = i
		}
	}
	t.least = max(t.least, 0)
	return t.least
}

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
	roots   mask           // of Level: all of hosts
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
	z.tops, z.roots = map[int32]int{}, z.world.newMask()
	for _, name := range r.classes() {
		free := z.world.column(z.world.classes.lookup(name)).free
		for id := range z.world.idLimit {
			if free.at(id) == 0 || z.world.nodes.at(id).sharing {
				continue
			}
			top, ok := z.world.above(z.world.nodes.at(id), *z.spread.Level)
			if _, known := z.tops[top]; ok && !known {
				z.tops[top] = len(z.hosts)
				root := z.world.nodes.at(id).tree.members[0]
				z.hosts = append(z.hosts, root)
				z.roots.add(root)
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
