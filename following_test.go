package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/internal/soak"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// followedKind is a kind of object, with its names in subscriptions and in the
// feed.
type followedKind struct{ field, kind, thing string }

var followedKinds = []followedKind{
	{"resourceChanged", "RESOURCE", "resource { name metadata { key } }"},
	{"namespaceChanged", "NAMESPACE", "namespace { name tags { name } }"},
	{"resourceProviderChanged", "RESOURCE_PROVIDER", "resourceProvider { name inventories { used } }"},
}

// followers are the tokens of the viewers who follow.
var followers = []string{"secret", "svc", "rae", "mel", "kim"}

// followersFile writes a token file for the followers and returns its path.
func followersFile(t *testing.T) string {
	t.Helper()
	return tokenFile(t, anAdmin,
		"{token: svc, user: svc, project: services, roles: [service]}",
		"{token: rae, user: rae, project: demo, roles: [reader]}",
		"{token: mel, user: mel, project: elsewhere, roles: [member]}",
		"{token: kim, user: kim, project: nowhere, roles: [reader]}")
}

// told is one change that a client received.
type told struct {
	Cursor string
	Change struct{ What, Key string }
}

// follower is a client that follows all objects of a kind while its connections
// are cut.
type follower struct {
	followedKind
	token  string
	random *rand.Rand
	from   string // the cursor to begin after

	mu    sync.Mutex
	heard []told
	cuts  [2]int // by transport
	wrong error  // any other unexpected answer
}

// count returns the number of changes that the follower received.
func (f *follower) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.heard)
}

// hear records an event.
func (f *follower) hear(event map[string]told) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heard = append(f.heard, event[f.field])
}

// refuse records an answer that is not an event, unless its code allows a
// retry.
func (f *follower) refuse(code client.ErrorCode, why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch code {
	case "", client.Unavailable, client.Timeout, client.RateLimited: // "" is a killed server
	default:
		f.wrong = errors.Join(f.wrong, why)
	}
}

// request returns the document and variables for the changes after the last
// event.
func (f *follower) request() (document string, variables map[string]any) {
	after := f.from
	if len(f.heard) > 0 {
		after = f.heard[len(f.heard)-1].Cursor
	}
	return fmt.Sprintf("subscription($after: String) { %s(after: $after) { cursor change { what key } %s } }", f.field,
		f.thing), map[string]any{"after": after}
}

// follow follows over one connection, which is cut after a random time of about
// longest at most.
func (f *follower) follow(ctx context.Context, address string, longest time.Duration) {
	within, cut := context.WithTimeout(ctx, 20*time.Millisecond+time.Duration(f.random.Int64N(int64(longest))))
	defer cut()
	by := f.random.IntN(2)
	f.cuts[by]++
	if by == 0 {
		f.byEvents(within, address)
	} else {
		f.bySocket(within, address)
	}
	time.Sleep(10 * time.Millisecond) // there may be no server
}

// byEvents follows over an event stream, like Go clients.
func (f *follower) byEvents(ctx context.Context, address string) {
	connections := &http.Transport{}
	defer connections.CloseIdleConnections()
	server := client.New(address, client.WithToken(f.token),
		client.WithHTTPClient(&http.Client{Transport: connections}))
	document, variables := f.request()
	for event, err := range client.Follow[map[string]told](ctx, server, document, variables) {
		if err != nil {
			f.refuse(client.Code(err), err)
			return
		}
		f.hear(event)
	}
}

// bySocket follows over a WebSocket.
func (f *follower) bySocket(ctx context.Context, address string) {
	connection, _, err := websocket.Dial(ctx, strings.Replace(address, "http", "ws", 1)+"/graphql",
		&websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}})
	if err != nil {
		return
	}
	defer func() { _ = connection.CloseNow() }()
	document, variables := f.request()
	payload, _ := json.Marshal(map[string]any{"query": document, "variables": variables})
	for _, message := range []string{`{"type":"connection_init","payload":{"X-Auth-Token":"` + f.token + `"}}`,
		`{"id":"1","type":"subscribe","payload":` + string(payload) + `}`} {
		if connection.Write(ctx, websocket.MessageText, []byte(message)) != nil {
			return
		}
	}
	for {
		_, text, err := connection.Read(ctx)
		if err != nil {
			if code := websocket.CloseStatus(err); code >= 4400 {
				f.refuse(client.Internal, err)
			}
			return
		}
		f.read(text)
	}
}

