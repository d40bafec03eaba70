package placementdb_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/placementdb"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// nodesPerHost is the number of children with units below each host of
// hostsWithNodes: two places on one host need not share a locked provider.
const nodesPerHost = 3

func hostUUID(n int) string { return storetest.UUID(10 * n) }
func zoneUUID(n int) string { return storetest.UUID(9000 + n) }

// hostNumber returns the number of the host of a child.
func hostNumber(uuid string) int {
	for n := range 10 * 60 {
		if storetest.UUID(n) == uuid {
			return n / 10
		}
	}
	return -1
}

// hostsWithNodes stores hosts in three zones, which are aggregates and values of
// the capability zone, each with some children.
func hostsWithNodes(t testing.TB, s *store.Store, hosts int) {
	t.Helper()
	var providers []placement.Provider
	content := store.Content{ResourceTypes: []string{"physical:host"}}
	for n := range hosts {
		content.Resources = append(content.Resources,
			store.ResourceRecord{UUID: hostUUID(n), Type: "physical:host", Name: fmt.Sprint(n),
				ProjectID: "operations", Visibility: access.Public,
				Capabilities: []metadef.KeyValue{{Key: "zone", Value: fmt.Sprint(n % 3)}}})
		providers = append(providers, placement.Provider{UUID: hostUUID(n), Name: fmt.Sprintf("host %d", n),
			Resource: hostUUID(n), Aggregates: []string{zoneUUID(n % 3)}})
		for k := range nodesPerHost {
			providers = append(providers, placement.Provider{UUID: storetest.UUID(10*n + k + 1),
				Name: fmt.Sprintf("node %d of %d", k, n), Parent: hostUUID(n),
				Inventories: []placement.Inventory{{ResourceClass: "VCPU", Total: hotCapacity, MinUnit: 1,
					MaxUnit: hotCapacity, StepSize: 1, AllocationRatio: 1}}})
		}
	}
	content.Providers = providers
	if err := s.FillEmpty(storetest.AsAdmin(), content); err != nil {
		t.Fatal(err)
	}
}

// group returns the uuids of consumers from one number to another.
func group(from, to int) (uuids []string) {
	for n := from; n < to; n++ {
		uuids = append(uuids, storetest.UUID(n))
	}
	return uuids
}

// rootsOf returns the host of each placed consumer.
func rootsOf(outcomes []placementdb.PlacedOutcome) (roots []string) {
	for _, outcome := range outcomes {
		if outcome.Row != nil {
			roots = append(roots, hostUUID(hostNumber(outcome.Row.Held[0].Provider)))
		}
	}
	return roots
}

// TestPlaceFollowsItsPolicy places consumers of one call, and then others that
// name them.
func TestPlaceFollowsItsPolicy(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		hostsWithNodes(t, s, 6)
		place := func(policy placement.Policy, atomic bool, consumers ...int) ([]string, string) {
			t.Helper()
			p := placing(placement.Pack, 1, consumers...)
			p.Policy, p.Atomic = &policy, atomic
			dry, _, err := s.Place(storetest.AsAdmin(), p, true)
			if err != nil {
				t.Fatal(err)
			}
			outcomes, _, err := s.Place(storetest.AsAdmin(), p, false)
			if err != nil || placed(dry) != placed(outcomes) {
				t.Fatalf("%s, %v; the dry run says %s", placed(outcomes), err, placed(dry))
			}
			return rootsOf(outcomes), placed(outcomes)
		}
		distinct := placement.Policy{Hosts: placement.DistinctHosts, Consumers: group(100, 110)}
		first, _ := place(distinct, true, 100, 101, 102)
		second, _ := place(distinct, false, 103, 104, 105, 106)
		all := slices.Concat(first, second)
		if slices.Sort(all); len(slices.Compact(all)) != 6 {
			t.Errorf("%v and %v, want 6 hosts", first, second)
		}
		if _, told := place(distinct, true,
			107); told != "input.consumers[0] no provider that the policy allows has room for the request" {
			t.Error(told)
		}
		same := placement.Policy{Hosts: placement.SameHost, Consumers: group(100, 101)}
		if roots, told := place(same, true, 120, 121); len(roots) != 2 || roots[0] != first[0] || roots[1] != first[0] {
			t.Errorf("%s, want %s twice", told, first[0])
		}
		same.Consumers = group(100, 102) // on two hosts
		if _, told := place(same, true, 122); !strings.Contains(told, "no provider that the policy allows") {
			t.Error(told)
		}
		zones := &placement.ZoneSpread{Aggregates: []string{zoneUUID(0), zoneUUID(1)}, MaxSkew: 1}
		roots, told := place(placement.Policy{Spread: zones}, true, 130, 131, 132, 133)
		counts := countZones(roots)
		if counts[0] != 2 || counts[1] != 2 {
			t.Errorf("%s: %v", told, counts)
		}
		sameWorld(t, s)
	})
}

