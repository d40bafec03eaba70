package placementdb

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"github.com/cadastre-dev/cadastre/internal/pause"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
)

// Intervals of a follower.
const (
	// idlePoll is the interval at which a listening server catches up although
	// it gets no notification, since one can be lost. Including the random
	// delay it is less than StaleAfter.
	idlePoll = 20 * time.Second
	// poll is the interval for a server that cannot listen, after a failed
	// catch up, and while the outcome of a COMMIT is unknown.
	poll = 500 * time.Millisecond
	// StaleAfter is the age of the world beyond which the server is not ready.
	StaleAfter = 30 * time.Second
	// coalesce is how long commits are collected for one notification.
	coalesce = 20 * time.Millisecond
	// pingEvery is the interval for pings on the listening connection. Without
	// an answer for twice as long, the connection is replaced.
	pingEvery = 5 * time.Second
	// listenWithin limits how long a starting server waits until it can listen.
	listenWithin = 5 * time.Second
)

// follower updates the world with commits of other processes to the same
// PostgreSQL database. A notification only says that there is a commit. Usually
// it is sent in a separate transaction after the commit.
type follower struct {
	store    *PlacementStore
	name     string // identifies this process in notifications
	channel  string
	listener *pq.Listener
	dialer   listenDialer

	listening atomic.Bool
	caughtUp  atomic.Int64 // when the last successful catch up began, in Unix nanoseconds

	catching  chan struct{} // held during a catch up
	uncertain struct {
		sync.Mutex
		of []changelog.TransactionID // whose COMMIT got no answer
	}

	woken     chan struct{}
	committed chan struct{}

	stop       context.CancelFunc
	running    sync.WaitGroup
	subscribed chan struct{} // closed when listening has succeeded or failed
}

// listenDialer dials the listening connection, and can end it.
type listenDialer struct {
	sqldb.Dialer
	last atomic.Pointer[net.Conn]
}

// DialContext dials a connection.
func (d *listenDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.Dialer.DialContext(ctx, network, address)
	if err == nil {
		d.last.Store(&conn)
	}
	return conn, err
}

// hangUp ends the connection. The driver then opens another one.
func (d *listenDialer) hangUp() {
	if conn := d.last.Load(); conn != nil {
		_ = (*conn).Close()
	}
}

// follow subscribes to the commits of other processes. Call it before the world
// is loaded, and start afterwards.
func (s *PlacementStore) follow(ctx context.Context, address string) (*follower, error) {
	f := &follower{store: s, name: uuid.NewString()[:8], catching: make(chan struct{}, 1),
		woken: make(chan struct{}, 1), committed: make(chan struct{}, 1), subscribed: make(chan struct{}),
		dialer: listenDialer{Dialer: sqldb.Dialer{Limit: 2 * pingEvery}}}
	var schema string
	if err := s.Query(ctx, s.Pool, `SELECT current_schema()`, func(rows *sql.Rows) error {
		return rows.Scan(&schema)
	}); err != nil {
		return nil, fmt.Errorf("look up the database schema: %w", err)
	}
	f.channel = "cadastre_placement_" + schema
	f.listener = pq.NewDialListener(&f.dialer, address, 50*time.Millisecond, 5*time.Second, f.connection)
	go f.subscribe(ctx)
	select {
	case <-f.subscribed:
	case <-time.After(listenWithin):
		s.Log.WarnContext(ctx, "cannot listen for changes of other servers yet, polling instead")
	}
	return f, nil
}

// subscribe starts listening. It waits until there is a connection, or until
// the listener is closed.
func (f *follower) subscribe(ctx context.Context) {
	defer close(f.subscribed)
	if err := f.listener.Listen(f.channel); err != nil {
		f.store.Log.WarnContext(ctx, "cannot listen for changes of other servers, polling instead", "error", err)
		return
	}
	f.notify()
	f.wake()
}

// hear reports whether this process sent the notification n. If so, it notes
// whether the connection listens to the server of the world. Only the arrival
// proves this: a pooler may accept LISTEN and deliver nothing.
func (f *follower) hear(n *pq.Notification) (own bool) {
	if n == nil || !strings.HasPrefix(n.Extra, f.name) {
		return false
	}
	f.listening.Store(n.Extra == fmt.Sprint(f.name, f.store.cache.UpTo().Server))
	return true
}