// read reads a message of a WebSocket.
func (f *follower) read(text []byte) {
	var message struct {
		Type    string
		Payload json.RawMessage
	}
	var next struct {
		Data   map[string]told
		Errors json.RawMessage
	}
	err := json.Unmarshal(text, &message)
	switch message.Type {
	case "connection_ack", "ping":
		return
	case "next":
		if err = json.Unmarshal(message.Payload, &next); err == nil && next.Errors == nil {
			f.hear(next.Data)
			return
		}
	}
	if code := "UNAVAILABLE"; err != nil || !strings.Contains(string(text), code) {
		f.refuse(client.Internal, fmt.Errorf("%w: %s", err, text))
	}
}

// feed returns the changes in a server's feed that the follower may see after a
// cursor, and the newest cursor.
func (f *follower) feed(t *testing.T, address, after string) (all []told, latest string) {
	t.Helper()
	for {
		var answer struct {
			Data struct {
				Changes struct {
					Edges []struct {
						Cursor string
						Node   struct{ What, Key string }
					}
					PageInfo struct{ HasNextPage bool }
					Latest   string
				}
			}
		}
		given := ""
		if after != "" {
			given = fmt.Sprintf(", after: %q", after)
		}
		_, text := ask(t, address, f.token,
			fmt.Sprintf("{ changes(filter: {kinds: [%s]}, first: 1000%s) { edges { cursor node { what key } } pageInfo { hasNextPage } latest } }", f.kind, given))
		if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Data.Changes.Latest == "" {
			t.Fatalf("%v %s", err, text)
		}
		of := answer.Data.Changes
		for _, edge := range of.Edges {
			all = append(all, told{edge.Cursor, edge.Node})
			after = edge.Cursor
		}
		if !of.PageInfo.HasNextPage {
			return all, of.Latest
		}
	}
}

// fewestTold is the minimum number of changes that each client receives before
// the writers stop.
const fewestTold = 5

// compare compares the changes that a client received with the log.
func (f *follower) compare(t *testing.T, log []told) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.wrong != nil {
		t.Errorf("%s as %s: %v", f.field, f.token, f.wrong)
	}
	if len(f.heard) != len(log) {
		t.Errorf("%s as %s was told %d changes of %d, with %v connections", f.field,
			f.token, len(f.heard), len(log), f.cuts)
	}
	for n := range min(len(log), len(f.heard)) {
		if f.heard[n] != log[n] {
			t.Errorf("%s as %s: change %d is %v, the log has %v", f.field, f.token, n, f.heard[n], log[n])
			return
		}
	}
}

// killedServers are servers of one database that the test kills and replaces,
// one after the other.
type killedServers struct {
	t         *testing.T
	program   string
	args      []string
	mu        sync.Mutex
	addresses []string
	processes []*os.Process
	ended     []<-chan struct{}
}

// address returns the current address of one of the servers.
func (s *killedServers) address(n int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addresses[n%len(s.addresses)]
}

