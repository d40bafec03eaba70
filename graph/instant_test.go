package graph_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/soak"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// instantWrites are writes to largeFixture. Each changes several things, or
// several parts of one thing, in one transaction. ${n} is the number of the
// write; fixtureName has the other placeholders.
var instantWrites = []string{
	`setAllocations(input: {consumers: [
		{uuid: "${consumer 0}", projectId: "demo", userId: "u${n}", generation: ${generation 0}, allocations: [{provider: "${root 0}", resources: [{resourceClass: "VCPU", amount: ${one}}]}, {provider: "${child 1}", resources: [{resourceClass: "MEMORY_MB", amount: ${some}}]}], mappings: [{suffix: "", providers: ["${root 0}"]}, {suffix: "_${n}", providers: ["${child 1}"]}]},
		{uuid: "${consumer 1}", projectId: "demo", userId: "u${n}", generation: ${generation 1}, allocations: [{provider: "${root 1}", resources: [{resourceClass: "VCPU", amount: ${one}}]}, {provider: "${child 0}", resources: [{resourceClass: "MEMORY_MB", amount: ${some}}]}], mappings: [{suffix: "_${n}", providers: ["${root 1}", "${new}"]}]}]})`,
	`setAllocations(input: {consumers: [
		{uuid: "${consumer 1}", projectId: "demo", userId: "u${n}", generation: ${generation 1}, allocations: [{provider: "${root 1}", resources: [{resourceClass: "VCPU", amount: ${one}}]}], mappings: [{suffix: "_${n}", providers: ["${root 3}", "${child 2}"]}]}]})`,
	`setAllocations(input: {consumers: [
		{uuid: "${consumer 2}", projectId: "demo", userId: "mel", generation: ${generation 2}, allocations: [{provider: "${root 0}", resources: [{resourceClass: "VCPU", amount: ${one}}]}, {provider: "${root 3}", resources: [{resourceClass: "VCPU", amount: ${one}}]}]}]})`,
	`deleteAllocations(input: {consumer: "${consumer any}"})`,
	`setMetadataOnResources(input: {items: [{resource: "${host 0}", items: [{key: "size", value: "${n}"}, {key: "many1:size", value: "${n}"}]}, {resource: "${host 1}", items: [{key: "size", value: "${n}"}]},
		{resource: "11111111-1111-4111-8111-111111111111", items: [{key: "size", value: "${n}"}, {key: "k${some}", value: "v"}]}]})`,
	`replaceMetadata(input: {resource: "${host any}", items: [{key: "size", value: "${n}"}]})`,
	`setCapabilities(input: {resource: "${host any}", capabilities: [{key: "arch", value: "v${n}"}]})`,
	`setResourceTags(input: {resource: "${host any}", tags: ["Top", "t${some}"]})`,
	`updateResource(input: {uuid: "${host any}", description: "${n}"})`,
	`updateResource(input: {uuid: "${host 2}", newName: "host ${n}"})`,
	`reshape(input: {inventories: [{provider: "${root 0}", inventories: [{resourceClass: "VCPU", total: 1${some}}]}, {provider: "${root 1}", inventories: [{resourceClass: "VCPU", total: 1${some}}]}, {provider: "${child 0}", inventories: [{resourceClass: "MEMORY_MB", total: 1${some}}]}], consumers: []})`,
	`setInventories(input: {provider: "${root any}", inventories: [{resourceClass: "VCPU", total: 1${some}}, {resourceClass: "DISK_GB", total: ${n}}]})`,
	`setInventory(input: {provider: "33333333-3333-4333-8333-333333333333", inventory: {resourceClass: "VCPU", total: 1${some}}})`,
	`setOnResourceProviders(input: {atomic: false, items: [{provider: "${root any}", traits: ["HW_CPU_X86_AVX${two}"]}, {provider: "${child any}", inventories: [{resourceClass: "VCPU", total: 2${some}}], aggregates: []}]})`,
	`setMetadataOnResources(input: {atomic: false, items: [{resource: "${host 0}", items: [{key: "size", value: "${n}"}], deleteKeys: ["gone"]}, {resource: "${host 1}", items: [{key: "gone", value: "${n}"}]}]})`,
	`setProviderTraits(input: {provider: "${root any}", traits: ["HW_CPU_X86_AVX", "HW_CPU_X86_AVX${two}"]})`,
	`setProviderAggregates(input: {provider: "${root any}", aggregates: ["dddddddd-0000-4000-8000-00000000000${some}"]})`,
	`updateResourceProvider(input: {provider: "${child any}", parent: "${root any}"})`,
	`updateResourceProvider(input: {provider: "${child any}", newName: "child ${n}"})`,
	`createResourceProvider(input: {uuid: "${new}", name: "new ${some}", parent: "${root any}"})`,
	`createResourceProviders(input: {atomic: false, items: [{uuid: "${new}", name: "many ${some}", parent: "${root any}"}, {uuid: "12121212-0000-4000-8000-00000000001${some}", name: "many ${n}", parentName: "many ${some}", traits: ["HW_CPU_X86_AVX"], inventories: [{resourceClass: "VCPU", total: 1${some}}]}]})`,
	`deleteResourceProvider(input: {provider: "${new}"})`,
	`createResource(input: {uuid: "${new}", type: "physical:host", name: "new ${n}", visibility: PUBLIC, parent: null, metadata: [{key: "size", value: "${n}"}], tags: ["top"]})`,
	`createResources(input: {atomic: false, items: [{uuid: "${new}", type: "physical:host", name: "many ${n}", visibility: PUBLIC, metadata: [{key: "size", value: "${n}"}]}, {uuid: "12121212-0000-4000-8000-00000000002${some}", type: "physical:host", name: "below ${n}", visibility: PUBLIC, parent: "${new}", tags: ["top"]}]})`,
	`deleteResource(input: {uuid: "${new}"})`,
	`importNamespaces(input: {mode: OVERWRITE, documents: ["{\"namespace\": \"Many 0\", \"visibility\": \"public\", \"description\": \"${n}\", \"properties\": {\"size\": {\"title\": \"Size ${n}\", \"type\": \"integer\"}}, \"tags\": [{\"name\": \"Top\"}, {\"name\": \"T${some}\", \"parent\": \"Top\"}], \"resource_type_associations\": [{\"name\": \"physical:host\", \"prefix\": \"many0:\"}]}"]})`,
	`importNamespaces(input: {mode: OVERWRITE, documents: ["{\"namespace\": \"Many 1\", \"visibility\": \"public\", \"description\": \"${n}\", \"properties\": {\"size\": {\"title\": \"Size ${n}\", \"type\": \"integer\"}}, \"objects\": [{\"name\": \"Group\", \"properties\": {\"inner\": {\"title\": \"Inner ${n}\", \"type\": \"string\"}}}], \"resource_type_associations\": [{\"name\": \"physical:host\", \"prefix\": \"many1:\"}]}"]})`,
	`updateNamespace(input: {name: "${space}", displayName: "${n}", description: "${n}"})`,
	`updateProperty(input: {namespace: "${space}", name: "size", title: "Size ${n}", maximum: ${n}})`,
	`updateObject(input: {namespace: "${space}", name: "Group", description: "${n}", properties: [{name: "inner", title: "Inner ${n}", type: STRING}, {name: "i${some}", title: "x", type: STRING}]})`,
	`createProperty(input: {namespace: "${space}", name: "p${some}", title: "p ${n}", type: STRING})`,
	`deleteProperty(input: {namespace: "${space}", name: "p${some}"})`,
	`setTags(input: {namespace: "${space}", tags: [{name: "Top"}, {name: "T${some}", parent: "Top"}, {name: "Below", parent: "T${some}"}]})`,
	`associateResourceType(input: {namespace: "${space}", resourceType: "OS::Nova::Flavor", prefix: "p${some}:"})`,
	`shareNamespace(input: {namespace: "${space}", projectId: "p${some}"})`,
	`createNamespace(input: {name: "New ${some}", visibility: PUBLIC, properties: [{name: "size", title: "t ${n}", type: STRING}], resourceTypeAssociations: [{resourceType: "physical:host", prefix: "n${some}:"}]})`,
	`deleteNamespace(input: {name: "New ${some}"})`,
	`createTrait(input: {name: "CUSTOM_T${some}"})`,
	`deleteTrait(input: {name: "CUSTOM_T${some}"})`,
	`createCapability(input: {resourceType: "physical:host", name: "c${some}", private: false})`,
	`setCapabilityVisibility(input: {resourceType: "physical:host", name: "arch", private: ${bool}})`,
	`deleteCapability(input: {resourceType: "physical:host", name: "c${some}", force: true})`,
}

