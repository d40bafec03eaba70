package placementdb

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"github.com/cadastre-dev/cadastre/internal/pause"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// How a follower keeps time.
const (
	// idlePoll is how long a server waits that is told of nothing until it looks
	// all the same: a notification can be lost. With what is added at random it is
	// less than StaleAfter.
	idlePoll = 20 * time.Second
	// poll is how long one waits that cannot listen, or has looked in vain.
	poll = 500 * time.Millisecond
	// StaleAfter is how old the world may be before the server is not ready.
	StaleAfter = 30 * time.Second
	// coalesce is how long commits are gathered before others are told.
	coalesce = 20 * time.Millisecond
	// pingEvery is how often the connection that listens is asked for a sign of
	// life. Without one for twice as long it is made anew.
	pingEvery = 5 * time.Second
	// listenWithin is how long a starting server waits until it can listen.
	listenWithin = 5 * time.Second
)

// follower keeps the world up to what other processes commit to the same
// PostgreSQL database. A notification says only that there is something to see;
// it is sent in a transaction of its own, after the commit.
type follower struct {
	store    *PlacementStore
	name     string // tells this process from others in notifications
	channel  string
	listener *pq.Listener

	listening atomic.Bool
	caughtUp  atomic.Int64 // when the last catch up began that ended well, in Unix nanoseconds

	catching  chan struct{} // held for a catch up
	uncertain struct {
		sync.Mutex
		of []sqldb.TransactionID // whose COMMIT had no answer
	}

	woken     chan struct{}
	committed chan struct{}

	stop       context.CancelFunc
	running    sync.WaitGroup
	subscribed chan struct{} // closed when it is known whether this process can listen
}

// follow subscribes to what other processes commit. The world is loaded after
// this, and before start.
func (s *PlacementStore) follow(ctx context.Context, address string) (*follower, error) {
	f := &follower{store: s, name: uuid.NewString()[:8], catching: make(chan struct{}, 1),
		woken: make(chan struct{}, 1), committed: make(chan struct{}, 1), subscribed: make(chan struct{})}
	var schema string
	if err := s.Query(ctx, s.Pool, `SELECT current_schema()`, func(rows *sql.Rows) error { return rows.Scan(&schema) }); err != nil {
		return nil, fmt.Errorf("look up the database schema: %w", err)
	}
	f.channel = "cadastre_placement_" + schema
	f.listener = pq.NewDialListener(sqldb.Dialer{Limit: 2 * pingEvery}, address, 50*time.Millisecond, 5*time.Second, f.connection)
	go f.subscribe(ctx)
	select {
	case <-f.subscribed:
	case <-time.After(listenWithin):
		s.Log.WarnContext(ctx, "cannot listen to other servers yet, will look often instead")
	}
	return f, nil
}

// subscribe begins to listen. It waits until there is a connection, or the
// listener is closed.
func (f *follower) subscribe(ctx context.Context) {
	defer close(f.subscribed)
	if err := f.listener.Listen(f.channel); err != nil {
		f.store.Log.WarnContext(ctx, "cannot listen to other servers, will look often instead", "error", err)
		return
	}
	f.listening.Store(true)
	f.wake()
}

// connection is told how the listening connection fares. A new one listens
// already.
func (f *follower) connection(event pq.ListenerEventType, err error) {
	switch event {
	case pq.ListenerEventReconnected:
		f.listening.Store(true)
		f.wake()
	case pq.ListenerEventDisconnected:
		f.listening.Store(false)
		f.store.Log.Warn("the connection that listens to other servers is lost", "error", err)
		f.wake()
	}
}

// start begins to follow, from a world whose loading began at a time.
func (f *follower) start(loaded time.Time) {
	f.caughtUp.Store(loaded.UnixNano())
	ctx, cancel := context.WithCancel(context.Background())
	f.stop = cancel
	f.running.Go(func() { f.run(ctx) })
	f.running.Go(func() { f.announce(ctx) })
	f.running.Go(func() { f.ping(ctx) })
	f.wake()
}

// ping has the connection that listens say something. Where nothing arrives the
// connection fails, which connection is told.
func (f *follower) ping(ctx context.Context) {
	for pause.For(ctx, pingEvery); ctx.Err() == nil; pause.For(ctx, pingEvery) {
		_ = f.listener.Ping()
	}
}

// close ends following.
func (f *follower) close() error {
	if f.stop != nil {
		f.stop()
	}
	f.running.Wait()
	err := f.listener.Close()
	<-f.subscribed
	return err
}

// wake makes the follower look soon.
func (f *follower) wake() { signal(f.woken) }

// notify has the other servers told of a commit.
func (f *follower) notify() { signal(f.committed) }

func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// run catches up when there is something to see, and once in a while.
func (f *follower) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case n := <-f.listener.NotificationChannel():
			if n != nil && n.Extra == f.name {
				continue // this process knows what it committed
			}
			if n == nil { // connected again: not all servers at once
				pause.For(ctx, rand.N(200*time.Millisecond))
			}
		case <-f.woken:
		case <-timer.C:
		}
		f.drain()
		err := f.catchUpAll(ctx)
		if err != nil && ctx.Err() == nil {
			f.store.Log.WarnContext(ctx, "cannot follow other servers at the moment", "error", err)
		}
		wait := pollAfter(f.listening.Load(), err == nil && !f.isUncertain())
		timer.Reset(wait + rand.N(wait/4))
	}
}

// pollAfter returns how long a server waits that is told of nothing.
func pollAfter(listening, complete bool) time.Duration {
	if listening && complete {
		return idlePoll
	}
	return poll
}

// drain drops further calls to look: one look serves all.
func (f *follower) drain() {
	for {
		select {
		case <-f.listener.NotificationChannel():
		case <-f.woken:
		default:
			return
		}
	}
}

// isUncertain reports whether there are transactions of which it is not known
// whether they happened.
func (f *follower) isUncertain() bool {
	f.uncertain.Lock()
	defer f.uncertain.Unlock()
	return len(f.uncertain.of) > 0
}

// announce tells other processes of commits, those of a moment together, and of
// the last ones before it ends.
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

// tell sends a notification. Where that cannot be done, it is tried again.
func (f *follower) tell(ctx context.Context) {
	pause.For(ctx, coalesce)
	select {
	case <-f.committed:
	default:
	}
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), catchUpWithin)
	defer cancel()
	if err := f.store.Execute(sending, f.store.Pool, `SELECT pg_notify($1, $2)`, f.channel, f.name); err != nil {
		f.store.Log.WarnContext(ctx, "cannot tell other servers of a commit, will try again", "error", err)
		pause.For(ctx, poll)
		f.notify()
	}
}

// age returns how old the world may be.
func (f *follower) age(now time.Time) time.Duration {
	return ageOf(now.Sub(time.Unix(0, f.caughtUp.Load())), f.listening.Load())
}

// ageOf returns how old a world may be that was complete so long ago: not at all
// while the process is told of commits as they happen, and looked when it had to.
func ageOf(since time.Duration, listening bool) time.Duration {
	if listening && since < StaleAfter {
		return 0
	}
	return since
}
