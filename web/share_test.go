package web_test

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/web"
)

// long returns a document with an answer of about this many bytes.
func long(bytes int) string {
	var document strings.Builder
	document.WriteString("{")
	for i := range bytes / 40_000 {
		fmt.Fprintf(&document, " t%d: traits(first: 1000) { nodes { id name custom } }", i)
	}
	return document.String() + " }"
}

// unread sends a document on a new connection and does not read the answer.
func (s *server) unread(document, token string) (read func() string) {
	connection := s.dial()
	body := fmt.Sprintf(`{"query": %q}`, document)
	_, err := fmt.Fprintf(connection,
		"POST /graphql HTTP/1.1\r\nHost: localhost\r\nX-Auth-Token: %s\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		token, len(body), body)
	if err != nil {
		s.t.Error(err)
	}
	return func() string { return ends(s.t.(*testing.T), connection, patience.Of(s.t, 60*time.Second)) }
}

// TestAnswersThatNobodyReadsAreTheirViewersLoss has one viewer request many
// long answers and read none. The server still answers others immediately,
// bounds the unread bytes, and cuts the connections.
func TestAnswersThatNobodyReadsAreTheirViewersLoss(t *testing.T) {
	t.Parallel()
	const memory = 256 << 20
	s := startServing(t, func(o *web.Options) {
		o.Limits = web.DefaultLimits()
		o.Limits.PrincipalPoints, o.Limits.AddressPoints = 0, 0
		o.Limits.Concurrent = 16
		o.Limits.ClientBytes = 10 << 20
		o.Memory = memory
	}, web.ServeOptions{})
	document := long(1_500_000)
	if got := s.query(document); got.status != http.StatusOK || len(got.body) < 1<<20 {
		t.Fatalf("%d with %d bytes: %.200s", got.status, len(got.body), got.body)
	}
	var reads []func() string
	for range 40 {
		reads = append(reads, s.unread(document, "reader-token"))
	}
	slowest, most := s.besideUnread()
	if slowest > patience.Of(t, 5*time.Second) {
		t.Errorf("another viewer waited %v", slowest)
	}
	if most == 0 || most > memory/4/4 {
		t.Errorf("%v bytes of one viewer were unread, of %d", most, memory/4)
	}
	whole, refused := 0, 0
	for _, read := range reads {
		switch answer := read(); {
		case strings.Contains(answer, "RATE_LIMITED"):
			refused++
		case strings.HasSuffix(answer, "}\n"):
			whole++
		}
	}
	if whole > 0 || refused == 0 {
		t.Errorf("%d answers are whole, %d were refused", whole, refused)
	}
}

// besideUnread looks things up until no unread bytes remain. It returns the
// longest time of a look-up and the most unread bytes.
func (s *server) besideUnread() (slowest time.Duration, most float64) {
	s.t.Helper()
	ended := patience.Until(s.t, 30*time.Second, func() bool {
		asked := time.Now()
		if got := s.query(`{ traits(first: 1) { nodes { name } } }`); got.status != http.StatusOK || got.code() != "" {
			s.t.Fatalf("another viewer: %d %s", got.status, got.body)
		}
		slowest = max(slowest, time.Since(asked))
		unread := s.metric("cadastre_unread_bytes_in_use ")
		most = max(most, unread)
		return most > 0 && unread == 0 && s.metric("cadastre_operations_in_use ") == 0
	})
	if !ended {
		s.t.Errorf("%v bytes and %v operations are left", s.metric("cadastre_unread_bytes_in_use "),
			s.metric("cadastre_operations_in_use "))
	}
	return slowest, most
}

// TestLongRequestsHaveRoomApart has one viewer begin to send long requests. The
// server bounds their memory. The viewer's next long request waits without
// success until they end. Short requests and the requests of others do not wait.
func TestLongRequestsHaveRoomApart(t *testing.T) {
	t.Parallel()
	const memory, length = 32 << 20, 200_000 // a viewer has room for one, and a project for two
	s := startServing(t, func(o *web.Options) {
		o.Limits = web.DefaultLimits()
		o.Memory = memory
	}, web.ServeOptions{})
	body := fmt.Sprintf(`{"query": "{ __typename }", "variables": {"unused": %q}}`, strings.Repeat("x", length))
	begun := s.dial()
	if _, err := fmt.Fprintf(begun,
		"POST /graphql HTTP/1.1\r\nHost: localhost\r\nX-Auth-Token: reader-token\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		len(body), body[:1000]); err != nil {
		t.Fatal(err)
	}
	inUse := func() float64 { return s.metric("cadastre_body_bytes_in_use ") }
	if !patience.Until(t, 10*time.Second, func() bool { return inUse() > 8*length }) {
		t.Fatalf("%v bytes are in use", inUse())
	}
	if got := s.send(http.MethodPost, "/graphql", body, "X-Auth-Token", "reader-token"); got.code() != "RATE_LIMITED" ||
		got.header.Get("Retry-After") == "" {
		t.Errorf("another long request of the viewer: %d %.200s", got.status, got.body)
	}
	if got := s.query("{ __typename }", "X-Auth-Token", "reader-token"); got.code() != "" {
		t.Errorf("a short request of the viewer: %d %.200s", got.status, got.body)
	}
	if got := s.send(http.MethodPost, "/graphql", body); got.code() != "" {
		t.Errorf("a long request of another viewer: %d %.200s", got.status, got.body)
	}
	if _, err := fmt.Fprint(begun, body[1000:]); err != nil {
		t.Fatal(err)
	}
	if got := ends(t, begun, patience.Of(t, 20*time.Second)); !strings.Contains(got, `"Query"`) {
		t.Errorf("the first one is answered %.200s", got)
	}
	_, events := s.stream(t.Context(), http.MethodPost, capacity+" #"+strings.Repeat("x", length))
	events.expectEvents(t, "next", `{"data":`)
	if !patience.Until(t, 10*time.Second, func() bool { return inUse() == 0 }) {
		t.Errorf("%v bytes are still in use", inUse())
	}
	s = startServing(t, func(o *web.Options) {
		o.Limits, o.Memory = web.DefaultLimits(), memory
		o.Limits.BodyBytes = 0
	}, web.ServeOptions{})
	if _, err := fmt.Fprint(s.dial(), "POST /graphql HTTP/1.1\r\nHost: localhost\r\nX-Auth-Token: reader-token\r\n"+
		"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if !patience.Until(t, 10*time.Second, func() bool { return inUse() > 8*length }) {
		t.Errorf("%v bytes are in use for a body without a length or a limit", inUse())
	}
}

// TestHeavyOperationsOfOneViewerAreTheirOwnQueue has one viewer send many heavy
// operations, and another viewer send one now and then. Each of the other
// viewer's operations waits for at most one that runs. Look-ups do not wait. On a
// slow machine the first viewer's wait for longer than they may, UNAVAILABLE.
func TestHeavyOperationsOfOneViewerAreTheirOwnQueue(t *testing.T) {
	t.Parallel()
	s := startServing(t, func(o *web.Options) {
		o.Limits = web.DefaultLimits()
		o.Limits.PrincipalPoints, o.Limits.AdminPoints, o.Limits.AddressPoints = 0, 0, 0
		o.Limits.OperationTime = patience.Of(t, o.Limits.OperationTime)
	}, web.ServeOptions{})
	heavy := long(2_400_000)
	if got := s.query(heavy); got.status != http.StatusOK {
		t.Fatalf("%d %.200s", got.status, got.body)
	}
	var greedy sync.WaitGroup
	stop := make(chan struct{})
	codes := sync.Map{}
	for range 30 {
		greedy.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					got := s.query(heavy, "X-Auth-Token", "reader-token")
					codes.Store(got.code(), got.status)
				}
			}
		})
	}
	if !patience.Until(t, 10*time.Second, func() bool { return s.metric("cadastre_searches_waiting ") > 5 }) {
		t.Error("nothing waits")
	}
	for range 5 {
		if got := s.query(heavy); got.status != http.StatusOK || got.code() != "" {
			t.Errorf("a heavy operation of another viewer: %d %.200s", got.status, got.body)
		}
		if got := s.query(`{ namespaces(first: 1) { totalCount } }`); got.status != http.StatusOK || got.code() != "" {
			t.Errorf("a look-up of another viewer: %d %.200s", got.status, got.body)
		}
	}
	close(stop)
	greedy.Wait()
	codes.Range(func(code, status any) bool {
		if code != "" && code != "RATE_LIMITED" && code != "UNAVAILABLE" {
			t.Errorf("the greedy one is told %v %v", status, code)
		}
		return true
	})
}

