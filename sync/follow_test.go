package sync_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	stdsync "sync"
	"testing"
	"time"

	"github.com/Khan/genqlient/graphql"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/demo/demotest"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/internal/soak"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/sync"
)

// clock is the time of a test.
type clock struct {
	mu  stdsync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Wait lets the time pass.
func (c *clock) Wait(_ context.Context, length time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(length)
	return true
}

// following is a syncing whose server and followers have the time of a test.
type following struct {
	*syncing
	clock *clock
}

func newFollowing(t *testing.T, f *fake) *following {
	t.Helper()
	of := &following{clock: &clock{now: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)}}
	s, err := store.Open(t.Context(),
		store.Options{URL: storetest.SQLite(t), Now: of.clock.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := demo.Fill(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	of.syncing = &syncing{t: t, cloud: f.start(t),
		server: client.New(demotest.ServeStore(t, s), client.WithToken(demo.AdminToken)), ctx: t.Context()}
	return of
}

// run follows kinds until a number of passes have ended. It returns them, with the
// minute of their ends.
func (f *following) run(passes int, kinds ...string) (ended []string) {
	f.t.Helper()
	ctx, stop := context.WithCancel(f.t.Context())
	defer stop()
	chosen, _ := sync.Kinds(kinds)
	begun := f.clock.Now()
	follower := &sync.Follower{Server: f.server, Now: f.clock.Now, Wait: f.clock.Wait, Random: func() float64 {
		return 0.5
	}}
	for _, kind := range chosen {
		follower.Passes = append(follower.Passes, &sync.Pass{Cloud: f.cloud, Server: f.server, Origin: "cloud",
			Kind: kind, Project: "operations", Progress: func(int) {}})
	}
	follower.Ended = func(pass *sync.Pass, result sync.Result, err error) {
		how := fmt.Sprint(result.Seen)
		if err != nil {
			how = "fails"
		}
		ended = append(ended, fmt.Sprint(f.clock.Now().Sub(begun).Minutes(), " ", pass.Kind.Name, " ", how))
		if len(ended) == passes {
			stop()
		}
	}
	follower.Run(ctx)
	return ended
}

// TestFollowersRepeatPasses follows kinds at their intervals, while one fails, and
// while another program makes passes.
func TestFollowersRepeatPasses(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newFollowing(t, f)
	check := func(when string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	check("begin", s.run(5, "servers", "volumes"), "0 servers 7", "0 volumes 7",
		"1 servers 7", "2 servers 7", "3 servers 7")
	check("a restart", s.run(3, "servers", "volumes"), "1 servers 7", "2 servers 7", "2 volumes 7")
	f.fault = func(w http.ResponseWriter) bool { w.WriteHeader(http.StatusInternalServerError); return true }
	f.lists[volumes] = f.lists[volumes][:3] // has no second page, which fails
	check("failures", s.run(6, "servers", "volumes"), "1 servers fails", "2 servers fails", "4 servers fails",
		"5 volumes 3", "8 servers fails", "10 volumes 3")
	syncs, err := client.ListSyncs(t.Context(), s.server)
	if err != nil {
		t.Fatal(err)
	}
	if state := syncs.Syncs[0]; state.Failures != 4 || *state.Lag != 600 {
		t.Errorf("failures: %+v", state)
	}
	f.fault = nil
	hold := &client.SyncResourcesInput{Origin: "cloud", Region: "one", Kind: "servers", Pass: first,
		ResourceType: "OS::Nova::Server", Resources: []*client.SyncedResourceInput{}}
	if _, err := client.SyncResources(t.Context(), s.server, hold); err != nil {
		t.Fatal(err)
	}
	check("another program that was killed", s.run(1, "servers"), "1 servers 7")
	s.clock.Wait(t.Context(), time.Minute)
	end := &client.EndSyncInput{Origin: "cloud", Region: "one", Kind: "servers", Pass: first, Complete: true,
		Seen: 7, Unknown: optional.Value(1)}
	if _, err := client.EndSync(t.Context(), s.server, end); err != nil {
		t.Fatal(err)
	}
	s.clock.Wait(t.Context(), 15*time.Second)
	check("another program's pass", s.run(1, "servers"), "0.75 servers 7")
	s.server = conflicting{s.server}
	check("a conflict", s.run(2, "servers"), "1 servers fails", "2 servers fails")
}

// TestFollowersReadTheCatalogueAgain has a service that is new in two regions while
// a plan is followed, and a moment without Keystone.
func TestFollowersReadTheCatalogueAgain(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.lacks = "block-storage"
	s := newFollowing(t, f)
	plan := sync.Plan{Origin: "cloud", Project: "operations", Regions: []string{"*"},
		Kinds: []string{"images", "volumes"}, Intervals: map[string]time.Duration{"volumes": 20 * time.Minute},
		Progress: func(*sync.Pass, int) {}}
	passes, _, err := plan.Passes(s.cloud, s.server)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var got []string
	begun := s.clock.Now()
	follower := plan.Follower(s.cloud, s.server, passes, func() float64 { return 0.5 },
		func(pass *sync.Pass, result sync.Result, err error) {
			got = append(got, fmt.Sprint(s.clock.Now().Sub(begun).Minutes(), " ", pass.Cloud.At.Region, " ",
				pass.Kind.Name, " ", result.Seen, " ", err))
			f.lacks, f.isTwin, f.isClosed = "", true, len(got) < 4
			if len(got) == 8 {
				stop()
			}
		})
	follower.Now, follower.Wait = s.clock.Now, s.clock.Wait
	follower.Run(ctx)
	want := []string{"0 one images 8 <nil>", "0 two images 8 <nil>", "10 one images 8 <nil>", "10 two images 8 <nil>",
		"20 one volumes 7 <nil>", "20 two volumes 7 <nil>", "20 one images 8 <nil>", "20 two images 8 <nil>"}
	if !slices.Equal(got, want) || f.tokens != 2 {
		t.Errorf("%q, %d tokens, want %q", got, f.tokens, want)
	}
}

// conflicting refuses things, because others have changed them.
type conflicting struct{ graphql.Client }

func (c conflicting) MakeRequest(ctx context.Context, request *graphql.Request, response *graphql.Response) error {
	text, err := json.Marshal(request.Variables)
	if request.OpName == "SyncResources" && !strings.Contains(string(text), `"resources":[]`) {
		return errors.Join(err, &client.Errors{List: []*client.Error{{Code: client.ConcurrentUpdate}}})
	}
	return c.Client.MakeRequest(ctx, request, response)
}

// TestATokenIsRenewedOnce has tokens that expire between two pages.
func TestATokenIsRenewedOnce(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newSyncing(t, f)
	f.fault = func(w http.ResponseWriter) bool {
		f.tokens++
		f.fault = nil
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	if result, err := s.pass("servers"); err != nil || result.Seen != 7 || f.tokens != 3 {
		t.Errorf("%+v, %v, %d tokens", result, err, f.tokens)
	}
	f.fault = func(w http.ResponseWriter) bool { w.WriteHeader(http.StatusUnauthorized); return true }
	if result, err := s.pass("servers"); err == nil || f.tokens != 4 {
		t.Errorf("a service that accepts no token: %+v, %v, %d tokens", result, err, f.tokens)
	}
}

// TestARenewalHasATimeLimit has a Keystone that gives a token, and does not answer
// the request for the next one.
func TestARenewalHasATimeLimit(t *testing.T) {
	f := newFake()
	f.start(t)
	for name, value := range map[string]string{"AUTH_URL": f.url + "/v3", "USERNAME": "ada", "PASSWORD": "secret",
		"USER_DOMAIN_NAME": "Default"} {
		t.Setenv("OS_"+name, value)
	}
	credentials, err := sync.CredentialsOf("")
	if err != nil {
		t.Fatal(err)
	}
	cloud, err := credentials.SignIn(t.Context(), patience.Of(t, time.Second))
	if err != nil {
		t.Fatal(err)
	}
	f.silent = make(chan bool)
	defer close(f.silent)
	ctx, cancel := context.WithTimeout(t.Context(), patience.Of(t, 10*time.Second))
	defer cancel()
	if err := cloud.Provider.Reauthenticate(ctx, ""); err == nil || ctx.Err() != nil {
		t.Errorf("%v, %v", err, ctx.Err())
	}
}

// holds is a server that tells of requests which keep other passes away.
type holds struct {
	graphql.Client
	held chan bool
	// isLost means that each but the first fails.
	isLost bool
}

func (h *holds) MakeRequest(ctx context.Context, request *graphql.Request, response *graphql.Response) error {
	if request.OpName == "SyncResources" {
		defer func() { h.held <- true }()
		if h.isLost && len(h.held) > 0 {
			return errors.New("lost")
		}
	}
	return h.Client.MakeRequest(ctx, request, response)
}

// TestAPassKeepsOthersAwayWhileItReads has a service that answers only after the
// pass has kept others away twice, and then a pass that loses its kind.
func TestAPassKeepsOthersAwayWhileItReads(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newSyncing(t, f)
	kinds, _ := sync.Kinds([]string{"servers"})
	run := func(server *holds) (sync.Result, error) {
		pass := &sync.Pass{Cloud: s.cloud, Server: server, Origin: "cloud", Kind: kinds[0],
			Project: "operations", Progress: func(int) {}}
		pass.HoldEvery(time.Millisecond)
		return pass.Run(t.Context())
	}
	server := &holds{Client: s.server, held: make(chan bool, 1e6)}
	f.fault = func(http.ResponseWriter) bool {
		f.fault = nil
		<-server.held
		<-server.held
		second := &client.SyncResourcesInput{Origin: "cloud", Region: "one", Kind: "servers", Pass: first,
			ResourceType: "OS::Nova::Server", Resources: []*client.SyncedResourceInput{}}
		if _, err := client.SyncResources(t.Context(), s.server, second); client.Code(err) != client.ConcurrentUpdate {
			t.Errorf("a second pass meanwhile: %v", err)
		}
		return false
	}
	if result, err := run(server); err != nil || result.Seen != 7 {
		t.Errorf("%+v, %v", result, err)
	}
	ended := make(chan bool)
	f.fault = func(http.ResponseWriter) bool {
		<-ended
		return true
	}
	result, err := run(&holds{Client: s.server, held: make(chan bool, 1e6), isLost: true})
	close(ended)
	if err == nil || !strings.Contains(err.Error(), "lost") || result.Seen > 0 {
		t.Errorf("a pass that lost its kind: %+v, %v", result, err)
	}
}

// changing is a Nova whose servers change at random.
type changing struct {
	*fake
	random *rand.Rand
	now    time.Time
	made   int
	// was are the deleted servers by the number of passes since then.
	was    map[string]int
	isDown bool // a cell
}

// change makes, changes, deletes or restores a server. The clocks of hosts differ by up
// to five minutes, and one is wrong.
func (c *changing) change() {
	at := c.now.Add(-time.Duration(c.random.IntN(290)) * time.Second).Format(time.RFC3339)
	if c.random.IntN(20) == 0 {
		at = "2099-01-31T12:00:00Z"
	}
	if len(c.lists[servers]) < 20 || c.random.IntN(4) == 0 {
		c.made++
		c.lists[servers] = append(c.lists[servers], object{"id": fmt.Sprint("server-", c.made), "tenant_id": "p1",
			"name": fmt.Sprint("name ", c.made), "status": "ACTIVE", "metadata": object{}, "updated": at})
		return
	}
	one := c.lists[servers][c.random.IntN(len(c.lists[servers]))]
	id := one["id"].(string)
	if _, isDeleted := c.was[id]; isDeleted && one["status"] == "DELETED" {
		return
	}
	one["updated"] = at
	switch status := []string{"ACTIVE", "ACTIVE", "SHUTOFF", "DELETED", "SOFT_DELETED"}[c.random.IntN(5)]; status {
	case "DELETED", "SOFT_DELETED":
		one["status"], c.was[id] = status, 0
	default:
		delete(c.was, id)
		one["status"], one["metadata"] = status, object{"n": fmt.Sprint(c.random.IntN(3))}
	}
}

// archive takes servers out of Nova's database that are gone here.
func (c *changing) archive() {
	c.lists[servers] = slices.DeleteFunc(c.lists[servers], func(row object) bool {
		passes, isDeleted := c.was[row["id"].(string)]
		return isDeleted && passes > 2 && row["status"] == "DELETED" && c.random.IntN(2) == 0
	})
}

// disturb decides what happens to a pass: it fails, or a cell is down from now on, or up
// again, or Nova begins or ceases to know what changed since a time.
func (c *changing) disturb() {
	c.fault = nil
	switch c.random.IntN(8) {
	case 0:
		c.fault = func(w http.ResponseWriter) bool { w.WriteHeader(http.StatusInternalServerError); return true }
	case 1:
		c.ignores = !c.ignores
	case 2:
		c.isDown = !c.isDown
	}
}

// pass makes a pass over the servers, without the servers of a cell that is down. It reports
// whether the pass knows everything.
func (c *changing) pass(s *syncing) (result sync.Result, isComplete bool) {
	all, up := c.lists[servers], c.lists[services]
	if c.isDown {
		c.lists[services] = append(slices.Clone(up),
			object{"binary": "nova-compute", "host": "compute-2", "status": "UNKNOWN"})
		c.lists[servers] = slices.DeleteFunc(slices.Clone(all), func(row object) bool {
			return strings.HasSuffix(row["id"].(string), "2")
		})
	}
	result, err := s.pass("servers")
	c.lists[servers], c.lists[services] = all, up
	return result, err == nil && !c.isDown
}

// compare compares the servers with the stored ones after a complete pass, and
// returns their number.
func (c *changing) compare(t *testing.T, stored map[string]object) (alive int) {
	t.Helper()
	for _, row := range c.lists[servers] {
		id := row["id"].(string)
		is := stored[id]
		passes, isDeleted := c.was[id]
		if isDeleted {
			c.was[id]++
			if passes > 0 && is != nil && is["gone"] != true {
				t.Fatalf("%v is %v", row, is)
			}
			continue
		}
		alive++
		if is == nil || is["gone"] == true || fmt.Sprint(row["metadata"]) != fmt.Sprint(is["metadata"]) {
			t.Fatalf("%v is %v", row, is)
		}
	}
	return alive
}

// TestServersFollowTheirChanges makes passes that know what earlier ones have written,
// between random changes.
func TestServersFollowTheirChanges(t *testing.T) {
	t.Parallel()
	f := newFake()
	c := &changing{fake: f, random: rand.New(rand.NewPCG(soak.Seed(t), 9)),
		now: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC), was: map[string]int{}}
	f.lists[servers] = nil
	s := newSyncing(t, f)
	s.allow = true
	some := 0
	for range soak.Count(t, "CADASTRE_SOAK_CHANGES", 450) {
		c.now = c.now.Add(time.Duration(c.random.IntN(400)) * time.Second)
		for range c.random.IntN(4) {
			c.change()
		}
		c.disturb()
		if result, isComplete := c.pass(s); isComplete && result.Seen < c.compare(t, s.stored("servers")) {
			some++
		}
		c.archive()
	}
	if some == 0 {
		t.Error("every pass read all servers")
	}
}

// TestAServerThatVanishesIsGone has a Nova that lacks a server without a change, which
// two passes over all servers must see.
func TestAServerThatVanishesIsGone(t *testing.T) {
	t.Parallel()
	f := newFake()
	for i, one := range f.lists[servers] {
		one["updated"] = time.Date(2026, 1, 31, i, 0, 0, 0, time.UTC).Format(time.RFC3339)
	}
	s := newSyncing(t, f)
	s.allow = true
	for i, want := range []int{0, 0, 0, 1} {
		if i == 2 { // a restart
			s.passes, f.lists[servers] = nil, f.lists[servers][1:]
		}
		result, err := s.pass("servers")
		if isWhole := result.Seen > 2; err != nil || result.Gone != want || isWhole != (i != 1) {
			t.Errorf("pass %d: %+v, %v, want %d gone", i, result, err, want)
		}
	}
}

// TestServersThatALimitKeptAreReadAgain has a Nova that lacks servers for three passes,
// and then has them again without a change.
func TestServersThatALimitKeptAreReadAgain(t *testing.T) {
	t.Parallel()
	f := newFake()
	for i, one := range f.lists[servers] {
		one["updated"] = time.Date(2026, 1, 31, i, 0, 0, 0, time.UTC).Format(time.RFC3339)
	}
	s := newSyncing(t, f)
	s.mustPass("servers")
	all := f.lists[servers]
	s.passes, f.lists[servers] = nil, all[3:] // a restart
	s.mustPass("servers", "servers", "servers")
	s.keeps("servers", 3)
	f.lists[servers] = all
	if result, err := s.pass("servers"); err != nil || result.Returned != 3 {
		t.Errorf("%+v, %v, want 3 that return", result, err)
	}
}

// TestServersOfOnePageAreAskedForOnce makes passes over a cloud whose changes are not
// worth a request.
func TestServersOfOnePageAreAskedForOnce(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.size = 100
	for _, one := range f.lists[servers] {
		one["updated"] = "2026-01-31T12:00:00Z"
	}
	s := newSyncing(t, f)
	for range 3 {
		if _, err := s.pass("servers"); err != nil {
			t.Fatal(err)
		}
	}
	lists := 0
	for _, one := range f.asked {
		if strings.HasPrefix(one, servers+" ") {
			lists++
		}
	}
	if lists != 3 {
		t.Errorf("three passes asked for %d lists of servers, want 3", lists)
	}
}
