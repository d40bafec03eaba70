package graph_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/internal/soak"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/metadefdb"
	"github.com/cadastre-dev/cadastre/store/resourcedb"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// residentWrites change definitions, their visibility, and resource types, in
// all ways. ${n} is the number of the write.
var residentWrites = []string{
	`createNamespace(input: {name: "${space}", visibility: ${visibility}, owner: "${owner}", displayName: "${title}", properties: [{name: "size", title: "t ${n}", type: INTEGER, maximum: ${n}}, {name: "arch", title: "a", type: STRING, enum: ["x", "y"]}], objects: [{name: "Group", required: ["inner"], properties: [{name: "inner", title: "in ${n}", type: STRING}, {name: "size", title: "in size", type: STRING}]}], resourceTypeAssociations: [{resourceType: "${type}", prefix: "${prefix}"}, {resourceType: "${type}", prefix: "other_", propertiesTarget: "image"}]})`,
	`createNamespace(input: {name: "${space}", visibility: PRIVATE, owner: "${owner}", resourceTypeAssociations: [{resourceType: "${hidden}"}]})`,
	`updateNamespace(input: {name: "${space}", visibility: ${visibility}, description: "${n}", displayName: "${title}"})`,
	`updateNamespace(input: {name: "${space}", owner: "${owner}"})`,
	`updateNamespace(input: {name: "${space}", newName: "${space}"})`,
	`deleteNamespace(input: {name: "${space}"})`,
	`deleteNamespaceContents(input: {namespace: "${space}", kinds: [PROPERTIES]})`,
	`shareNamespace(input: {namespace: "${space}", projectId: "${owner}"})`,
	`shareNamespace(input: {namespace: "${space}", projectId: "*"})`,
	`unshareNamespace(input: {namespace: "${space}", projectId: "${owner}"})`,
	`unshareNamespace(input: {namespace: "${space}", projectId: "*"})`,
	`createProperty(input: {namespace: "${space}", name: "p${some}", title: "p ${n}", type: STRING, description: "${title}"})`,
	`updateProperty(input: {namespace: "${space}", name: "size", title: "Size ${n}", maximum: ${n}})`,
	`updateProperty(input: {namespace: "${space}", name: "p${some}", newName: "q${some}"})`,
	`deleteProperty(input: {namespace: "${space}", name: "p${some}"})`,
	`createObject(input: {namespace: "${space}", name: "O${some}", required: ["k"], properties: [{name: "k", title: "k ${n}", type: NUMBER}]})`,
	`updateObject(input: {namespace: "${space}", name: "Group", description: "${n}", properties: [{name: "inner", title: "Inner ${n}", type: STRING}, {name: "i${some}", title: "x", type: STRING}]})`,
	`deleteObject(input: {namespace: "${space}", name: "O${some}"})`,
	`setTags(input: {namespace: "${space}", tags: [{name: "Top"}, {name: "T${some}", parent: "Top"}]})`,
	`associateResourceType(input: {namespace: "${space}", resourceType: "${type}", prefix: "p${some}:"})`,
	`associateResourceType(input: {namespace: "${space}", resourceType: "${hidden}", propertiesTarget: "image"})`,
	`importNamespaces(input: {mode: OVERWRITE, documents: ["{\"namespace\": \"${space}\", \"visibility\": \"public\", \"description\": \"${n}\", \"properties\": {\"size\": {\"title\": \"Size ${n}\", \"type\": \"integer\"}}, \"resource_type_associations\": [{\"name\": \"${type}\", \"prefix\": \"many0:\"}, {\"name\": \"${hidden}\"}]}"]})`,
	`createResourceType(input: {name: "${hidden}", strict: ${bool}})`,
	`updateResourceType(input: {name: "${type}", strict: ${bool}})`,
	`updateResourceType(input: {name: "${hidden}", strict: ${bool}, protected: ${bool}})`,
	`updateResourceType(input: {name: "${hidden}", newName: "${hidden}"})`,
	`deleteResourceType(input: {name: "${hidden}"})`,
	`createResource(input: {uuid: "${new}", type: "${hidden}", name: "new ${n}", projectId: "${owner}", visibility: ${visibility}, parent: null})`,
	`createResource(input: {uuid: "${new}", type: "${type}", name: "new ${n}", projectId: "${owner}", visibility: ${visibility}, parent: null, metadata: [{key: "size", value: "${n}"}, {key: "p${some}", value: "v"}]})`,
	`setMetadata(input: {resource: "${new}", items: [{key: "size", value: "x"}, {key: "q${some}", value: "v"}]})`,
	`deleteResource(input: {uuid: "${new}"})`,
	`createResources(input: {atomic: false, items: [{uuid: "12121212-0000-4000-8000-00000000003${some}", type: "${type}", name: "many ${n}", projectId: "${owner}", visibility: ${visibility}, metadata: [{key: "size", value: "${some}"}], tags: ["${title}"]}, {uuid: "12121212-0000-4000-8000-00000000004${some}", type: "${type}", name: "more ${some}", visibility: ${visibility}, metadata: [{key: "p${some}", value: "v"}]}]})`,
	`setMetadataOnResources(input: {atomic: false, items: [{resource: "12121212-0000-4000-8000-00000000003${some}", items: [{key: "arch", value: "x"}], deleteKeys: ["size"]}, {resource: "12121212-0000-4000-8000-00000000004${some}", items: [{key: "size", value: "${some}"}]}]})`,
	`updateResource(input: {uuid: "12121212-0000-4000-8000-00000000003${some}", visibility: ${visibility}, newName: "moved ${some}"})`,
	`createResourceProvider(input: {uuid: "34343434-0000-4000-8000-00000000000${some}", name: "host ${n}", resource: "12121212-0000-4000-8000-00000000003${some}", inventories: [{resourceClass: "VCPU", total: 2}]})`,
	`createResourceProvider(input: {uuid: "34343434-0000-4000-8000-00000000000${some}", name: "host ${n}", inventories: [{resourceClass: "VCPU", total: 2}]})`,
	`updateResourceProvider(input: {provider: "34343434-0000-4000-8000-00000000000${some}", resource: "12121212-0000-4000-8000-00000000004${some}"})`,
	`updateResourceProvider(input: {provider: "34343434-0000-4000-8000-00000000000${some}", resource: null})`,
	`deleteResourceProvider(input: {provider: "34343434-0000-4000-8000-00000000000${some}"})`,
}

