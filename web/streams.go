package web

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/internal/pause"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// openStreams counts the streams of a server, because Shutdown of net/http does
// not wait for WebSockets.
type openStreams struct {
	stopping <-chan struct{} // closed when the server is to stop
	count    atomic.Int64
}

type openStreamsKey struct{}

// openStreamsOf returns the openStreams of the server that received the
// request, or new ones, which never stop, if the handler runs without Serve.
func openStreamsOf(ctx context.Context) *openStreams {
	if of, ok := ctx.Value(openStreamsKey{}).(*openStreams); ok {
		return of
	}
	return &openStreams{}
}

// wait waits until no stream is open. It returns an error if the context ends
// first.
func (o *openStreams) wait(ctx context.Context) error {
	for o.count.Load() > 0 {
		if !pause.For(ctx, 10*time.Millisecond) {
			return fmt.Errorf("%d streams did not end in time", o.count.Load())
		}
	}
	return nil
}

// streams bound the long-lived WebSockets and event streams, and the
// subscriptions on them.
type streams struct {
	sockets, subscriptions *tally
	strangers              *strangers
	perSocket              int
}

func newStreams(limits Limits) streams {
	return streams{
		sockets:       newTally(limits.Sockets, limits.ViewerSockets, "WebSockets and event streams"),
		strangers:     newStrangers(limits),
		subscriptions: newTally(limits.Subscriptions, limits.ViewerSubscriptions, "subscriptions"),
		perSocket:     limits.SocketOperations,
	}
}

// tally counts open streams or subscriptions, in total and by party. A limit of
// 0 means no limit.
type tally struct {
	limit, ofOne int
	what         string

	mu    sync.Mutex
	total int
	of    map[string]int
}

func newTally(limit, ofOne int, what string) *tally {
	return &tally{limit: limit, ofOne: ofOne, what: what, of: map[string]int{}}
}

// enter counts one more for a party, until the caller calls leave. It returns a
// refusal if a limit is reached.
func (t *tally) enter(party string) (leave func(), refused *refusal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ofOne > 0 && t.of[party] >= t.ofOne {
		return nil, &refusal{status: http.StatusTooManyRequests, code: graph.CodeRateLimited, retryAfter: 5,
			message: fmt.Sprintf("you have too many %s open: at most %d are allowed", t.what, t.ofOne)}
	}
	if t.limit > 0 && t.total >= t.limit {
		return nil, &refusal{status: http.StatusServiceUnavailable, code: graph.CodeUnavailable, retryAfter: 5,
			message: fmt.Sprintf("the server has too many %s open; try again later", t.what)}
	}
	t.total++
	t.of[party]++
	return sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.total--
		if t.of[party]--; t.of[party] == 0 {
			delete(t.of, party)
		}
	}), nil
}

func (t *tally) open() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total
}

// The codes that close a WebSocket. The graphql-transport-ws protocol defines
// the codes from 4400. Clients connect again after 4403, 4408 and the codes
// below 4400.
const (
	closedGoingAway       = 1001
	closedTryAgain        = 1013
	closedBadRequest      = 4400
	closedUnauthorized    = 4401
	closedForbidden       = 4403
	closedInitTimeout     = 4408
	closedSubscriberKnown = 4409
	closedTooManyInits    = 4429
)

// ending is why a stream ended.
type ending struct {
	code   int
	reason string
	why    string // for metrics
}

// Error returns the reason.
func (e *ending) Error() string { return e.reason }

var (
	errClientGone = &ending{closedGoingAway, "the client disconnected", "client"}
	errStopping   = &ending{closedGoingAway, "the server is stopping; connect again", "stopping"}
	errSlow       = &ending{closedTryAgain, "the client is too slow; connect again with the last cursor", "slow"}
	errExpired    = &ending{closedForbidden, "the token has expired or was revoked; connect again with another one",
		"token"}
	errCrowded = &ending{closedTryAgain, "too many WebSockets are open without a token; send a token in the handshake",
		"limit"}
	errRights = &ending{closedForbidden, "the permissions of the token have changed; connect again", "rights"}
)

// endings are the reasons why streams end, for metrics.
var endings = []string{"client", "stopping", "slow", "token", "rights", "protocol", "init", "limit"}

// session is an open WebSocket or event stream: it has the viewer at the other
// end and the function that ends it.
type session struct {
	*transport
	header http.Header // with the credentials
	viewer access.Viewer
	end    context.CancelCauseFunc
}