// fixtureName returns a random value for a placeholder in a write.
func fixtureName(chance *rand.Rand, n int, name string) string {
	kind, which, _ := strings.Cut(name, " ")
	if which == "any" {
		which = fmt.Sprint(chance.IntN(6))
	}
	switch kind {
	case "n":
		return fmt.Sprint(n)
	case "one":
		return fmt.Sprint(1 + chance.IntN(2))
	case "some":
		return fmt.Sprint(1 + chance.IntN(5))
	case "two":
		return []string{"2", ""}[chance.IntN(2)]
	case "bool":
		return []string{"true", "false"}[chance.IntN(2)]
	case "space":
		return []string{"Open", "Many 0", "Many 1", "Many 2"}[chance.IntN(4)]
	case "new":
		return fmt.Sprintf("12121212-0000-4000-8000-00000000000%d", chance.IntN(3))
	}
	return map[string]string{"consumer": "ffffffff", "host": "aaaaaaaa", "root": "cccccccc",
		"child": "eeeeeeee"}[kind] + "-0000-4000-8000-00000000000" + which
}

// masked matches the differences between two runs of the same writes: times,
// cursors made of times, and ids made of random UUIDs.
var masked = regexp.MustCompile(`"[A-Za-z0-9_-]{40,}"|"\w*[cC]ursor\w*":"[^"]*"|"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"|` +
	idsOfKinds(page.KindAuditEvent, page.KindNamespace, page.KindPropertyDefinition,
		page.KindObjectDefinition, page.KindTag,
		page.KindResourceType, page.KindResourceTypeAssociation, page.KindCapability))

