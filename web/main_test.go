package web_test

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/auth"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/web"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// server is the real handler with a real store on a real listener.
type server struct {
	t     testing.TB
	url   string
	file  string // of the database
	store *store.Store
	log   *lockedBuffer
	stop  func() error
}

// start starts a server on a new SQLite file; change adjusts its options.
func start(t testing.TB, change func(*web.Options)) *server {
	t.Helper()
	return startServing(t, change, web.ServeOptions{})
}

// unusedFor is the idle time of a connection. It exceeds the time of any test
// and the idle time of Go's client, which opens spare connections, too. If the
// server closed a connection just as the client sends a request, the client
// would get no answer.
const unusedFor = 10 * time.Minute

// startServing is start with ServeOptions.
func startServing(t testing.TB, change func(*web.Options), serving web.ServeOptions) *server {
	t.Helper()
	return startOn(t, storetest.SQLite(t), change, serving)
}

// startOn is startServing on a database.
func startOn(t testing.TB, database string, change func(*web.Options), serving web.ServeOptions) *server {
	t.Helper()
	return startWith(t, database, storetest.Open(t, database), change, serving)
}

// startWith is startOn with an open store of the database.
func startWith(t testing.TB, database string, opened *store.Store,
	change func(*web.Options), serving web.ServeOptions) *server {
	t.Helper()
	s := &server{t: t, file: strings.TrimPrefix(database, "sqlite://"), store: opened, log: &lockedBuffer{}}
	options := s.options()
	serving.Log = options.Log
	serving.HeaderTime = cmp.Or(serving.HeaderTime, unusedFor)
	serving.ReadTime = cmp.Or(serving.ReadTime, patience.Of(t, 15*time.Second))
	serving.IdleTime = cmp.Or(serving.IdleTime, unusedFor)
	if change != nil {
		change(&options)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.url = "http://" + listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- web.Serve(ctx, listener, web.New(options), serving)
	}()
	s.stop = sync.OnceValue(func() error {
		cancel()
		return receive(t, served)
	})
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := s.stop(); err != nil {
			t.Errorf("stop the server: %v", err)
		}
	})
	return s
}

// options returns the options of a server with an administrator and a reader.
func (s *server) options() web.Options {
	logger := slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return web.Options{
		Executor: graph.NewExecutor(&graph.Resolver{Store: s.store}, logger),
		Authenticate: auth.New(auth.Tokens([]auth.Token{
			auth.NewToken("admin-token",
				access.Viewer{UserID: "ada", ProjectID: "operations", Roles: []string{access.RoleAdmin}}),
			auth.NewToken("reader-token",
				access.Viewer{UserID: "rae", ProjectID: "demo", Roles: []string{access.RoleReader}}),
		})).Authenticate,
		Ready:   s.store.Ready,
		Log:     logger,
		Profile: web.Open,
		Version: "test",
	}
}

// receive returns the next value of a channel. It fails the test after a long
// wait.
func receive[T any](t testing.TB, from <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(patience.Of(t, 30*time.Second)):
		t.Error("nothing was received")
	}
	return value
}

// answer is the answer to a request.
type answer struct {
	status int
	header http.Header
	body   string
}

// codes returns the codes of the errors of an answer.
func (a answer) codes() []string {
	var body struct {
		Errors []struct{ Extensions struct{ Code string } }
	}
	if json.Unmarshal([]byte(a.body), &body) != nil {
		return []string{"no JSON"}
	}
	var codes []string
	for _, err := range body.Errors {
		codes = append(codes, err.Extensions.Code)
	}
	return codes
}

// code returns the code of the first error, or the empty string.
func (a answer) code() string {
	if codes := a.codes(); len(codes) > 0 {
		return codes[0]
	}
	return ""
}

// send sends a request as the administrator. Headers are pairs of name and
// value. An empty value removes a header.
func (s *server) send(method, path, body string, headers ...string) answer {
	s.t.Helper()
	request, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("X-Auth-Token", "admin-token")
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i+1] == "" {
			request.Header.Del(headers[i])
		} else {
			request.Header.Set(headers[i], headers[i+1])
		}
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{status: response.StatusCode, header: response.Header, body: string(text)}
}

// query sends a document by POST.
func (s *server) query(document string, headers ...string) answer {
	s.t.Helper()
	return s.ask(map[string]any{"query": document}, headers...)
}

// ask sends a request by POST.
func (s *server) ask(request map[string]any, headers ...string) answer {
	s.t.Helper()
	body, err := json.Marshal(request)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.send(http.MethodPost, "/graphql", string(body), headers...)
}

// waiting is a mutation that waits for the lock of holdWrites.
const waiting = `mutation Wait { createNamespace(input: {name: "waiting"}) { namespace { name } } }`

// holdWrites takes the write lock of the database as another program could.
// Mutations wait until the caller calls release.
func (s *server) holdWrites() (release func()) {
	s.t.Helper()
	db, err := sql.Open("sqlite", "file:"+s.file+"?_txlock=immediate&_pragma=busy_timeout(60000)")
	if err != nil {
		s.t.Fatal(err)
	}
	transaction, err := db.Begin()
	if err != nil {
		s.t.Fatal(err)
	}
	release = sync.OnceFunc(func() { _, _ = transaction.Rollback(), db.Close() })
	s.t.Cleanup(release)
	return release
}

// await waits until /metrics shows a line.
func (s *server) await(line string) {
	s.t.Helper()
	if !patience.Until(s.t, 10*time.Second, func() bool {
		return strings.Contains(s.send(http.MethodGet, "/metrics", "").body, line+"\n")
	}) {
		s.t.Fatalf("/metrics never showed %s", line)
	}
}

// metric returns the value of the metric whose line has this prefix.
func (s *server) metric(begins string) float64 {
	s.t.Helper()
	for line := range strings.Lines(s.send(http.MethodGet, "/metrics", "").body) {
		if text, ok := strings.CutPrefix(line, begins); ok {
			value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				s.t.Fatal(err)
			}
			return value
		}
	}
	s.t.Fatalf("/metrics has no %s", begins)
	return 0
}

// lockedBuffer is a log that can be read while it is written.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
