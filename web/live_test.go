package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/auth"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/web"
)

// capacity is a subscription that has an event immediately, and another one for
// each change of the providers.
const capacity = `subscription Follow { capacityChanged { cursor capacity { totalCount nodes { total } } } }`

// connect opens a WebSocket. Headers are pairs of name and value.
func (s *server) connect(headers ...string) *websocketClient {
	s.t.Helper()
	client, response, err := s.tryConnect(headers...)
	if err != nil {
		s.t.Fatalf("dial: %v %v", err, response)
	}
	return client
}

func (s *server) tryConnect(headers ...string) (*websocketClient, *http.Response, error) {
	s.t.Helper()
	header := http.Header{}
	for i := 0; i+1 < len(headers); i += 2 {
		header.Set(headers[i], headers[i+1])
	}
	connection, response, err := websocket.Dial(s.t.Context(), strings.Replace(s.url, "http", "ws", 1)+"/graphql",
		&websocket.DialOptions{HTTPHeader: header, Subprotocols: []string{"graphql-transport-ws"}})
	if err != nil {
		return nil, response, err
	}
	connection.SetReadLimit(-1)
	s.t.Cleanup(func() { _ = connection.CloseNow() })
	return &websocketClient{t: s.t, Conn: connection}, response, nil
}

// websocketClient is a client that sends the messages of a test.
type websocketClient struct {
	t testing.TB
	*websocket.Conn
}

func (c *websocketClient) say(messages ...string) *websocketClient {
	c.t.Helper()
	for _, message := range messages {
		if err := c.Write(c.t.Context(), websocket.MessageText, []byte(message)); err != nil {
			c.t.Fatalf("write %s: %v", message, err)
		}
	}
	return c
}

// subscribe starts an operation.
func (c *websocketClient) subscribe(id, document string) *websocketClient {
	c.t.Helper()
	text, err := json.Marshal(map[string]any{"id": id, "type": "subscribe",
		"payload": map[string]any{"query": document}})
	if err != nil {
		c.t.Fatal(err)
	}
	return c.say(string(text))
}

// hear returns the next message.
func (c *websocketClient) hear() (string, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), patience.Of(c.t, 20*time.Second))
	defer cancel()
	_, text, err := c.Read(ctx)
	return string(text), err
}

// expect reads messages with these prefixes, in this order, and returns the
// last one.
func (c *websocketClient) expect(begin ...string) string {
	c.t.Helper()
	last := ""
	for _, want := range begin {
		text, err := c.hear()
		if err != nil || !strings.HasPrefix(text, want) {
			c.t.Fatalf("heard %s %v, want %s", text, err, want)
		}
		last = text
	}
	return last
}

// expectClose reads messages until the server closes the connection.
func (c *websocketClient) expectClose(code websocket.StatusCode, reason string) {
	c.t.Helper()
	for {
		_, err := c.hear()
		if err == nil {
			continue
		}
		var closed websocket.CloseError
		if !errors.As(err, &closed) || closed.Code != code || !strings.Contains(closed.Reason, reason) {
			c.t.Errorf("closed by %v, want %d %s", err, code, reason)
		}
		return
	}
}

const (
	hello    = `{"type":"connection_init"}`
	ack      = `{"type":"connection_ack"}`
	asAdmin  = `{"type":"connection_init","payload":{"X-Auth-Token":"admin-token"}}`
	asReader = `{"type":"connection_init","payload":{"authorization":"Bearer reader-token"}}`
)

// grow adds a provider with an inventory.
func (s *server) grow(n int) {
	s.t.Helper()
	answer := s.query(fmt.Sprintf(`mutation { createResourceProvider(input: {uuid: %q, name: "grown-%d"}) { resourceProvider { uuid } }
		setInventory(input: {provider: %q, inventory: {resourceClass: "VCPU", total: 4}}) { resourceProvider { uuid } } }`, storetest.UUID(n), n, storetest.UUID(n)))
	if strings.Contains(answer.body, "errors") {
		s.t.Fatal(answer.body)
	}
}

// eachServer runs a test with a server on each database.
func eachServer(t *testing.T, change func(*web.Options), test func(*testing.T, *server)) {
	storetest.EachURL(t, func(t *testing.T, database string) {
		test(t, startOn(t, database, change,
			web.ServeOptions{ReadTime: patience.Of(t, 2*time.Second), WriteTime: patience.Of(t, 2*time.Second)}))
	})
}

