package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/web"
)

// told is one change that a client received.
type told struct{ cursor, what, key string }

// toldBy returns the change in an event of resourceChanged.
func toldBy(text string) (told, bool) {
	var event struct {
		Data struct {
			ResourceChanged *struct {
				Cursor string
				Change struct{ What, Key string }
			}
		}
	}
	if json.Unmarshal([]byte(text), &event) != nil || event.Data.ResourceChanged == nil {
		return told{}, false
	}
	of := event.Data.ResourceChanged
	return told{of.Cursor, of.Change.What, of.Change.Key}, true
}

// follower is a client that follows all resources while its connections are
// cut.
type follower struct {
	token  string
	random *rand.Rand
	from   string // the cursor to begin after
	heard  []told
	cuts   int
}

const followed = "subscription($after: String) { resourceChanged(after: $after) { cursor change { what key } resource { name } } }"

// follow follows over one connection until ctx ends. The connection is cut
// after a random time of about longest at most. Errors are ignored: the client
// connects again with its last cursor.
func (f *follower) follow(ctx context.Context, address string, longest time.Duration) {
	f.cuts++
	within, cut := context.WithTimeout(ctx, 20*time.Millisecond+time.Duration(f.random.Int64N(int64(longest))))
	defer cut()
	if f.random.IntN(2) == 0 {
		f.byEvents(within, address)
	} else {
		f.bySocket(within, address)
	}
}

func (f *follower) request() map[string]any {
	after := f.from
	if len(f.heard) > 0 {
		after = f.heard[len(f.heard)-1].cursor
	}
	return map[string]any{"query": followed, "variables": map[string]any{"after": after}}
}

func (f *follower) byEvents(ctx context.Context, address string) {
	text, _ := json.Marshal(f.request())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		address+"/graphql", strings.NewReader(string(text)))
	if err != nil {
		return
	}
	request.Header = http.Header{"Accept": {"text/event-stream"},
		"Content-Type": {"application/json"}, "X-Auth-Token": {f.token}}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return
	}
	defer func() { _ = response.Body.Close() }()
	events := newEventReader(response.Body)
	for {
		kind, data := events.next()
		event, ok := toldBy(data)
		if kind != "next" || !ok {
			return
		}
		f.heard = append(f.heard, event)
	}
}

func (f *follower) bySocket(ctx context.Context, address string) {
	connection, _, err := websocket.Dial(ctx, strings.Replace(address, "http", "ws", 1)+"/graphql",
		&websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}})
	if err != nil {
		return
	}
	defer func() { _ = connection.CloseNow() }()
	payload, _ := json.Marshal(f.request())
	for _, message := range []string{`{"type":"connection_init","payload":{"X-Auth-Token":"` + f.token + `"}}`,
		`{"id":"1","type":"subscribe","payload":` + string(payload) + `}`} {
		if connection.Write(ctx, websocket.MessageText, []byte(message)) != nil {
			return
		}
	}
	for {
		_, text, err := connection.Read(ctx)
		if err != nil {
			return
		}
		var message struct {
			Type    string
			Payload json.RawMessage
		}
		if json.Unmarshal(text, &message) != nil || message.Type != "next" {
			continue
		}
		if event, ok := toldBy(string(message.Payload)); ok {
			f.heard = append(f.heard, event)
		}
	}
}

// begin notes the current cursor of the feed.
func (f *follower) begin(t *testing.T, s *server) {
	t.Helper()
	var answer struct {
		Data struct{ Changes struct{ Latest string } }
	}
	got := s.query("{ changes(filter: {kinds: [RESOURCE]}) { latest } }", "X-Auth-Token", f.token)
	if err := json.Unmarshal([]byte(got.body), &answer); err != nil || answer.Data.Changes.Latest == "" {
		t.Fatalf("%v %s", err, got.body)
	}
	f.from = answer.Data.Changes.Latest
}

// log reads the feed after a cursor.
func (f *follower) log(t *testing.T, s *server) (all []told) {
	t.Helper()
	for after := f.from; ; {
		var answer struct {
			Data struct {
				Changes struct {
					Edges []struct {
						Cursor string
						Node   struct{ What, Key string }
					}
					PageInfo struct{ HasNextPage bool }
				}
			}
		}
		got := s.ask(map[string]any{"query": "query($after: String) { changes(filter: {kinds: [RESOURCE]}, first: 1000, after: $after) { edges { cursor node { what key } } pageInfo { hasNextPage } } }",
			"variables": map[string]any{"after": after}}, "X-Auth-Token", f.token)
		if err := json.Unmarshal([]byte(got.body), &answer); err != nil || strings.Contains(got.body, `"errors"`) {
			t.Fatalf("%v %s", err, got.body)
		}
		for _, edge := range answer.Data.Changes.Edges {
			all = append(all, told{edge.Cursor, edge.Node.What, edge.Node.Key})
			after = edge.Cursor
		}
		if !answer.Data.Changes.PageInfo.HasNextPage {
			return all
		}
	}
}