// stream begins the session of a request and returns its context. The session
// ends with the request, with the server, or by session.end. The caller must
// call done.
func (t *transport) stream(r *http.Request) (ctx context.Context, s *session, done func()) {
	ctx, end := context.WithCancelCause(r.Context())
	open := openStreamsOf(ctx)
	open.count.Add(1)
	requestLogOf(ctx).streams = true
	stop := context.AfterFunc(ctx, func() { end(errClientGone) })
	go func() {
		select {
		case <-open.stopping:
			end(errStopping)
		case <-ctx.Done():
		}
	}()
	return ctx, &session{transport: t, header: r.Header, end: end}, func() {
		end(errClientGone)
		stop()
		t.measured.ended.WithLabelValues(endingOf(ctx).why).Inc()
		open.count.Add(-1)
	}
}

// endingOf returns why the stream of a context ended: errClientGone if the
// context has no other reason.
func endingOf(ctx context.Context) *ending {
	if why, ok := context.Cause(ctx).(*ending); ok {
		return why
	}
	return errClientGone
}

// betweenJudgements is the longest time between two checks of a stream's token.
// The token is also checked before each operation and each event.
const betweenJudgements = 5 * time.Second

// watch checks the token of the session at intervals, until the context ends.
func (s *session) watch(ctx context.Context) {
	for pause.For(ctx, betweenJudgements) {
		s.judge(ctx)
	}
}

// judge checks that the token still belongs to the same viewer with the same
// rights. If not, it ends the session. While the check is impossible, judge
// repeats it every second. It reports whether the session continues.
func (s *session) judge(ctx context.Context) bool {
	for ctx.Err() == nil {
		viewer, err := s.Authenticate(ctx, s.header)
		switch {
		case err == nil && viewer.Equal(s.viewer):
			return true
		case err == nil:
			s.end(errRights)
		case isUnauthenticated(err):
			s.end(errExpired)
		default:
			pause.For(ctx, time.Second)
		}
	}
	return false
}

// strangers bounds the WebSockets without a verified viewer, in total and by
// address. They have no part in the limit of verified WebSockets. A limit of 0
// means no limit.
type strangers struct {
	limit, ofOne int

	mu    sync.Mutex
	total int
	from  map[string][]*stranger // by address, the oldest first
}

// stranger is a WebSocket without a verified viewer.
type stranger struct{ end context.CancelCauseFunc }

func newStrangers(limits Limits) *strangers {
	s := &strangers{ofOne: limits.ViewerSockets, from: map[string][]*stranger{}}
	if limits.Sockets > 0 {
		s.limit = max(1, limits.Sockets/4)
	}
	return s
}

// enter counts a WebSocket of an address until the caller calls leave. If the
// pool is full, enter ends the oldest stranger of the address that has the
// most. It refuses if the caller's address has strangers and no address has at
// least two more. Otherwise addresses would end each other's strangers forever.
func (s *strangers) enter(address string, end context.CancelCauseFunc) (leave func(), refused *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := len(s.from[address])
	if s.ofOne > 0 && own >= s.ofOne {
		return nil, &refusal{status: http.StatusTooManyRequests, code: graph.CodeRateLimited, retryAfter: 3,
			message: "your address has too many WebSockets open without a valid token; send a token in the handshake"}
	}
	if s.limit > 0 && s.total >= s.limit {
		most := address
		for other, of := range s.from {
			if len(of) > len(s.from[most]) {
				most = other
			}
		}
		if own > 0 && len(s.from[most]) <= own+1 {
			return nil, &refusal{status: http.StatusServiceUnavailable, code: graph.CodeUnavailable, retryAfter: 3,
				message: "the server has too many WebSockets open without a valid token; send a token in the handshake"}
		}
		oldest := s.from[most][0]
		s.remove(most, oldest)
		oldest.end(errCrowded)
	}
	entered := &stranger{end}
	s.from[address] = append(s.from[address], entered)
	s.total++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.remove(address, entered)
	}, nil
}

// remove removes a stranger, if it is still counted.
func (s *strangers) remove(address string, of *stranger) {
	i := slices.Index(s.from[address], of)
	if i < 0 {
		return
	}
	s.total--
	if s.from[address] = slices.Delete(s.from[address], i, i+1); len(s.from[address]) == 0 {
		delete(s.from, address)
	}
}

func (s *strangers) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// heartbeat is the interval of comments in event streams and of WebSocket pings.
const heartbeat = 15 * time.Second

