package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
)

// What the trees of the nested world are like: a root with disks, two NUMA nodes
// below it with processors and memory, and below each of these two network
// devices, each in one of the physical networks.
const (
	numaNodesOfHost   = 2
	devicesOfNode     = 2
	functionsOfDevice = 8
	physicalNetworks  = 4
	nestedAggregates  = 3
)

func physicalNetwork(i int) string { return fmt.Sprintf("CUSTOM_PHYSNET_%d", i) }

// nestedAggregate returns the uuid of an aggregate of trees.
func (w *world) nestedAggregate(i int) string { return w.uuid("nested aggregate", i) }

// newNestedWorld makes the world of a seed whose hosts are trees of seven
// providers, each root in one of the aggregates.
func newNestedWorld(seed uint64, hosts int) *world {
	w := &world{seed: seed}
	random := rand.New(rand.NewPCG(seed, 1))
	for i := range physicalNetworks {
		w.traits = append(w.traits, object{"name": physicalNetwork(i)})
	}
	for host := range hosts {
		root := w.nestedProvider(fmt.Sprintf("nested-%06d", host), provider{}, inventory("DISK_GB", 4_000))
		root.aggregates = []string{w.nestedAggregate(random.IntN(nestedAggregates))}
		w.providers = append(w.providers, root)
		for i := range numaNodesOfHost {
			node := w.nestedProvider(fmt.Sprintf("%s-numa%d", root.name, i), root, inventory("VCPU", 32), inventory("MEMORY_MB", 131_072))
			w.providers = append(w.providers, node)
			for j := range devicesOfNode {
				device := w.nestedProvider(fmt.Sprintf("%s-pf%d", node.name, j), node, inventory("SRIOV_NET_VF", functionsOfDevice))
				device.traits = []string{physicalNetwork(random.IntN(physicalNetworks))}
				w.providers = append(w.providers, device)
			}
		}
	}
	return w
}

// nestedProvider returns the next provider, below another one that has a name.
func (w *world) nestedProvider(name string, parent provider, inventories ...object) provider {
	one := provider{uuid: w.uuid("nested", len(w.providers)), name: name, inventories: inventories}
	if parent.name != "" {
		one.parent, one.depth = parent.uuid, parent.depth+1
	}
	return one
}

func inventory(of string, total int) object { return object{"resourceClass": of, "total": total} }

// nestedWorks returns the works on the world of trees.
func nestedWorks() []work {
	return []work{
		{
			name: "two isolated devices in trees of 7, first 1000", in: nestedWorld, operations: 4, list: candidatesList(),
			request:  isolatedDevices(1000, false),
			compared: &comparison{with: placementPeer, operations: 1, call: isolatedDevicesOfPlacement(false), check: sameCandidates},
			goal:     goal{median: 12, ratio: 1.5, cpu: 1.5},
		},
		{
			name: "two isolated devices in trees of 7, first 10", in: nestedWorld, operations: 20, list: candidatesList(),
			request: isolatedDevices(10, false),
		},
		{
			name: "two isolated devices in trees of 7 of an aggregate, first 1000", in: nestedWorld, operations: 4, list: candidatesList(),
			request:  isolatedDevices(1000, true),
			compared: &comparison{with: placementPeer, operations: 1, call: isolatedDevicesOfPlacement(true), check: sameCandidates},
			goal:     goal{ratio: 1.5, cpu: 1.5},
		},
	}
}

// isolatedDevices returns the request for a page of candidates with disk of a
// root and one virtual function of each of two devices, with everything that the
// reference placement answers; in trees of one aggregate, if wanted.
func isolatedDevices(first int, ofAggregate bool) func(*world, int) request {
	const query = `query($first: Int!, $after: String, $resources: [ResourceAmountInput!]!, $memberOf: [AggregateFilter!], $groups: [RequestGroupInput!]!) {
		allocationCandidates(first: $first, after: $after, resources: $resources, memberOf: $memberOf, groups: $groups, groupPolicy: ISOLATE) { ` + fullCandidates + ` } }`
	return func(w *world, _ int) request {
		variables := object{"first": first, "resources": []object{amount("DISK_GB", 40)}}
		if ofAggregate {
			variables["memberOf"] = []object{{"anyOf": []string{w.nestedAggregate(0)}}}
		}
		var groups []object
		for _, suffix := range deviceGroups() {
			groups = append(groups, object{"suffix": suffix, "resources": []object{amount("SRIOV_NET_VF", 1)}})
		}
		variables["groups"] = groups
		return request{Query: query, Variables: variables}
	}
}

// deviceGroups returns the suffixes of the groups that each want a device.
func deviceGroups() []string { return []string{"_NET1", "_NET2"} }

// isolatedDevicesOfPlacement returns the question of isolatedDevices as the
// reference placement is asked it.
func isolatedDevicesOfPlacement(ofAggregate bool) func(context.Context, *target) (call, error) {
	return func(_ context.Context, peer *target) (call, error) {
		query := url.Values{"limit": {"1000"}, "group_policy": {"isolate"}, "resources": {"DISK_GB:40"}}
		if ofAggregate {
			query.Set("member_of", peer.world.nestedAggregate(0))
		}
		for _, suffix := range deviceGroups() {
			query.Set("resources"+suffix, "SRIOV_NET_VF:1")
		}
		return call{method: "GET", path: "/allocation_candidates?" + query.Encode()}, nil
	}
}