// start starts a server at an index.
func (s *killedServers) start(place int) {
	s.t.Helper()
	server, process := spawn(s.t, s.program, s.args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if place == len(s.addresses) {
		s.addresses, s.processes, s.ended = append(s.addresses, ""), append(s.processes, nil), append(s.ended, nil)
	}
	s.addresses[place], s.processes[place], s.ended[place] = server.address, process, server.ended
}

// kill kills a server with SIGKILL, without time to shut down.
func (s *killedServers) kill(place int) {
	s.t.Helper()
	if err := s.processes[place].Signal(syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
	<-s.ended[place]
}

// TestFollowersMissNothingWhenServersAreKilled has clients of several viewers
// follow resources, namespaces and providers on WebSockets and event streams.
// The test cuts them at random, kills servers and starts others on the same
// database, while writers continue. Each client must receive each change that
// it may see, once and in the order of the log. The log must have all
// acknowledged writes. CADASTRE_SOAK_FOLLOWERS is the number of clients, and
// CADASTRE_SOAK_KILLS the number of kills.
func TestFollowersMissNothingWhenServersAreKilled(t *testing.T) {
	t.Parallel()
	program, seed := built(t), soak.Seed(t)
	count, kills := soak.Count(t, "CADASTRE_SOAK_FOLLOWERS", 15), soak.Count(t, "CADASTRE_SOAK_KILLS", 3)
	tokens := followersFile(t)
	storetest.EachURL(t, func(t *testing.T, url string) {
		servers := &killedServers{t: t, program: program,
			args: []string{"--database", url, "--tokens", tokens, configured(t, unlimited)}}
		servers.start(0)
		if strings.HasPrefix(url, "postgres") { // only one server can open a SQLite file
			servers.start(1)
		}
		all := newFollowers(t, servers.address(0), count, seed)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var following sync.WaitGroup
		for i, f := range all {
			following.Go(func() {
				for turn := 0; ctx.Err() == nil; turn++ {
					f.follow(ctx, servers.address(i+turn), patience.Of(t, 1200*time.Millisecond))
				}
			})
		}
		writers := write(t.Context(), servers, seed)
		random := rand.New(rand.NewPCG(seed, 1))
		for n := range kills {
			time.Sleep(time.Duration(100+random.IntN(500)) * time.Millisecond)
			servers.kill(n % len(servers.processes))
			servers.start(n % len(servers.processes))
		}
		for _, f := range all {
			if !patience.Until(t, time.Minute, func() bool { return f.count() >= fewestTold }) {
				t.Errorf("%s as %s was told %d changes in a minute of writes", f.field, f.token, f.count())
			}
		}
		writers.stop()
		writers.compare(t, servers.address(0))
		for _, f := range all {
			want, _ := f.feed(t, servers.address(0), f.from)
			if !patience.Until(t, time.Minute, func() bool { return f.count() >= len(want) }) {
				t.Errorf("%s as %s was told %d changes of %d in a minute", f.field, f.token, f.count(), len(want))
			}
		}
		time.Sleep(300 * time.Millisecond) // for unexpected events
		stop()
		following.Wait()
		changes, connections := 0, 0
		for _, f := range all {
			log, _ := f.feed(t, servers.address(0), f.from)
			f.compare(t, log)
			changes += len(log)
			connections += f.cuts[0] + f.cuts[1]
		}
		t.Logf("%d followers were told %d events over %d connections, while %d servers were killed and %d writes acknowledged", len(all), changes, connections, kills, writers.acknowledged())
	})
}

// newFollowers returns followers of all kinds for all viewers, from the current
// cursor.
func newFollowers(t *testing.T, address string, count int, seed uint64) []*follower {
	t.Helper()
	all := make([]*follower, count)
	for i := range all {
		f := &follower{followedKind: followedKinds[i%len(followedKinds)], token: followers[i%len(followers)],
			random: rand.New(rand.NewPCG(seed, uint64(i)))}
		_, f.from = f.feed(t, address, "")
		all[i] = f
	}
	return all
}

// killedWriters change objects until they are stopped, and record the
// acknowledged changes.
type killedWriters struct {
	ended   sync.WaitGroup
	cancel  context.CancelFunc
	mu      sync.Mutex
	created map[string]string // kinds by the keys of objects whose creation was acknowledged
	done    int
}

func (w *killedWriters) stop() {
	w.cancel()
	w.ended.Wait()
}

func (w *killedWriters) acknowledged() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done
}

// writerHands is the number of concurrent writers.
const writerHands = 4

// write begins to create, show, hide, share, change and delete objects of
// several projects, at the current addresses of the servers.
func write(ctx context.Context, servers *killedServers, seed uint64) *killedWriters {
	w := &killedWriters{created: map[string]string{}}
	ctx, w.cancel = context.WithCancel(ctx)
	for hand := range writerHands {
		w.ended.Go(func() {
			random := rand.New(rand.NewPCG(seed, 1000+uint64(hand)))
			sender := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{}}
			defer sender.CloseIdleConnections()
			for n := 0; ctx.Err() == nil; n++ {
				w.thing(sender, servers, random, fmt.Sprintf("n%d-%d", hand, n), storetest.UUID(100_000*hand+n))
			}
		})
	}
	return w
}