// idsOfKinds returns a pattern for ids of some kinds.
func idsOfKinds(kinds ...page.Kind) string {
	var beginnings []string
	for _, kind := range kinds {
		begins := string(kind) + ":"
		beginnings = append(beginnings, base64.RawURLEncoding.EncodeToString([]byte(begins))[:len(begins)*8/6])
	}
	return `"(?:` + strings.Join(beginnings, "|") + `)[\w-]+"`
}

// answerOf runs an operation as a viewer. It returns the answer with its
// errors, with run-dependent parts masked.
func answerOf(executor *graph.Executor, viewer, query string, variables map[string]any,
	at moment, other func()) (string, outcome) {
	answer := interruptedAs(executor, viewer, query, variables, at, other)
	return masked.ReplaceAllString(answer.text, `"masked"`), answer
}

// writtenHistory is a sequence of writes, on one server or on several in turn.
type writtenHistory struct {
	stores    []*store.Store
	executors []*graph.Executor

	mu     sync.Mutex // held while a write runs
	chance *rand.Rand
	writes []string

	state        sync.Mutex
	begun, ended int
	endedOn      []int // the last write of each server
}

// write sends the next write.
func (h *writtenHistory) write() {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.writes) + 1
	server := n % len(h.executors)
	text := instantWrites[h.chance.IntN(len(instantWrites))]
	query := "mutation { " + os.Expand(text, func(name string) string {
		if index, ok := strings.CutPrefix(name, "generation "); ok {
			return generationOf(h.executors[server], fixtureName(h.chance, n, "consumer "+index))
		}
		return fixtureName(h.chance, n, name)
	}) + " { __typename } }"
	h.writes = append(h.writes, query)
	h.state.Lock()
	h.begun = n
	h.state.Unlock()
	interrupted(h.executors[server], query, never, nil)
	h.state.Lock()
	h.ended, h.endedOn[server] = n, n
	h.state.Unlock()
}

// generationOf returns the generation of a consumer, or null if it has no
// allocations.
func generationOf(executor *graph.Executor, consumer string) string {
	answer := interrupted(executor, fmt.Sprintf(`{ consumer(uuid: %q) { generation } }`, consumer), never, nil)
	if found, ok := answer.data["consumer"].(map[string]any); ok {
		return fmt.Sprint(found["generation"])
	}
	return "null"
}

