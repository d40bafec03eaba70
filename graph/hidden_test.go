package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// hiddenPaths are queries for a thing by its name or uuid ($), with the name of
// a hidden thing in the fixture and the name of a missing one.
var hiddenPaths = []struct{ query, hidden, missing string }{
	{`{ namespace(name: "$") { id properties { name } } }`, marker, "absent"},
	{`{ namespaces(filter: {search: "$"}) { totalCount nodes { tags { name } } } }`, marker, "absent"},
	{`{ namespaces(filter: {definesKey: "$"}) { totalCount nodes { tags { name } } } }`, marker, "absent"},
	{`{ resourceType(name: "$") { id namespaces { nodes { name } } } }`, "marker::Type", "absent::Type"},
	{`{ resource(uuid: "$") { id metadata { key } } }`, hiddenShare, noUUID},
	{`{ resources(filter: {uuids: ["$"]}) { totalCount nodes { metadata { key } } } }`, hiddenShare, noUUID},
	{`{ resources(filter: {metadata: [{key: "$", value: "marker"}]}) { totalCount nodes { metadata { key } } } }`,
		marker, "absent"},
	{`{ resources(filter: {parent: "$"}) { totalCount nodes { name } } }`, hiddenHost, noUUID},
	{`{ resources(filter: {ancestor: "$"}) { totalCount nodes { name } } }`, hiddenHost, noUUID},
	{`{ resources(filter: {search: "$"}) { totalCount nodes { name } } }`, marker, "absent"},
	{`{ resources(filter: {projectIds: ["$"]}, orderBy: {field: TYPE}) { totalCount nodes { name } } }`, marker,
		"absent"},
	{`{ resources { facets(of: [{by: METADATA_VALUE, key: "$", includeUnused: true}, {by: TAG, startsWith: "$", includeUnused: true}]) { values { value resourceCount } } } }`, marker, "absent"},
	{`{ resources(filter: {anyTags: [{name: "$", includeDescendants: true}]}) { totalCount facets(of: [{by: PROJECT}, {by: TYPE, includeUnused: true}]) { values { value resourceCount } } } }`, marker, "absent"},
	{`{ metadataKeys(filter: {metadata: [{key: "$", value: "marker"}]}) { totalCount nodes { key } } }`, marker,
		"absent"},
	{`{ resources { facets(of: [{by: CAPABILITY_VALUE, key: "$"}]) { values { value resourceCount } } } }`,
		"marker_capability", "absent_capability"},
	{`{ resources(filter: {where: {capability: {name: "$", exists: true}}}) { totalCount nodes { name } } }`,
		"marker_capability", "absent_capability"},
	{`{ allocationCandidates(resources: [{resourceClass: "VCPU", amount: 1}], hosts: {where: {capability: {name: "$", exists: true}}}) { totalCount explain { steps { remaining } } } }`, "marker_capability", "absent_capability"},
	{`{ allocationCandidates(resources: [{resourceClass: "VCPU", amount: 1}], hosts: {uuids: ["$"]}) { totalCount explain { steps { remaining } } } }`, hiddenHost, noUUID},
	{`{ allocationCandidates(resources: [{resourceClass: "VCPU", amount: 1}], preferences: [{hosts: {uuids: ["$"]}, weight: 1}]) { totalCount nodes { score terms { holds } } } }`, hiddenHost, noUUID},
	{`{ placementRequest(resource: "$") { problems { key message } ignored { key } } }`, hiddenShare, noUUID},
	{`{ resource(uuid: "$") { allocationCandidates { totalCount } } }`, hiddenShare, noUUID},
	{`{ resourceProviders(filter: {resource: {tags: [{name: "$"}]}}) { totalCount nodes { name } } }`, marker,
		"absent"},
	{`{ resourceProviders(filter: {resource: {uuids: ["$"]}}) { totalCount nodes { name } } }`, hiddenHost, noUUID},
	{`{ definitions(resourceType: "$") { namespace { name } } }`, "marker::Type", "absent::Type"},
	{`{ validateMetadata(resourceType: "$", values: [{key: "a", value: "b"}]) { valid } }`, "marker::Type",
		"absent::Type"},
	{`{ validateMetadata(resource: "$", values: [{key: "a", value: "b"}]) { valid } }`, hiddenShare, noUUID},
	{`{ validateMetadata(resourceType: "physical:host", project: "$", values: [{key: "a", value: "b"}]) { valid } }`,
		"vault", "absent"},
	{`{ metadataProblems(filter: {namespace: "$"}) { scanned complete scannedTo counts { key } nodes { problems { key } } } }`, marker, "absent"},
	{`{ metadataProblems(filter: {key: "$"}) { scanned complete scannedTo counts { key } nodes { problems { key } } } }`, marker, "absent"},
	{`{ metadataProblems(filter: {resources: {uuids: ["$"]}}) { scanned complete scannedTo counts { key } nodes { problems { key } } } }`, hiddenShare, noUUID},
	{`{ exportNamespaces(names: ["$"]) }`, marker, "absent"},
	{`mutation { updateNamespace(input: {name: "$", description: "x"}) { namespace { id } } }`, marker, "absent"},
	{`mutation { deleteNamespace(input: {name: "$"}) { namespace { id } } }`, marker, "absent"},
	{`mutation { deleteNamespaceContents(input: {namespace: "$", kinds: [TAGS]}) { namespace { id } } }`, marker,
		"absent"},
	{`mutation { createProperty(input: {namespace: "$", name: "p", title: "P", type: STRING}) { namespace { id } } }`,
		marker, "absent"},
	{`mutation { deleteProperty(input: {namespace: "$", name: "p"}) { namespace { id } } }`, marker, "absent"},
	{`mutation { createObject(input: {namespace: "$", name: "o"}) { namespace { id } } }`, marker, "absent"},
	{`mutation { setTags(input: {namespace: "$", tags: []}) { namespace { id } } }`, marker, "absent"},
	{`mutation { deleteTag(input: {namespace: "$", name: "t"}) { tag { id } } }`, marker, "absent"},
	{`mutation { associateResourceType(input: {namespace: "$", resourceType: "physical:host"}) { resourceTypeAssociation { id } } }`, marker, "absent"},
	{`mutation { shareNamespace(input: {namespace: "$", projectId: "demo"}) { namespace { id } } }`, marker, "absent"},
	{`mutation { deleteResourceType(input: {name: "$"}) { resourceType { id } } }`, "marker::Type", "absent::Type"},
	{`mutation { updateResource(input: {uuid: "$", newName: "x"}) { resource { id } } }`, hiddenShare, noUUID},
	{`mutation { deleteResource(input: {uuid: "$"}) { resource { id } } }`, hiddenShare, noUUID},
	{`mutation { setResourceTags(input: {resource: "$", tags: ["a"]}) { resource { id } } }`, hiddenShare, noUUID},
	{`mutation { setMetadata(input: {resource: "$", items: [{key: "a", value: "b"}]}) { resource { id } } }`,
		hiddenShare, noUUID},
	{`mutation { setMetadataOnResources(input: {items: [{resource: "$", items: [{key: "a", value: "b"}]}]}) { resources { id } } }`, hiddenShare, noUUID},
	{`mutation { setMetadataOnResources(input: {atomic: false, items: [{resource: "$", items: [], deleteKeys: ["a"]}]}) { results { resource { id } errors { code field message } } } }`, hiddenShare, noUUID},
	{`mutation { replaceMetadata(input: {resource: "$", items: []}) { resource { id } } }`, hiddenShare, noUUID},
	{`mutation { deleteMetadata(input: {resource: "$", keys: ["a"]}) { resource { id } } }`, hiddenShare, noUUID},
	{`mutation { createResource(input: {type: "physical:host", name: "x", parent: "$"}) { resource { id } } }`,
		hiddenHost, noUUID},
	{`mutation { createResources(input: {items: [{type: "physical:host", name: "x", parent: "$"}]}) { results { resource { id } errors { code field message } } } }`, hiddenHost, noUUID},
	{`mutation { createResources(input: {atomic: false, items: [{type: "physical:host", name: "x", parent: "$"}]}) { results { resource { id } errors { code field message } } } }`, hiddenHost, noUUID},
}

