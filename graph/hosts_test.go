package graph_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// linkedTrees returns trees of providers. Most roots, and some children, are
// linked to resources of several projects with random metadata, tags and
// capabilities.
func linkedTrees(chance *rand.Rand, trees int) store.Content {
	content := store.Content{Capabilities: []store.CapabilityRecord{{ResourceType: "physical:host", Name: "gpu"},
		{ResourceType: "OS::Manila::Share", Name: "gpu"}}}
	resourceOf := func(n int) string {
		uuid := fmt.Sprintf("aaaaaaaa-0000-4000-8000-%012d", n)
		one := store.ResourceRecord{UUID: uuid, Type: []string{"physical:host", "OS::Manila::Share"}[chance.IntN(2)],
			Name:       fmt.Sprintf("host %d", n),
			ProjectID:  []string{"demo", "operations"}[chance.IntN(2)],
			Visibility: []access.Visibility{access.Public, access.Private}[chance.IntN(2)]}
		for k := range 3 {
			one.Metadata = append(one.Metadata,
				resource.MetadataItem{Key: fmt.Sprintf("key%d", k), Value: fmt.Sprint(chance.IntN(3))})
		}
		one.Tags = []string{fmt.Sprint("tag", chance.IntN(3))}
		if one.Type == "physical:host" && chance.IntN(2) == 0 {
			one.Capabilities = []metadef.KeyValue{{Key: "gpu", Value: fmt.Sprint(chance.IntN(5))}}
		}
		content.Resources = append(content.Resources, one)
		return uuid
	}
	inventory := []placement.Inventory{{ResourceClass: "VCPU", Total: 8, MinUnit: 1, MaxUnit: 8,
		StepSize: 1, AllocationRatio: 1, Capacity: 8}}
	for i := range trees {
		root := placement.Provider{UUID: fmt.Sprintf("cccccccc-0000-4000-8000-%012d", i),
			Name: fmt.Sprintf("root %03d", i), Inventories: inventory}
		if chance.IntN(4) > 0 {
			root.Resource = resourceOf(i)
		}
		child := placement.Provider{UUID: fmt.Sprintf("eeeeeeee-0000-4000-8000-%012d", i),
			Name: fmt.Sprintf("child %03d", i), Parent: root.UUID, Inventories: inventory}
		if chance.IntN(3) == 0 {
			child.Resource = resourceOf(1000 + i)
		}
		content.Providers = append(content.Providers, root, child)
	}
	return content
}

// randomFilter returns a random filter of resources as a string.
func randomFilter(chance *rand.Rand) string {
	number := func() int { return chance.IntN(3) }
	all := []string{
		fmt.Sprintf(`metadata: [{key: "key%d", value: "%d"}]`, number(), number()),
		fmt.Sprintf(`tags: [{name: "TAG%d"}]`, number()),
		fmt.Sprintf(`types: ["%s"]`, []string{"physical:host", "OS::Manila::Share"}[chance.IntN(2)]),
		fmt.Sprintf(`requirements: [{key: "gpu", requirement: ">= %d"}]`, number()),
		fmt.Sprintf(`matching: "[\">\", \"$gpu\", \"%d\"]"`, number()),
		fmt.Sprintf(`where: {any: [{metadata: {key: "key%d", equals: "%d"}}, {not: {capability: {name: "gpu", exists: true}}}]}`, number(), number()),
		fmt.Sprintf(`nameContains: "%d"`, number()),
		`projectId: "demo"`,
	}
	chance.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	return "{" + strings.Join(all[:chance.IntN(3)], ", ") + "}"
}

// hostsAsker sends queries as a viewer and reads the answers.
type hostsAsker struct {
	t        *testing.T
	executor *graph.Executor
	viewer   string
}

func (a hostsAsker) ask(query string, into any) (statements int) {
	a.t.Helper()
	ctx, counted := store.CountStatements(access.WithViewer(a.t.Context(), viewers[a.viewer]))
	response := a.executor.Execute(ctx, &graphql.RawParams{Query: query})
	if len(response.Errors) > 0 {
		a.t.Fatalf("%s: %v", query, response.Errors)
	}
	if err := json.Unmarshal(response.Data, into); err != nil {
		a.t.Fatal(err)
	}
	return counted()
}

