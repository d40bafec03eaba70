package graph_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestStreamsAskAsTheirQueriesDo checks that a subscription has the same
// arguments, with the same descriptions, as the field of Query that answers it.
// The page arguments are an exception: they belong to the field of the event.
func TestStreamsAskAsTheirQueriesDo(t *testing.T) {
	t.Parallel()
	schema := graph.NewExecutor(&graph.Resolver{}, nil).Schema()
	page := []string{"preferences", "orderBy", "seed", "shapes", "distinct", "alternatives",
		"first", "after", "last", "before"}
	same := func(a, b *ast.ArgumentDefinition) bool {
		return b != nil && a.Type.String() == b.Type.String() && a.Description == b.Description &&
			fmt.Sprint(a.DefaultValue) == fmt.Sprint(b.DefaultValue) &&
			len(a.Directives) == len(b.Directives)
	}
	for field, query := range map[string]string{
		"capacityChanged": "capacity", "allocationCandidatesChanged": "allocationCandidates",
		"survivalChanged": "survives",
	} {
		asked, answered := schema.Query.Fields.ForName(query), schema.Subscription.Fields.ForName(field)
		event := schema.Types[answered.Type.Name()].Fields.ForName(query)
		if event.Type.String() != asked.Type.String() {
			t.Errorf("%s shows %s, %s answers %s", field, event.Type, query, asked.Type)
		}
		for _, argument := range asked.Arguments {
			in := answered.Arguments
			if slices.Contains(page, argument.Name) {
				in = event.Arguments
			}
			if !same(argument, in.ForName(argument.Name)) {
				t.Errorf("%s: the argument %s differs from that of %s", field, argument.Name, query)
			}
		}
		if len(answered.Arguments)+len(event.Arguments) != len(asked.Arguments)+1 {
			t.Errorf("%s has other arguments than %s", field, query)
		}
	}
}

// TestASubscriptionHasOneField checks that a subscription runs only if it has
// exactly one field for all values of @skip and @include.
func TestASubscriptionHasOneField(t *testing.T) {
	t.Parallel()
	preparer := graph.NewExecutor(&graph.Resolver{}, nil).Preparer(document.DefaultLimits())
	const one = "capacityChanged { cursor }"
	for text, allowed := range map[string]bool{
		"subscription { " + one + " }":                                                        true,
		"subscription { ...f } fragment f on Subscription { " + one + " }":                    true,
		"subscription { " + one + " " + one + " }":                                            true, // merged
		"subscription { a: " + one + " " + one + " }":                                         false,
		"subscription { __typename }":                                                         false,
		"subscription { __schema { types { name } } }":                                        false,
		"subscription { ...f " + one + " } fragment f on Subscription { __typename }":         false,
		"subscription($on: Boolean = false) { capacityChanged @include(if: $on) { cursor } }": false,
	} {
		if prepared := preparer.Prepare(t.Context(),
			document.Request{Text: text}); (prepared.Refused == nil) != allowed {
			t.Errorf("%s: %v", text, prepared.Refused)
		}
	}
}

// following is a subscription of a test.
type following struct {
	t            *testing.T
	ctx          context.Context
	subscription *graph.Subscription
	priced       int64 // statements of an event
}

// subscribeAs starts a subscription as a viewer.
func subscribeAs(t *testing.T, executor *graph.Executor, viewer, text string) *following {
	t.Helper()
	ctx := access.WithViewer(t.Context(), viewers[viewer])
	operation := executor.Operation(text, nil)
	subscription, errs := executor.Subscribe(ctx, ctx, operation)
	if errs != nil {
		t.Fatalf("%v: %s", errs, text)
	}
	t.Cleanup(subscription.End)
	return &following{t, ctx, subscription, int64(operation.Price.Statements)}
}

// next returns the data of the next event, or the empty string if none comes in
// time.
func (f *following) next(wait time.Duration) string {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.ctx, wait)
	defer cancel()
	for {
		event, ok := f.subscription.Next(ctx)
		if !ok {
			return ""
		}
		if answer := f.subscription.Answer(f.ctx, event, 0); answer != nil {
			if answer.Taken.Statements > f.priced {
				f.t.Errorf("%d statements are run, %d are priced", answer.Taken.Statements, f.priced)
			}
			if answer.Errors != nil {
				f.t.Error(answer.Errors)
			}
			return string(bytes.Join(answer.Data, nil))
		}
	}
}