// residentReads read definitions that servers keep in memory. Queries with "{
// a: " also read other data, and therefore read at one instant.
var residentReads = []string{
	`{ definitions(resourceType: "${type}") { namespace { name displayName description visibility protected owner revision } association { prefix propertiesTarget } properties { name title description type enum maximum required } objects { name description required properties { name title required } } conflicts { name definitions { name namespace { name displayName } } } } }`,
	`{ definitions(resourceType: "${hidden}", target: "image") { namespace { name } properties { name namespace { name revision } } objects { name properties { name } } } }`,
	`{ definitions(resourceType: "${type}", search: "${title}") { namespace { name id } association { id } properties { name id } objects { name id properties { id } } } }`,
	`{ definitions(resourceType: "${hidden}") { namespace { name resourceTypeAssociations { prefix } tags { name } members { projectId } viewerCanUpdate } properties { name viewerCanDelete object { name } } association { resourceType { name strict } } } }`,
	`{ validateMetadata(resourceType: "${type}", values: [{key: "size", value: "2"}, {key: "p1", value: "x"}, {key: "inner", value: "y"}, {key: "siez", value: ""}]) { valid accepted strict items { key isCustom suggestion operator values accepted definitions { name title namespace { name } } violations { rule message } } } }`,
	`{ validateMetadata(resourceType: "${hidden}", project: "demo", values: [{key: "size", value: "200"}, {key: "q2", value: "x"}]) { valid strict items { key definitions { name } violations { rule message } } } }`,
	`{ validateMetadata(resource: "${new}", values: [{key: "size", value: "3"}, {key: "k", value: "x"}]) { valid accepted strict items { key suggestion violations { rule message } } } }`,
	`{ a: definitions(resourceType: "${type}") { namespace { name revision description } properties { name title maximum } } b: namespaces { nodes { name revision properties { name title namespace { revision } } } } c: resourceTypes { nodes { name strict } } }`,
	`{ a: definitions(resourceType: "${hidden}") { namespace { name } } b: validateMetadata(resourceType: "${hidden}", values: [{key: "size", value: "2"}]) { valid strict } }`,
	`{ resources { nodes { name metadataReport { valid accepted strict items { key suggestion violations { rule message } } } } } metadataProblems { nodes { resource { name } problems { key message } } } }`,
}

