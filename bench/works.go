package main

import (
	"context"
	"slices"
)

// work is one thing that the benchmark times: an operation of the API.
type work struct {
	name string
	// clients send at once, each over a connection of its own; 0 is one.
	clients int
	// in is the world that it is about; empty is the large one.
	in string
	// member is whether it is asked by a member of a project, who sees every resource
	// of the world, in place of an administrator.
	member bool
	// operations is how many are timed in each round.
	operations int
	// list is the path to the list of the answer that the work is about; its
	// length is the report's number of rows.
	list []string
	// request returns the n-th request, from 0. That of a read is always the same.
	request func(w *world, n int) request
	// undo returns what takes back the n-th request; nil for a read.
	undo func(w *world, n int) request
	// compared is the same question to a peer; nil for none.
	compared *comparison
	// goal is what is to be reached; the zero value is none.
	goal goal
}

// The worlds besides the large one.
const (
	smallWorld  = "small"
	nestedWorld = "nested"
)

// comparison is the question of a work as a peer is asked it.
type comparison struct {
	with string // the peer
	// operations is how many are timed in each round; 0 is as many as of the work.
	operations int
	// exact is whether every answer of the peer has the same bytes.
	exact bool
	// call returns the request to the peer.
	call func(ctx context.Context, peer *target) (call, error)
	// check returns an error when the rows of the peer's answer are not those of
	// Cadastre's.
	check func(ctx context.Context, own *series, answer []byte) error
}

// goal is what a work is to reach at least.
type goal struct {
	median float64 // at most so many milliseconds; 0 is any
	rate   float64 // at least so many requests a second; 0 is any
	ratio  float64 // so many times the requests a second of the peer; 0 is any
	cpu    float64 // so many requests in the processor time of one of the peer; 0 is any
	times  float64 // at most so many times the median of the work than; 0 is any
	than   string
}

