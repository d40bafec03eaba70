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

// Policy restricts the hosts of consumers by the hosts of others: of the named
// ones and of the ones that the same Placing has placed before. It follows
// `PlacePolicyInput`.
//
// A host is a root. A consumer is on each root whose tree it has allocations
// from, without sharing providers, and a candidate is on its Root.
type Policy struct {
	// Consumers are uuids. One without allocations is on no host.
	Consumers []string
	// Held has the uuids of the providers of each of Consumers, in any order. The
	// caller looks them up.
	Held [][]string
	// Hosts DistinctHosts requires a host that none of the consumers is on.
	// SameHost requires the only host that they are on; while they are on none, it
	// allows every host.
	Hosts  HostPolicy
	Spread *ZoneSpread
}

// ZoneSpread spreads consumers over zones. A host is in a zone if any provider
// of its tree is in the aggregate. A host outside of all zones is not allowed.
type ZoneSpread struct {
	Aggregates []string // the zones
	// Shares are the target shares of the zones; empty means that all are 1.
	Shares []int
	// MaxSkew limits the number of consumers in each zone of the host, with the
	// one to place, less the least number in any zone before. Both are divided by
	// the shares of their zones.
	MaxSkew int
}

// share returns the share of a zone.
func (s *ZoneSpread) share(zone int) int {
	if len(s.Shares) == 0 {
		return 1
	}
	return s.Shares[zone]
}

// Limits of policies.
const (
	MaxZones = 250
	MaxShare = 1000
	MaxSkew  = 1000
)

// Validate returns every problem of the policy's form, each at its path below
// path ("input.policy").
func (p *Policy) Validate(path string) []Problem {
	var v validator
	v.checkDistinctUUIDs(MaxConsumers, under(path, "consumers"), p.Consumers)
	hosts := []HostPolicy{"", AnyHost, DistinctHosts, SameHost}
	v.require(slices.Contains(hosts, p.Hosts), under(path, "hosts"), "must be ANY, DISTINCT or SAME")
	if p.Spread != nil {
		path := under(path, "spread")
		v.require(len(p.Spread.Aggregates) > 0, under(path, "aggregates"), "must name at least one aggregate")
		v.checkDistinctUUIDs(MaxZones, under(path, "aggregates"), p.Spread.Aggregates)
		v.require(len(p.Spread.Shares) == 0 || len(p.Spread.Shares) == len(p.Spread.Aggregates), under(path, "shares"),
			"must have one entry for each aggregate")
		for i, share := range p.Spread.Shares {
			v.require(1 <= share && share <= MaxShare, at(under(path, "shares"), i), "must be between 1 and 1000")
		}
		v.require(1 <= p.Spread.MaxSkew && p.Spread.MaxSkew <= MaxSkew, under(path, "maxSkew"), "must be between 1 and 1000")
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

// Tally counts consumers by host and zone, and decides which hosts a Policy
// allows for one more.
type Tally struct {
	world  *World
	policy *Policy
	on     map[int32]int // consumers by the id of a root
	zones  []mask        // roots by zone
	counts []int         // consumers by zone
}

// Tally returns the tally of a valid policy, with the consumers that it names.
func (w *World) Tally(policy *Policy) *Tally {
	t := &Tally{world: w, policy: policy, on: map[int32]int{}}
	if policy.Spread != nil {
		for _, aggregate := range policy.Spread.Aggregates {
			t.zones = append(t.zones, w.rootsWith(Preference{Aggregate: aggregate}))
		}
		t.counts = make([]int, len(t.zones))
	}
	for _, providers := range policy.Held {
		roots := map[int32]bool{}
		for _, uuid := range providers {
			if id, ok := w.byUUID.get(uuid); ok && !w.nodes.at(id).sharing {
				roots[w.nodes.at(id).tree.members[0]] = true
			}
		}
		t.add(roots)
	}
	return t
}

// add counts a consumer on some roots, once in each zone.
func (t *Tally) add(roots map[int32]bool) {
	for root := range roots {
		t.on[root]++
	}
	for i, zone := range t.zones {
		for root := range roots {
			if zone.has(root) {
				t.counts[i]++
				break
			}
		}
	}
}

// Place counts a consumer on the root of a candidate.
func (t *Tally) Place(root string) {
	if id, ok := t.world.byUUID.get(root); ok {
		t.add(map[int32]bool{id: true})
	}
}

// Allows reports whether the policy allows a root for one more consumer.
func (t *Tally) Allows(root string) bool {
	id, ok := t.world.byUUID.get(root)
	return ok && t.mayTake(id)
}

func (t *Tally) mayTake(root int32) bool {
	switch t.policy.Hosts {
	case DistinctHosts:
		if t.on[root] > 0 {
			return false
		}
	case SameHost:
		if len(t.on) > 1 || len(t.on) == 1 && t.on[root] == 0 {
			return false
		}
	}
	if t.zones == nil {
		return true
	}
	return t.keepsSkew(root)
}

// keepsSkew reports whether no zone of a root exceeds the maximum skew with one
// more consumer.
func (t *Tally) keepsSkew(root int32) bool {
	spread, least, isIn := t.policy.Spread, 0, false
	for i, n := range t.counts {
		if n*spread.share(least) < t.counts[least]*spread.share(i) {
			least = i
		}
	}
	for i, zone := range t.zones {
		if !zone.has(root) {
			continue
		}
		isIn = true
		own, other := spread.share(i), spread.share(least)
		if (t.counts[i]+1)*other-t.counts[least]*own > spread.MaxSkew*own*other {
			return false
		}
	}
	return isIn
}