// TestClaimsThatWaitTakeNoConnection holds many claims of one viewer at a lock,
// with few connections. The claims share transactions, and the viewer's
// look-ups do not wait for them.
func TestClaimsThatWaitTakeNoConnection(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		limit := patience.Of(t, time.Minute)
		opened, err := store.Open(t.Context(), store.Options{URL: url, Connections: 4, StatementTime: limit})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = opened.Close() })
		s := startWith(t, url, opened, func(o *web.Options) {
			o.Limits = web.DefaultLimits()
			o.Limits.OperationTime = limit
			o.Limits.PrincipalPoints, o.Limits.AdminPoints, o.Limits.AddressPoints = 0, 0, 0
		}, web.ServeOptions{})
		s.grow(1)
		lock := "SELECT 1 FROM resource_providers FOR UPDATE"
		if !s.store.Postgres() {
			lock = "UPDATE resource_providers SET version = version"
		}
		tx, err := storetest.Database(t, url).BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(t.Context(), lock); err != nil {
			t.Fatal(err)
		}
		const claims = 100
		var claiming sync.WaitGroup
		var fit atomic.Int64
		for i := range claims {
			claiming.Go(func() {
				got := s.query(fmt.Sprintf(`mutation { setAllocations(input: {consumers: [{uuid: %q, projectId: "p", userId: "u",
					allocations: [{provider: %q, resources: [{resourceClass: "VCPU", amount: 1}]}]}]}) { consumers { uuid generation allocations { used } } } }`, storetest.UUID(100+i), storetest.UUID(1)))
				switch got.code() {
				case "":
					fit.Add(1)
				case "CAPACITY_EXCEEDED":
				default:
					t.Errorf("%d %.200s", got.status, got.body)
				}
			})
		}
		inside := func() float64 { return s.metric("cadastre_operations_in_use ") }
		if !patience.Until(t, 10*time.Second, func() bool { return inside() == claims }) {
			t.Errorf("%v claims are inside", inside())
		}
		for range 5 {
			asked := time.Now()
			got := s.query(`{ resourceTypes(first: 1) { nodes { name updatedAt } totalCount } }`)
			if waited := time.Since(asked); got.code() != "" || waited > patience.Of(t, 2*time.Second) {
				t.Errorf("a look-up of the viewer took %v: %d %.200s", waited, got.status, got.body)
			}
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if claiming.Wait(); fit.Load() != 4 {
			t.Errorf("%d claims fit, of four", fit.Load())
		}
	})
}

