package graph_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// flavorsAndHosts returns linkedTrees and flavors with random metadata.
func flavorsAndHosts(chance *rand.Rand) store.Content {
	content := linkedTrees(chance, 30)
	for i := range 12 {
		one := store.ResourceRecord{UUID: fmt.Sprintf("f1a00000-0000-4000-8000-%012d", i), Type: "OS::Nova::Flavor",
			Name:      fmt.Sprintf("flavor %02d", i),
			ProjectID: "demo", Visibility: []access.Visibility{access.Public, access.Private}[i%2]}
		add := func(key, value string) {
			one.Metadata = append(one.Metadata, resource.MetadataItem{Key: key, Value: value})
		}
		switch i % 4 {
		case 0:
			add("vcpus", fmt.Sprint(1+chance.IntN(9)))
		case 1:
			add("resources1:VCPU", fmt.Sprint(1+chance.IntN(8)))
			add("resources2:VCPU", fmt.Sprint(1+chance.IntN(8)))
			add("group_policy", "isolate")
		default:
			add("vcpus", "1")
		}
		if i%3 == 0 {
			add("capabilities:gpu", fmt.Sprintf(">= %d", chance.IntN(4)))
		}
		if i == 7 {
			add("trait:CUSTOM_NOTHING", "required")
		}
		add("os_type", "linux")
		content.Resources = append(content.Resources, one)
	}
	return content
}

// requestFields are the fields of a request that match arguments.
const requestFields = `resources { resourceClass amount } requiredAll requiredAnySets { anyOf } forbidden
	groups { suffix resources { resourceClass amount } requiredAll requiredAnySets { anyOf } forbidden }
	groupPolicy sameSubtree { suffixes } hosts { requirements { key requirement } }`

const requestPage = `{ totalCount nodes { allocations { provider { name resource { name } } resources { resourceClass amount } } mappings { suffix providers { uuid } } }
	explain { considered steps { constraint remaining } nearest { provider { resource { name } } } } }`

// requestAsker sends queries as a viewer.
type requestAsker struct {
	t        *testing.T
	ctx      context.Context
	executor *graph.Executor
}

// execute decodes the data of an answer, and returns the codes and fields of
// its errors and the number of statements.
func (a requestAsker) execute(query string, variables map[string]any, into any) (errors []string, statements int) {
	a.t.Helper()
	ctx, counted := store.CountStatements(a.ctx)
	response := a.executor.Execute(ctx, &graphql.RawParams{Query: query, Variables: variables})
	for _, err := range response.Errors {
		errors = append(errors, fmt.Sprint(err.Extensions["code"], " ", err.Extensions["field"]))
	}
	if err := json.Unmarshal(response.Data, into); err != nil {
		a.t.Fatalf("%v: %v in %s", err, response.Errors, query)
	}
	return errors, counted()
}

// forgetOperators marks all metadata as written by viewers other than
// operators.
func forgetOperators(t *testing.T, url string) {
	t.Helper()
	if _, err := storetest.Database(t, url).
		ExecContext(t.Context(), `UPDATE metadata_items SET by_operator = false`); err != nil {
		t.Fatal(err)
	}
}

