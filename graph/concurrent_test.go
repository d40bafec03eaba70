package graph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// concurrentWrites are writes of every kind, to so few things that they
// conflict. Names in braces are placeholders; see oneOf.
var concurrentWrites = []string{
	`createNamespace(input: {name: "${space}", visibility: ${visibility}, properties: [{name: "${name}", title: "t", type: STRING}], tags: [{name: "${tag}"}],
		resourceTypeAssociations: [{resourceType: "${type}", prefix: "x_"}]}) { namespace { name owner } }`,
	`updateNamespace(input: {name: "${space}", displayName: "${number}"}) { namespace { revision } }`,
	`updateNamespace(input: {name: "${space}", newName: "${space}"}) { namespace { revision } }`,
	`deleteNamespace(input: {name: "${space}"}) { namespace { name } }`,
	`createProperty(input: {namespace: "${space}", name: "${name}", title: "x", type: INTEGER}) { propertyDefinition { name namespace { revision } } }`,
	`updateProperty(input: {namespace: "${space}", name: "${name}", newName: "${name}"}) { propertyDefinition { name } }`,
	`deleteProperty(input: {namespace: "${space}", name: "${name}"}) { propertyDefinition { name } }`,
	`createObject(input: {namespace: "${space}", name: "${name}", required: ["q"], properties: [{name: "q", title: "q", type: STRING}]}) { objectDefinition { properties { name } } }`,
	`deleteObject(input: {namespace: "${space}", name: "${name}"}) { objectDefinition { name } }`,
	`setTags(input: {namespace: "${space}", tags: [{name: "${tag}"}, {name: "z", parent: "${tag}"}], mode: REPLACE}) { namespace { tags { name parent { name } } } }`,
	`setTags(input: {namespace: "${space}", tags: [{name: "${tag}"}], mode: APPEND}) { namespace { tags { name } } }`,
	`updateTag(input: {namespace: "${space}", name: "${tag}", parent: "${tag}"}) { tag { name } }`,
	`deleteTag(input: {namespace: "${space}", name: "${tag}"}) { tag { name } }`,
	`deleteNamespaceContents(input: {namespace: "${space}", kinds: [PROPERTIES, OBJECTS, TAGS]}) { namespace { name } }`,
	`createResourceType(input: {name: "${type}"}) { resourceType { name } }`,
	`deleteResourceType(input: {name: "${type}"}) { resourceType { name } }`,
	`associateResourceType(input: {namespace: "${space}", resourceType: "${type}", prefix: "y:"}) { resourceTypeAssociation { prefix } }`,
	`shareNamespace(input: {namespace: "${space}", projectId: "demo", role: EDITOR}) { namespace { members { projectId } } }`,
	`unshareNamespace(input: {namespace: "${space}", projectId: "demo"}) { namespace { name } }`,
	`importNamespaces(input: {documents: ["{\"namespace\": \"${space}\", \"visibility\": \"public\", \"properties\": {\"${name}\": {\"title\": \"t\", \"type\": \"string\"}}, \"resource_type_associations\": [{\"name\": \"${type}\"}]}"], mode: ${mode}}) { reports { outcome errors } }`,
	`unloadNamespaces(input: {names: ["${space}"]}) { reports { outcome } }`,
	`createResource(input: {uuid: "${resource}", type: "${kind}", name: "n", tags: ["${tag}"], metadata: [{key: "k", value: "v"}]}) { resource { type { name } } }`,
	`updateResource(input: {uuid: "${resource}", newName: "${number}"}) { resource { name } }`,
	`deleteResource(input: {uuid: "${resource}"}) { resource { type { name } } }`,
	`setMetadata(input: {resource: "${resource}", items: [{key: "${name}", value: "${number}"}]}) { resource { metadata { definitions { name } } } }`,
	`replaceMetadata(input: {resource: "${resource}", items: [{key: "${name}", value: "${number}"}]}) { resource { metadata { key } } }`,
	`deleteMetadata(input: {resource: "${resource}", keys: ["${name}"]}) { resource { revision } }`,
	`setResourceTags(input: {resource: "${resource}", tags: ["${tag}"]}) { resource { tags } }`,
	`setCapabilities(input: {resource: "${resource}", capabilities: [{key: "${name}", value: "${number}"}]}) { resource { capabilities(includePrivate: true) { value } } }`,
	`unsetCapabilities(input: {resource: "${resource}", names: ["${name}"]}) { resource { uuid } }`,
	`createCapability(input: {resourceType: "${kind}", name: "${name}", private: false}) { capability { name } }`,
	`setCapabilityVisibility(input: {resourceType: "${kind}", name: "${name}", private: true}) { capability { values { nodes { resourceCount } } } }`,
	`deleteCapability(input: {resourceType: "${kind}", name: "${name}", force: true}) { capability { name } }`,
	`createResourceProvider(input: {uuid: "${provider}", name: "${provider}", resource: "${resource}"}) { resourceProvider { resource { name } } }`,
	`createResourceProvider(input: {uuid: "${provider}", name: "${provider}", parent: "${provider}"}) { resourceProvider { root { uuid } } }`,
	`updateResourceProvider(input: {provider: "${provider}", parent: "${provider}"}) { resourceProvider { root { uuid } } }`,
	`updateResourceProvider(input: {provider: "${provider}", parent: null}) { resourceProvider { children { nodes { uuid } } } }`,
	`deleteResourceProvider(input: {provider: "${provider}"}) { resourceProvider { uuid } }`,
	`setInventories(input: {provider: "${provider}", inventories: [{resourceClass: "VCPU", total: 9}, {resourceClass: "${class}", total: 3}]}) { resourceProvider { inventories { free } } }`,
	`setInventory(input: {provider: "${provider}", inventory: {resourceClass: "${class}", total: 5}}) { resourceProvider { generation } }`,
	`updateInventories(input: {filter: {}, resourceClass: "${class}", reserved: 1, atomic: false}) { changed refusals { resourceProvider { inventories { free } } } }`,
	`deleteInventory(input: {provider: "${provider}", resourceClass: "${class}"}) { resourceProvider { generation } }`,
	`createTrait(input: {name: "${trait}"}) { trait { name } }`,
	`deleteTrait(input: {name: "${trait}"}) { trait { name } }`,
	`createResourceClass(input: {name: "${class}"}) { resourceClass { name } }`,
	`deleteResourceClass(input: {name: "${class}"}) { resourceClass { name } }`,
	`setOnResourceProviders(input: {atomic: false, items: [{provider: "${provider}", traits: ["${trait}"], inventories: [{resourceClass: "VCPU", total: 7}]}]}) { results { resourceProvider { traits inventories { free } } errors { code } } }`,
	`setProviderTraits(input: {provider: "${provider}", traits: ["${trait}"]}) { resourceProvider { traits } }`,
	`setProviderAggregates(input: {provider: "${provider}", aggregates: ["${consumer}"]}) { resourceProvider { aggregates } }`,
	`setAllocations(input: {consumers: [{uuid: "${consumer}", projectId: "p", userId: "u", generation: ${generation}, allocations: [{provider: "${provider}",
		resources: [{resourceClass: "VCPU", amount: ${number}}]}]}]}) { consumers { generation } }`,
	`deleteAllocations(input: {consumer: "${consumer}"}) { consumer { uuid } }`,
	`reshape(input: {inventories: [{provider: "${provider}", inventories: [{resourceClass: "VCPU", total: 9}]}], consumers: []}) { resourceProviders { generation } }`,
}