type uuids struct{ UUID string }

// treesOfCandidates is the answer with candidates and providers.
type treesOfCandidates struct {
	Resources struct{ Nodes []uuids }
	All, Some struct {
		Nodes []struct {
			Allocations []struct{ Provider struct{ UUID string } }
		}
		TotalCount int
		Explain    struct {
			Considered int
			Steps      []placement.ExplanationStep
		}
	}
	Providers, Listed struct {
		Nodes []struct {
			UUID string
			Root struct{ Resource *uuids }
		}
		TotalCount int
	}
}

// TestHostsAreThoseWhoseRootsResourceMatches uses random filters, as several
// viewers. It compares the candidates and providers on hosts with the client's
// own choice: trees with a root that is linked to a resource of the filtered
// list. It does so with resources in the database and in memory. The number of
// statements must be the same for every filter without types and capabilities;
// filters that memory answers take none.
func TestHostsAreThoseWhoseRootsResourceMatches(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		chance := rand.New(rand.NewPCG(13, 1))
		s := openFilled(t, store.Options{URL: url}, linkedTrees(chance, 40))
		executor := executorOf(t, s)
		filters := make([]string, 60)
		for i := range filters {
			filters[i] = randomFilter(chance)
		}
		statements := map[string]int{`{}`: 1, `{metadata: [{key: "key1", value: "1"}]}`: 1,
			`{nameContains: "nothing"}`: 1, `{where: {capability: {name: "gpu", gte: "2"}}}`: 2}
		for _, inMemory := range []bool{false, true} {
			if inMemory {
				if err := s.LoadResources(t.Context()); err != nil {
					t.Fatal(err)
				}
				statements[`{}`], statements[`{metadata: [{key: "key1", value: "1"}]}`], statements[`{nameContains: "nothing"}`] = 0, 0, 0
			}
			found := 0
			for round, filter := range filters {
				found += hostsAsker{t, executor,
					[]string{"admin", "member", "foreign", "service"}[round%4]}.compare(filter)
			}
			if found < 200 {
				t.Errorf("in memory %v: %d candidates in all", inMemory, found)
			}
			hostsAsker{t, executor, "member"}.countStatements(statements)
		}
	})
}

// within returns the UUIDs of the providers in trees whose root resource is in
// the list.
func (answer treesOfCandidates) within() map[string]bool {
	matching, within := map[string]bool{}, map[string]bool{}
	for _, one := range answer.Resources.Nodes {
		matching[one.UUID] = true
	}
	for _, one := range answer.Providers.Nodes {
		if of := one.Root.Resource; of != nil && matching[of.UUID] {
			within[one.UUID] = true
		}
	}
	return within
}

// compare compares the candidates and providers on a filter's hosts with the
// client's own choice. It returns the number of candidates.
func (a hostsAsker) compare(filter string) (found int) {
	a.t.Helper()
	const amount = `resources: [{resourceClass: "VCPU", amount: 1}]`
	const nodes = `{ totalCount nodes { allocations { provider { uuid } } } explain { considered steps { constraint eliminated remaining } } }`
	var answer treesOfCandidates
	a.ask(fmt.Sprintf(`{ resources(first: 1000, filter: %[1]s) { nodes { uuid } }
		all: allocationCandidates(first: 1000, %[2]s) %[3]s
		some: allocationCandidates(first: 1000, %[2]s, hosts: %[1]s) %[3]s
		providers: resourceProviders(first: 1000) { nodes { uuid root { resource { uuid } } } }
		listed: resourceProviders(first: 1000, filter: {resource: %[1]s}) { totalCount nodes { uuid } } }`, filter,
		amount, nodes), &answer)
	within := answer.within()
	var want, got []string
	for _, one := range answer.All.Nodes {
		if uuid := one.Allocations[0].Provider.UUID; within[uuid] {
			want = append(want, uuid)
		}
	}
	for _, one := range answer.Some.Nodes {
		got = append(got, one.Allocations[0].Provider.UUID)
	}
	if !slices.Equal(got, want) || answer.Some.TotalCount != len(want) {
		a.t.Errorf("%s, hosts: %s: %d candidates %v, want %v", a.viewer, filter, answer.Some.TotalCount, got, want)
	}
	if first := answer.Some.Explain.Steps[0]; first.Constraint != "hosts" || first.Remaining != len(within) ||
		first.Eliminated != answer.Some.Explain.Considered-len(within) {
		a.t.Errorf("%s, hosts: %s: the first step is %+v, %d providers are left", a.viewer, filter, first, len(within))
	}
	found = len(got)
	got, want = nil, nil
	for _, one := range answer.Providers.Nodes {
		if within[one.UUID] {
			want = append(want, one.UUID)
		}
	}
	for _, one := range answer.Listed.Nodes {
		got = append(got, one.UUID)
	}
	if !slices.Equal(got, want) || answer.Listed.TotalCount != len(want) {
		a.t.Errorf("%s, resource: %s: %v, want %v", a.viewer, filter, got, want)
	}
	return found
}