// hard returns a document that takes long to validate. Each n gives another
// document.
func hard(n int) string {
	return "{ viewer {" + strings.Repeat(" userId projectId isAdmin roles __typename", 590) +
		fmt.Sprintf(" a%d: userId } }", n)
}

// sendHard has clients send different hard documents until the caller calls
// end.
func sendHard(clients int, send func(document string)) (end func()) {
	var sending sync.WaitGroup
	stop := make(chan struct{})
	for client := range clients {
		sending.Go(func() {
			for n := client; ; n += clients {
				select {
				case <-stop:
					return
				default:
					send(hard(n))
				}
			}
		})
	}
	return func() {
		close(stop)
		sending.Wait()
	}
}

// TestReadingDocumentsIsPaidFor gives a viewer two points, and another one
// every four seconds. Reading a cached document is free, so it is answered
// twice. A document that is hard to validate takes all points.
func TestReadingDocumentsIsPaidFor(t *testing.T) {
	t.Parallel()
	poor := func(o *web.Options) {
		o.Limits = web.DefaultLimits()
		o.Limits.PrincipalPoints, o.Limits.AdminPoints = 0.251, 0
	}
	holdsOnce(t, poor, func(s *server) string {
		for _, token := range []string{"admin-token", "reader-token", "reader-token"} {
			if got := s.query(hard(0), "X-Auth-Token", token); got.code() != "" {
				return fmt.Sprintf("%s, with a document that is kept: %d %.300s", token, got.status, got.body)
			}
		}
		return ""
	})
	holdsOnce(t, poor, func(s *server) string {
		if got := s.query(hard(0), "X-Auth-Token", "reader-token"); got.code() != "" {
			return fmt.Sprintf("%d %.300s", got.status, got.body)
		}
		if s.query(`{ viewer { userId } }`, "X-Auth-Token", "reader-token").status != http.StatusTooManyRequests {
			return "no document is paid for"
		}
		return ""
	})
}

