package graph

import (
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/resource"
)

// usagesWork adds up the allocations of consumers, which are looked at twice:
// once for the groups of the page.
func usagesWork(c document.Call) document.Work {
	all, of := c.Size(tableAllocations), c.Size(tableConsumers)
	return document.Work{Scanned: all + 2*of, Read: min(usual*c.Page(), all)}
}

// capacityWork judges every provider by a filter and adds up the inventories of
// those that are left, in memory.
func capacityWork(c document.Call) document.Work {
	inventories := c.Size(tableInventories)
	switch c.Argument("groupBy") {
	case "TRAIT":
		inventories *= average(c, tableProviderTraits, tableProviders)
	case "AGGREGATE":
		inventories *= usual
	}
	work := providersWork(c)
	work.Tests += 4 * inventories
	return work
}

// treeCapacityWork adds up the inventories below providers, in memory: no more
// than all of them for each level of a tree.
func treeCapacityWork(c document.Call) document.Work {
	inventories := divide(c.Size(tableInventories), c.Size(tableProviders))
	return document.Work{Length: 2 * inventories, Tests: 4 * min(c.Objects()*treeSize*inventories, treeDepth*c.Size(tableInventories))}
}

// providersWork judges every provider by a filter, in memory, and sorts those
// that are left.
func providersWork(c document.Call) document.Work {
	all := c.Size(tableProviders)
	filter := objectOf(c.Argument("filter"))
	work := hostsWork(c, filter["resource"])
	work.Tests += 2 * all * int64(1+len(filter))
	return work
}

// hostsWork looks up which providers have resources that match a filter, if there
// is one. They come in one row.
func hostsWork(c document.Call, filter any) document.Work {
	if filter == nil {
		return document.Work{}
	}
	s := searchFor(c, objectOf(filter))
	return document.Work{Statements: 1 + s.statements, Scanned: s.rows + s.scanned + c.Size(tableProviders), Read: 1, Tests: s.tests, AtMost: s.atMost}
}

// usedWork looks for a provider that has a trait or a resource class.
func usedWork(c document.Call) document.Work {
	return document.Work{Tests: divide(c.Objects()*c.Size(tableProviders), 8)}
}

// requestSize is how large the answers to a request for candidates are.
type requestSize struct {
	amounts   int64 // resource classes that are asked for
	groups    int64 // that are served
	providers int64 // that one candidate can have
}

// requestOf returns the size of the request among the arguments of a field.
func requestOf(c document.Call) requestSize {
	if c.Of() == "Resource" { // whose metadata says; nobody knows before
		return requestSize{amounts: 4, groups: 2, providers: 4}
	}
	unsuffixed := lengthOf(c.Argument("resources"))
	size := requestSize{amounts: unsuffixed, providers: unsuffixed}
	if unsuffixed > 0 {
		size.groups = 1
	}
	for _, group := range listOf(c.Argument("groups")) {
		size.amounts += lengthOf(objectOf(group)["resources"])
		size.groups++
		size.providers++
	}
	return requestSize{max(size.amounts, 1), max(size.groups, 1), max(size.providers, 1)}
}

// ofRequest is a list whose length follows from the request for candidates that
// it is part of the answer to, or is a usual one.
func ofRequest(length func(requestSize) int64) func(document.Call) document.Work {
	return func(c document.Call) document.Work {
		for above, ok := c.Parent(); ok; above, ok = above.Parent() {
			if above.Name() == "allocationCandidates" {
				return document.Work{Length: length(requestOf(above))}
			}
		}
		return document.Work{Length: usualServing}
	}
}

// mappingsWork reads the mappings of consumers, of usual groups.
func mappingsWork(c document.Call) document.Work {
	work := readOf(c, c.Objects(), tableConsumers)
	work.Length = usualGroups
	return work
}

// usualGroups is how many groups a consumer has mappings of, where it has any, and
// usualServing how many providers serve each.
const usualGroups, usualServing = 3, 2

// candidatesWork searches from the first provider on to the end of the page.
func candidatesWork(c document.Call) document.Work {
	all := c.Size(tableProviders)
	size := requestOf(c)
	work := hostsWork(c, c.Argument("hosts"))
	work.Tests += c.Objects() * (2*all*size.amounts + 10*c.Page()*size.providers)
	return work
}

// requestWork reads the metadata of a resource.
func requestWork(c document.Call) document.Work {
	items := readOf(c, average(c, tableMetadataItems, tableResources), tableMetadataItems)
	of := readOf(c, 1, tableResources)
	return document.Work{Read: items.Read + of.Read, Scanned: items.Scanned + of.Scanned}
}

// setsOfResources is for how many resources there is supposed to be one that
// requires something of hosts, other than the others do.
const setsOfResources = 10

// candidatesOfEachWork reads the metadata of resources, looks the hosts up that
// they require, and searches for each.
func candidatesOfEachWork(c document.Call) document.Work {
	work := candidatesWork(c)
	items := readOf(c, c.Objects()*average(c, tableMetadataItems, tableResources), tableMetadataItems)
	members := atMost(c, indexedRows, tableCapabilityItems)
	sets := divide(min(c.Objects(), resource.MaxHostSets), setsOfResources)
	work.Read, work.Scanned = items.Read+sets, items.Scanned+sets*(members+c.Size(tableProviders))
	work.Tests += sets * members
	return work
}

// candidateCountWork goes on to the last candidate, or until as many are counted
// as ever are.
func candidateCountWork(c document.Call) document.Work {
	all := c.Size(tableProviders)
	size := requestOf(c)
	candidates := int64(1)
	for range size.providers {
		if candidates = candidates * all; candidates >= placement.MaxCount {
			candidates = placement.MaxCount
			break
		}
	}
	return document.Work{Tests: c.Objects() * (2*all*size.amounts + 3*candidates*size.providers)}
}

// explanationWork judges every provider by each constraint.
func explanationWork(c document.Call) document.Work {
	all := c.Size(tableProviders)
	size := requestOf(c)
	return document.Work{Tests: c.Objects() * 10 * all * (size.amounts + size.groups)}
}

// summariesWork is the providers of the trees that candidates are in.
func summariesWork(c document.Call) document.Work {
	return document.Work{Length: max(1, atMost(c, c.Page()*requestOf(c).providers*treeSize, tableProviders))}
}

// treeSize is how many providers a tree is supposed to have for each that a
// candidate takes of it.
const treeSize = 2

// treeDepth is how many levels a tree is supposed to have.
const treeDepth = 4