// TestAFlavorIsJudgedWithTheRightsOfItsOwner compares the candidates of flavors
// that operators wrote. Every viewer who sees a flavor must get the same
// candidates as an administrator, with open and with closed discovery. The same
// metadata, written by a member, is checked with the rights of the viewer, so
// that it reveals nothing private.
func TestAFlavorIsJudgedWithTheRightsOfItsOwner(t *testing.T) {
	t.Parallel()
	for _, discovery := range []resource.CapabilityDiscovery{resource.DiscoveryEveryone, resource.DiscoveryAdmin} {
		storetest.EachURL(t, func(t *testing.T, url string) {
			s, err := store.Open(t.Context(),
				store.Options{URL: url, Resources: store.ResourceOptions{CapabilityDiscovery: discovery}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			content := flavorsAndHosts(rand.New(rand.NewPCG(12, 2)))
			for i := range content.Capabilities {
				content.Capabilities[i].Private = true
			}
			if err := s.FillEmpty(access.WithViewer(t.Context(), viewers["admin"]), content); err != nil {
				t.Fatal(err)
			}
			executor := executorOf(t, s)
			const list = `{ resources(filter: {types: ["OS::Nova::Flavor"], visibility: PUBLIC}, first: 20) { nodes {
				name allocationCandidates(first: 100) { totalCount nodes { allocations { provider { uuid } resources { resourceClass amount } } } } } } }`
			read := func(viewer string) string {
				var listed json.RawMessage
				ask := requestAsker{t, access.WithViewer(t.Context(), viewers[viewer]), executor}
				if errors, _ := ask.execute(list, nil, &listed); len(errors) > 0 {
					t.Errorf("%s is told %q", viewer, errors)
				}
				return string(listed)
			}
			want := read("admin")
			if !strings.Contains(want, "uuid") {
				t.Fatalf("there are no candidates in %s", want)
			}
			for _, viewer := range []string{"service", "member", "foreign", "reader"} {
				if got := read(viewer); got != want {
					t.Errorf("%s reads %s\nan administrator %s", viewer, got, want)
				}
			}
			const written = `mutation { createResource(input: {type: "OS::Nova::Flavor", name: %q, visibility: PUBLIC,
				metadata: [{key: "vcpus", value: "1"}, {key: "capabilities:gpu", value: ">= 1"}]}) { resource { uuid allocationCandidates { totalCount } } } }`
			for viewer, want := range map[string]string{"member": refusedGPU, "service": ""} {
				var made struct {
					CreateResource struct{ Resource struct{ UUID string } }
				}
				ask := requestAsker{t, access.WithViewer(t.Context(), viewers[viewer]), executor}
				mutation := fmt.Sprintf(written, viewer)
				if errors, _ := ask.execute(mutation, nil, &made); strings.Join(errors, "") != want {
					t.Errorf("%s is told %q, want %q", viewer, errors, want)
				}
				for reader, isTold := range map[string]string{"foreign": want, "admin": ""} {
					ask := requestAsker{t, access.WithViewer(t.Context(), viewers[reader]), executor}
					var page any
					errors, _ := ask.execute(fmt.Sprintf(`{ resource(uuid: %q) { allocationCandidates { totalCount } } }`, made.CreateResource.Resource.UUID), nil, &page)
					if strings.Join(errors, "") != isTold {
						t.Errorf("%s wrote a flavor, of which %s is told %q, want %q", viewer, reader, errors, isTold)
					}
				}
			}
			checkRecordedFits(t, s)
			checkSyncedRequests(t, executor)
		})
	}
}

// refusedGPU is the refusal of a request for the capability gpu.
const refusedGPU = "BAD_USER_INPUT metadata['capabilities:gpu']"

// checkRecordedFits checks that the capacity history has the flavor of a service,
// and not the one of a member.
func checkRecordedFits(t *testing.T, s *store.Store) {
	t.Helper()
	service := access.WithViewer(t.Context(), viewers["service"])
	fits, err := graph.FitsNamed(service, s, []string{"member", "service"})
	if err != nil || len(fits) != 1 || fits["service"].Fit == nil {
		t.Errorf("the fits for the capacity history are %v, %v", fits, err)
	}
}

// checkSyncedRequests checks that a sync writes flavors as an operator, and images,
// whose properties members write, not.
func checkSyncedRequests(t *testing.T, executor *graph.Executor) {
	t.Helper()
	const synced = `mutation { syncResources(input: {origin: "cloud", region: "one", kind: %q,
		pass: "b1a00000-0000-4000-8000-000000000000", resourceType: %[1]q,
		resources: [{foreignId: %q, name: "synced", projectId: "demo", visibility: PUBLIC,
			metadata: [{key: "vcpus", value: "1"}, {key: "capabilities:gpu", value: ">= 1"}]}]}) { created } }`
	for of, want := range map[[2]string]string{
		{"OS::Glance::Image", "b1a00000-0000-4000-8000-000000000001"}: refusedGPU,
		{"OS::Nova::Flavor", "b1a00000-0000-4000-8000-000000000002"}:  "",
	} {
		ask := requestAsker{t, access.WithViewer(t.Context(), viewers["service"]), executor}
		var page any
		if errors, _ := ask.execute(fmt.Sprintf(synced, of[0], of[1]), nil, &page); len(errors) > 0 {
			t.Fatalf("a sync of %s is told %q", of[0], errors)
		}
		for reader, isTold := range map[string]string{"member": want, "foreign": want, "admin": ""} {
			ask := requestAsker{t, access.WithViewer(t.Context(), viewers[reader]), executor}
			asked := fmt.Sprintf(`{ resource(uuid: %q) { allocationCandidates { totalCount } } }`, of[1])
			errors, _ := ask.execute(asked, nil, &page)
			if strings.Join(errors, "") != isTold {
				t.Errorf("of a synced %s %s is told %q, want %q", of[0], reader, errors, isTold)
			}
		}
	}
}

// TestTheRequestOfAResourceCanBeSentAsItIs compares the candidates of resources
// with the candidates of their requests, sent back as arguments, as several
// viewers. The number of statements must not grow with the resources.
func TestTheRequestOfAResourceCanBeSentAsItIs(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := openFilled(t, store.Options{URL: url}, flavorsAndHosts(rand.New(rand.NewPCG(12, 1))))
		forgetOperators(t, url)
		executor := executorOf(t, s)
		compared := 0
		for _, viewer := range []string{"admin", "member", "foreign", "service"} {
			ctx := access.WithViewer(t.Context(), viewers[viewer])
			execute := requestAsker{t, ctx, executor}.execute
			var listed struct {
				Resources struct {
					Nodes []struct {
						UUID                 string
						AllocationCandidates json.RawMessage
					}
				}
			}
			const list = `{ resources(filter: {types: ["OS::Nova::Flavor"]}, first: %d) { nodes { uuid allocationCandidates(first: 5) ` + requestPage + ` } } }`
			_, few := execute(fmt.Sprintf(list, 5), nil, &listed)
			_, many := execute(fmt.Sprintf(list, 20), nil, &listed)
			if few != many {
				t.Errorf("%s: %d statements for five resources, %d for all", viewer, few, many)
			}
			for _, one := range listed.Resources.Nodes {
				var problems struct {
					PlacementRequest struct {
						Problems []struct{ Key string }
						Ignored  []struct{ Key string }
					}
				}
				execute(fmt.Sprintf(`{ placementRequest(resource: %q) { problems { key message } ignored { key value reason } } }`, one.UUID), nil, &problems)
				if ignored := problems.PlacementRequest.Ignored; len(ignored) == 0 || ignored[0].Key != "os_type" {
					t.Errorf("%s: ignored %v", one.UUID, ignored)
				}
				if len(problems.PlacementRequest.Problems) > 0 {
					var single any
					errors, _ := execute(fmt.Sprintf(`{ resource(uuid: %q) { allocationCandidates { totalCount } } }`,
						one.UUID), nil, &single)
					if want := "BAD_USER_INPUT metadata['trait:CUSTOM_NOTHING']"; strings.Join(errors, ", ") != want {
						t.Errorf("%s: %v, want %s", one.UUID, errors, want)
					}
					continue
				}
				var read struct{ PlacementRequest json.RawMessage }
				execute(fmt.Sprintf(`{ placementRequest(resource: %q) { %s } }`, one.UUID, requestFields), nil, &read)
				var variables map[string]any
				numbers := json.NewDecoder(bytes.NewReader(read.PlacementRequest))
				numbers.UseNumber()
				if err := numbers.Decode(&variables); err != nil {
					t.Fatal(err)
				}
				var sent struct{ AllocationCandidates json.RawMessage }
				errors, _ := execute(`query($resources: [ResourceAmountInput!], $requiredAll: [String!], $requiredAnySets: [TraitSetInput!], $forbidden: [String!], $groups: [RequestGroupInput!],
						$groupPolicy: GroupPolicy!, $sameSubtree: [SubtreeInput!], $hosts: ResourceFilter) {
					allocationCandidates(first: 5, resources: $resources, requiredAll: $requiredAll, requiredAnySets: $requiredAnySets, forbidden: $forbidden, groups: $groups,
						groupPolicy: $groupPolicy, sameSubtree: $sameSubtree, hosts: $hosts) `+requestPage+` }`,
					variables, &sent)
				if compared++; len(errors) > 0 ||
					string(sent.AllocationCandidates) != string(one.AllocationCandidates) {
					t.Errorf("%s, %s: %v\nthe resource has %s\nits request  %s", viewer, one.UUID, errors,
						one.AllocationCandidates, sent.AllocationCandidates)
				}
			}
		}
		if compared < 25 {
			t.Errorf("%d requests were compared", compared)
		}
	})
}