// TestTooComplexIsPaidFor has a viewer repeat a query that is refused for its
// price. The refusal costs as much as a few cheap requests.
func TestTooComplexIsPaidFor(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *web.Options) {
		o.Limits = web.DefaultLimits()
		o.Limits.Cost, o.Limits.PrincipalPoints = 10_000, 25 // 100 in a burst
	})
	refused, began := map[string]int{}, time.Now()
	for range 100 {
		refused[s.query(`{ traits(first: 1000) { nodes { name } } }`, "X-Auth-Token", "reader-token").code()]++
	}
	// Each takes at least two points, which come back over time.
	if refused["QUERY_TOO_COMPLEX"] > 50+earnedSince(began, 25)/2 ||
		refused["QUERY_TOO_COMPLEX"]+refused["RATE_LIMITED"] != 100 {
		t.Errorf("%v", refused)
	}
}

// TestWritesArePaidFor has a reader and an administrator write with buckets of
// 40 points. Each write takes at least 21 points of a reader, and a few of an
// administrator.
func TestWritesArePaidFor(t *testing.T) {
	t.Parallel()
	limited := func(o *web.Options) {
		o.Limits = web.DefaultLimits()
		o.Limits.PrincipalPoints, o.Limits.AdminPoints = 10, 10
	}
	for token, most := range map[string]int{"reader-token": 1, "admin-token": 5} {
		holdsOnce(t, limited, func(s *server) string {
			admitted, began := 0, time.Now()
			for range 5 {
				got := s.query(`mutation { createTrait(input: {name: "CUSTOM_PAID"}) { trait { name } } }`,
					"X-Auth-Token", token)
				if got.code() != "RATE_LIMITED" {
					admitted++
				}
			}
			if admitted < most || admitted > most+earnedSince(began, 10)/21 {
				return fmt.Sprintf("%d writes of 5 are admitted with %s, want %d", admitted, token, most)
			}
			return ""
		})
	}
}

// earnedSince returns the maximum number of points that have come back.
func earnedSince(began time.Time, perSecond float64) int {
	return int(time.Since(began).Seconds()*perSecond) + 1
}

// TestReadingVariablesIsPaidFor has a viewer send many values of a wrong type.
// Reading them costs points.
func TestReadingVariablesIsPaidFor(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *web.Options) {
		o.Limits = web.DefaultLimits()
		o.Limits.PrincipalPoints = 25 // 100 in a burst
	})
	request := map[string]any{"query": `query($ids: [ID!]!) { nodes(ids: $ids) { id } }`,
		"variables": map[string]any{"ids": slices.Repeat([]any{1.5}, 5000)}}
	refused, began := map[string]int{}, time.Now()
	for range 50 {
		refused[s.ask(request, "X-Auth-Token", "reader-token").code()]++
	}
	// Each takes at least four points, which come back over time.
	if refused["GRAPHQL_VALIDATION_FAILED"] > 25+earnedSince(began, 25)/4 ||
		refused["GRAPHQL_VALIDATION_FAILED"]+refused["RATE_LIMITED"] != 50 {
		t.Errorf("%v", refused)
	}
}