// observe reads a random document during a write.
func (h *writtenHistory) observe(seed uint64, ids []string) *observation {
	chance := rand.New(rand.NewPCG(seed, 17))
	server := chance.IntN(len(h.executors))
	executor := h.executors[server]
	random := &randomDocument{chance: chance, types: executor.Schema().Types, ids: ids, variants: map[string][]string{},
		fragments: map[string][]string{}, polite: true}
	query, variables := random.write(5)
	if text := instantQueries[chance.IntN(len(instantQueries))]; chance.IntN(4) == 0 {
		query, variables = text, nil
	}
	o := &observation{query: query,
		viewer: []string{"admin", "admin", "admin", "service", "member", "reader"}[chance.IntN(6)]}
	if len(variables) > 0 {
		text, _ := json.Marshal(variables)
		o.query += " with " + string(text)
	}
	quiet := interruptedAs(executor, o.viewer, query, variables, never, nil)
	at := moment{use: chance.IntN(2) == 0}
	if at.use || quiet.statements == 0 {
		at = moment{true, chance.IntN(max(1, quiet.uses))}
	} else {
		at.at = chance.IntN(quiet.statements)
	}
	h.state.Lock()
	o.first = h.ended
	own := h.endedOn[server]
	h.state.Unlock()
	var answer outcome
	o.answer, answer = answerOf(executor, o.viewer, query, variables, at, h.write)
	h.state.Lock()
	o.last = h.begun
	h.state.Unlock()
	if answer.statements == 0 {
		o.first = own // memory is as fresh as the server's own writes
	}
	o.again = func(executor *graph.Executor) string {
		text, _ := answerOf(executor, o.viewer, query, variables, never, nil)
		return text
	}
	return o
}

// instantQueries read things together with their parts, along several paths.
var instantQueries = []string{
	`{ resourceProviders { totalCount nodes { generation inventories { resourceClass used } allocations(first: 1000) { totalCount nodes { used resourceClass consumer { generation userId allocations { used provider { generation } } } } } } } consumers(first: 1000) { totalCount nodes { uuid generation userId mappings { suffix providers { name generation } } allocations { used } } } usages(projectId: "demo") { consumerCount usages { resourceClass used } } }`,
	`{ allocationCandidates(resources: [{resourceClass: "VCPU", amount: 1}]) { totalCount nodes { allocations { provider { generation allocations { totalCount nodes { used consumer { generation } } } resource { revision name } } } } providerSummaries { inventories { used } provider { uuid allocations { nodes { used } } } } explain { considered nearest { provider { resource { name } } } } } consumers { nodes { generation } } }`,
	`{ allocationCandidates(resources: [{resourceClass: "VCPU", amount: 1}], hosts: {where: {not: {metadata: {key: "size", exists: true}}}}) { totalCount nodes { allocations { provider { generation } } } explain { considered steps { remaining } } } resourceProviders(filter: {resource: {types: ["physical:host"]}}) { nodes { generation resource { revision } } } resources { nodes { revision } } }`,
	`{ consumers { edges { node { uuid generation allocations { used provider { inventories { used } traits aggregates parent { name generation } resource { revision metadata { key value definitions { title namespace { revision description } } } } } } } } } }`,
	`{ resources { totalCount nodes { revision name description tags metadata { key value } capabilities(includePrivate: true) { name value } metadataReport { valid items { key } } provider { generation inventories { total used } allocations { nodes { used consumer { generation } } } } } } metadataKeys { nodes { key resourceCount } } }`,
	`{ namespaces { totalCount nodes { name revision displayName description properties { name title maximum } objects { name description properties { title } } tags { name parent { name } descendants { name } resourceCount } resourceTypeAssociations { prefix resourceType { name resources { totalCount nodes { revision } } } } members { projectId } } } definitions(resourceType: "physical:host") { namespace { revision } properties { title } conflicts { name } } }`,
	`{ a: namespaces { nodes { revision } } b: namespaces { edges { node { description properties { title } } } } exportNamespaces auditEvents(first: 3) { totalCount nodes { action key before after } } r: resources { nodes { revision } } p: resourceProviders { nodes { generation } } c: consumers { nodes { generation } } }`,
	`{ metadataProblems { scanned scannedTo counts { namespace key rule problemCount } nodes { resource { revision metadata { key value } } problems { key value message definition { title maximum namespace { revision } } } } } resources { totalCount nodes { revision } } }`,
	`{ __schema { queryType { name } } resourceProviders { nodes { generation allocations { nodes { used consumer { generation } } } resource { revision metadata { value } } } } namespaces { nodes { revision properties { title } } } auditEvents(first: 1) { nodes { key action } } }`,
	`{ auditEvents(first: 2) { nodes { action kind key after } } resourceProviders { totalCount nodes { name generation traits } } traits(filter: {custom: true}) { totalCount nodes { name } } resourceType(name: "physical:host") { capabilities(includePrivate: true) { name private valueCount values { nodes { value resourceCount } } } resources { totalCount } } }`,
}