// serveEvents answers a request with a stream of events, in the distinct
// connections mode of graphql-sse: `next` for each answer and `complete` at the
// end. If refused is not nil, the operation does not run: serveEvents returns a
// refusal that has an HTTP status, and sends any other on the stream.
func (t *transport) serveEvents(w http.ResponseWriter, r *http.Request, of caller,
	operation *document.Operation, refused *refusal) *refusal {
	if refused != nil && refused.status != 0 {
		return refused
	}
	if !acceptsEvents(r.Header) {
		return &refusal{status: http.StatusNotAcceptable, code: graph.CodeBadRequest,
			message: "a subscription requires a stream: send Accept: " + mediaEvents +
				", or use a WebSocket with the subprotocol " + subprotocol}
	}
	leave, full := t.streams.sockets.enter(of.party.Viewer)
	if full != nil {
		return full
	}
	defer leave()
	ctx, s, done := t.stream(r)
	defer done()
	s.viewer = of.viewer
	w = uncompressed(w) // sends small events, each immediately
	client := http.NewResponseController(w)
	_ = client.SetReadDeadline(time.Time{}) // the recorders of tests have none
	header := w.Header()
	header.Set("Content-Type", mediaEvents+"; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // proxies pass on each event immediately
	to := &eventStream{session: s, to: w, client: client}
	if to.comment() != nil {
		return nil
	}
	if refused != nil {
		_ = s.refuseOn(ctx, to, refused) // fails only if the stream has ended
		return nil
	}
	var aside sync.WaitGroup
	defer aside.Wait()
	running, stop := context.WithCancel(ctx)
	defer stop()
	aside.Go(func() { s.watch(running) })
	aside.Go(func() { to.beat(running) })
	if operation.Definition.Operation == ast.Subscription {
		_ = s.follow(ctx, of, operation, to) // fails only if the stream has ended; sayWhy follows
	} else {
		h, refused := t.gates.enter(ctx, of)
		if refused == nil {
			_ = s.runOne(ctx, operation, r.Header, h, to)
		} else {
			_ = s.refuseOn(ctx, to, refused)
		}
		h.end()
	}
	to.sayWhy(ctx)
	return nil
}

// eventStream is a receiver of the events of one request.
type eventStream struct {
	*session
	mu     sync.Mutex
	to     io.Writer
	client *http.ResponseController
	ended  bool
}

// write writes text. If the client does not take it, write ends the session.
func (e *eventStream) write(text []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return errClientGone
	}
	latest := e.latest(len(text))
	_ = e.client.SetWriteDeadline(latest) // the recorders of tests have none
	_, err := e.to.Write(text)
	if err == nil {
		err = e.client.Flush()
	}
	if err != nil {
		e.ended = true
		why := errClientGone
		if !time.Now().Before(latest) {
			why = errSlow
		}
		e.end(why)
		return why
	}
	return nil
}

// comment sends a comment, which clients ignore.
func (e *eventStream) comment() error { return e.write([]byte(":\n\n")) }

// beat sends a comment every heartbeat until the context ends.
func (e *eventStream) beat(ctx context.Context) {
	for pause.For(ctx, heartbeat) && e.comment() == nil {
	}
}

func (e *eventStream) next(answer *graph.Answer, extensions string, sent func([]byte, int)) error {
	text := whole("event: next\ndata: ", answer, extensions, "\n\n", sent)
	// stored JSON may have line breaks
	if body := text[len("event: next\n") : len(text)-2]; bytes.ContainsAny(body, "\r\n") {
		lines := bytes.ReplaceAll(bytes.ReplaceAll(body, []byte("\r"), []byte("\n")), []byte("\n"), []byte("\ndata: "))
		text = append(append([]byte("event: next\n"), lines...), "\n\n"...)
	}
	return e.write(text)
}

func (e *eventStream) refused(errs gqlerror.List) error {
	if err := e.next(&graph.Answer{Errors: errs}, "", func([]byte, int) {}); err != nil {
		return err
	}
	return e.complete()
}

func (e *eventStream) complete() error { return e.write([]byte("event: complete\ndata: \n\n")) }

// sayWhy tells the client if the stream ended because its token is no longer
// valid or has other permissions. A stream that ends for another reason ends
// without a message, which makes clients connect again.
func (e *eventStream) sayWhy(ctx context.Context) {
	if ctx.Err() == nil {
		return
	}
	if why := endingOf(ctx); why.code == closedForbidden {
		err := graph.ProtocolError(ctx, graph.CodeUnauthenticated, why.reason)
		_ = e.refused(gqlerror.List{err}) // the client may have gone
	}
}