// TestAWebSocketSpeaksTheProtocol runs queries, mutations and subscriptions
// over graphql-transport-ws, from the handshake to the end.
func TestAWebSocketSpeaksTheProtocol(t *testing.T) {
	t.Parallel()
	eachServer(t, nil, func(t *testing.T, s *server) {
		c := s.connect()
		c.say(asAdmin).expect(ack)
		c.say(`{"type":"ping"}`).expect(`{"type":"pong"}`)
		c.say(`{"type":"pong"}`)
		c.subscribe("q", "{ viewer { userId } }").
			expect(`{"id":"q","type":"next","payload":{"data":{"viewer":{"userId":"ada"}},"extensions":{"cost":`,
				`{"id":"q","type":"complete"}`)
		c.subscribe("q", "{ nothing }").expect(`{"id":"q","type":"error","payload":[{"message":`)
		c.subscribe("m", `mutation { createTrait(input: {name: "CUSTOM_LIVE"}) { trait { name } } }`).
			expect(`{"id":"m","type":"next","payload":{"data":{"createTrait":{"trait":{"name":"CUSTOM_LIVE"}}}`,
				`{"id":"m","type":"complete"}`)
		c.subscribe("s", capacity).expect(`{"id":"s","type":"next","payload":{"data":{"capacityChanged":{"cursor":"`)
		s.grow(1)
		first := c.expect(`{"id":"s","type":"next","payload":{"data":{"capacityChanged":{"cursor":"`)
		// there may be an event between the two mutations
		if !strings.Contains(first, `"totalCount":1,"nodes":[{"total":4}]`) {
			first = c.expect(`{"id":"s","type":"next"`)
		}
		if !strings.Contains(first, `"totalCount":1,"nodes":[{"total":4}]`) {
			t.Errorf("the event is %s", first)
		}
		c.say(`{"id":"s","type":"complete"}`)
		s.await("cadastre_subscriptions_open 0")
		c.subscribe("s", `subscription { capacityChanged(after: "x") { cursor } }`).
			expect(`{"id":"s","type":"error","payload":[{"message":"after: is not a cursor`)
		c.subscribe("s", `subscription { a: capacityChanged { cursor } b: capacityChanged { cursor } }`).
			expect(`{"id":"s","type":"error"`)
		if err := c.Close(websocket.StatusNormalClosure, ""); err != nil {
			t.Error(err)
		}
		s.await("cadastre_streams_open 0")
	})
}

// TestAWebSocketIsClosedByItsCode checks that each breach of the protocol has
// its own code.
func TestAWebSocketIsClosedByItsCode(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	subscribe := `{"id":"1","type":"subscribe","payload":{"query":"subscription { capacityChanged { cursor } }"}}`
	for name, test := range map[string]struct {
		say    []string
		code   websocket.StatusCode
		reason string
	}{
		"no JSON":              {[]string{"x"}, 4400, ""},
		"a list":               {[]string{"[]"}, 4400, ""},
		"an unknown message":   {[]string{asAdmin, `{"type":"hello"}`}, 4400, "hello"},
		"a message of servers": {[]string{asAdmin, `{"id":"1","type":"next","payload":{}}`}, 4400, ""},
		"no id": {[]string{asAdmin, `{"type":"subscribe","payload":{"query":"{ __typename }"}}`}, 4400,
			"no id"},
		"a payload of init":     {[]string{`{"type":"connection_init","payload":7}`}, 4400, ""},
		"subscribe before init": {[]string{subscribe}, 4401, "Unauthorized"},
		"two inits":             {[]string{asAdmin, asAdmin}, 4429, "Too many initialisation requests"},
		"no token":              {[]string{hello}, 4403, "no token"},
		"an unknown token": {[]string{`{"type":"connection_init","payload":{"X-Auth-Token":"guessed"}}`}, 4403,
			"unknown"},
		"one id twice":     {[]string{asAdmin, subscribe, subscribe}, 4409, "Subscriber for 1 already exists"},
		"more than a body": {[]string{asAdmin, `{"type":"` + strings.Repeat("x", 3<<20) + `"}`}, 1009, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := s.connect()
			c.t = t
			c.say(test.say...).expectClose(test.code, test.reason)
		})
	}
}

