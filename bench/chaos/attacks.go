package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cadastre-dev/cadastre/bench/local"
)

// manner is how an attacker's connections behave.
type manner string

const (
	asking        manner = "asking"          // send a request, read its answer, send the next one
	notReading    manner = "not reading"     // send a request and read nothing
	readingSlowly manner = "reading slowly"  // read a byte a second
	sendingSlowly manner = "sending slowly"  // send a byte a second
	connecting    manner = "connecting"      // open a connection, send nothing, open the next one
	guessing      manner = "guessing tokens" // send an unknown token, from the address of the innocents
)

// attack is one way for one viewer to exhaust a server.
type attack struct {
	name   string
	manner manner
	// connections are used at once.
	connections int
	// service is whether the attacker has the role service in place of member:
	// members may not claim.
	service bool
	// most is up to how large the request may be made; the largest that is not too
	// complex is sent. 0 is one size.
	most int
	// request returns the request of a size. The n-th differs from others where a
	// document or what it writes is to be another one each time.
	request func(w *world, size, n int) local.Request
	// varied is whether it does.
	varied bool
}

const atOnce = 64 // of an attacker

// attacks returns all of them.
func attacks() []attack {
	return []attack{
		{name: "60 aliases of 49 contains", most: 60, request: func(w *world, size, _ int) local.Request {
			var fields strings.Builder
			for i := range size { // pages of different lengths: equal fields would be answered once
				fmt.Fprintf(&fields, " a%d: resources(first: %d, filter: $filter) { totalCount }", i, i+1)
			}
			return local.Request{Query: "query($filter: ResourceFilter) {" + fields.String() + " }", Variables: object{"filter": object{"where": object{"any": w.containsAsVariable(49)}}}}
		}},
		{name: "as many contains as may be", most: 49, request: func(w *world, size, _ int) local.Request {
			return local.Request{Query: fmt.Sprintf(`{ resources(first: 1, filter: {where: {any: [%s]}}) { totalCount } }`, w.contains(size, 0))}
		}},
		{name: "search", most: 60, request: aliases(func(_ *world, i int) string {
			return fmt.Sprintf(`resources(first: 1, filter: {search: "%c%d"}) { totalCount }`, 'a'+i%26, i)
		})},
		{name: "metadataFacets", most: 60, request: aliases(func(w *world, i int) string {
			return fmt.Sprintf(`resources(first: 1, filter: {where: {not: {metadata: {key: "key-%02d", equals: "%d"}}}}) { metadataFacets(keys: [%s], first: 1000) { values { value resourceCount } } }`,
				i%w.size.Items, i, w.keys(20))
		})},
		{name: "metadataKeys", most: 60, request: aliases(func(_ *world, i int) string {
			return fmt.Sprintf(`metadataKeys(search: "%d", first: 1000) { totalCount nodes { key } }`, i)
		})},
		{name: "explainResources", most: 60, request: aliases(func(w *world, i int) string {
			return fmt.Sprintf(`explainResources(filter: {search: "%d", where: {all: [%s]}}) { considered clauses { passing remaining } }`, i, w.contains(8, i))
		})},
		{name: "exportNamespaces", most: 60, request: aliases(func(_ *world, i int) string {
			return fmt.Sprintf(`exportNamespaces(portable: %t)`, i%2 == 0)
		})},
		{name: "validateMetadata", most: 60, request: func(w *world, size, _ int) local.Request {
			var fields strings.Builder
			for i := range size {
				fmt.Fprintf(&fields, " a%d: validateMetadata(resourceType: %q, values: $values) { valid items { key isCustom suggestion } }", i, resourceType)
			}
			return local.Request{Query: "query($values: [KeyValueInput!]!) {" + fields.String() + " }", Variables: object{"values": w.values(1000)}}
		}},
		{name: "allocationCandidates, sameSubtree", most: 60, request: aliases(func(_ *world, i int) string {
			return fmt.Sprintf(`allocationCandidates(first: 1, groupPolicy: ISOLATE, groups: [%s], sameSubtree: [{suffixes: [%s]}]) { totalCount }`,
				groups(12, i), suffixes(12))
		})},
		{name: "deep document", most: 13, request: func(_ *world, size, _ int) local.Request {
			return local.Request{Query: "{ resources(first: 5) { nodes { " + strings.Repeat("parent { ", size) + "uuid" + strings.Repeat(" }", size) + " } } }"}
		}},
		{name: "wide documents, each another one", most: 490, varied: true, request: func(_ *world, size, n int) local.Request {
			var fields strings.Builder
			for i := range size {
				fmt.Fprintf(&fields, " a%d_%d: name", n, i)
			}
			return local.Request{Query: "{ resources(first: 1) { nodes {" + fields.String() + " } } }"}
		}},
		{name: "documents that are hard to validate", most: 590, varied: true, request: func(_ *world, size, n int) local.Request {
			return local.Request{Query: "{ viewer {" + strings.Repeat(" userId projectId isAdmin roles __typename", size) + fmt.Sprintf(" a%d: userId } }", n)}
		}},
		{name: "introspection", most: 30, request: aliases(func(*world, int) string {
			return `__schema { types { name description fields(includeDeprecated: true) { name description args { name description } } inputFields { name } enumValues { name } } }`
		})},
		{name: "long answers", most: 60, request: longAnswer},
		{name: "long answers that nobody reads", manner: notReading, connections: 256, most: 60, request: longAnswer},
		{name: "slow readers", manner: readingSlowly, connections: 256, most: 60, request: longAnswer},
		{name: "slow requests", manner: sendingSlowly, connections: 256, request: cheap},
		{name: "connections", manner: connecting, connections: 512, request: cheap},
		{name: "wrong tokens", manner: guessing, request: cheap},
		{name: "writes of one resource", varied: true, request: func(w *world, _, n int) local.Request {
			const document = `mutation($input: SetMetadataInput!) { setMetadata(input: $input) { resource { uuid } } }`
			return local.Request{Query: document, Variables: object{"input": object{"resource": w.ofAttacker(), "items": []object{{"key": "flood", "value": fmt.Sprint(n)}}}}}
		}},
		{name: "claims on one provider", service: true, varied: true, request: func(w *world, _, n int) local.Request {
			return claimRequest(w.uuid("flood", n), w.flooded(), 1)
		}},
		{name: "files to import", varied: true, request: func(_ *world, _, n int) local.Request {
			const document = `mutation($input: ImportNamespacesInput!) { importNamespaces(input: $input) { reports { outcome } } }`
			return local.Request{Query: document, Variables: object{"input": object{"documents": []string{largeDefinitions(n)}}}}
		}},
		{name: "parts of files", varied: true, request: func(w *world, _, n int) local.Request {
			const document = `mutation($input: StageNamespacePartInput!) { stageNamespacePart(input: $input) { __typename } }`
			return local.Request{Query: document, Variables: object{"input": object{"upload": w.uuid("upload", n), "part": 0, "text": largeDefinitions(n)}}}
		}},
		{name: "large bodies", request: func(*world, int, int) local.Request {
			return local.Request{Query: "{ __typename }", Variables: object{"unused": strings.Repeat("x", 1_000_000)}}
		}},
	}
}