// countZones returns the number of consumers in each zone.
func countZones(roots []string) (counts [3]int) {
	for _, root := range roots {
		counts[hostNumber(root)%3]++
	}
	return counts
}

// TestRacingPlacesKeepTheirPolicy places consumers that name each other from
// many clients, where all prefer the same host and two of its children are free.
// Each round starts without consumers, so that no host is full before it ends.
func TestRacingPlacesKeepTheirPolicy(t *testing.T) {
	t.Parallel()
	const hosts, clients, each = 12, 8, 3
	run := func(t *testing.T, servers ...*store.Store) {
		hostsWithNodes(t, servers[0], hosts)
		spread := &placement.ZoneSpread{Aggregates: []string{zoneUUID(0), zoneUUID(1), zoneUUID(2)}, MaxSkew: 1}
		level := func(n int) *placement.ZoneSpread { return &placement.ZoneSpread{Level: &n, MaxSkew: 1} }
		values, err := servers[0].HostValues(storetest.AsAdmin(), "capability", "zone", &problem.Problems{})
		if err != nil || len(values) != hosts {
			t.Fatalf("%v: %v", values, err)
		}
		racks := &placement.ZoneSpread{Capability: new("zone"), HostValues: values, MaxSkew: 1}
		for round, policy := range []placement.Policy{
			{Hosts: placement.DistinctHosts}, {Hosts: placement.SameHost}, {Spread: spread},
			{Hosts: placement.DistinctHosts, Spread: spread},
			{Spread: level(0)}, {Spread: level(1)}, {Hosts: placement.DistinctHosts},
			{Spread: level(1)}, {Spread: racks}} {
			start := 10_000 + 1000*round
			if policy.Consumers = group(start, start+clients*each); round == 6 || round == 7 {
				policy.Group, policy.Consumers = &placement.ConsumerGroup{ProjectID: fmt.Sprint("round ", round)}, nil
			}
			roots, nodes := race(t, servers, policy, start, clients, each)
			if wrong := breaks(policy, roots, nodes, hosts, clients*each); wrong != "" {
				t.Errorf("round %d: %s", round, wrong)
			}
			if _, err := servers[0].DeleteAllocationsForMany(storetest.AsAdmin(),
				placement.Deletion{Consumers: group(start, start+clients*each)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Run("sqlite", func(t *testing.T) { run(t, storetest.Open(t, storetest.SQLite(t))) })
	t.Run("postgres", func(t *testing.T) {
		url := storetest.Postgres(t)
		run(t, storetest.Open(t, url), storetest.Open(t, url))
	})
}

// breaks returns how the hosts and providers of consumers break a policy on a
// number of hosts that have room for all consumers, "" if they do not.
func breaks(policy placement.Policy, roots, nodes []string, hosts, consumers int) string {
	distinct := slices.Clone(roots)
	slices.Sort(distinct)
	distinct = slices.Compact(distinct)
	wrong := false
	switch {
	case policy.Hosts == placement.DistinctHosts:
		wrong = len(roots) != hosts || len(distinct) != hosts
	case policy.Hosts == placement.SameHost:
		wrong = len(roots) != consumers || len(distinct) != 1
	case policy.Spread.Level != nil:
		used := [][]string{roots, nodes}[*policy.Spread.Level]
		wrong = len(roots) != consumers || mostOf(used) != []int{2, 1}[*policy.Spread.Level]
	default:
		wrong = len(roots) != consumers
	}
	counts := countZones(roots)
	if wrong || policy.Spread != nil && policy.Spread.Level == nil && slices.Max(counts[:])-slices.Min(counts[:]) > 1 {
		return fmt.Sprintf("%d consumers on %d hosts, %v by zone, %d on one provider", len(roots),
			len(distinct), counts, mostOf(nodes))
	}
	return ""
}

// mostOf returns how often the most frequent string occurs.
func mostOf(of []string) (most int) {
	counts := map[string]int{}
	for _, one := range of {
		counts[one]++
		most = max(most, counts[one])
	}
	return most
}

// race places consumers one by one from several clients, and returns the hosts and
// the providers. Consumers of a group are in its project.
func race(t *testing.T, servers []*store.Store, policy placement.Policy, start,
	clients, each int) (roots, nodes []string) {
	t.Helper()
	var running sync.WaitGroup
	var mu sync.Mutex
	for client := range clients {
		running.Go(func() {
			for i := range each {
				p := placing(placement.Pack, int64(1+client%2), start+client*each+i)
				if p.Policy = &policy; policy.Group != nil {
					p.Consumers[0].ProjectID = policy.Group.ProjectID
				}
				outcomes, _, err := servers[(client+i)%len(servers)].Place(storetest.AsAdmin(), p, false)
				if err != nil {
					t.Errorf("client %d: %v", client, err)
					return
				}
				mu.Lock()
				roots = append(roots, rootsOf(outcomes)...)
				for _, outcome := range outcomes {
					if outcome.Row != nil {
						nodes = append(nodes, outcome.Row.Held[0].Provider)
					}
				}
				mu.Unlock()
			}
		})
	}
	running.Wait()
	return roots, nodes
}

// TestGroupsOfPolicies places next to the consumers of a project, some of them
// with a type.
func TestGroupsOfPolicies(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		hostsWithNodes(t, s, 6)
		place := func(policy *placement.Policy, project string, kind *string, consumers ...int) string {
			t.Helper()
			p := placing(placement.DepthFirst, 1, consumers...)
			p.Policy, p.Atomic = policy, false
			for i := range p.Consumers {
				p.Consumers[i].ProjectID, p.Consumers[i].Type = project, kind
			}
			dry, _, err := s.Place(storetest.AsAdmin(), p, true)
			if err != nil {
				return err.Error()
			}
			outcomes, _, err := s.Place(storetest.AsAdmin(), p, false)
			if err != nil || placed(dry) != placed(outcomes) {
				t.Fatalf("%s, %v; the dry run says %s", placed(outcomes), err, placed(dry))
			}
			return fmt.Sprint(lists.Map(rootsOf(outcomes), func(root string) int { return hostNumber(root) }))
		}
		distinct := func(g placement.ConsumerGroup, consumers ...string) *placement.Policy {
			return &placement.Policy{Hosts: placement.DistinctHosts, Group: &g, Consumers: consumers}
		}
		web := new("WEB")
		for i, of := range []struct {
			policy  *placement.Policy
			project string
			kind    *string
			number  int
			want    string
		}{
			{nil, "q", web, 1, "[0]"},
			{distinct(placement.ConsumerGroup{ProjectID: "other"}), "q", nil, 2, "[0 1]"},
			{distinct(placement.ConsumerGroup{ProjectID: "q", Type: web}), "q", web, 1, "[1]"},
			{distinct(placement.ConsumerGroup{ProjectID: "q"}), "r", nil, 1, "[2]"},
			{distinct(placement.ConsumerGroup{ProjectID: "q", UserID: new("nobody")}), "r", nil, 1, "[0]"},
			{distinct(placement.ConsumerGroup{ProjectID: "q"}, storetest.UUID(2003)), "q", nil, 4, "[3 4 5]"},
			{&placement.Policy{Spread: &placement.ZoneSpread{Level: new(0), MaxSkew: 1},
				Group: &placement.ConsumerGroup{ProjectID: "s"}}, "s", nil, 7, "[0 1 2 3 4 5 0]"},
		} {
			var consumers []int
			for n := range of.number {
				consumers = append(consumers, 2000+i+100*n)
			}
			if got := place(of.policy, of.project, of.kind, consumers...); got != of.want {
				t.Errorf("%d: on %s, want %s", i, got, of.want)
			}
		}
		sameWorld(t, s)
	})
}

// TestLargeGroupsAreRefused adds a consumer to a project with the maximum number.
func TestLargeGroupsAreRefused(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		hostsWithNodes(t, s, 18)
		for n, more := range []int{placement.MaxConsumers, 1} {
			p := placing(placement.Spread, 1)
			for i := range more {
				p.Consumers = append(p.Consumers,
					placement.NewConsumer{UUID: storetest.UUID(20_000*(n+1) + i), ProjectID: "many", UserID: "u"})
			}
			if _, _, err := s.Place(storetest.AsAdmin(), p, false); err != nil {
				t.Fatal(err)
			}
			p = placing(placement.Spread, 1, 5000+n)
			p.Policy = &placement.Policy{Group: &placement.ConsumerGroup{ProjectID: "many"}}
			_, _, err := s.Place(storetest.AsAdmin(), p, false)
			if told := fmt.Sprint(err); (n == 0) != (err == nil) ||
				n > 0 && told != "input.policy.group: has more than 1000 consumers" {
				t.Errorf("next to a project with %d more consumers: %s", more, told)
			}
		}
	})
}