// countingReads count resources that servers keep in memory.
var countingReads = []string{
	`{ resources(filter: {types: ["${type}"]}) { totalCount facets(of: [{by: TYPE, includeUnused: true}, {by: PROJECT}, {by: TAG, includeUnused: true}, {by: VISIBILITY}, {by: METADATA_KEY}, {by: METADATA_VALUE, key: "size", includeUnused: true}]) { by key values { value resourceCount } hasMore } } }`,
	`{ resources(filter: {metadata: [{key: "size", value: "${some}"}]}) { totalCount metadataFacets(keys: ["size", "arch", "p1"]) { key values { value resourceCount } } } }`,
	`{ resources(filter: {where: {any: [{metadata: {key: "arch", exists: true}}, {not: {metadata: {key: "size", in: ["1", "2"]}}}]}}) { totalCount } }`,
	`{ metadataKeys(first: 3) { nodes { key resourceCount } totalCount pageInfo { hasNextPage } } resourceTypes { nodes { name resources { totalCount } } } }`,
	`{ allocationCandidates(resources: [{resourceClass: "VCPU", amount: 1}], hosts: {metadata: [{key: "size", value: "${some}"}]}) { totalCount nodes { allocations { provider { name resource { name } } } } explain { steps { constraint remaining } } } }`,
	`{ a: resourceProviders(filter: {resource: {visibility: PUBLIC, where: {not: {metadata: {key: "size", equals: "${some}"}}}}}) { totalCount nodes { name resource { name } } } b: resources { totalCount } }`,
	`{ explainResources(filter: {types: ["${type}"], visibility: PUBLIC, metadata: [{key: "size", value: "${some}"}], tags: [{name: "${title}"}]}) { considered clauses { kind passing remaining } } }`,
}

// residentName returns a random value for a placeholder in residentWrites and
// residentReads.
func residentName(chance *rand.Rand, n int, name string) string {
	among := map[string][]string{
		"space": {"A", "B", "C", "D", "E"}, "owner": {"demo", "elsewhere", "operations"},
		"visibility": {"PUBLIC", "PRIVATE", "PRIVATE"},
		"title":      {"Alpha", "Beta", "in"}, "prefix": {"", "pre_"}, "type": {"physical:host", "OS::Nova::Flavor"},
		"hidden": {"X::One", "X::Two", "X::Three"},
	}[name]
	if among == nil {
		return fixtureName(chance, n, name)
	}
	return among[chance.IntN(len(among))]
}

// residentServer is a server with definitions and resources in memory, and one
// on the same connections without them.
type residentServer struct{ kept, read *graph.Executor }

func newResidentServer(t *testing.T, url string) residentServer {
	s := storetest.Open(t, url)
	if err := s.LoadResources(t.Context()); err != nil {
		t.Fatal(err)
	}
	return residentServer{executorOf(t, s), executorOf(t, withoutDefinitions(s))}
}

// withoutDefinitions returns a store on the same connections, without
// definitions and resources in memory.
func withoutDefinitions(s *store.Store) *store.Store {
	reads := *s
	reads.MetadefStore = metadefdb.New(s.DB, metadefdb.DefinitionOptions{ResidentBytes: -1})
	reads.ResourceStore = resourcedb.New(s.DB, reads.MetadefStore, store.ResourceOptions{ResidentBytes: -1})
	return &reads
}

// answers returns the answers of both servers to a query as a viewer.
func (s residentServer) answers(viewer, query string) (kept, read outcome) {
	return interruptedAs(s.kept, viewer, query, nil, never, nil), interruptedAs(s.read, viewer, query, nil, never, nil)
}

// TestDialogsTakeNothingOfTheDatabase reads a metadata dialog after the
// database connections were closed. Not even a transaction may begin.
func TestDialogsTakeNothingOfTheDatabase(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s, err := store.Open(t.Context(), store.Options{URL: url, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		executor := executorOf(t, s)
		definitions := `properties: [{name: "size", title: "Size", type: INTEGER, maximum: 7}, {name: "arch", title: "Architecture", type: STRING, enum: ["x", "y"]}], objects: [{name: "Group", required: ["inner"], properties: [{name: "inner", title: "An inner title", type: STRING}]}]`
		for _, name := range []string{"One", "Other"} {
			query := fmt.Sprintf(`mutation { createNamespace(input: {name: %q, visibility: PUBLIC, %s, resourceTypeAssociations: [{resourceType: "physical:host", prefix: "pre_"}, {resourceType: "physical:host", propertiesTarget: "image"}]}) { namespace { name } } }`, name, definitions)
			if got := interruptedAs(executor, "admin", query, nil, never, nil); len(got.errors) > 0 {
				t.Fatal(got.errors)
			}
		}
		queries := []string{
			`{ definitions(resourceType: "physical:host") { namespace { id name displayName description visibility protected owner revision } association { prefix propertiesTarget }
			   properties { id name title description type itemType enum default minimum maximum pattern required operators namespace { name } enumMembers { label value { text } } }
			   objects { id name description required properties { name title type enum } } conflicts { name definitions { name namespace { name } } } } }`,
			`{ definitions(resourceType: "physical:host", search: "title", target: "image") { namespace { name } objects { name properties { name } } } }`,
			`{ validateMetadata(resourceType: "physical:host", values: [{key: "pre_size", value: "x"}, {key: "inner", value: "y"}]) { valid accepted items { key isCustom suggestion definitions { name title namespace { name } } violations { rule message } } } }`,
		}
		ask := func() (got []outcome) {
			for _, viewer := range []string{"admin", "member"} {
				for _, query := range queries {
					got = append(got, interruptedAs(executor, viewer, query, nil, never, nil))
				}
			}
			return got
		}
		before := ask()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for i, after := range ask() {
			if len(after.errors) > 0 || len(after.text) < 100 || after.text != before[i].text {
				t.Errorf("%s\nanswers without a database\n%s\nand before\n%s",
					queries[i%len(queries)], after.text, before[i].text)
			}
		}
	})
}

