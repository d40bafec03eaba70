package graph_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// hiddenStreams are streams of all kinds: streams of changes, and streams of
// new answers, from the world alone and by statements.
var hiddenStreams = []string{
	`resourceChanged { cursor change { kind what key } resource { name revision metadata { key value } tags } }`,
	`namespaceChanged { cursor change { kind what key } namespace { name revision tags { name } } }`,
	`resourceProviderChanged { cursor change { kind what key } resourceProvider { name resource { name } } }`,
	`consumerChanged { cursor change { kind what key } consumer { generation allocations { used } } }`,
	`capacityChanged { cursor capacity { totalCount nodes { resourceClass total used } } }`,
	`capacityChanged(filter: {resource: {types: ["physical:host"]}}) { cursor capacity { totalCount nodes { resourceClass total used } } }`,
	`survivalChanged { cursor survives { totalCount unsurvivedCount nodes { consumers unplacedCount } } }`,
	`allocationCandidatesChanged(resources: [{resourceClass: "VCPU", amount: 1}], hosts: {types: ["physical:host"]}) { cursor allocationCandidates { totalCount } }`,
	`allocationCandidatesChanged(resources: [{resourceClass: "VCPU", amount: 1}]) { cursor allocationCandidates(preferences: [{hosts: {types: ["physical:host"]}, weight: 1}]) { nodes { score } } }`,
}

// streamsOf is a stream of one viewer of one store.
type streamsOf struct {
	*following
	text string
	// told has the answers with their numbers of statements.
	told []string
}

// tellsChanges reports whether the events are changes instead of new answers.
func (s *streamsOf) tellsChanges() bool { return strings.Contains(s.text, "{ cursor change") }

// read takes one event and reports whether there was one.
func (s *streamsOf) read(wait time.Duration) bool {
	ctx, cancel := context.WithTimeout(s.ctx, wait)
	defer cancel()
	event, ok := s.subscription.Next(ctx)
	if !ok {
		return false
	}
	if answer := s.subscription.Answer(s.ctx, event, 0); answer != nil {
		s.told = append(s.told,
			fmt.Sprintf("%s %v in %d statements", bytes.Join(answer.Data, nil), answer.Errors, answer.Taken.Statements))
	}
	return true
}

// TestHiddenChangesLeaveNoTraceInStreams has viewers follow everything in two
// stores with the same content. In one store, other projects also work in
// private. No stream may have an event or a new answer for that work. All other
// events must have the same bytes, and the same number of statements, in both
// stores.
func TestHiddenChangesLeaveNoTraceInStreams(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		worlds := []*graph.Executor{executorOf(t, openFixture(t, url))}
		if strings.HasPrefix(url, "postgres") {
			worlds = append(worlds, executorOf(t, openFixture(t, storetest.Postgres(t))))
		} else {
			worlds = append(worlds, executorOf(t, openFixture(t, storetest.SQLite(t))))
		}
		var streams [2][]*streamsOf
		for i, world := range worlds {
			for _, viewer := range []string{"member", "reader", "foreign"} {
				for _, text := range hiddenStreams {
					streams[i] = append(streams[i],
						&streamsOf{following: subscribeAs(t, world, viewer, "subscription { "+text+" }"),
							text: viewer + ": " + text})
				}
			}
			for _, s := range streams[i] {
				if !s.tellsChanges() && !s.read(patience.Of(t, 10*time.Second)) {
					t.Fatalf("%s has no first answer", s.text)
				}
			}
		}
		random := rand.New(rand.NewPCG(19, 5))
		hide := func(times int) {
			for range times {
				changeIn(t, worlds[0], hiddenChange(random))
			}
		}
		hide(40)
		time.Sleep(2 * time.Second) // for all new answers
		for _, s := range streams[0] {
			if s.read(time.Millisecond) {
				t.Errorf("%s has an event for what is hidden: %v", s.text, s.told)
			}
		}
		for n := range visibleRounds + 1 {
			hide(5)
			for _, world := range worlds {
				for _, mutation := range visibleChanges(n) {
					changeIn(t, world, mutation)
				}
			}
		}
		compareTold(t, streams)
	})
}

// visibleRounds is the number of rounds of visible changes in the comparison of
// two stores. One more creation marks the end.
const visibleRounds = 6