// works returns everything that is timed. A row more is an element more.
func works() []work {
	return slices.Concat(countWorks(), nestedWorks(), []work{
		{
			name: "candidates, first 10", operations: 20, list: candidatesList(),
			request: candidates(10, `nodes { allocations { provider { uuid name } resources { resourceClass amount } } }`),
		},
		{
			name: "candidates, first 1000, full answer", operations: 4, list: candidatesList(),
			request:  candidates(1000, fullCandidates),
			compared: &comparison{with: placementPeer, operations: 1, call: candidatesOfPlacement, check: sameCandidates},
			goal:     goal{median: 8, ratio: 150},
		},
		{
			name: "candidates, first 1000, smaller world, 4 clients", clients: 4, in: smallWorld, operations: 16, list: candidatesList(),
			request:  candidates(1000, fullCandidates),
			compared: &comparison{with: placementPeer, call: candidatesOfPlacement, check: sameCandidates},
			goal:     goal{ratio: 30},
		},
		{
			name: "candidates on hosts with a pair of 0.5 %, first 10", operations: 20, list: candidatesList(),
			request: candidatesOnHosts(10, rarePair(), `nodes { allocations { provider { uuid name } resources { resourceClass amount } } }`),
			goal:    goal{median: 10},
		},
		{
			name: "candidates on hosts with a pair of 50 %, first 10", operations: 20, list: candidatesList(),
			request: candidatesOnHosts(10, commonPair(), `nodes { allocations { provider { uuid name } resources { resourceClass amount } } }`),
			goal:    goal{median: 30},
		},
		{
			name: "candidates on hosts with a pair of 50 %, first 1000, full answer", operations: 4, list: candidatesList(),
			request: candidatesOnHosts(1000, commonPair(), fullCandidates),
			goal:    goal{times: 3, than: "candidates, first 1000, full answer"},
		},
		{
			name: "20 namespaces with properties, 32 clients", clients: 32, operations: 320, list: []string{"namespaces", "nodes"},
			request: read(`{ namespaces(first: 20) { nodes { name displayName properties { name jsonSchema } } } }`, nil),
			compared: postgraphile("namespaces.nodes", `{ namespaces: allNamespaces(first: 20, orderBy: [NAME_ASC]) { nodes {
				name displayName
				properties: propertyDefinitionsByNamespaceId(condition: {objectId: null}) { nodes { name jsonSchema: keywords } }
			} } }`),
			goal: goal{ratio: 1.5, cpu: 1.5},
		},
		{
			name: "33 namespaces with four lists, 32 clients", clients: 32, operations: 320, list: []string{"namespaces", "nodes"},
			request: read(`{ namespaces(first: 33) { nodes {
				name displayName
				properties { name jsonSchema }
				objects { name description required }
				tags { name }
				resourceTypeAssociations { resourceType { name } prefix propertiesTarget }
			} } }`, nil),
			compared: postgraphile("namespaces.nodes", `{ namespaces: allNamespaces(first: 33, orderBy: [NAME_ASC]) { nodes {
				name displayName
				properties: propertyDefinitionsByNamespaceId(condition: {objectId: null}) { nodes { name jsonSchema: keywords } }
				objects: objectDefinitionsByNamespaceId { nodes { name description required } }
				tags: tagsByNamespaceId { nodes { name } }
				resourceTypeAssociations: resourceTypeAssociationsByNamespaceId { nodes {
					resourceType: resourceTypeByResourceTypeId { name } prefix propertiesTarget
				} }
			} } }`),
			goal: goal{ratio: 1.5, cpu: 1.5},
		},
		{
			name: "100 resources with metadata, 32 clients", clients: 32, operations: 320, list: resourcesList(),
			request:  read(`{ resources(first: 100) { nodes { uuid name type { name } projectId visibility metadata { key value userModifiable } } } }`, nil),
			compared: postgraphile("resources.nodes", `{ resources: allResources(first: 100, orderBy: [NAME_ASC]) { nodes { ...resource } } }`+resourceOfPostGraphile),
			goal:     goal{ratio: 1.5, cpu: 1.5},
		},
		{
			name: "33 namespaces, flat, 32 clients", clients: 32, operations: 640, list: []string{"namespaces", "nodes"},
			request: read(`{ namespaces(first: 33) { nodes { name displayName description visibility protected owner } } }`, nil),
			compared: postgraphile("namespaces.nodes", `{ namespaces: allNamespaces(first: 33, orderBy: [NAME_ASC]) { nodes {
				name displayName description visibility protected owner
			} } }`),
			goal: goal{ratio: 1.5, cpu: 1.5},
		},
		{
			name: "50 resources by a pair, 32 clients", clients: 32, operations: 320, list: resourcesList(),
			request:  read(resources, resourcesByPair()),
			compared: pairByPostGraphile(),
			goal:     goal{ratio: 1.5, cpu: 1.5},
		},
		{
			name: "viewer, 32 clients", clients: 32, operations: 3_200,
			request:  read(viewerQuery, nil),
			compared: &comparison{with: floorPeer, exact: true, call: viewerOfFloor, check: sameViewer},
			goal:     goal{ratio: 0.8},
		},
		{
			name: "metadata dialog", operations: 8, list: []string{"definitions"},
			request: read(dialog, object{"type": "OS::Glance::Image"}),
		},
		{
			name: "metadata dialog, 32 clients", clients: 32, operations: 960, list: []string{"definitions"},
			request: read(dialog, object{"type": "OS::Glance::Image"}),
		},
		{
			name: "100 resources with metadata", operations: 8, list: resourcesList(),
			request: read(resources, object{"first": 100, "filter": object{"types": []string{resourceType}}}),
		},
		{
			name: "50 resources by a pair of 0.5 %", operations: 8, list: resourcesList(),
			request: read(resources, resourcesByPair()),
		},
		claimWork("claim", 1, 100, 600),
		claimWork("claim, 4 clients", 4, 400, 1_300),
		claimWork("claim, 32 clients", 32, 1_600, 3_000),
		claimOfOneWork("claim of one provider, 32 clients", 32, 1_600),
	})
}

// claimWork is claims of one consumer each, by so many clients, each from another
// provider than those before and after.
func claimWork(name string, clients, operations int, rate float64) work {
	return work{
		name: name, clients: clients, operations: operations, list: []string{"setAllocations", "consumers"},
		request: func(w *world, n int) request {
			input := object{"consumers": []object{claim(w.uuid(name, n), w.freeProvider(n), 1, 1_024, 10)}}
			return request{Query: claiming, Variables: object{"input": input}}
		},
		undo: unclaim(name),
		goal: goal{rate: rate},
	}
}

// claimOfOneWork is claims of one consumer each, by so many clients, all from the
// provider that has most room.
func claimOfOneWork(name string, clients, operations int) work {
	return work{
		name: name, clients: clients, operations: operations, list: []string{"setAllocations", "consumers"},
		request: func(w *world, n int) request {
			input := claim(w.uuid(name, n), w.emptyProvider(), 1, 1, 1)
			input["allocations"].([]object)[0]["resources"] = []object{{"resourceClass": "MEMORY_MB", "amount": 1}}
			return request{Query: claiming, Variables: object{"input": object{"consumers": []object{input}}}}
		},
		undo: unclaim(name),
	}
}

