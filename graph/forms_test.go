package graph_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// formHost is a host as the oracle of forms knows it. Its first capability is
// public, its second one private, and a negative value is none.
type formHost struct {
	name      string
	disk, gpu int
	project   string // the only one that sees it; empty is all
}

// has returns the value of a capability of the host, negative for none.
func (h formHost) has(key string) int {
	if value, ok := map[string]int{"disk": h.disk, "gpu": h.gpu}[key]; ok {
		return value
	}
	return -1
}

// formHosts are hosts whose values distinguish the capabilities.
func formHosts() []formHost {
	var hosts []formHost
	for i := range 12 {
		host := formHost{name: fmt.Sprintf("host-%02d", i), disk: i%4 - 1, gpu: i%3 - 1}
		if i >= 10 {
			host.project = "elsewhere"
		}
		hosts = append(hosts, host)
	}
	return hosts
}

// openForms opens a store with the hosts, a provider for each public one, and a
// public flavor of an administrator for each key and value.
func openForms(t *testing.T, url string, discovery resource.CapabilityDiscovery) *graph.Executor {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{URL: url,
		Resources: store.ResourceOptions{CapabilityDiscovery: discovery}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	executor := executorOf(t, s)
	do := func(format string, args ...any) {
		t.Helper()
		if answer := askAs(t, executor, viewers["admin"],
			"mutation { "+fmt.Sprintf(format, args...)+" }"); strings.Contains(answer, `"errors"`) {
			t.Fatal(answer)
		}
	}
	for i, host := range formHosts() {
		var capabilities []string
		for _, key := range []string{"disk", "gpu"} {
			if value := host.has(key); value >= 0 {
				capabilities = append(capabilities, fmt.Sprintf(`{key: %q, value: "%d"}`, key, value))
			}
		}
		visibility, project := "PUBLIC", "operations"
		if host.project != "" {
			visibility, project = "PRIVATE", host.project
		}
		do(`createResource(input: {type: "physical:host", uuid: %q, name: %q, visibility: %s, projectId: %q, capabilities: [%s]}) { __typename }`,
			storetest.UUID(100+i), host.name, visibility, project, strings.Join(capabilities, " "))
		if host.project == "" {
			do(`createResourceProvider(input: {name: %q, resource: %q, inventories: [{resourceClass: "VCPU", total: 8}]}) { __typename }`, host.name, storetest.UUID(100+i))
		}
	}
	do(`setCapabilityVisibility(input: {resourceType: "physical:host", name: "disk", private: false}) { __typename }`)
	for _, key := range []string{"disk", "gpu"} {
		for least := range 3 {
			do(`createResource(input: {type: "OS::Nova::Flavor", name: "%s-%d", visibility: PUBLIC, metadata: [{key: "vcpus", value: "1"} {key: "capabilities:%s", value: ">= %d"}]}) { __typename }`,
				key, least, key, least)
		}
	}
	return executor
}

// formRole is a viewer with the resources and capabilities that it may know.
type formRole struct {
	viewer access.Viewer
	all    bool // resources and capabilities
	public bool // whether it may discover public capabilities
}

func (r formRole) knows(key string) bool {
	return key == "gpu" && r.all || key == "disk" && (r.all || r.public)
}

// matching returns the names of the hosts that the viewer may see and whose
// value is at least so much, in order.
func (r formRole) matching(key string, least int, placed bool) []string {
	names := []string{}
	for _, host := range formHosts() {
		seen := host.project == "" || !placed && (r.all || host.project == r.viewer.ProjectID)
		if seen && host.has(key) >= least {
			names = append(names, host.name)
		}
	}
	return names
}

// TestEveryFormAsEveryRole asks for capabilities in every form that the schema
// has, as every role, and compares the answers with an oracle that reads the
// hosts from a list.
func TestEveryFormAsEveryRole(t *testing.T) {
	t.Parallel()
	for engine, url := range map[string]func(testing.TB) string{"sqlite": storetest.SQLite,
		"postgres": storetest.Postgres} {
		for _, discovery := range []resource.CapabilityDiscovery{resource.DiscoveryAdmin, resource.DiscoveryEveryone} {
			t.Run(engine+" "+string(discovery), func(t *testing.T) {
				t.Parallel()
				executor := openForms(t, url(t), discovery)
				for name, viewer := range viewers {
					if name == "nobody" {
						continue
					}
					role := formRole{viewer, viewer.IsAdmin() ||
						viewer.IsService(), discovery == resource.DiscoveryEveryone}
					t.Run(name, func(t *testing.T) { askEveryForm(t, executor, role) })
				}
			})
		}
	}
}

func askEveryForm(t *testing.T, executor *graph.Executor, role formRole) {
	for _, key := range []string{"disk", "gpu", "none"} {
		for least := range 3 {
			names := role.matching(key, least, false)
			listed := `resources(first: 100, filter: {types: ["physical:host"], %s}, orderBy: {field: NAME, direction: ASC}) { nodes { name } }`
			explained := `explainResources(filter: {%s}) { clauses { remaining } }`
			placed := `allocationCandidates(first: 100, resources: [{resourceClass: "VCPU", amount: 1}], hosts: {%s}) { nodes { allocations { provider { name } } } }`
			for _, form := range []string{
				fmt.Sprintf(`requirements: [{key: %q, requirement: ">= %d"}]`, key, least),
				fmt.Sprintf(`requirements: [{key: "capabilities:%s", requirement: ">= %d"}]`, key, least),
				fmt.Sprintf(`where: {capability: {name: %q, gte: "%d"}}`, key, least),
				fmt.Sprintf(`where: {not: {not: {capability: {name: %q, gte: "%d"}}}}`, key, least),
				fmt.Sprintf(`matching: %q`, fmt.Sprintf(`[">=", "$%s", "%d"]`, key, least)),
			} {
				role.expect(t, executor, fmt.Sprintf(listed, form), key, names)
				role.expect(t, executor, fmt.Sprintf(explained, form), key, []string{strconv.Itoa(len(names))})
				role.expect(t, executor, fmt.Sprintf(placed, form), key, role.matching(key, least, true))
			}
			if key == "none" {
				continue
			}
			// The operator's flavor is the same for all.
			flavor := fmt.Sprintf(`resources(filter: {types: ["OS::Nova::Flavor"], name: "%s-%d"}) { nodes { allocationCandidates(first: 100) { nodes { allocations { provider { name } } } } } }`, key, least)
			formRole{viewer: role.viewer, all: true}.expect(t, executor, flavor, key, role.matching(key, least, true))
		}
		ignoring := fmt.Sprintf(`resources(first: 100, filter: {types: ["physical:host"], unknownKeys: IGNORE, requirements: [{key: %q, requirement: ">= 1"}]}, orderBy: {field: NAME, direction: ASC}) { nodes { name } }`, key)
		names := role.matching(key, 1, false)
		if !role.knows(key) { // Nova's rule: another filter may read the key
			names = role.matching("none", -1, false)
		}
		formRole{viewer: role.viewer, all: true}.expect(t, executor, ignoring, "gpu", names)
	}
	var discovered []string
	for _, key := range []string{"disk", "gpu"} {
		if role.knows(key) {
			discovered = append(discovered, key)
		}
	}
	discovering := `resourceType(name: "physical:host") { capabilities(includePrivate: true) { name } }`
	if len(discovered) == 0 {
		if answer := askAs(t, executor, role.viewer, "{ "+discovering+" }"); !strings.Contains(answer,
			`"code":"FORBIDDEN"`) || strings.Contains(answer, "gpu") {
			t.Errorf("discovery: %s", answer)
		}
		return
	}
	formRole{viewer: role.viewer, all: true}.expect(t, executor, discovering, "gpu", discovered)
}

// expect asks and compares the names and numbers of the answer. A viewer who
// may not know the key must get BAD_USER_INPUT.
func (r formRole) expect(t *testing.T, executor *graph.Executor, document, key string, want []string) {
	t.Helper()
	answer := askAs(t, executor, r.viewer, "{ "+document+" }")
	if !r.knows(key) {
		if !strings.Contains(answer, `"code":"BAD_USER_INPUT"`) || strings.Contains(answer, "host-") {
			t.Errorf("%s\ngot %s, want BAD_USER_INPUT", document, answer)
		}
		return
	}
	var got any
	if err := json.Unmarshal([]byte(answer), &got); err != nil || strings.Contains(answer, `"errors"`) {
		t.Errorf("%s\ngot %v %s", document, err, answer)
		return
	}
	if leaves := leavesOf(got, nil); !slices.Equal(slices.Sorted(slices.Values(leaves)), want) {
		t.Errorf("%s\ngot %q, want %q", document, leaves, want)
	}
}

// leavesOf appends the scalars of an answer to a list.
func leavesOf(value any, leaves []string) []string {
	switch value := value.(type) {
	case map[string]any:
		for _, member := range value {
			leaves = leavesOf(member, leaves)
		}
	case []any:
		for _, member := range value {
			leaves = leavesOf(member, leaves)
		}
	default:
		leaves = append(leaves, fmt.Sprint(value))
	}
	return leaves
}
