package main

import "strings"

// countWorks returns the works whose answers are about more rows than they show:
// explanations, facets, counts and pages of frequent pairs. With -providers
// 100000 -resources 100000 their goals are those of the large world.
func countWorks() []work {
	explained := []string{"allocationCandidates", "explain", "steps"}
	const explain = `nodes { mappings { suffix } } explain { steps { kind constraint eliminated remaining } nearest { provider { name } traits missing { resourceClass short } } }`
	frequent := resource(item(commonPair().key, commonPair().value))
	works := []work{
		{name: "no candidates, 11 traits", operations: 8, goal: goal{median: 10}, request: noCandidates(manyTraits(), `nodes { mappings { suffix } }`)},
		{
			name: "no candidates, 11 traits, explained", operations: 4, list: explained,
			request: noCandidates(manyTraits(), explain), goal: goal{times: 3, than: "no candidates, 11 traits"},
		},
		{name: "no candidates, amounts too large", operations: 8, request: noCandidates(tooMuch(), `nodes { mappings { suffix } }`)},
		{
			name: "no candidates, amounts too large, explained", operations: 4, list: explained,
			request: noCandidates(tooMuch(), explain), goal: goal{times: 3, than: "no candidates, amounts too large"},
		},
		{
			name: "50 resources by a pair of 50 %", operations: 8, list: resourcesList(), goal: goal{median: 2},
			request: read(resources, object{"first": 50, "filter": frequent}),
		},
		{
			name: "50 resources by a pair of 50 % and a rare one", operations: 8, // none in a small world
			request: read(resources, object{"first": 50, "filter": resource(item(commonPair().key, commonPair().value), item(rarePair().key, rarePair().value))}),
		},
		{
			name: "50 resources by any of two pairs", operations: 8, list: resourcesList(), goal: goal{median: 10},
			request: read(resources, object{"first": 50, "filter": object{"where": object{"any": []object{metadataIs(commonPair()), metadataIs(rarePair())}}}}),
		},
		{
			name: "50 resources without a pair", operations: 8, list: resourcesList(), goal: goal{median: 10},
			request: read(resources, object{"first": 50, "filter": object{"where": object{"not": metadataIs(commonPair())}}}),
		},
		{
			name: "number of resources with a pair of 50 %", operations: 4, goal: goal{median: 5, ratio: 1.5, cpu: 1.5},
			request:  read(`query($filter: ResourceFilter!) { resources(first: 0, filter: $filter) { totalCount } }`, object{"filter": frequent}),
			compared: numberByPostGraphile(),
		},
		{
			name: "facet of metadata keys", operations: 2, list: facetsList(), goal: goal{median: 10},
			request: read(facets, object{"of": []object{{"by": "METADATA_KEY"}}}),
		},
		{
			name: "facets of the values of three keys", operations: 2, list: facetsList(), goal: goal{median: 10},
			request: read(facets, object{"of": []object{valuesOf("environment"), valuesOf("share_protocol"), valuesOf("owner_mail")}}),
		},
		{
			name: "facet of a key with as many values as resources", operations: 2, list: facetsList(), goal: goal{median: 30},
			request: read(facets, object{"of": []object{valuesOf("note")}}),
		},
		{
			name: "explained filter of resources", operations: 4, list: []string{"explainResources", "clauses"}, goal: goal{median: 10},
			request: read(`query($filter: ResourceFilter!) { explainResources(filter: $filter) { considered clauses { clause passing remaining } } }`,
				object{"filter": resource(item(commonPair().key, commonPair().value), item(rarePair().key, rarePair().value))}),
		},
	}
	return append(works, byMember(works)...)
}

// byMember returns the works on lists, counts and facets as a member of a project
// asks them, whose rights are part of every condition.
func byMember(works []work) []work {
	var all []work
	for _, one := range works {
		if strings.HasPrefix(one.name, "no candidates") {
			continue
		}
		one.name += ", by a member"
		one.member, one.compared, one.goal.ratio = true, nil, 0
		all = append(all, one)
	}
	return all
}

// resource returns the filter of resources with some metadata items.
func resource(items ...object) object { return object{"metadata": items} }

func metadataIs(of pair) object {
	return object{"metadata": object{"key": of.key, "equals": of.value}}
}

func valuesOf(key string) object { return object{"by": "METADATA_VALUE", "key": key, "first": 20} }

func facetsList() []string { return []string{"resources", "facets"} }

const facets = `query($of: [ResourceFacetInput!]!) { resources(first: 0) { facets(of: $of) { key hasMore values { value resourceCount } } } }`

// asked is what candidates are asked for in vain.
type asked struct {
	resources []object
	traits    []string
}

// manyTraits returns more rare traits than any host has.
func manyTraits() asked {
	of := asked{resources: usualInstance()}
	for i := range rareTraitsEach + 3 {
		of.traits = append(of.traits, rareTrait(i))
	}
	return of
}

// tooMuch returns more disk than any host has.
func tooMuch() asked { return asked{amounts(4, 8_192, 1_000_000), commonTraits()[:1]} }

// noCandidates returns the request for candidates of which there are none, with
// what is selected of it.
func noCandidates(of asked, selection string) func(*world, int) request {
	return read(candidatesOf(selection), object{"first": 10, "resources": of.resources, "traits": of.traits})
}