// TestTheRequestOfWhatIsHiddenIsNull queries the requests of a hidden resource,
// of a missing one, and of one whose metadata requests nothing.
func TestTheRequestOfWhatIsHiddenIsNull(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		if err := s.FillEmpty(access.WithViewer(t.Context(), viewers["admin"]), fixture()); err != nil {
			t.Fatal(err)
		}
		executor := executorOf(t, s)
		ctx := access.WithViewer(t.Context(), viewers["member"])
		for query, want := range map[string]string{
			fmt.Sprintf(`{ placementRequest(resource: %q) { problems { message } } }`,
				hiddenShare): `{"placementRequest":null}`,
			fmt.Sprintf(`{ placementRequest(resource: %q) { problems { message } } }`,
				noUUID): `{"placementRequest":null}`,
			fmt.Sprintf(`{ placementRequest(resource: %q) { problems { key message } } }`,
				publicHost): `{"placementRequest":{"problems":[{"key":null,"message":"no key requests resources"}]}}`,
			fmt.Sprintf(`{ resource(uuid: %q) { allocationCandidates { totalCount } } }`,
				publicHost): `{"resource":{"allocationCandidates":null}}`,
		} {
			response := executor.Execute(ctx, &graphql.RawParams{Query: query})
			if string(response.Data) != want || len(response.Errors) > 0 {
				t.Errorf("%s: %s %v, want %s", query, response.Data, response.Errors, want)
			}
		}
	})
}