// TestNothingIsMissedAndNothingTwice cuts the connections of many clients, on
// WebSockets and event streams. Meanwhile writers change public, private and
// other projects' resources, and servers stop and start. Each client must
// receive each change that it may see, once and in the order of the log.
func TestNothingIsMissedAndNothingTwice(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		limits := func(o *web.Options) {
			o.Limits = web.DefaultLimits()
			o.Limits.PrincipalPoints, o.Limits.AdminPoints, o.Limits.AddressPoints = 0, 0, 0
		}
		serve := func() *server { return startOn(t, database, limits, web.ServeOptions{}) }
		servers := []*server{serve()}
		if strings.HasPrefix(database, "postgres") {
			servers = append(servers, serve())
		}
		var followers []*follower
		for i := range 12 {
			f := &follower{token: []string{"admin-token", "reader-token"}[i%2],
				random: rand.New(rand.NewPCG(7, uint64(i)))}
			f.begin(t, servers[0])
			followers = append(followers, f)
		}
		longest := patience.Of(t, 600*time.Millisecond)
		var running, writing sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		var mu sync.Mutex // of the servers; one of them is replaced
		address := func(n int) string {
			mu.Lock()
			defer mu.Unlock()
			return servers[n%len(servers)].url
		}
		for i, f := range followers {
			running.Go(func() {
				for ctx.Err() == nil {
					f.follow(ctx, address(i+f.cuts), longest)
				}
			})
		}
		for w := range 3 {
			writing.Go(func() { writeResources(ctx, w, func() string { return address(w) }) })
		}
		if len(servers) > 1 { // only one server can open a SQLite file
			time.Sleep(200 * time.Millisecond)
			another := serve()
			mu.Lock()
			before := servers[1]
			servers[1] = another
			mu.Unlock()
			if err := before.stop(); err != nil {
				t.Error(err)
			}
		}
		writing.Wait()
		wants := make([][]told, len(followers))
		for i, f := range followers {
			wants[i] = f.log(t, servers[0])
		}
		time.Sleep(time.Second)
		stop()
		running.Wait()
		for i, f := range followers {
			for f.follow(t.Context(), servers[0].url, longest); f.cuts < 1000 && len(f.heard) < len(wants[i]); {
				f.follow(t.Context(), servers[0].url, longest)
			}
			f.compare(t, wants[i])
		}
		t.Logf("an administrator is told %d changes, a reader %d, with %d connections",
			len(wants[0]), len(wants[1]), followers[0].cuts)
	})
}

// compare compares the changes that a client received with the log.
func (f *follower) compare(t *testing.T, want []told) {
	t.Helper()
	if len(want) < 20 || len(f.heard) != len(want) {
		t.Errorf("a client with %s was told %d changes of %d, with %d connections",
			f.token, len(f.heard), len(want), f.cuts)
		return
	}
	for n := range want {
		if f.heard[n] != want[n] {
			t.Errorf("a client with %s: change %d is %v, the log has %v", f.token, n, f.heard[n], want[n])
			return
		}
	}
}

// writeResources creates, shows, hides, changes and deletes resources of two
// projects. It looks up the server's address before each request.
func writeResources(ctx context.Context, writer int, address func() string) {
	random := rand.New(rand.NewPCG(3, uint64(writer)))
	visibility := func() string { return []string{"PUBLIC", "PRIVATE"}[random.IntN(2)] }
	for n := range 45 {
		uuid := storetest.UUID(1000*writer + n/3)
		var text string
		switch n % 3 {
		case 0:
			text = fmt.Sprintf(`createResource(input: {uuid: %q, type: "physical:host", name: "n%d", visibility: %s, projectId: %q}) { resource { uuid } }`,
				uuid, n, visibility(), []string{"demo", "elsewhere"}[random.IntN(2)])
		case 1:
			text = fmt.Sprintf(`updateResource(input: {uuid: %q, visibility: %s}) { resource { uuid } }`, uuid,
				visibility())
		case 2:
			text = fmt.Sprintf(`deleteResource(input: {uuid: %q}) { resource { uuid } }`, uuid)
			if random.IntN(2) == 0 {
				text = fmt.Sprintf(`setMetadata(input: {resource: %q, items: [{key: "a", value: "%d"}]}) { resource { uuid } }`, uuid, n)
			}
		}
		_ = tryQuery(ctx, address(), "mutation { "+text+" }") // refusals of a stopping server are not in the log
		time.Sleep(time.Duration(random.IntN(10)) * time.Millisecond)
	}
}

// tryQuery sends a document as the administrator.
func tryQuery(ctx context.Context, address, document string) error {
	text, _ := json.Marshal(map[string]any{"query": document})
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		address+"/graphql", strings.NewReader(string(text)))
	if err != nil {
		return err
	}
	request.Header = http.Header{"Content-Type": {"application/json"}, "X-Auth-Token": {"admin-token"}}
	response, err := http.DefaultClient.Do(request)
	if err == nil {
		_ = response.Body.Close()
	}
	return err
}