// thing creates an object of some kind, changes it a few times, and possibly
// deletes it.
func (w *killedWriters) thing(sender *http.Client, servers *killedServers, random *rand.Rand, name, uuid string) {
	one := func(texts ...string) string { return texts[random.IntN(len(texts))] }
	visibility := func() string { return one("PUBLIC", "PRIVATE") }
	kind := followedKinds[random.IntN(len(followedKinds))].kind
	var create, remove string
	var changes []string
	key := uuid
	switch kind {
	case "RESOURCE":
		create = fmt.Sprintf(`createResource(input: {uuid: %q, type: "physical:host", name: %q, visibility: %s, projectId: %q}) { resource { uuid } }`, uuid, name, visibility(), one("demo", "elsewhere"))
		changes = []string{
			fmt.Sprintf(`updateResource(input: {uuid: %q, visibility: %s}) { resource { uuid } }`, uuid, visibility()),
			fmt.Sprintf(`setMetadata(input: {resource: %q, items: [{key: "a", value: %q}]}) { resource { uuid } }`,
				uuid, name)}
		remove = fmt.Sprintf(`deleteResource(input: {uuid: %q}) { resource { uuid } }`, uuid)
	case "NAMESPACE":
		key = name
		create = fmt.Sprintf(`createNamespace(input: {name: %q, visibility: %s, owner: %q}) { namespace { name } }`,
			name, visibility(), one("demo", "elsewhere"))
		changes = []string{
			fmt.Sprintf(`updateNamespace(input: {name: %q, visibility: %s}) { namespace { name } }`, name,
				visibility()),
			fmt.Sprintf(`shareNamespace(input: {namespace: %q, projectId: %q}) { namespace { name } }`, name,
				one("demo", "elsewhere", "nowhere")),
			fmt.Sprintf(`unshareNamespace(input: {namespace: %q, projectId: %q}) { namespace { name } }`, name,
				one("demo", "elsewhere", "nowhere")),
			fmt.Sprintf(`setTags(input: {namespace: %q, tags: [{name: "t"}]}) { namespace { name } }`, name)}
		remove = fmt.Sprintf(`deleteNamespace(input: {name: %q}) { namespace { name } }`, name)
	default:
		create = fmt.Sprintf(`createResourceProvider(input: {uuid: %q, name: %q}) { resourceProvider { uuid } }`, uuid,
			name)
		changes = []string{fmt.Sprintf(`setInventory(input: {provider: %q, inventory: {resourceClass: "VCPU", total: 4}}) { resourceProvider { uuid } }`, uuid)}
		remove = fmt.Sprintf(`deleteResourceProvider(input: {provider: %q}) { resourceProvider { uuid } }`, uuid)
	}
	done := func(text string) bool {
		time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
		return w.try(sender, servers.address(random.IntN(2)), text)
	}
	if done(create) {
		w.mu.Lock()
		w.created[key] = kind
		w.mu.Unlock()
	}
	for range random.IntN(4) {
		done(changes[random.IntN(len(changes))])
	}
	if random.IntN(2) == 0 {
		done(remove)
	}
}

// try sends a mutation and reports whether it was acknowledged. If the server
// is killed before it answers, the mutation may be done or not.
func (w *killedWriters) try(sender *http.Client, address, mutation string) bool {
	text, _ := json.Marshal(map[string]any{"query": "mutation { " + mutation + " }"})
	request, err := http.NewRequest(http.MethodPost, address+"/graphql", strings.NewReader(string(text)))
	if err != nil {
		return false
	}
	request.Header = http.Header{"Content-Type": {"application/json"}, "X-Auth-Token": {"secret"}}
	response, err := sender.Do(request)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil || !strings.HasPrefix(string(answer), `{"data":`) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done++
	return true
}

// compare checks that the log has the creation of each acknowledged object.
func (w *killedWriters) compare(t *testing.T, address string) {
	t.Helper()
	for _, kind := range followedKinds {
		log, _ := (&follower{followedKind: kind, token: "secret"}).feed(t, address, "")
		created := map[string]bool{}
		for _, one := range log {
			if one.Change.What == "CREATED" {
				if created[one.Change.Key] {
					t.Errorf("%s was created twice", one.Change.Key)
				}
				created[one.Change.Key] = true
			}
		}
		for key, of := range w.created {
			if of == kind.kind && !created[key] {
				t.Errorf("the creation of %s %s was acknowledged, and the log does not have it", of, key)
			}
		}
	}
}
