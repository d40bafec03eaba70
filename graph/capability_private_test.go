package graph_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/soak"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestPrivateValuesStayPrivate sends the same random queries to two stores that
// differ only in private values. Viewers other than administrators and services
// must get the same bytes, with open and with closed discovery.
func TestPrivateValuesStayPrivate(t *testing.T) {
	t.Parallel()
	for engine, url := range map[string]func(testing.TB) string{"sqlite": storetest.SQLite,
		"postgres": storetest.Postgres} {
		for _, discovery := range []resource.CapabilityDiscovery{resource.DiscoveryEveryone, resource.DiscoveryAdmin} {
			t.Run(engine+" "+string(discovery), func(t *testing.T) {
				t.Parallel()
				one, other := openPrivate(t, url(t), discovery, "1"), openPrivate(t, url(t), discovery, "20")
				random := rand.New(rand.NewPCG(17, 23))
				differ := 0
				for range soak.Rounds(400) {
					query := privateQuery(random)
					viewer := []string{"member", "reader", "foreign"}[random.IntN(3)]
					if a, b := askAs(t, one, viewers[viewer], query), askAs(t, other, viewers[viewer], query); a != b {
						t.Fatalf("%s asks %s\none store answers %s\nthe other %s", viewer, query, a, b)
					}
					informed := viewers[[]string{"admin", "service"}[random.IntN(2)]]
					if askAs(t, one, informed, query) != askAs(t, other, informed, query) {
						differ++
					}
				}
				if differ < 20 {
					t.Errorf("administrators and services see a difference in %d answers only: the queries do not distinguish enough", differ)
				}
			})
		}
	}
}

// openPrivate opens a store of hosts with a public capability and private ones.
// The private values depend on the seed.
func openPrivate(t *testing.T, url string, discovery resource.CapabilityDiscovery, seed string) *graph.Executor {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{
		URL: url, Resources: store.ResourceOptions{CapabilityDiscovery: discovery}, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	admin := access.WithViewer(t.Context(), viewers["admin"])
	for i := range 8 {
		project := []string{"demo", "elsewhere"}[i%2]
		input := resource.Input{
			Type: "physical:host", Name: fmt.Sprint("host-", i), ProjectID: &project,
			UUID:     new(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)),
			Metadata: []metadef.KeyValue{{Key: "rack", Value: fmt.Sprint("r", i%3)}},
			Capabilities: []metadef.KeyValue{
				{Key: "arch", Value: []string{"x86_64", "aarch64"}[i%2]}, {Key: "count", Value: strconv.Itoa(i * 5)},
				{Key: "serial", Value: seed}, {Key: "codes", Value: `["` + seed + `", "a"]`},
			},
		}
		if i%4 == 0 {
			input.Visibility = new(access.Public)
		}
		if i%3 == 0 { // some resources have the value in one store only
			input.Capabilities[2].Value = "same"
		}
		if _, err := s.CreateResource(admin, input); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		root := placement.NewProvider{Name: fmt.Sprint("root-", i),
			Resource: new(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)), UUID: new(storetest.UUID(i)),
			Inventories: []placement.Inventory{{ResourceClass: "VCPU", Total: 9, MinUnit: 1,
				MaxUnit: 9, StepSize: 1, AllocationRatio: 1}}}
		if _, _, err := s.CreateResourceProvider(admin, root); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"arch", "count"} {
		if _, err := s.SetCapabilityVisibility(admin, "physical:host", name, false); err != nil {
			t.Fatal(err)
		}
	}
	storetest.NumberUUIDs(t, s)
	return executorOf(t, s)
}

func privateQuery(random *rand.Rand) string {
	pick := func(texts ...string) string { return texts[random.IntN(len(texts))] }
	name := func() string { return pick("arch", "count", "serial", "serial", "codes", "nothing") }
	value := func() string { return pick("1", "20", "10", "a", "same", "x86_64", "") }
	leaf := func() string {
		return fmt.Sprintf(`["%s", "$%s", "%s"]`, pick("==", "!=", ">=", "<=", ">", "<", "="), name(), value())
	}
	test := func() string {
		return fmt.Sprintf(`{ capability: { name: "%s", %s } }`, name(), pick(
			`exists: true`, `exists: false`, fmt.Sprintf(`equals: "%s"`, value()),
			fmt.Sprintf(`in: ["%s", "%s"]`, value(), value()),
			fmt.Sprintf(`gte: "%s"`, value()), fmt.Sprintf(`lte: "%s"`, value()),
			fmt.Sprintf(`contains: "%s"`, value())))
	}
	filter := pick(
		`matching: `+strconv.Quote(leaf()),
		`matching: `+strconv.Quote(fmt.Sprintf(`["%s", %s, ["not", %s]]`, pick("and", "or"), leaf(), leaf())),
		fmt.Sprintf(`requirements: [{ key: "%s%s", requirement: "%s %s" }]`, pick("", "capabilities:"), name(),
			pick("==", "s==", "s!=", "<in>", "<or>", "<all-in>", ">="), value()),
		fmt.Sprintf(`where: { %s: [%s, { not: %s }, { metadata: { key: "rack", exists: true } }] }`,
			pick("any", "all"), test(), test()),
		`where: `+test())
	return pick(
		fmt.Sprintf(`{ survives(by: CAPABILITY, capability: "%s") { totalCount nodes { capabilityValue consumers } } }`,
			name()),
		fmt.Sprintf(`{ whatIf(changes: []) { survives(by: CAPABILITY, capability: "%s", last: 1) { nodes { capabilityValue } pageInfo { startCursor } } } }`, name()),
		fmt.Sprintf(`{ resources(filter: { %s }, orderBy: { field: %s, direction: DESC }) { totalCount nodes { uuid revision updatedAt capabilities(includePrivate: true) { name value private } } } }`, filter, pick("NAME", "UPDATED_AT")),
		fmt.Sprintf(`{ resources(filter: { %s }, first: 2) { pageInfo { hasNextPage endCursor } metadataFacets(keys: ["rack"]) { values { value resourceCount } } facets(of: [{by: TYPE}, {by: METADATA_VALUE, key: "rack"}, {by: METADATA_KEY}]) { values { value resourceCount } } edges { cursor } } }`, filter),
		fmt.Sprintf(`{ explainResources(filter: { %s }) { considered clauses { clause passing remaining ignored notNumbers } } }`, filter),
		fmt.Sprintf(`{ resourceType(name: "physical:host") { capabilities(includePrivate: %s) { id name private valueCount values(startsWith: "%s") { nodes { value resourceCount } } } resources(filter: { %s }) { totalCount nodes { name } } } }`, pick("true", "false"), pick("", "1", "2", "a"), filter),
		fmt.Sprintf(`{ resourceType(name: "physical:host") { capability(name: "%s") { private valueCount values(first: %d) { nodes { value resourceCount } } } } }`, name(), random.IntN(3)),
		fmt.Sprintf(`{ node(id: "%s") { id ... on Capability { name values { nodes { value } } } } }`,
			(&resource.Capability{UUID: storetest.RowUUID(1 + random.IntN(4))}).NodeID()),
		fmt.Sprintf(`{ resource(uuid: "00000000-0000-4000-8000-%012d") { capabilities(includePrivate: true) { name value } metadata { key value } } }`, random.IntN(8)),
	)
}