// TestAnUnknownCapabilityIsAProblem requires hosts to have an unknown
// capability, a misspelt one and a private one. Each but the last is a problem
// of its key, and no search runs. An operator wrote the flavor, so other
// viewers get its result, but no name that it does not contain.
func TestAnUnknownCapabilityIsAProblem(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		const flavor = "f1a00000-0000-4000-8000-000000000001"
		item := func(key, value string) resource.MetadataItem { return resource.MetadataItem{Key: key, Value: value} }
		s := openFilled(t, store.Options{URL: url,
			Resources: store.ResourceOptions{CapabilityDiscovery: resource.DiscoveryEveryone}}, store.Content{
			Resources: []store.ResourceRecord{
				{UUID: flavor, Type: "OS::Nova::Flavor", Name: "flavor", ProjectID: "operations",
					Visibility: access.Public, Metadata: []resource.MetadataItem{
						item("vcpus", "1"), item("capabilities:gpu", ">= 1"), item("capabilities:gpus", ">= "),
						item("capabilities:nope", "1"),
						item("capabilities:secret", "1"), item("trait:ABSENT", "required")}},
				{UUID: "f1a00000-0000-4000-8000-000000000002", Type: "physical:host", Name: "host",
					ProjectID: "operations", Visibility: access.Public},
			},
			Capabilities: []store.CapabilityRecord{
				{ResourceType: "physical:host", Name: "gpu"},
				{ResourceType: "physical:host", Name: "secret", Private: true}},
		})
		executor := executorOf(t, s)
		const suggested, unknown = `unknown capability \"gpus\"; did you mean \"gpu\"?`,
			`{"key":"capabilities:nope","message":"unknown capability \"nope\""}`
		for viewer, want := range map[string][]string{
			"member": {"capabilities:gpus", "capabilities:gpus", "capabilities:nope", "trait:ABSENT"},
			"admin":  {"capabilities:gpus", "capabilities:gpus", "capabilities:nope", "trait:ABSENT"},
		} {
			ask := requestAsker{t, access.WithViewer(t.Context(), viewers[viewer]), executor}
			var read struct {
				PlacementRequest struct {
					Problems []struct{ Key, Message string }
				}
			}
			ask.execute(fmt.Sprintf(`{ placementRequest(resource: %q) { problems { key message } } }`, flavor), nil,
				&read)
			var keys, refused []string
			for _, one := range read.PlacementRequest.Problems {
				keys, refused = append(keys, one.Key), append(refused, "BAD_USER_INPUT metadata['"+one.Key+"']")
			}
			text, err := json.Marshal(read.PlacementRequest.Problems)
			suggests := strings.Contains(strings.ReplaceAll(strings.ToLower(string(text)), `\u003e`, ">"), suggested)
			if err != nil || !slices.Equal(keys, want) || suggests != (viewer == "admin") ||
				!strings.Contains(strings.ToLower(string(text)), unknown) {
				t.Errorf("%s is told %s, %v, want problems of %v", viewer, text, err, want)
			}
			var page any
			if errors, _ := ask.execute(fmt.Sprintf(`{ resource(uuid: %q) { allocationCandidates { totalCount } } }`,
				flavor), nil, &page); !slices.Equal(errors, refused) {
				t.Errorf("%s: the candidates are refused for %q, want %q", viewer, errors, refused)
			}
		}
	})
}
