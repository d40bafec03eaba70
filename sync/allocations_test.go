package sync_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/Khan/genqlient/graphql"
	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/origin"
	"github.com/cadastre-dev/cadastre/sync"
)

const (
	first  = "22222222-0000-4000-8000-000000000001"
	second = "22222222-0000-4000-8000-000000000002"
	moving = "33333333-0000-4000-8000-000000000001" // a migration
)

// allocate gives a consumer of the fake an amount of a provider, or nothing.
func (f *fake) allocate(consumer, provider string, amount int) {
	f.generation++
	for _, one := range f.lists["/placement/resource_providers"] {
		path := fmt.Sprintf("/placement/resource_providers/%s/allocations", one["uuid"])
		if f.objects[path] == nil {
			f.objects[path] = object{"allocations": object{}}
		}
		delete(f.objects[path]["allocations"].(object), consumer)
	}
	own := object{"allocations": object{}}
	if amount > 0 {
		f.changes(provider)
		resources := object{"resources": object{"CUSTOM_GPU": amount}, "consumer_generation": f.generation}
		of := f.objects["/placement/resource_providers/"+provider+"/allocations"]
		of["allocations"].(object)[consumer] = resources
		own = object{"allocations": object{provider: resources},
			"project_id": cmp.Or(f.owners[consumer], "blue"), "user_id": cmp.Or(f.users[consumer], "ada")}
	}
	f.objects["/placement/allocations/"+consumer] = own
}

// changes gives a provider the next generation.
func (f *fake) changes(provider string) {
	one := f.objects["/placement/resource_providers/"+provider]
	one["generation"] = one["generation"].(int) + 1
}

// used returns the units that the consumers of a project use.
func (f *fake) used(project string) object {
	if sum, known := f.usage[project]; known {
		return object{"CUSTOM_GPU": sum}
	}
	sum := 0
	for path, one := range f.objects {
		if strings.HasPrefix(path, "/placement/allocations/") && one["project_id"] == project {
			for _, of := range one["allocations"].(object) {
				sum += of.(object)["resources"].(object)["CUSTOM_GPU"].(int)
			}
		}
	}
	return object{"CUSTOM_GPU": sum}
}

// consumers returns the allocations of each consumer.
func (s *syncing) consumers() map[string]string {
	s.t.Helper()
	found := map[string]string{}
	for one, err := range client.Consumers(s.t.Context(), s.server, nil, nil, new(1000)) {
		if err != nil {
			s.t.Fatal(err)
		}
		for _, has := range one.Allocations {
			if has.ResourceClass == "CUSTOM_GPU" {
				found[one.Uuid] += fmt.Sprint(one.ProjectId, " ", one.UserId, " ", has.Provider.Name, " ", has.Used)
			}
		}
	}
	return found
}