// residentSteps is the number of writes in a history.
var residentSteps = soak.Rounds(120)

// TestDefinitionsInMemoryAreTheDatabases makes random writes of definitions and
// resource types, on one server or on two in turn. After each write every
// server must return the same bytes from memory and from the database:
// immediately for its own writes and for reads at one instant, and soon for the
// writes of the other server.
func TestDefinitionsInMemoryAreTheDatabases(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		url     func(testing.TB) string
		servers int
	}{"sqlite": {storetest.SQLite, 1}, "postgres": {storetest.Postgres, 1}, "two servers": {storetest.Postgres, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := of.url(t)
			var servers []residentServer
			for range of.servers {
				servers = append(servers, newResidentServer(t, url))
			}
			compareResidents(t, servers)
		})
	}
}

func compareResidents(t *testing.T, servers []residentServer) {
	c := &residentHistory{t: t, servers: servers, chance: rand.New(rand.NewPCG(20, 26))}
	accepted := 0
	for n := 1; n <= residentSteps && !t.Failed(); n++ {
		writer := n % len(servers)
		name := func(name string) string { return residentName(c.chance, n, name) }
		write := "mutation { " + os.Expand(residentWrites[c.chance.IntN(len(residentWrites))], name) +
			" { __typename } }"
		if made := interrupted(servers[writer].kept, write, never, nil); len(made.errors) == 0 {
			accepted++
		}
		for i := range servers {
			for range 6 {
				reads := residentReads
				if c.chance.IntN(3) == 0 {
					reads = countingReads
				}
				query := os.Expand(reads[c.chance.IntN(len(reads))], name)
				if difference := c.read(i, i == writer, query); difference != "" {
					t.Errorf("after write %d on server %d: %s\n%s", n, writer, write, difference)
				}
			}
		}
	}
	t.Logf("%d of %d writes accepted; %d answers from memory alone, %d of them not empty", accepted,
		residentSteps, c.fromMemory, c.notEmpty)
	if accepted < residentSteps/4 || c.fromMemory < residentSteps || c.notEmpty < residentSteps/3 {
		t.Error("too few")
	}
}

// residentHistory compares the answers of servers while one after the other
// writes.
type residentHistory struct {
	t       *testing.T
	servers []residentServer
	chance  *rand.Rand
	// fromMemory counts the answers without a statement, and notEmpty those
	// among them with data.
	fromMemory, notEmpty int
}

// read queries a server as a random viewer. It returns the difference between
// the answers from memory and from the database, or "". A server that did not
// make the last write gets time to catch up if its answer came from memory.
func (c *residentHistory) read(server int, isWriter bool, query string) string {
	viewer := []string{"admin", "service", "member", "reader", "foreign", "nobody"}[c.chance.IntN(6)]
	kept, read := c.servers[server].answers(viewer, query)
	if !isWriter && kept.text != read.text && kept.statements == 0 {
		patience.Until(c.t, 10*time.Second, func() bool {
			kept, read = c.servers[server].answers(viewer, query)
			return kept.text == read.text
		})
	}
	if kept.statements == 0 && len(kept.errors) == 0 {
		c.fromMemory++
		if len(kept.text) > 60 {
			c.notEmpty++
		}
	}
	if kept.text == read.text {
		return ""
	}
	return fmt.Sprintf("server %d, %s as %s:\nfrom memory\n%s\nfrom the database\n%s", server,
		query, viewer, kept.text, read.text)
}