// cursorIn returns the cursor of an event.
func cursorIn(t *testing.T, event string) string {
	t.Helper()
	var data map[string]struct{ Cursor string }
	if err := json.Unmarshal([]byte(event), &data); err != nil {
		t.Fatalf("%v: %s", err, event)
	}
	for _, of := range data {
		return of.Cursor
	}
	return ""
}

// TestAnswersAreFollowed follows capacity and candidates. Each event must equal
// the answer of the query after a change. A change of other data must not cause
// an event. A client that returns with its cursor must get exactly the events
// that it has missed.
func TestAnswersAreFollowed(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := openFixture(t, url)
		executor := executorOf(t, s)
		set := func(class string, total int) {
			t.Helper()
			provider := fmt.Sprintf("%q", storetest.UUID(900))
			for _, mutation := range []string{
				`createResourceProvider(input: {uuid: ` + provider +
					`, name: "followed"}) { resourceProvider { uuid } }`,
				fmt.Sprintf(`setInventory(input: {provider: %s, inventory: {resourceClass: %q, total: %d}}) { resourceProvider { uuid } }`, provider, class, total),
			} {
				ctx := access.WithViewer(t.Context(), viewers["admin"])
				if response := executor.ExecuteWhole(ctx, "mutation { "+mutation+" }"); len(response.Errors) > 0 &&
					!strings.Contains(mutation, "createResourceProvider") {
					t.Fatal(response.Errors)
				}
			}
		}
		long, short := patience.Of(t, 10*time.Second), 1500*time.Millisecond
		for name, of := range map[string]struct{ stream, query string }{
			"capacity":   {`capacityChanged(resourceClasses: ["VCPU"] AFTER) { cursor capacity(first: 5) { nodes { total free } totalCount } }`, `capacity(resourceClasses: ["VCPU"], first: 5) { nodes { total free } totalCount }`},
			"candidates": {`allocationCandidatesChanged(resources: [{resourceClass: "VCPU", amount: 1}] AFTER) { allocationCandidates { totalCount nodes { allocations { provider { name } } } } cursor }`, `allocationCandidates(resources: [{resourceClass: "VCPU", amount: 1}]) { totalCount nodes { allocations { provider { name } } } }`},
		} {
			t.Run(name, func(t *testing.T) {
				ask := func() string {
					response := executor.ExecuteWhole(access.WithViewer(t.Context(), viewers["member"]),
						"{ "+of.query+" }")
					return strings.TrimSuffix(strings.TrimPrefix(string(response.Data), "{"), "}")
				}
				stream := func(after string) string {
					return "subscription { " + strings.Replace(of.stream, "AFTER", after, 1) + " }"
				}
				set("VCPU", 7)
				f := subscribeAs(t, executor, "member", stream(""))
				first := f.next(long)
				if !strings.Contains(first, ask()) {
					t.Errorf("first %s, the query answers %s", first, ask())
				}
				set("MEMORY_MB", int(time.Now().UnixNano()%1000)+2)
				if other := f.next(short); other != "" {
					t.Errorf("something else is an event: %s", other)
				}
				after := fmt.Sprintf(`, after: %q`, cursorIn(t, first))
				again := subscribeAs(t, executor, "member", stream(after))
				if nothing := again.next(short); nothing != "" {
					t.Errorf("after %s nothing has changed: %s", after, nothing)
				}
				total := 11
				if name == "candidates" {
					total = 0 // reserved below makes it unusable
				}
				if total == 0 {
					ctx := access.WithViewer(t.Context(), viewers["admin"])
					if response := executor.ExecuteWhole(ctx,
						fmt.Sprintf(`mutation { deleteInventory(input: {provider: %q, resourceClass: "VCPU"}) { resourceProvider { uuid } } }`, storetest.UUID(900))); len(response.Errors) > 0 {
						t.Fatal(response.Errors)
					}
				} else {
					set("VCPU", total)
				}
				for _, of := range []*following{f, again, subscribeAs(t, executor, "member", stream(after))} {
					if event := of.next(long); !strings.Contains(event, ask()) ||
						cursorIn(t, event) == cursorIn(t, first) {
						t.Errorf("the event is %s, the query answers %s", event, ask())
					}
				}
			})
		}
	})
}