// instantReaders is the number of concurrent readers. Each reads instantAnswers
// answers, or more in a soak test.
const instantReaders = 2

var instantAnswers = soak.Rounds(80)

// TestEveryAnswerIsOfOneInstant sends random documents during writes of all
// kinds, on one server or two. Then it repeats the writes in a separate
// database, and sends the documents again after each write. Each answer must
// equal the answer at a single instant between its request and its end.
func TestEveryAnswerIsOfOneInstant(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		url     func(testing.TB) string
		servers int
	}{"sqlite": {storetest.SQLite, 1}, "postgres": {storetest.Postgres, 1}, "two servers": {storetest.Postgres, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, ids := beginHistory(t, of.url(t), of.servers)
			all := h.observeAll(t, ids)
			again, _ := beginHistory(t, of.url(t), 1)
			if soak.Seed(t)%2 == 1 { // without memory, which h used
				again.executors[0] = executorOf(t, withoutDefinitions(again.stores[0]))
			}
			check(t, h, again.executors[0], all)
		})
	}
}

// beginHistory opens servers on a database with the fixture.
func beginHistory(t *testing.T, url string, servers int) (*writtenHistory, []string) {
	t.Helper()
	first := storetest.Open(t, url)
	if err := first.FillEmpty(access.WithViewer(t.Context(), viewers["admin"]), largeFixture()); err != nil {
		t.Fatal(err)
	}
	storetest.NumberUUIDs(t, first)
	stores := []*store.Store{first}
	for len(stores) < servers {
		stores = append(stores, storetest.Open(t, url))
	}
	h := &writtenHistory{chance: rand.New(rand.NewPCG(soak.Seed(t), 3)), endedOn: make([]int, servers), stores: stores}
	for _, s := range stores {
		h.executors = append(h.executors, executorOf(t, s))
	}
	return h, idsOfEverything(t, h.executors[0])
}

// observeAll has several readers observe. Writes also happen between their
// observations.
func (h *writtenHistory) observeAll(t *testing.T, ids []string) []*observation {
	var readers, writers sync.WaitGroup
	done := make(chan struct{})
	writers.Go(func() {
		chance := rand.New(rand.NewPCG(1, 1))
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Duration(chance.IntN(20)) * time.Millisecond):
				h.write()
			}
		}
	})
	var mu sync.Mutex
	var all []*observation
	each := max(instantAnswers, soak.Count(t, "CADASTRE_SOAK_ANSWERS", 0)/instantReaders/databases)
	for reader := range instantReaders {
		readers.Go(func() {
			for i := range each {
				o := h.observe(soak.Seed(t)<<32+uint64(reader*each+i), ids)
				mu.Lock()
				all = append(all, o)
				mu.Unlock()
			}
		})
	}
	readers.Wait()
	close(done)
	writers.Wait()
	return all
}

// check explains the observations by repeating the writes.
func check(t *testing.T, h *writtenHistory, again *graph.Executor, all []*observation) {
	t.Helper()
	compared, accepted := 0, 0
	left := explain(all, len(h.writes)+1, func(state int) {
		if state > 0 && len(interrupted(again, h.writes[state-1], never, nil).errors) == 0 {
			accepted++
		}
	}, func(o *observation) string {
		compared++
		return o.again(again)
	})
	t.Logf("%d answers with %d of no single instant; %d writes, %d of them accepted; %d comparisons", len(all),
		len(left), len(h.writes), accepted, compared)
	for i, o := range left {
		if i < 3 {
			t.Error(o)
		}
	}
	if len(left) > 3 {
		t.Errorf("and %d more", len(left)-3)
	}
	if len(h.writes) < len(all)/2 || accepted < len(h.writes)/3 {
		t.Errorf("%d writes, %d of them accepted: too few", len(h.writes), accepted)
	}
}