// countStatements checks the number of statements for some filters.
func (a hostsAsker) countStatements(statements map[string]int) {
	a.t.Helper()
	for filter, want := range statements {
		var ignored any
		if got := a.ask(fmt.Sprintf(`{ allocationCandidates(resources: [{resourceClass: "VCPU", amount: 1}], hosts: %s) { totalCount nodes { mappings { suffix } } explain { considered } pageInfo { hasPreviousPage } } }`, filter), &ignored); got != want {
			a.t.Errorf("hosts: %s takes %d statements, want %d", filter, got, want)
		}
	}
}

// TestHostsRefuseWhatIsWrongAtOnce checks refusals: one answer has all problems
// of the arguments and the filter, and a cursor belongs to its filter.
func TestHostsRefuseWhatIsWrongAtOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := access.WithViewer(t.Context(), viewers["admin"])
		if err := s.FillEmpty(ctx, linkedTrees(rand.New(rand.NewPCG(1, 1)), 20)); err != nil {
			t.Fatal(err)
		}
		executor := executorOf(t, s)
		refused := func(query string) string {
			var all []string
			for _, err := range executor.Execute(ctx, &graphql.RawParams{Query: query}).Errors {
				all = append(all, fmt.Sprint(err.Extensions["code"], " ", err.Extensions["field"]))
			}
			slices.Sort(all)
			return strings.Join(all, ", ")
		}
		const bad = `{metadata: [{key: "", value: "v"}], tags: [{name: ""}], matching: "["}`
		for query, want := range map[string]string{
			`{ allocationCandidates(first: 1001, resources: [{resourceClass: "VCPU", amount: 0}], hosts: ` + bad +
				`) { totalCount } }`: "BAD_USER_INPUT first, BAD_USER_INPUT hosts.matching, BAD_USER_INPUT hosts.metadata[0].key, BAD_USER_INPUT hosts.tags[0].name, BAD_USER_INPUT resources[0].amount",
			`{ resourceProviders(first: 1001, filter: {requiredAll: ["NOTHING"], resource: ` + bad +
				`}) { totalCount } }`: "BAD_USER_INPUT filter.requiredAll[0], BAD_USER_INPUT filter.resource.matching, BAD_USER_INPUT filter.resource.metadata[0].key, BAD_USER_INPUT filter.resource.tags[0].name, BAD_USER_INPUT first",
		} {
			if got := refused(query); got != want {
				t.Errorf("%s\n%s, want\n%s", query, got, want)
			}
		}
		page := func(hosts, after string) string {
			return fmt.Sprintf(`{ allocationCandidates(first: 1, resources: [{resourceClass: "VCPU", amount: 1}]%s%s) { pageInfo { endCursor } nodes { allocations { provider { name } } } } }`, hosts, after)
		}
		var first struct {
			AllocationCandidates struct{ PageInfo struct{ EndCursor string } }
		}
		hostsAsker{t, executor, "admin"}.ask(page(", hosts: {}", ""), &first)
		after := fmt.Sprintf(", after: %q", first.AllocationCandidates.PageInfo.EndCursor)
		for hosts, want := range map[string]string{", hosts: {}": "", "": "BAD_USER_INPUT after",
			`, hosts: {nameContains: ""}`: "BAD_USER_INPUT after"} {
			if got := refused(page(hosts, after)); got != want {
				t.Errorf("a cursor of other hosts at %q: %q, want %q", hosts, got, want)
			}
		}
	})
}
