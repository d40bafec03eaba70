package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/pause"
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