// TestAllocationsFollowServers syncs servers that come, move and go, next to
// consumers of other kinds.
func TestAllocationsFollowServers(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newSyncing(t, f)
	s.compares = true
	f.provide(root, "compute", "", 2)
	f.provide(child, "child", root, 4)
	f.lists[servers] = []object{{"id": first, "tenant_id": "blue"}, {"id": second, "tenant_id": "blue"}}
	f.allocate(first, root, 1)
	f.allocate(second, child, 2)
	f.lists[moves] = []object{{"id": "1", "uuid": moving, "status": "finished",
		"migration_type": "resize", "project_id": "blue"}}
	f.allocate(moving, child, 1)
	f.allocate("33333333-0000-4000-8000-000000000002", child, 1) // of no thing of the cloud
	pass := func(names ...string) {
		t.Helper()
		for _, name := range names {
			if _, err := s.pass(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	pass("hypervisors", "providers", "servers", "migrations")
	want := map[string]string{first: "blue ada compute 1", second: "blue ada child 2", moving: "blue ada child 1"}
	check := func(when string, counts client.SyncCounts, refused, deleted int, failure string) {
		t.Helper()
		result, err := s.pass("allocations")
		if (err == nil) != (failure == "") || err != nil && !strings.Contains(err.Error(), failure) {
			t.Errorf("%s: %v, want %q", when, err, failure)
		}
		if result.SyncCounts != counts || result.Refused != refused || result.Deleted != deleted {
			t.Errorf("%s: %+v, want %+v, %d, %d", when, result, counts, refused, deleted)
		}
		if got := s.consumers(); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	check("first", client.SyncCounts{Created: 3}, 0, 0, "")
	check("again", client.SyncCounts{Unchanged: 3}, 0, 0, "")
	f.lists[moves] = []object{}
	f.allocate(moving, child, 0)
	pass("migrations", "migrations")
	delete(want, moving)
	check("the end of a migration", client.SyncCounts{Unchanged: 2}, 0, 1, "")
	pass("migrations")
	if gone := s.stored("migrations")[moving]["gone"]; gone != true {
		t.Errorf("a migration that ended is gone: %v", gone)
	}
	uses := []*client.ResourceAmountInput{{ResourceClass: "CUSTOM_GPU", Amount: 1}}
	claim := &client.ConsumerAllocationsInput{Uuid: other, ProjectId: "p", UserId: "u",
		Allocations: []*client.ProviderAllocationInput{{Provider: child, Resources: uses}}}
	if _, err := client.SetAllocations(t.Context(), s.server,
		&client.SetAllocationsInput{Consumers: []*client.ConsumerAllocationsInput{claim}}); err != nil {
		t.Fatal(err)
	}
	want[other] = "p u child 1" // a person's
	f.allocate(first, child, 1)
	want[first] = "blue ada child 1"
	check("a move", client.SyncCounts{Updated: 1, Unchanged: 1}, 0, 0, "")
	f.users = map[string]string{first: "bob"}
	f.allocate(first, child, 1)
	want[first] = "blue bob child 1"
	check("another user", client.SyncCounts{Updated: 1, Unchanged: 1}, 0, 0, "")
	f.users = nil
	f.allocate(first, child, 1)
	want[first] = "blue ada child 1"
	check("the user again", client.SyncCounts{Updated: 1, Unchanged: 1}, 0, 0, "")
	f.allocate(first, root, 2)
	f.allocate(second, root, 3)
	want[first], want[second] = "blue ada compute 2", "blue ada compute 3" // of 2
	check("beyond the capacity", client.SyncCounts{Updated: 2}, 0, 0, "")
	check("still", client.SyncCounts{Unchanged: 2}, 0, 0, "")
	f.allocate(second, child, 2)
	want[second] = "blue ada child 2"
	check("back", client.SyncCounts{Updated: 1, Unchanged: 1}, 0, 0, "")
	f.owners = map[string]string{second: "unknown"}
	f.allocate(second, child, 1)
	want[second] = "unknown ada child 1"
	check("a project that is not the server's", client.SyncCounts{Updated: 1, Unchanged: 1}, 0, 0, "")
	check("still not", client.SyncCounts{Unchanged: 2}, 0, 0, "")
	f.owners = nil
	f.allocate(second, child, 1)
	want[second] = "blue ada child 1"
	check("another project", client.SyncCounts{Updated: 1, Unchanged: 1}, 0, 0, "")
	delete(f.objects["/placement/resource_providers/"+root+"/allocations"]["allocations"].(object), first)
	f.changes(root)
	s.allow = true
	check("a list without a server", client.SyncCounts{Unchanged: 2, Absent: 1}, 0, 0, "")
	s.allow = false
	f.allocate(first, root, 0)
	check("beyond the limit", client.SyncCounts{Unchanged: 1, Absent: 1}, 1, 0, "")
	s.keeps("allocations", 1)
	s.allow = true
	delete(want, first)
	check("deleted", client.SyncCounts{Unchanged: 1, Absent: 1}, 0, 1, "")
}

// newClaiming returns a cloud with two providers, nine servers of three projects, and
// three other consumers, and a server that knows all but the allocations.
func newClaiming(t *testing.T) (f *fake, s *syncing, consumers []string) {
	f = newFake()
	s = newSyncing(t, f)
	s.allow = true
	f.provide(root, "compute", "", 100)
	f.provide(child, "child", root, 100)
	f.lists[servers], f.owners = nil, map[string]string{}
	for i := range 12 {
		consumer := fmt.Sprintf("55555555-0000-4000-8000-%012d", i)
		consumers = append(consumers, consumer)
		f.owners[consumer] = fmt.Sprint("p", i%3)
		if i < 9 {
			f.lists[servers] = append(f.lists[servers], object{"id": consumer, "tenant_id": f.owners[consumer]})
		}
	}
	s.mustPass("hypervisors", "providers", "servers")
	return f, s, consumers
}

// mustPass makes passes over kinds.
func (s *syncing) mustPass(names ...string) {
	s.t.Helper()
	for _, name := range names {
		if _, err := s.pass(name); err != nil {
			s.t.Fatal(err)
		}
	}
}

// claims lets some of the consumers claim, move or release at random. It keeps what
// they have, if wanted.
func (f *fake) claims(chance *rand.Rand, consumers []string, want map[string]string) {
	for range chance.IntN(4) {
		consumer, amount := consumers[chance.IntN(len(consumers))], chance.IntN(4)
		provider := []string{root, child}[chance.IntN(2)]
		f.allocate(consumer, provider, amount)
		if delete(want, consumer); amount > 0 && want != nil {
			want[consumer] = fmt.Sprint(f.owners[consumer], " ada ",
				map[string]string{root: "compute", child: "child"}[provider], " ", amount)
		}
	}
}

// TestAllocationsFollowRandomClaims lets servers of three projects, or other consumers,
// claim, move and release at random between passes, which read only what may have
// changed. After each pass the allocations equal the cloud's.
func TestAllocationsFollowRandomClaims(t *testing.T) {
	t.Parallel()
	f, s, consumers := newClaiming(t)
	chance, want := rand.New(rand.NewPCG(1, 2)), map[string]string{}
	for step := range 40 {
		if step%8 == 7 {
			f.claims(chance, consumers[9:], nil)
		} else {
			f.claims(chance, consumers[:9], want)
		}
		s.mustPass("allocations")
		if got := s.consumers(); !maps.Equal(got, want) {
			t.Fatalf("step %d: %v, want %v", step, got, want)
		}
	}
}

// TestAnAnswerWithoutItsFieldEndsAPass has a Placement whose answers are objects of another
// kind. Nothing changes.
func TestAnAnswerWithoutItsFieldEndsAPass(t *testing.T) {
	t.Parallel()
	f, s, consumers := newClaiming(t)
	f.allocate(consumers[0], root, 1)
	s.mustPass("allocations")
	providers, has := s.providers(), s.consumers()
	for path, kind := range map[string]string{"resource_providers/" + root + "/inventories": "providers",
		"resource_providers/" + root + "/traits":      "providers",
		"resource_providers/" + root + "/aggregates":  "providers",
		"resource_providers/" + root + "/allocations": "allocations",
		"allocations/" + consumers[0]:                 "allocations"} {
		f.allocate(consumers[0], root, 2)
		before := f.objects["/placement/"+path]
		f.objects["/placement/"+path] = object{"error": "later"}
		if result, err := s.pass(kind); err == nil || result.Changed() {
			t.Errorf("%s: %+v, %v", path, result, err)
		}
		f.objects["/placement/"+path] = before
	}
	if is, of := s.providers(), s.consumers(); !maps.Equal(is, providers) || !maps.Equal(of, has) {
		t.Errorf("%v, %v, want %v, %v", is, of, providers, has)
	}
}

// TestARefusedConsumerHasNoOtherReadAgain makes passes in which the server refuses one
// consumer, since it lacks a provider. The page of another is read once for its change.
func TestARefusedConsumerHasNoOtherReadAgain(t *testing.T) {
	t.Parallel()
	f, s, consumers := newClaiming(t)
	f.allocate(consumers[1], root, 1)
	s.mustPass("allocations")
	f.provide(other, "unknown", "", 100)
	f.allocate(consumers[0], other, 1)
	f.allocate(consumers[1], root, 2)
	for i, want := range []int{1, 0} {
		asked, read := len(f.asked), 0
		if _, err := s.pass("allocations"); err == nil {
			t.Error("the server knows the provider")
		}
		for _, path := range f.asked[asked:] {
			if strings.HasPrefix(path, "/placement/allocations/"+consumers[1]) {
				read++
			}
		}
		if read != want {
			t.Errorf("pass %d read the page %d times, want %d", i, read, want)
		}
	}
	if got := s.consumers(); !maps.Equal(got, map[string]string{consumers[1]: "p1 ada compute 2"}) {
		t.Errorf("%v", got)
	}
}

// TestAServerOfTwoOriginsStays takes a server with allocations from the second of two
// origins. Its resource stays until it has none.
func TestAServerOfTwoOriginsStays(t *testing.T) {
	t.Parallel()
	f, s, consumers := newClaiming(t)
	f.allocate(consumers[0], root, 1)
	s.mustPass("allocations")
	kinds, _ := sync.Kinds([]string{"servers"})
	second := &sync.Pass{Cloud: s.cloud, Server: s.server, Origin: "second", Kind: kinds[0], Project: "operations",
		Limits: origin.Limits{Allow: true}, Progress: func(int) {}}
	for i, want := range []int{0, 0, 0, 1} {
		if i == 3 {
			f.allocate(consumers[0], root, 0)
			s.mustPass("allocations")
		}
		if result, err := second.Run(t.Context()); err != nil || result.Gone != want {
			t.Errorf("pass %d: %+v, %v, want %d gone", i, result, err, want)
		}
		f.lists[servers] = f.lists[servers][len(f.lists[servers])-8:]
	}
}

// TestUnchangedProvidersAreReadOnceInManyPasses counts the requests for the contents
// of two providers while nothing changes.
func TestUnchangedProvidersAreReadOnceInManyPasses(t *testing.T) {
	t.Parallel()
	f, s, _ := newClaiming(t)
	s.mustPass("allocations")
	asked := len(f.asked)
	for _, name := range []string{"providers", "allocations"} {
		s.passes[name].DryRun = true
		for range 60 {
			s.mustPass(name)
		}
	}
	read := map[string]int{}
	for _, path := range f.asked[asked:] {
		read[path]++
	}
	for _, one := range []string{root, child} {
		for _, part := range []string{"inventories placement 1.19", "traits placement 1.19",
			"aggregates placement 1.19", "allocations placement 1.28"} {
			if path := "/placement/resource_providers/" + one + "/" + part; read[path] != 1 {
				t.Errorf("%s was read %d times in 60 passes without a change", path, read[path])
			}
		}
	}
}

// TestAUserThatChangedBetweenCommandsIsRead changes the user of a server while no
// command runs.
func TestAUserThatChangedBetweenCommandsIsRead(t *testing.T) {
	t.Parallel()
	f, s, consumers := newClaiming(t)
	f.allocate(consumers[0], root, 1)
	s.mustPass("providers", "allocations")
	delete(s.passes, "allocations")
	f.users = map[string]string{consumers[0]: "bob"}
	f.allocate(consumers[0], root, 1)
	for range 60 {
		s.mustPass("allocations")
	}
	if got := s.consumers()[consumers[0]]; got != "p0 bob compute 1" {
		t.Errorf("the server has %s", got)
	}
}

// forgetful is a server that refuses every cursor.
type forgetful struct{ graphql.Client }

func (f forgetful) MakeRequest(ctx context.Context, request *graphql.Request, response *graphql.Response) error {
	if variables, _ := json.Marshal(request.Variables); strings.Contains(string(variables), `"after":"`) {
		return &client.Errors{List: []*client.Error{{Code: client.BadUserInput}}}
	}
	return f.Client.MakeRequest(ctx, request, response)
}

// TestALostCursorEndsAPass loses the second page of the servers.
func TestALostCursorEndsAPass(t *testing.T) {
	t.Parallel()
	f, s, _ := newClaiming(t)
	for i := range 1000 {
		f.lists[servers] = append(f.lists[servers], object{"id": fmt.Sprint("server-", i), "tenant_id": "p"})
	}
	s.mustPass("servers")
	s.server = forgetful{s.server}
	if result, err := s.pass("allocations"); client.Code(err) != client.BadUserInput {
		t.Errorf("%+v, %v", result, err)
	}
}

// TestAMoveIsReadFromTwoProviders moves a server of a project that has others. Only
// the new generation of its new provider tells of the move.
func TestAMoveIsReadFromTwoProviders(t *testing.T) {
	t.Parallel()
	f, s, consumers := newClaiming(t)
	const apart = "22222222-0000-4000-8000-000000000003"
	f.provide(apart, "apart", "", 100)
	f.allocate(consumers[0], root, 1)
	f.allocate(consumers[3], apart, 1) // of the same project
	s.mustPass("providers", "allocations")
	asked := len(f.asked)
	f.allocate(consumers[0], child, 2)
	s.mustPass("allocations")
	read := map[string]int{}
	for _, path := range f.asked[asked:] {
		read[path]++
	}
	for one, want := range map[string]int{root: 1, child: 1, apart: 0} {
		if path := "/placement/resource_providers/" + one + "/allocations placement 1.28"; read[path] != want {
			t.Errorf("%s was read %d times, want %d", path, read[path], want)
		}
	}
	if got := s.consumers()[consumers[0]]; got != "p0 ada child 2" {
		t.Errorf("the server has %s", got)
	}
}