// TestAStreamIsRefusedBeforeItBegins checks refusals for invalid arguments and
// for viewers without permission.
func TestAStreamIsRefusedBeforeItBegins(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		executor := executorOf(t, openFixture(t, url))
		for text, want := range map[string]string{
			`capacityChanged(resourceClasses: ["VCPUS"]) { cursor }`:                                  "BAD_USER_INPUT",
			`capacityChanged(after: "x") { cursor }`:                                                  "BAD_USER_INPUT",
			`capacityChanged(filter: {resource: {types: ["none"]}}) { cursor }`:                       "BAD_USER_INPUT",
			`allocationCandidatesChanged(requiredAll: ["NONE"]) { cursor }`:                           "BAD_USER_INPUT",
			`allocationCandidatesChanged(hosts: {types: ["none"]}) { cursor }`:                        "BAD_USER_INPUT",
			`allocationCandidatesChanged(resources: [{resourceClass: "VCPU", amount: 0}]) { cursor }`: "BAD_USER_INPUT",
			`survivalChanged(by: CAPABILITY) { cursor }`:                                              "BAD_USER_INPUT",
			`survivalChanged(by: CAPABILITY, capability: "none") { cursor }`:                          "BAD_USER_INPUT",
			`survivalChanged(filter: {requiredAll: ["NONE"]}) { cursor }`:                             "BAD_USER_INPUT",
			`namespaceChanged(names: ["a\u0000"]) { cursor }`:                                         "BAD_USER_INPUT",
		} {
			ctx := access.WithViewer(t.Context(), viewers["member"])
			subscription, errs := executor.Subscribe(ctx, ctx, executor.Operation("subscription { "+text+" }", nil))
			if subscription != nil || len(errs) == 0 || errs[0].Extensions["code"] != want {
				t.Errorf("%s: %v", text, errs)
			}
		}
		ctx := access.WithViewer(t.Context(), access.Viewer{UserID: "nobody"})
		if _, errs := executor.Subscribe(ctx, ctx, executor.Operation("subscription { capacityChanged { cursor } }",
			nil)); len(errs) == 0 || errs[0].Extensions["code"] != "FORBIDDEN" {
			t.Errorf("nobody: %v", errs)
		}
	})
}

// TestAStreamThatHasLeftStartsNothing checks that a client that goes while its
// stream begins leaves no source, which nothing would end.
func TestAStreamThatHasLeftStartsNothing(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	if err := graph.SourceOf(ctx); err != nil {
		t.Error(err)
	}
	leave()
	if err := graph.SourceOf(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a source was started: %v", err)
	}
}