// compareTold compares the events for visible changes in the streams of two
// stores. It skips streams of new answers, because a slow machine may produce
// more of them.
func compareTold(t *testing.T, streams [2][]*streamsOf) {
	t.Helper()
	for i, s := range streams[0] {
		if !s.tellsChanges() {
			continue
		}
		s.untilTold(t, visibleRounds+1)
		streams[1][i].untilTold(t, visibleRounds+1)
		one, other := unsealed(strings.Join(s.told, "\n")), unsealed(strings.Join(streams[1][i].told, "\n"))
		if with, without := difference(one, other); one != other {
			t.Errorf("%s\nbeside what is hidden: %s\nwithout: %s", s.text, with, without)
		}
	}
}

// untilTold reads events until the given number of things was created.
func (s *streamsOf) untilTold(t *testing.T, created int) {
	t.Helper()
	told := func() bool {
		return strings.Count(strings.Join(s.told, ""), `"what":"CREATED"`) >= created
	}
	for !told() && s.read(patience.Of(t, 10*time.Second)) {
	}
	if !told() {
		t.Errorf("%s was told %v", s.text, s.told)
	}
}

// changeIn sends a mutation as an administrator. A hidden change may be
// refused.
func changeIn(t *testing.T, world *graph.Executor, mutation string) {
	t.Helper()
	ctx := access.WithViewer(t.Context(), viewers["admin"])
	if response := world.ExecuteWhole(ctx, "mutation { "+mutation+" }"); len(response.Errors) > 0 &&
		!strings.Contains(mutation, "vault") && !strings.Contains(mutation, "Hidden") {
		t.Fatal(response.Errors, mutation)
	}
}

// visibleChanges returns mutations of things that every viewer sees, except the
// last: its consumers are in the projects of the viewers.
func visibleChanges(n int) []string {
	uuid := storetest.UUID(5000 + n)
	return []string{
		fmt.Sprintf(`createResource(input: {uuid: %q, type: "physical:host", name: "seen %d", visibility: PUBLIC, projectId: "demo"}) { resource { uuid } }`, uuid, n),
		fmt.Sprintf(`setMetadata(input: {resource: %q, items: [{key: "a", value: "%d"}]}) { resource { uuid } }`, uuid,
			n),
		fmt.Sprintf(`createNamespace(input: {name: "Seen %d", visibility: PUBLIC}) { namespace { name } }`, n),
		fmt.Sprintf(`createResourceProvider(input: {uuid: %q, name: "seen %d"}) { resourceProvider { uuid } }`, uuid,
			n),
		fmt.Sprintf(`setInventory(input: {provider: %q, inventory: {resourceClass: "VCPU", total: 4}}) { resourceProvider { uuid } }`, uuid),
		fmt.Sprintf(`setAllocations(input: {consumers: [{uuid: %[1]q, projectId: "demo", userId: "u", allocations: [{provider: %[1]q, resources: [{resourceClass: "VCPU", amount: 1}]}]},
			{uuid: %[2]q, projectId: "elsewhere", userId: "u", allocations: [{provider: %[1]q, resources: [{resourceClass: "VCPU", amount: 1}]}]}]}) { consumers { uuid } }`, uuid, storetest.UUID(6000+n)),
	}
}

// hiddenChange returns a random mutation of a thing that only the project vault
// sees.
func hiddenChange(random *rand.Rand) string {
	uuid, name := storetest.UUID(7000+random.IntN(4)), fmt.Sprint("Hidden ", random.IntN(4))
	return []string{
		fmt.Sprintf(`createResource(input: {uuid: %q, type: "physical:host", name: "vault", visibility: PRIVATE, projectId: "vault"}) { resource { uuid } }`, uuid),
		fmt.Sprintf(`updateResource(input: {uuid: %q, newName: "vault %d"}) { resource { uuid } }`, uuid,
			random.IntN(9)),
		fmt.Sprintf(`setMetadata(input: {resource: %q, items: [{key: "vault", value: "%d"}]}) { resource { uuid } }`,
			uuid, random.IntN(9)),
		fmt.Sprintf(`setResourceTags(input: {resource: %q, tags: ["vault%d"]}) { resource { uuid } }`, uuid,
			random.IntN(9)),
		fmt.Sprintf(`vault: deleteResource(input: {uuid: %q}) { resource { uuid } }`, uuid),
		fmt.Sprintf(`createNamespace(input: {name: %q, visibility: PRIVATE, owner: "vault"}) { namespace { name } }`,
			name),
		fmt.Sprintf(`setTags(input: {namespace: %q, tags: [{name: "t%d"}]}) { namespace { name } }`, name,
			random.IntN(9)),
		fmt.Sprintf(`shareNamespace(input: {namespace: %q, projectId: "vault%d"}) { namespace { name } }`, name,
			random.IntN(3)),
		fmt.Sprintf(`deleteNamespace(input: {name: %q}) { namespace { name } }`, name),
	}[random.IntN(9)]
}