// TestAHandshakeIsRefused refuses handshakes by origin, by subprotocol, and by
// the number of sockets.
func TestAHandshakeIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *web.Options) {
		o.AllowedOrigins = []string{"https://dash.example.org"}
		o.Limits = web.DefaultLimits()
		o.Limits.ViewerSockets, o.Limits.Sockets, o.Limits.SocketOperations = 2, 8, 2
	})
	if _, response, err := s.tryConnect("Origin", "https://evil.example.org"); err == nil ||
		response.StatusCode != http.StatusForbidden {
		t.Errorf("another origin: %v %v", response, err)
	}
	for _, origin := range []string{"https://dash.example.org", s.url} {
		c := s.connect("Origin", origin, "X-Auth-Token", "reader-token")
		c.say(hello).expect(ack)
		_ = c.Close(websocket.StatusNormalClosure, "")
	}
	s.await("cadastre_streams_open 0")
	first, second := s.connect(), s.connect()
	first.say(asAdmin).expect(ack)
	second.say(asAdmin).expect(ack)
	s.connect().say(asAdmin).expectClose(1013, "you have too many")
	s.connect().say(asReader).expect(ack)
	first.subscribe("1", capacity).expect(`{"id":"1","type":"next"`)
	first.subscribe("2", capacity).expect(`{"id":"2","type":"next"`)
	first.subscribe("3", capacity).expect(`{"id":"3","type":"error","payload":[{"message":"the WebSocket has too many`)
}

// eventReader reads a stream of events. Each event has a kind and data.
type eventReader struct{ *bufio.Scanner }

func newEventReader(from io.Reader) *eventReader {
	scanner := bufio.NewScanner(from)
	scanner.Buffer(nil, 16<<20)
	return &eventReader{scanner}
}

// next returns the next event, or "" at the end.
func (e *eventReader) next() (kind, data string) {
	for e.Scan() {
		line := e.Text()
		switch {
		case strings.HasPrefix(line, "event: "):
			kind = strings.TrimPrefix(line, "event: ")
		case strings.HasPrefix(line, "data: "):
			data += strings.TrimPrefix(line, "data: ")
		case line == "" && kind != "":
			return kind, data
		}
	}
	return "", ""
}

// stream requests a stream of events.
func (s *server) stream(ctx context.Context, method, document string,
	headers ...string) (*http.Response, *eventReader) {
	s.t.Helper()
	text, _ := json.Marshal(map[string]any{"query": document})
	address, body := s.url+"/graphql", string(text)
	if method == http.MethodGet {
		address, body = address+"?"+url.Values{"query": {document}}.Encode(), ""
	}
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("X-Auth-Token", "reader-token")
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = response.Body.Close() })
	return response, newEventReader(response.Body)
}

// TestEventsOfTheServer uses the distinct connections mode of graphql-sse, by
// POST and GET, for longer than the time limits of an ordinary request.
func TestEventsOfTheServer(t *testing.T) {
	t.Parallel()
	eachServer(t, nil, func(t *testing.T, s *server) {
		for n, method := range []string{http.MethodPost, http.MethodGet} {
			s.answersAsStream(t, method)
			s.followsAsStream(t, method, n)
		}
		http.DefaultClient.CloseIdleConnections() // the server closes them about now
		if got := s.query(capacity, "Accept", "application/json"); got.status != http.StatusNotAcceptable ||
			!strings.Contains(got.body, "text/event-stream") {
			t.Errorf("a subscription as JSON: %v", got)
		}
		if got := s.query(capacity, "Accept", "text/event-stream", "X-Auth-Token",
			"guessed"); got.status != http.StatusUnauthorized || got.code() != "UNAUTHENTICATED" {
			t.Errorf("an unknown token: %v", got)
		}
	})
}

// expectEvents reads events with these kinds and data prefixes.
func (e *eventReader) expectEvents(t *testing.T, kindsAndData ...string) {
	t.Helper()
	for i := 0; i+1 < len(kindsAndData); i += 2 {
		if kind, data := e.next(); kind != kindsAndData[i] || !strings.HasPrefix(data, kindsAndData[i+1]) {
			t.Errorf("%s %s, want %s %s", kind, data, kindsAndData[i], kindsAndData[i+1])
		}
	}
}

// answersAsStream requests queries and refused operations as a stream.
func (s *server) answersAsStream(t *testing.T, method string) {
	t.Helper()
	response, events := s.stream(t.Context(), method, "{ viewer { userId } }")
	if response.StatusCode != 200 || response.Header.Get("Content-Type") != "text/event-stream; charset=utf-8" ||
		response.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v", response)
	}
	events.expectEvents(t, "next", `{"data":{"viewer":{"userId":"rae"}},"extensions":{"cost":`, "complete", "", "", "")
	for _, wrong := range []string{"{ nothing }", `subscription { capacityChanged(after: "x") { cursor } }`} {
		_, events = s.stream(t.Context(), method, wrong)
		events.expectEvents(t, "next", `{"errors":[{"message":`, "complete", "", "", "")
	}
}

