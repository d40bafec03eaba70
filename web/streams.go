package web

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/pause"
)

// openStreams are the streams of a server: Shutdown of net/http knows nothing of
// them.
type openStreams struct {
	stopping <-chan struct{} // closed when the server is to stop
	count    atomic.Int64
}

type openStreamsKey struct{}

// openStreamsOf returns the streams of the server that a request came to. A handler
// that nobody serves has some that nobody stops.
func openStreamsOf(ctx context.Context) *openStreams {
	if of, ok := ctx.Value(openStreamsKey{}).(*openStreams); ok {
		return of
	}
	return &openStreams{}
}

// wait waits until no stream is open, or returns an error when the context ends.
func (o *openStreams) wait(ctx context.Context) error {
	for o.count.Load() > 0 {
		if !pause.For(ctx, 10*time.Millisecond) {
			return fmt.Errorf("%d streams did not end in time", o.count.Load())
		}
	}
	return nil
}

// streams bound what is open for long: WebSockets and event streams, and the
// subscriptions on them.
type streams struct {
	sockets, subscriptions *tally
	perSocket              int
}

func newStreams(limits Limits) streams {
	return streams{
		sockets:       newTally(limits.Sockets, limits.ViewerSockets, "WebSockets and event streams"),
		subscriptions: newTally(limits.Subscriptions, limits.ViewerSubscriptions, "subscriptions"),
		perSocket:     limits.SocketOperations,
	}
}

// tally counts what is open, in all and of each party. 0 is no limit.
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

// enter counts one more of a party, until leave is called, or returns why there may
// be no more.
func (t *tally) enter(party string) (leave func(), refused *refusal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ofOne > 0 && t.of[party] >= t.ofOne {
		return nil, &refusal{status: http.StatusTooManyRequests, code: graph.CodeRateLimited, retryAfter: 5,
			message: fmt.Sprintf("you have too many %s open: you may have %d", t.what, t.ofOne)}
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

// The codes that a WebSocket is closed with. Those from 4400 on are of the
// graphql-transport-ws protocol; clients connect again after the others and 4403.
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

// isAboutViewer reports whether the credentials of the stream hold no longer.
func (e *ending) isAboutViewer() bool { return e.code == closedForbidden }

var (
	errClientGone = &ending{closedGoingAway, "the client has gone", "client"}
	errStopping   = &ending{closedGoingAway, "the server is stopping; connect again", "stopping"}
	errSlow       = &ending{closedTryAgain, "the client is too slow; connect again with the last cursor", "slow"}
	errExpired    = &ending{closedForbidden, "the token has expired or was revoked; connect again with another one", "token"}
	errRights     = &ending{closedForbidden, "the rights of the token have changed; connect again", "rights"}
)

// endings are why streams end, for metrics: what the client does, what it asks for
// wrongly or too much of, and what it is told.
var endings = []string{"client", "stopping", "slow", "token", "rights", "protocol", "init", "limit"}

// session is a WebSocket or an event stream: who is at its other end, and until
// when.
type session struct {
	*transport
	header http.Header // with the credentials
	viewer access.Viewer
	end    context.CancelCauseFunc
}

// stream begins a session of a request, in whose context all of it happens. It ends
// with the request, with the server, or by session.end; the caller calls done.
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

// endingOf returns why the stream of a context ended.
func endingOf(ctx context.Context) *ending {
	if why, ok := context.Cause(ctx).(*ending); ok {
		return why
	}
	return errClientGone
}

// betweenJudgements is how long a stream is open without a look at its token. It is
// looked at for each event besides.
const betweenJudgements = 5 * time.Second

// watch judges the token of the session every now and then, until the context ends.
func (s *session) watch(ctx context.Context) {
	for pause.For(ctx, betweenJudgements) {
		s.judge(ctx)
	}
}

// judge looks whether the token still stands for the same viewer with the same
// rights, and ends the session where it does not. While that cannot be known, it
// waits. It reports whether the session goes on.
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
