package placement

import "slices"

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

// mayTake reports whether the policy may allow a candidate on a root. Unless zones
// are providers of a level, the policy then allows every candidate there.
func (t *Tally) mayTake(root int32) bool {
	if !t.allowsHost(root) {
		return false
	}
	if t.zones == nil || t.isByLevel() && *t.zones.spread.Level > 0 {
		return true
	}
	isIn := false
	for zone := range t.zones.of(root) {
		if isIn = true; !t.isOpen(zone) {
			return false
		}
	}
	return isIn
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