// followsAsStream follows for longer than an ordinary request may take.
func (s *server) followsAsStream(t *testing.T, method string, n int) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	_, events := s.stream(ctx, method, capacity)
	events.expectEvents(t, "next", `{"data":{"capacityChanged":{"cursor":"`)
	time.Sleep(patience.Of(t, 2400*time.Millisecond))
	s.grow(n + 1)
	events.expectEvents(t, "next", `{"data":{"capacityChanged":{"cursor":"`)
	leave()
	s.await("cadastre_subscriptions_open 0")
	s.await("cadastre_streams_open 0")
}

// TestAStreamEndsWithItsToken checks that a stream ends as soon as its token is
// invalid or has other rights. The server sends no later event, and runs no later
// operation.
func TestAStreamEndsWithItsToken(t *testing.T) {
	t.Parallel()
	var now atomic.Value // of Viewer or error
	viewer := access.Viewer{UserID: "rae", ProjectID: "demo", Roles: []string{access.RoleReader}}
	now.Store(answerOfAuth{viewer: viewer})
	s := start(t, func(o *web.Options) {
		admin := auth.New(auth.Tokens([]auth.Token{auth.NewToken("admin-token",
			access.Viewer{UserID: "ada", ProjectID: "operations", Roles: []string{access.RoleAdmin}})}))
		o.Authenticate = func(ctx context.Context, header http.Header) (access.Viewer, error) {
			if header.Get("X-Auth-Token") == "admin-token" {
				return admin.Authenticate(ctx, header)
			}
			is := now.Load().(answerOfAuth)
			return is.viewer, is.err
		}
	})
	other := viewer
	other.Roles = []string{access.RoleMember}
	grown := 0
	for name, after := range map[string]answerOfAuth{
		"revoked": {err: problem.Refuse(problem.ErrUnauthenticated, "the token is unknown or has expired")},
		"changed": {viewer: other},
	} {
		now.Store(answerOfAuth{viewer: viewer})
		c := s.connect()
		c.say(asReader).expect(ack)
		c.subscribe("1", capacity).expect(`{"id":"1","type":"next"`)
		idle := s.connect()
		idle.say(asReader).expect(ack)
		_, events := s.stream(t.Context(), http.MethodPost, capacity)
		events.next()
		now.Store(answerOfAuth{err: problem.Refuse(problem.ErrUnavailable, "not now")})
		grown++
		s.grow(grown)
		time.Sleep(200 * time.Millisecond) // while the token cannot be checked, the server sends nothing
		now.Store(after)
		idle.subscribe("1", "{ viewer { userId } }")
		if text, err := idle.hear(); websocket.CloseStatus(err) != 4403 {
			t.Errorf("%s: a later operation: %s, %v", name, text, err)
		}
		s.grow(grown + 10)
		if text, err := c.hear(); err == nil {
			t.Errorf("%s: heard %s", name, text)
		} else if websocket.CloseStatus(err) != 4403 {
			t.Errorf("%s: closed by %v", name, err)
		}
		if kind, data := events.next(); kind != "next" || !strings.Contains(data, `"code":"UNAUTHENTICATED"`) {
			t.Errorf("%s: %s %s", name, kind, data)
		}
		if kind, _ := events.next(); kind != "complete" {
			t.Errorf("%s: %s", name, kind)
		}
	}
}

type answerOfAuth struct {
	viewer access.Viewer
	err    error
}

// TestAServerThatStopsEndsStreams checks that WebSockets end with 1001, and
// event streams end without `complete`, which makes clients connect again.
func TestAServerThatStopsEndsStreams(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := s.connect()
	c.say(asReader).expect(ack)
	c.subscribe("1", capacity).expect(`{"id":"1","type":"next"`)
	_, events := s.stream(t.Context(), http.MethodPost, capacity)
	events.next()
	stopped := make(chan error, 1)
	go func() { stopped <- s.stop() }()
	c.expectClose(1001, "the server is stopping")
	if kind, data := events.next(); kind != "" {
		t.Errorf("%s %s", kind, data)
	}
	if err := receive(t, stopped); err != nil {
		t.Error(err)
	}
}

// TestASlowReaderIsCut checks that the server cuts a client that does not read.
// The client then holds nothing, and never delays other clients.
func TestASlowReaderIsCut(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *web.Options) {
		o.Limits = web.DefaultLimits()
		o.Limits.PrincipalPoints = 0
	})
	for n := range 40 {
		s.grow(100 + n)
	}
	// Each answer is half a megabyte.
	big := "subscription { capacityChanged(groupBy: ROOT) { cursor capacity(first: 1000) { nodes { "
	for i := range 200 {
		big += fmt.Sprintf("a%d: root { uuid name } ", i)
	}
	big += "} } } }"
	slow := s.connect()
	slow.say(asReader).expect(ack)
	for i := range 24 { // more than the buffers of both sides hold
		slow.subscribe(fmt.Sprint(i), big)
	}
	other := s.connect()
	other.say(asReader).expect(ack)
	other.subscribe("1", capacity).expect(`{"id":"1","type":"next"`)
	for n := range 3 {
		s.grow(200 + n)
		other.expect(`{"id":"1","type":"next"`)
	}
	if !patience.Until(t, 30*time.Second, func() bool {
		return s.metric(`cadastre_streams_ended_total{why="slow"}`) == 1
	}) {
		t.Error("the slow client is not cut")
	}
	s.await("cadastre_streams_open 1")
	s.await("cadastre_unread_bytes_in_use 0")
}

