package graph_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"testing"

	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/soak"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// lists are queries of pages with every kind of order and filter.
var lists = []string{
	`{ namespaces(first: ${number}, orderBy: {field: ${order}, direction: ${direction}}) { totalCount pageInfo { hasNextPage hasPreviousPage } nodes { name displayName } } }`,
	`{ namespaces(last: ${number}, orderBy: {field: DISPLAY_NAME, direction: ${direction}}) { nodes { name } pageInfo { hasNextPage hasPreviousPage startCursor } } }`,
	`{ namespaces(filter: {search: "${text}"}) { nodes { name } } tags(search: "${text}") { totalCount nodes { name parent { name } resourceCount } } }`,
	`{ namespaces(filter: {tag: "${text}", definesKey: "x_${text}", resourceTypes: ["${type}"]}) { nodes { name } } }`,
	`{ definitions(resourceType: "${type}", search: "${text}") { namespace { name } properties { name baseName type } conflicts { name definitions { namespace { name } } } } }`,
	`{ validateMetadata(resourceType: "${type}", values: [{key: "x_${text}", value: "${text}"}, {key: "${text}", value: "<in> 1,2"}]) { valid items { isCustom suggestion operator values definitions { name } violations { rule } } } }`,
	`{ exportNamespaces(resourceTypes: ["${type}"]) }`,
	`{ resources(filter: {nameContains: "${text}"}, orderBy: {field: ${order}, direction: ${direction}}, first: ${number}) { nodes { uuid name } pageInfo { hasNextPage endCursor } } }`,
	`{ resources(filter: {where: {any: [{metadata: {key: "${text}", prefix: "${text}"}}, {not: {capability: {name: "${text}", gte: "${number}"}}}]}}) { totalCount nodes { uuid metadata { key value } } metadataFacets(keys: ["${text}"]) { key values { nodes { value resourceCount } } } } }`,
	`{ resources(filter: {tags: [{name: "${text}", includeDescendants: true}]}) { nodes { uuid tags } } metadataKeys(search: "${text}") { nodes { key resourceCount } } }`,
	`{ resources(filter: {matching: "[\"or\", [\"==\", \"$${text}\", \"${text}\"], [\">\", \"$${text}\", \"1\"]]"}) { nodes { uuid } } }`,
	`{ resourceType(name: "${kind}") { capabilities(includePrivate: true) { name private valueCount values(first: 2, startsWith: "${text}") { nodes { value resourceCount } } } resources(first: 1) { nodes { name } } } }`,
	`{ resourceProviders(orderBy: {field: ${order}, direction: ${direction}}, first: ${number}) { totalCount nodes { name generation } } consumers { nodes { uuid generation } } }`,
	`{ resourceProviders(filter: {resources: [{resourceClass: "VCPU", amount: ${number}}], requiredAll: ["CUSTOM_A"]}) { nodes { uuid } } traits(filter: {custom: true}) { nodes { name } } }`,
	`{ allocationCandidates(resources: [{resourceClass: "VCPU", amount: ${number}}], hosts: {nameContains: "${text}"}) { totalCount explain { steps { constraint remaining } } } resourceProviders(filter: {resource: {types: ["${type}"]}}) { totalCount nodes { name } } }`,
	`{ allocationCandidates(resources: [{resourceClass: "VCPU", amount: ${number}}], first: ${number}) { totalCount nodes { allocations { provider { uuid } } } pageInfo { endCursor } explain { considered steps { constraint eliminated remaining } } } }`,
	`{ usages(projectId: "p") { consumerType consumerCount usages { resourceClass used } } auditEvents(first: ${number}) { nodes { action kind key before after } } }`,
}

// building matches the writes that create more than they delete.
var building = regexp.MustCompile(`^(create|set|import|associate|share)`)

// TestBothDatabasesAnswerAlike sends the same random writes and reads to a
// server on SQLite and to one on PostgreSQL. Every answer must have the same
// bytes and take the same number of statements.
func TestBothDatabasesAnswerAlike(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			var executors []*graph.Executor
			for _, url := range []string{storetest.SQLite(t), storetest.Postgres(t)} {
				executors = append(executors, executorOf(t, storetest.Open(t, url)))
			}
			types := executors[0].Schema().Types
			chance := rand.New(rand.NewPCG(seed, 11))
			saved := []map[string]string{{}, {}}
			for round := range soak.Rounds(400) {
				query := pick(chance, types, types["Query"], 3).plain()
				switch list := lists[chance.IntN(len(lists))]; chance.IntN(10) {
				case 0:
				case 1, 2, 3:
					query = os.Expand(list, func(name string) string { return anyOf(chance, name) })
				default:
					write := concurrentWrites[chance.IntN(len(concurrentWrites))]
					for chance.IntN(4) > 0 && !building.MatchString(write) {
						write = concurrentWrites[chance.IntN(len(concurrentWrites))]
					}
					query = "mutation { " + os.Expand(write, func(name string) string { return anyOf(chance, name) }) +
						" }"
				}
				query = "# viewer: " +
					[]string{"admin", "admin", "admin", "admin", "member", "reader"}[chance.IntN(6)] + "\n" + query
				lite, statements := run(t, executors[0], query, saved[0])
				postgres, others := run(t, executors[1], query, saved[1])
				if lite != postgres || statements != others {
					t.Fatalf("round %d: %s\n%d statements: %s\n%d statements: %s", round,
						query, statements, lite, others, postgres)
				}
			}
		})
	}
}

// anyOf is oneOf with strings of every kind.
func anyOf(chance *rand.Rand, name string) string {
	among := map[string][]string{
		"space": {"A", "b", "Ä", "a b", "日本"}, "name": {"a", "B", "ä", "%", "_", "z\U0001F600"},
		"tag":   {"t", "T", "ß", "ẞ", "İ"},
		"text":  {"a", "B", "Ä", "t", "%", "_", "1", "z\U0001F600"},
		"order": {"NAME", "CREATED_AT", "UPDATED_AT"}, "direction": {"ASC", "DESC"},
		"$": {"$"},
	}[name]
	if among == nil {
		return oneOf(chance, name)
	}
	return among[chance.IntN(len(among))]
}