// concurrentReads read everything while it changes.
var concurrentReads = []string{
	`{ namespaces { totalCount nodes { name properties { namespace { name } } objects { properties { object { name } } } tags { parent { name } } resourceTypeAssociations { resourceType { name } namespace { name } } members { projectId } } } }`,
	`{ definitions(resourceType: "OS::Nova::Flavor") { namespace { name } properties { name } conflicts { name } } }`,
	`{ resources { nodes { type { name } metadata { definitions { name } } metadataReport { valid } capabilities { name } tags provider { name } } } }`,
	`{ resourceTypes { nodes { capabilities(includePrivate: true) { values { nodes { resourceCount } } } resources { totalCount } namespaces { totalCount } } } }`,
	`{ resourceProviders { nodes { root { uuid } parent { uuid } children { nodes { uuid } } inventories { used } traits resource { name } allocations { totalCount nodes { consumer { uuid } } } } } }`,
	`{ allocationCandidates(resources: [{resourceClass: "VCPU", amount: 1}]) { totalCount nodes { allocations { provider { resource { name } } } } providerSummaries { traits } explain { considered } } }`,
	`{ consumers { nodes { allocations { provider { name } } } } auditEvents(first: 5) { nodes { action } } }`,
}

// oneOf returns a random value for a placeholder in a write.
func oneOf(chance *rand.Rand, name string) string {
	among := map[string][]string{
		"space": {"A", "B"}, "name": {"a", "b"}, "tag": {"t", "T", "u"},
		"type": {"X::One", "X::Two", "OS::Nova::Flavor"},
		"kind": {"physical:host", "X::One"}, "visibility": {"PUBLIC", "PRIVATE"},
		"mode":   {"SKIP", "MERGE", "PREFER_NEW", "OVERWRITE"},
		"number": {"1", "2", "3"}, "generation": {"null", "1", "2"},
		"trait": {"CUSTOM_A", "CUSTOM_B"}, "class": {"CUSTOM_C", "CUSTOM_D"},
	}[name]
	if among == nil { // a uuid
		return fmt.Sprintf("%08x-0000-4000-8000-00000000000%d", len(name), chance.IntN(4))
	}
	return among[chance.IntN(len(among))]
}

