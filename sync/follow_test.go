package sync_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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