// TestAPlaceKnowsOtherServers places consumers on one server right after another
// server created the trait that they prefer, and the host of the consumer that
// they must follow.
func TestAPlaceKnowsOtherServers(t *testing.T) {
	t.Parallel()
	url := storetest.Postgres(t)
	servers := []*store.Store{storetest.Open(t, url), storetest.Open(t, url)}
	for round := range 10 {
		host, leader, trait := storetest.UUID(round), storetest.UUID(100+round), fmt.Sprintf("CUSTOM_%d", round)
		storetest.RoomyProvider(t, servers[0], host)
		if _, err := servers[0].SetAllocations(storetest.AsAdmin(), claimOne(host, leader)); err != nil {
			t.Fatal(err)
		}
		p := placing(placement.DepthFirst, 1, 200+round)
		p.Policy = &placement.Policy{Hosts: placement.SameHost, Consumers: []string{leader}}
		if round%2 == 0 {
			if _, _, err := servers[0].EnsureTraits(storetest.AsAdmin(), []string{trait}); err != nil {
				t.Fatal(err)
			}
			p.Request.Preferences = []placement.Preference{{Trait: trait, Weight: 1}}
			other := problem.Problems{{Field: "input.request.hosts", Message: "is wrong"}}
			if err := servers[1].CheckPlacing(storetest.AsAdmin(), &p, other); err.Error() != other.Err().Error() {
				t.Errorf("round %d: %v", round, err)
			}
		}
		outcomes, _, err := servers[1].Place(storetest.AsAdmin(), p, round%3 == 0)
		if err != nil || outcomes[0].Row.Held[0].Provider != host {
			t.Errorf("round %d: %s, %v, want %s", round, placed(outcomes), err, host)
		}
	}
}