// TestStreamsLeaveNothing opens and cuts streams in every way, and checks that
// no goroutine or count remains.
func TestStreamsLeaveNothing(t *testing.T) { // not parallel: it checks all goroutines
	s := start(t, nil)
	s.await("cadastre_streams_open 0")
	before := goleak.IgnoreCurrent()
	var clients sync.WaitGroup
	for i := range 40 {
		clients.Go(func() {
			if i%2 == 0 {
				c := s.connect()
				c.say(asReader,
					`{"id":"1","type":"subscribe","payload":{"query":"subscription { capacityChanged { cursor } }"}}`)
				if i%4 == 0 {
					c.expect(ack, `{"id":"1","type":"next"`)
				}
				_ = c.CloseNow()
				return
			}
			ctx, leave := context.WithCancel(t.Context())
			_, events := s.stream(ctx, http.MethodPost, capacity)
			if i%4 == 1 {
				events.next()
			}
			leave()
		})
	}
	clients.Wait()
	http.DefaultClient.CloseIdleConnections()
	s.await("cadastre_streams_open 0")
	s.await("cadastre_subscriptions_open 0")
	s.await("cadastre_operations_in_use 0")
	http.DefaultClient.CloseIdleConnections()
	leavesNothing(t, before)
}

// TestStrangersTakeNoSocketOfAViewer fills the sockets without a token. A valid
// token in the handshake still gets a socket, from the same address, too. A
// token in connection_init gets one from an address that holds fewer.
func TestStrangersTakeNoSocketOfAViewer(t *testing.T) {
	t.Parallel()
	limited := func(o *web.Options) {
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		o.Limits = web.DefaultLimits()
		o.Limits.Sockets, o.Limits.ViewerSockets = 16, 3
	}
	holdsOnce(t, limited, func(s *server) string {
		began := time.Now()
		silent := map[string][]*websocketClient{}
		for _, from := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.1"} {
			silent[from] = append(silent[from], s.connect("X-Forwarded-For", from))
		}
		silent["192.0.2.1"] = append(silent["192.0.2.1"], s.connect("X-Forwarded-For", "192.0.2.1"))
		for range 3 {
			s.connect("X-Forwarded-For", "192.0.2.1", "X-Auth-Token", "reader-token").say(hello).expect(ack)
		}
		_, response, err := s.tryConnect("X-Forwarded-For", "192.0.2.9", "X-Auth-Token", "reader-token")
		if err == nil || response.StatusCode != http.StatusTooManyRequests {
			t.Errorf("a fourth socket of a viewer, from another address: %v %v", response, err)
		}
		s.connect("X-Forwarded-For", "192.0.2.3").say(asAdmin).expect(ack)
		if took := time.Since(began); took > 2*time.Second {
			return fmt.Sprintf("the silent sockets end before their test: it took %v", took)
		}
		silent["192.0.2.1"][0].expectClose(1013, "too many WebSockets are open without a token")
		silent["192.0.2.1"][1].say(asAdmin).expect(ack)
		if began := time.Now(); s.connect("X-Forwarded-For", "192.0.2.4") != nil {
			silent["192.0.2.1"][2].expectClose(4408, "connection_init was not received in time")
			if took := time.Since(began); took > patience.Of(t, 8*time.Second) {
				t.Errorf("a silent socket lasted %v", took)
			}
		}
		return ""
	})
}

// TestARefusedSocketIsLate opens as many WebSockets without a token as an address
// may have. The next one is refused after half a second.
func TestARefusedSocketIsLate(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *web.Options) {
		o.Limits = web.DefaultLimits()
		o.Limits.ViewerSockets = 3
	})
	for range 3 {
		s.connect()
	}
	began := time.Now()
	if _, response, err := s.tryConnect(); err == nil || response.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a fourth socket of an address: %v %v", response, err)
	}
	if took := time.Since(began); took < time.Second/2 {
		t.Errorf("an address without sockets left may try again after %v", took)
	}
}
