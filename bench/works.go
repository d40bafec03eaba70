package main

// work is one thing that the benchmark times: an operation of the API.
type work struct {
	name string
	// operations is how many are timed in each round.
	operations int
	// list is the path to the list of the answer that the work is about; its
	// length is the report's number of rows.
	list []string
	// request returns the n-th request, from 0. That of a read is always the same.
	request func(w *world, n int) request
	// undo returns what takes back the n-th request; nil for a read.
	undo func(w *world, n int) request
}

// works returns everything that is timed. A row more is an element more.
func works() []work {
	return []work{
		{
			name: "candidates, first 10", operations: 20, list: []string{"allocationCandidates", "nodes"},
			request: candidates(10, `nodes { allocations { provider { uuid name } resources { resourceClass amount } } }`),
		},
		{
			name: "candidates, first 1000, full answer", operations: 4, list: []string{"allocationCandidates", "nodes"},
			request: candidates(1000, `
				nodes {
					allocations { provider { uuid } resources { resourceClass amount } }
					mappings { suffix providers { uuid } }
				}
				providerSummaries {
					provider { uuid parent { uuid } root { uuid } }
					inventories { resourceClass capacity used }
					traits
				}`),
		},
		{
			name: "metadata dialog", operations: 8, list: []string{"definitions"},
			request: read(dialog, object{"type": "OS::Glance::Image"}),
		},
		{
			name: "100 resources with metadata", operations: 8, list: []string{"resources", "nodes"},
			request: read(resources, object{"first": 100, "filter": object{"types": []string{resourceType}}}),
		},
		{
			name: "50 resources by a pair of 0.5 %", operations: 8, list: []string{"resources", "nodes"},
			request: read(resources, object{"first": 50, "filter": object{"metadata": []object{item(rarePair().key, rarePair().value)}}}),
		},
		{
			name: "claim", operations: 20, list: []string{"setAllocations", "consumers"},
			request: func(w *world, n int) request {
				input := object{"consumers": []object{claim(w.uuid("claim", n), w.freeProvider(n), 1, 1_024, 10)}}
				return request{Query: claiming, Variables: object{"input": input}}
			},
			undo: func(w *world, n int) request {
				return request{Query: unclaiming, Variables: object{"input": object{"consumer": w.uuid("claim", n)}}}
			},
		},
	}
}

// read returns the request of a read.
func read(query string, variables object) func(*world, int) request {
	return func(*world, int) request { return request{Query: query, Variables: variables} }
}

// candidates returns the request for a page of candidates with what is selected
// of it: for a usual instance, on hosts with a trait that most of them have.
func candidates(first int, selection string) func(*world, int) request {
	const query = `query($first: Int!, $resources: [ResourceAmountInput!]!, $traits: [String!]!) {
		allocationCandidates(first: $first, resources: $resources, requiredAll: $traits) { `
	return read(query+selection+` } }`, object{"first": first, "resources": amounts(4, 8_192, 40), "traits": commonTraits()[:1]})
}

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