// TestLongRequestsAreReadAFewAtATime has a viewer send many documents that are
// hard to validate. The server reads at most one for every second core, and
// viewers with short requests do not wait.
func TestLongRequestsAreReadAFewAtATime(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *web.Options) {
		o.Limits = web.DefaultLimits()
		o.Limits.PrincipalPoints, o.Limits.AdminPoints, o.Limits.AddressPoints = 0, 0, 0
	})
	end := sendHard(30, func(document string) {
		if got := s.query(document, "X-Auth-Token", "reader-token"); got.code() != "" && got.code() != "RATE_LIMITED" {
			t.Errorf("%d %.300s", got.status, got.body)
		}
	})
	if !patience.Until(t, 10*time.Second, func() bool { return s.metric("cadastre_readings_waiting ") > 5 }) {
		t.Error("nothing waits")
	}
	for range 50 {
		if got := s.metric("cadastre_readings_in_use "); got > float64(max(1, runtime.GOMAXPROCS(0)/2)) {
			t.Errorf("%v are read at once", got)
		}
		if got := s.query(`{ viewer { userId } }`); got.code() != "" {
			t.Errorf("another viewer: %d %.300s", got.status, got.body)
		}
	}
	end()
}

// TestGreedyViewersTakeTurns has one viewer occupy the turns for long requests,
// and another send short requests. The short requests take no turn until their
// viewer has spent an eighth of a full bucket. Of a large bucket five short
// requests spend less, even on a slow machine.
func TestGreedyViewersTakeTurns(t *testing.T) {
	t.Parallel()
	const waits = `cadastre_readings_waits_total{project="demo"}`
	busy := func(points float64) (s *server, metrics func() string, end func()) {
		s = start(t, func(o *web.Options) {
			o.Limits = web.DefaultLimits()
			o.Limits.PrincipalPoints, o.Limits.AdminPoints, o.Limits.AddressPoints = points, 0, 0
		})
		end = sendHard(8, func(document string) { s.query(document) })
		if !patience.Until(t, 10*time.Second, func() bool { return s.metric("cadastre_readings_waiting ") > 2 }) {
			t.Error("nothing waits")
		}
		return s, func() string { return s.send(http.MethodGet, "/metrics", "").body }, end
	}
	short := func(s *server) {
		if got := s.query(`{ viewer { userId } }`, "X-Auth-Token", "reader-token"); got.code() != "" &&
			got.code() != "RATE_LIMITED" {
			t.Errorf("%d %.300s", got.status, got.body)
		}
	}
	rich, metrics, end := busy(1_000_000)
	for range 5 {
		short(rich)
	}
	if strings.Contains(metrics(), waits) {
		t.Error("a viewer who has spent little waits for a turn")
	}
	end()
	s, metrics, end := busy(40)
	long := func() {
		s.query(`{ traits(first: 1000) { nodes { id name custom } } }`, "X-Auth-Token", "reader-token")
	}
	waited := patience.Until(t, 20*time.Second, func() bool {
		long()
		short(s)
		return strings.Contains(metrics(), waits)
	})
	if !waited {
		t.Error("a viewer who has spent much does not wait for a turn")
	}
	end()
	refused := patience.Until(t, 20*time.Second, func() bool {
		var spending sync.WaitGroup // faster than points come back, even on a slow machine
		for range 16 {
			spending.Go(long)
		}
		spending.Wait()
		return strings.Contains(metrics(), `cadastre_points_refused_total{project="demo",why="share"}`)
	})
	if !refused {
		t.Error("nobody is counted as refused")
	}
}