// TestChangesAreFollowed follows resources, namespaces and providers as several
// viewers. Each gets the changes in the viewer's feed, with the current state
// of the thing, and no hidden data.
func TestChangesAreFollowed(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := openFixture(t, url)
		executor := executorOf(t, s)
		long := patience.Of(t, 10*time.Second)
		change := func(mutation string) {
			t.Helper()
			ctx := access.WithViewer(t.Context(), viewers["admin"])
			if response := executor.ExecuteWhole(ctx, "mutation { "+mutation+" }"); len(response.Errors) > 0 {
				t.Fatal(response.Errors)
			}
		}
		of := func(viewer, text string) *following {
			return subscribeAs(t, executor, viewer, "subscription { "+text+" }")
		}
		expect := func(f *following, parts ...string) (event string) {
			t.Helper()
			event = f.next(long)
			for _, part := range parts {
				if !strings.Contains(event, part) {
					t.Fatalf("the event %q lacks %s", event, part)
				}
			}
			return event
		}
		uuid := storetest.UUID(901)
		resources := `resourceChanged { cursor change { kind what key } resource { name metadata { key } } }`
		admin, member, foreign := of("admin", resources), of("member", resources), of("foreign", resources)
		one := of("foreign",
			fmt.Sprintf(`resourceChanged(uuids: [%q]) { cursor change { what } resource { name } }`, uuid))
		change(fmt.Sprintf(`createResource(input: {uuid: %q, type: "physical:host", name: "secret", visibility: PRIVATE, projectId: "demo"}) { resource { uuid } }`, uuid))
		expect(admin, `"kind":"RESOURCE","what":"CREATED","key":"`+uuid+`"`, `"name":"secret"`)
		seen := expect(member, `"what":"CREATED"`, `"name":"secret"`)
		change(fmt.Sprintf(`updateResource(input: {uuid: %q, visibility: PUBLIC}) { resource { uuid } }`, uuid))
		expect(admin, `"what":"UPDATED"`)
		expect(foreign, `"what":"CREATED"`, `"name":"secret"`) // the first event that they get
		expect(one, `"what":"CREATED"`)
		change(fmt.Sprintf(`updateResource(input: {uuid: %q, visibility: PRIVATE}) { resource { uuid } }`, uuid))
		expect(foreign, `"what":"DELETED"`, `"resource":null`)
		expect(one, `"what":"DELETED"`, `"resource":null`)
		again := of("member", strings.Replace(resources, "resourceChanged",
			fmt.Sprintf("resourceChanged(after: %q)", cursorIn(t, seen)), 1))
		for _, f := range []*following{member, again} {
			expect(f, `"what":"UPDATED"`)
			expect(f, `"what":"UPDATED"`)
		}
		change(fmt.Sprintf(`deleteResource(input: {uuid: %q}) { resource { uuid } }`, uuid))
		for _, f := range []*following{admin, member, again} {
			for event := expect(f, `"what":`); !strings.Contains(event, "DELETED"); event = expect(f, `"what":`) {
				continue
			}
		}
		namespaces := of("reader",
			`namespaceChanged(names: ["Followed"]) { cursor change { what } namespace { name tags { name } } }`)
		change(`createNamespace(input: {name: "Followed", visibility: PUBLIC}) { namespace { name } }`)
		expect(namespaces, `"what":"CREATED"`, `"name":"Followed"`)
		change(`setTags(input: {namespace: "Followed", tags: [{name: "a"}]}) { namespace { name } }`)
		expect(namespaces, `"what":"UPDATED"`, `"tags":[{"name":"a"}]`)
		providers := of("reader",
			`resourceProviderChanged { cursor change { what } resourceProvider { name inventories { total } } }`)
		change(fmt.Sprintf(`createResourceProvider(input: {uuid: %q, name: "told"}) { resourceProvider { uuid } }`,
			uuid))
		expect(providers, `"what":"CREATED"`, `"name":"told","inventories":[]`)
		change(fmt.Sprintf(`setInventory(input: {provider: %q, inventory: {resourceClass: "VCPU", total: 3}}) { resourceProvider { uuid } }`, uuid))
		expect(providers, `"what":"UPDATED"`, `"total":3`)
		change(fmt.Sprintf(`deleteResourceProvider(input: {provider: %q}) { resourceProvider { uuid } }`, uuid))
		expect(providers, `"what":"DELETED"`, `"resourceProvider":null`)
		consumers, others := of("reader",
			`consumerChanged { cursor change { what } consumer { projectId allocations { used } } }`),
			of("foreign", `consumerChanged { cursor }`)
		change(fmt.Sprintf(`createResourceProvider(input: {uuid: %q, name: "told", inventories: [{resourceClass: "VCPU", total: 3}]}) { resourceProvider { uuid } }`, uuid))
		change(fmt.Sprintf(`setAllocations(input: {consumers: [{uuid: %[1]q, projectId: "demo", userId: "u", allocations: [{provider: %[1]q, resources: [{resourceClass: "VCPU", amount: 2}]}]}]}) { __typename }`, uuid))
		expect(consumers, `"what":"CREATED"`, `"projectId":"demo","allocations":[{"used":2}]`)
		change(fmt.Sprintf(`deleteAllocations(input: {consumer: %q}) { __typename }`, uuid))
		expect(consumers, `"what":"DELETED"`, `"consumer":null`)
		holding := of("admin",
			`resourceProviderChanged { cursor change { what } resourceProvider { inventories { used held } } }`)
		change(fmt.Sprintf(`place(input: {holdFor: 3600, request: {inTree: %[1]q, resources: [{resourceClass: "VCPU", amount: 2}]}, consumers: [{uuid: %[1]q, projectId: "quiet", userId: "u"}]}) { __typename }`, uuid))
		expect(holding, `"what":"UPDATED"`, `"used":2,"held":2`)
		change(fmt.Sprintf(`confirmAllocations(input: {consumers: [%q]}) { __typename }`, uuid))
		expect(holding, `"what":"UPDATED"`, `"used":2,"held":0`)
		if nothing := others.next(time.Second); nothing != "" {
			t.Errorf("another project is told of a consumer: %s", nothing)
		}
		if nothing := one.next(time.Second); nothing != "" {
			t.Errorf("a viewer of another project is told of what is private: %s", nothing)
		}
	})
}