// object is a value of an input type.
type object = local.Object

// aliases returns a request function for documents of `size` fields.
func aliases(field func(w *world, i int) string) func(*world, int, int) local.Request {
	return func(w *world, size, _ int) local.Request {
		var fields strings.Builder
		for i := range size {
			fmt.Fprintf(&fields, " a%d: %s", i, field(w, i))
		}
		return local.Request{Query: "{" + fields.String() + " }"}
	}
}

// cheap is the cheapest request.
func cheap(*world, int, int) local.Request { return local.Request{Query: "{ __typename }"} }

// longAnswer asks for pages of all traits, 100 kB each.
func longAnswer(w *world, size, n int) local.Request {
	return aliases(func(*world, int) string { return `traits(first: 1000) { nodes { id name custom } }` })(w, size, n)
}

// groups returns groups that can be on many providers.
func groups(count, i int) string {
	var all []string
	for g := range count {
		all = append(all, fmt.Sprintf(`{suffix: "g%d", resources: [{resourceClass: "VCPU", amount: %d}]}`, g, 1+(g+i)%3))
	}
	return strings.Join(all, " ")
}

func suffixes(count int) string {
	var all []string
	for g := range count {
		all = append(all, fmt.Sprintf(`"g%d"`, g))
	}
	return strings.Join(all, " ")
}

// largeDefinitions returns a definition file of about 900 kB.
func largeDefinitions(n int) string {
	properties := object{}
	for i := range 900 {
		properties[fmt.Sprintf("p%d", i)] = object{"title": "t", "type": "string", "description": strings.Repeat("d", 900)}
	}
	text, err := json.Marshal(object{"namespace": fmt.Sprint("flood", n), "properties": properties})
	if err != nil {
		panic(err) // strings and maps
	}
	return string(text)
}