// connection handles events of the listening connection. The driver resumes
// listening on a new connection.
func (f *follower) connection(event pq.ListenerEventType, err error) {
	switch event {
	case pq.ListenerEventReconnected:
		f.notify()
		f.wake()
	case pq.ListenerEventDisconnected:
		f.listening.Store(false)
		f.store.Log.Warn("the connection that listens for changes of other servers is lost", "error", err)
		f.wake()
	}
}

// start starts following, from a world whose loading began at the given time.
func (f *follower) start(loaded time.Time) {
	f.caughtUp.Store(loaded.UnixNano())
	ctx, cancel := context.WithCancel(context.Background())
	f.stop = cancel
	f.running.Go(func() { f.run(ctx) })
	f.running.Go(func() { f.announce(ctx) })
	f.running.Go(func() { f.ping(ctx) })
	f.wake()
}

// ping pings the listening connection. If no answer comes, the connection
// fails, and the driver calls the method connection. Until a notification of
// this process has arrived on the connection, ping has one sent each time.
func (f *follower) ping(ctx context.Context) {
	warned := false
	for pause.For(ctx, pingEvery); ctx.Err() == nil; pause.For(ctx, pingEvery) {
		_ = f.listener.Ping()
		if f.listening.Load() {
			continue
		}
		f.notify()
		if !warned {
			f.store.Log.WarnContext(ctx,
				"the database delivers no notifications of other servers, polling every "+poll.String()+
					"; a pooler needs the setting database-listen")
			warned = true
		}
	}
}

// close stops following.
func (f *follower) close() error {
	if f.stop != nil {
		f.stop()
	}
	f.running.Wait()
	err := f.listener.Close()
	<-f.subscribed
	return err
}

// wake makes the follower catch up soon.
func (f *follower) wake() { signal(f.woken) }

// notify makes the follower notify the other servers of a commit soon.
func (f *follower) notify() { signal(f.committed) }

func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// run catches up after each notification of another process, after wake, and at
// intervals.
func (f *follower) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case n := <-f.listener.NotificationChannel():
			if f.hear(n) {
				continue // the world has the commits of this process already
			}
			if n == nil { // reconnected: the random delay spreads the servers
				pause.For(ctx, rand.N(200*time.Millisecond))
			}
		case <-f.woken:
		case <-timer.C:
		}
		f.drain()
		err := f.catchUpAll(ctx)
		if err != nil && ctx.Err() == nil {
			f.store.Log.WarnContext(ctx, "cannot read changes of other servers, will retry", "error", err)
		}
		wait := pollAfter(f.listening.Load(), err == nil && !f.isUncertain())
		timer.Reset(wait + rand.N(wait/4))
	}
}

// pollAfter returns how long a server waits for a notification before it polls.
func pollAfter(listening, complete bool) time.Duration {
	if listening && complete {
		return idlePoll
	}
	return poll
}

// drain drops pending notifications: one catch up serves all.
func (f *follower) drain() {
	for {
		select {
		case n := <-f.listener.NotificationChannel():
			f.hear(n)
		case <-f.woken:
		default:
			return
		}
	}
}

// isUncertain reports whether any transaction has an unknown outcome.
func (f *follower) isUncertain() bool {
	f.uncertain.Lock()
	defer f.uncertain.Unlock()
	return len(f.uncertain.of) > 0
}

// announce sends notifications of commits to other processes, one for several
// commits. Before it returns, it sends a pending one.
func (f *follower) announce(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-f.committed:
			f.tell(ctx)
		}
	}
	select {
	case <-f.committed:
		f.tell(context.Background())
	default:
	}
}

// tell sends a notification, and retries later if that fails.
func (f *follower) tell(ctx context.Context) {
	pause.For(ctx, coalesce)
	select {
	case <-f.committed:
	default:
	}
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), catchUpWithin)
	defer cancel()
	if err := f.store.Execute(sending, f.store.Pool, `SELECT pg_notify($1, $2::text || `+changelog.ServerRun+`)`,
		f.channel, f.name); err != nil {
		f.store.Log.WarnContext(ctx, "cannot notify other servers of a commit, will retry", "error", err)
		pause.For(ctx, poll)
		f.notify()
	}
}

// age returns the possible age of the world.
func (f *follower) age(now time.Time) time.Duration {
	return ageOf(now.Sub(time.Unix(0, f.caughtUp.Load())), f.listening.Load())
}

// ageOf returns the possible age of a world that was complete the given time
// ago. It is 0 while the process listens and the last catch up is recent
// enough.
func ageOf(since time.Duration, listening bool) time.Duration {
	if listening && since < StaleAfter {
		return 0
	}
	return since
}