// unclaim returns what takes the claims of a work back.
func unclaim(name string) func(*world, int) request {
	return func(w *world, n int) request {
		return request{Query: unclaiming, Variables: object{"input": object{"consumer": w.uuid(name, n)}}}
	}
}

func candidatesList() []string { return []string{"allocationCandidates", "nodes"} }

func resourcesList() []string { return []string{"resources", "nodes"} }

// resourcesByPair are the variables of the resources that hold a rare pair: 50
// of 10,000.
func resourcesByPair() object {
	return object{"first": 50, "filter": object{"metadata": []object{item(rarePair().key, rarePair().value)}}}
}

const viewerQuery = `{ viewer { userId } }`

// fullCandidates selects what the reference placement answers.
const fullCandidates = `
	nodes {
		allocations { provider { uuid } resources { resourceClass amount } }
		mappings { suffix providers { uuid } }
	}
	providerSummaries {
		provider { uuid parent { uuid } root { uuid } }
		inventories { resourceClass capacity used }
		traits
	}`

// read returns the request of a read.
func read(query string, variables object) func(*world, int) request {
	return func(*world, int) request { return request{Query: query, Variables: variables} }
}

// candidates returns the request for a page of candidates with what is selected
// of it: for a usual instance, on hosts with a trait that most of them have.
func candidates(first int, selection string) func(*world, int) request {
	return read(candidatesOf(selection), object{"first": first, "resources": usualInstance(), "traits": commonTraits()[:1]})
}

// candidatesOnHosts is candidates on the hosts whose resources hold a pair.
func candidatesOnHosts(first int, held pair, selection string) func(*world, int) request {
	const query = `query($first: Int!, $resources: [ResourceAmountInput!]!, $traits: [String!]!, $hosts: ResourceFilter!) {
		allocationCandidates(first: $first, resources: $resources, requiredAll: $traits, hosts: $hosts) { `
	return read(query+selection+` } }`, object{
		"first": first, "resources": usualInstance(), "traits": commonTraits()[:1],
		"hosts": object{"metadata": []object{item(held.key, held.value)}},
	})
}

// candidatesOf returns the query for candidates with a selection.
func candidatesOf(selection string) string {
	return `query($first: Int!, $after: String, $resources: [ResourceAmountInput!]!, $traits: [String!]!) {
		allocationCandidates(first: $first, after: $after, resources: $resources, requiredAll: $traits) { ` + selection + ` } }`
}

// usualInstance are the amounts that candidates are asked for.
func usualInstance() []object { return amounts(4, 8_192, 40) }

// freeProvider returns the uuid of a provider with room for a claim, another one
// for each n of as many as there are.
func (w *world) freeProvider(n int) string {
	const stride = 7_919 // a prime: neighbours in time are none in the database
	for i := n * stride; ; i++ {
		if p := w.providers[i%len(w.providers)]; !p.full {
			return p.uuid
		}
	}
}

// emptyProvider returns the uuid of a provider that has no consumers.
func (w *world) emptyProvider() string {
	i := slices.IndexFunc(w.providers, func(p provider) bool { return len(p.consumers) == 0 })
	return w.providers[i].uuid
}

const (
	claiming = `mutation($input: SetAllocationsInput!) {
		setAllocations(input: $input) {
			consumers { uuid generation allocations { provider { uuid generation } resourceClass used } }
		}
	}`
	unclaiming = `mutation($input: DeleteAllocationsInput!) { deleteAllocations(input: $input) { consumer { uuid } } }`
)

const resources = `query($first: Int!, $filter: ResourceFilter!) {
	resources(first: $first, filter: $filter) {
		nodes { uuid name type { name } projectId visibility metadata { key value userModifiable } }
	}
}`

// dialog asks for everything that a dialog of metadata shows of one type.
const dialog = `query($type: String!) {
	definitions(resourceType: $type) {
		namespace { name displayName description visibility protected owner }
		association { prefix propertiesTarget }
		properties { ...property }
		objects { name description required properties { ...property } }
		conflicts { name definitions { namespace { name } } }
	}
}
fragment property on PropertyDefinition {
	name title description type itemType enum itemEnum default minimum maximum minLength maxLength
	pattern minItems maxItems uniqueItems additionalItems readOnly required operators
}`