// TestWhatIsHiddenCostsWhatIsMissingCosts queries hidden things and missing
// things, by name, UUID and id, as a member of another project. The answers and
// their numbers of SQL statements must be equal.
func TestWhatIsHiddenCostsWhatIsMissingCosts(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := openFixture(t, url)
		executor := executorOf(t, s)
		ask := func(viewer, query string) (string, int) {
			ctx, statements := store.CountStatements(access.WithViewer(t.Context(), viewers[viewer]))
			return answerText(t, executor.Execute(ctx, &graphql.RawParams{Query: query})), statements()
		}
		same := func(query, hidden, missing string) {
			t.Helper()
			first, firstStatements := ask("member", strings.ReplaceAll(query, "$", hidden))
			second, secondStatements := ask("member", strings.ReplaceAll(query, "$", missing))
			if first = strings.ReplaceAll(first, hidden, "$"); first != strings.ReplaceAll(second, missing, "$") ||
				firstStatements != secondStatements || strings.Contains(first, `"GRAPHQL_`) {
				t.Errorf("%s\nhidden takes %d statements, missing %d:\n%s\n%s", query,
					firstStatements, secondStatements, first, second)
			}
		}
		for _, path := range hiddenPaths {
			same(path.query, path.hidden, path.missing)
		}
		kinds := map[page.Kind]int{}
		everything, _ := ask("admin", `{ resources { nodes { id metadata { id } } } resourceTypes { nodes { id capabilities(includePrivate: true) { id } } }
			namespaces { nodes { id properties { id } seen: properties(resourceType: "physical:host") { id } objects { id properties { id } } tags { id } resourceTypeAssociations { id } } } }`)
		for _, found := range idInAnswer.FindAllStringSubmatch(everything, -1) {
			id := found[1]
			if answer, _ := ask("member", fmt.Sprintf(`{ node(id: %q) { id } }`, id)); !strings.Contains(answer,
				`"node":null`) {
				continue
			}
			node, ok := page.ParseNodeID(id)
			if !ok {
				t.Fatalf("%s is not an id", id)
			}
			missing := node
			missing.UUID = noUUID
			kinds[node.Kind]++
			same(`{ node(id: "$") { id __typename } }`, id, missing.String())
			same(`{ nodes(ids: ["$"]) { id __typename } }`, id, missing.String())
			if node.Kind == page.KindResourceTypeAssociation {
				same(`mutation { disassociateResourceType(input: {id: "$"}) { namespace { id } } }`, id,
					missing.String())
			}
		}
		if len(kinds) < 8 {
			t.Errorf("the hidden ids are of %v only", kinds)
		}
	})
}

// TestAnImportTellsNothingHidden imports documents with an owner, as a member who may
// write the namespaces of the project. The answers for a hidden namespace and a missing
// one must be equal. The hidden one applies to a resource of the member.
func TestAnImportTellsNothingHidden(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		executor := executorOf(t, openFilled(t,
			store.Options{URL: url, Definitions: store.DefinitionOptions{OwnerWrites: true}}, fixture()))
		askAs(t, executor, viewers["member"],
			`mutation { createResource(input: {type: "physical:host", name: "own"}) { resource { uuid } } }`)
		for _, owner := range []string{"vault", "elsewhere"} {
			for _, dryRun := range []bool{false, true} {
				tell := func(name string) string {
					const imported = `mutation { importNamespaces(input: {dryRun: %v,
						documents: ["{\"namespace\": \"%s\", \"owner\": \"%s\"}"]}) {
						reports { outcome errors } problems { scanned } } }`
					return askAs(t, executor, viewers["member"], fmt.Sprintf(imported, dryRun, name, owner))
				}
				if hidden, missing := tell(marker), tell("absent"); hidden != missing {
					t.Errorf("with the owner %s a hidden namespace gets %s\na missing one %s", owner, hidden, missing)
				}
			}
		}
	})
}