// TestConcurrentWritersAreDoneOrRefused lets clients of two servers on
// PostgreSQL, and of one on SQLite, write and read the same few things
// concurrently. No client may get an internal error, no usage may be lost, and
// in the end the servers must agree.
func TestConcurrentWritersAreDoneOrRefused(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		executors := []*graph.Executor{executorOf(t, storetest.Open(t, url))}
		if strings.HasPrefix(url, "postgres") {
			executors = append(executors, executorOf(t, storetest.Open(t, url)))
		}
		var clients sync.WaitGroup
		for client := range uint64(6) {
			clients.Go(func() { writeAndRead(t, executors, client) })
		}
		clients.Wait()
		var uses []string
		if !patience.Until(t, 20*time.Second, func() bool {
			uses = uses[:0]
			for _, executor := range executors {
				uses = append(uses, usesOf(t, executor))
			}
			return uses[0] == uses[len(uses)-1]
		}) {
			t.Fatalf("the servers do not agree:\n%s", strings.Join(uses, "\n"))
		}
		if strings.Contains(uses[0], "!") {
			t.Errorf("uses are not the sums of allocations: %s", uses[0])
		}
	})
}

// writeAndRead sends the random operations of one client.
func writeAndRead(t *testing.T, executors []*graph.Executor, client uint64) {
	chance := rand.New(rand.NewPCG(client, 7))
	for round := range uint64(240) {
		query := concurrentReads[chance.IntN(len(concurrentReads))]
		if chance.IntN(8) > 0 {
			// For a while all clients write the same few things: neighbors in
			// the list.
			write := concurrentWrites[(int(round/30)*6+chance.IntN(12))%len(concurrentWrites)]
			query = "mutation { " + os.Expand(write, func(name string) string { return oneOf(chance, name) }) + " }"
		}
		ctx := access.WithViewer(context.Background(), viewers[[]string{"admin", "admin", "member"}[chance.IntN(3)]])
		response := executors[chance.IntN(len(executors))].Execute(ctx, &graphql.RawParams{Query: query})
		for _, err := range response.Errors {
			switch code := err.Extensions["code"]; code {
			case "INTERNAL", "TIMEOUT", "UNAVAILABLE", "GRAPHQL_VALIDATION_FAILED", "GRAPHQL_PARSE_FAILED":
				t.Errorf("%s %v at %v: %s", code, err.Message, err.Path, query)
			}
		}
	}
}

// use is the usage of a resource class.
type use struct {
	ResourceClass string
	Used          int
}

// usedProvider is a provider with its usage in memory and its allocations in
// the database.
type usedProvider struct {
	UUID        string
	Generation  int
	Root        struct{ UUID string }
	Inventories []use
	Allocations struct{ Nodes []use }
}

// usesOf returns a line with the usage of each provider. It has "!" if the
// allocations do not add up to the usage.
func usesOf(t *testing.T, executor *graph.Executor) string {
	t.Helper()
	ctx := access.WithViewer(context.Background(), viewers["admin"])
	response := executor.Execute(ctx,
		&graphql.RawParams{Query: `{ resourceProviders { nodes { uuid generation root { uuid } inventories { resourceClass used } allocations(first: 1000) { nodes { resourceClass used } } } } }`})
	if len(response.Errors) > 0 {
		t.Fatal(response.Errors)
	}
	var data struct {
		ResourceProviders struct{ Nodes []usedProvider }
	}
	if err := json.Unmarshal(response.Data, &data); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, provider := range data.ResourceProviders.Nodes {
		sums := map[string]int{}
		for _, allocation := range provider.Allocations.Nodes {
			sums[allocation.ResourceClass] += allocation.Used
		}
		fmt.Fprintf(&out, "%s %d below %s:", provider.UUID, provider.Generation, provider.Root.UUID)
		for _, inventory := range provider.Inventories {
			out.WriteString(" " + inventory.ResourceClass + " " + strconv.Itoa(inventory.Used))
			if sums[inventory.ResourceClass] != inventory.Used {
				out.WriteString("!")
			}
		}
		out.WriteString("\n")
	}
	return out.String()
}
