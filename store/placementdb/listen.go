package placementdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lib/pq"

	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// How a follower keeps time.
const (
	// idleLook is how long a server that hears of nothing waits before it looks.
	idleLook = 45 * time.Second
	// deafLook is how long one waits that cannot listen.
	deafLook = 500 * time.Millisecond
	// StaleAfter is how old the world may be before the server is not ready.
	StaleAfter = 30 * time.Second
	// reloadAfter is how old it may be before it is loaded anew; changes are
	// kept for keepChanges, which is longer.
	reloadAfter = 5 * time.Minute
	// coalesce is how long commits are gathered before others are told.
	coalesce = 20 * time.Millisecond
	// listenWithin is how long a starting server waits for its ears.
	listenWithin = 5 * time.Second
)

// follower keeps the world up to what other processes commit to the same
// PostgreSQL database. It reads the log of changes from the oldest transaction
// that ran at its last look on, because transactions do not commit in
// the order of their numbers, and applies whole states, of which the world
// ignores older ones. A notification says only that there is something to see;
// it is sent in a transaction of its own, after the commit.
type follower struct {
	store    *PlacementStore
	name     string // tells this process from others in notifications
	channel  string
	listener *pq.Listener
	hearing  atomic.Bool  // the listening connection is up
	caughtUp atomic.Int64 // when the world was last known to be complete, in Unix nanoseconds

	looking sync.Mutex // held for a look; guards since
	since   int64      // the oldest transaction that ran at the last look

	look chan struct{}
	tell chan struct{}

	stop    context.CancelFunc
	running sync.WaitGroup
}

// follow subscribes to what other processes commit. The world is loaded after
// this, and before start.
func (s *PlacementStore) follow(ctx context.Context, address string) (*follower, error) {
	f := &follower{store: s, name: newUUID()[:8], look: make(chan struct{}, 1), tell: make(chan struct{}, 1)}
	var schema string
	if err := s.Query(ctx, s.Pool, `SELECT current_schema()`, func(rows *sql.Rows) error { return rows.Scan(&schema) }); err != nil {
		return nil, fmt.Errorf("look up the database schema: %w", err)
	}
	f.channel = "cadastre_placement_" + schema
	f.listener = pq.NewListener(address, 50*time.Millisecond, 5*time.Second, f.connection)
	listening := make(chan error, 1)
	go func() { listening <- f.listener.Listen(f.channel) }()
	select {
	case err := <-listening:
		if err != nil {
			s.Log.WarnContext(ctx, "cannot listen to other servers, will look often instead", "error", err)
			f.hearing.Store(false)
		}
	case <-time.After(listenWithin):
		s.Log.WarnContext(ctx, "cannot listen to other servers yet, will look often instead")
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), f.listener.Close())
	}
	return f, nil
}

// connection hears how the listening connection fares.
func (f *follower) connection(event pq.ListenerEventType, err error) {
	switch event {
	case pq.ListenerEventConnected, pq.ListenerEventReconnected:
		f.hearing.Store(true)
		f.wake()
	case pq.ListenerEventDisconnected:
		f.hearing.Store(false)
		f.store.Log.Warn("the connection that listens to other servers is lost", "error", err)
		f.wake()
	}
}

// start begins to follow, from the transaction that was the oldest when the
// world was loaded.
func (f *follower) start(since int64) {
	f.since = since
	f.caughtUp.Store(time.Now().UnixNano())
	ctx, cancel := context.WithCancel(context.Background())
	f.stop = cancel
	f.running.Go(func() { f.run(ctx) })
	f.running.Go(func() { f.announce(ctx) })
	f.wake()
}

// close ends following.
func (f *follower) close() error {
	if f.stop != nil {
		f.stop()
	}
	f.running.Wait()
	return f.listener.Close()
}

// wake makes the follower look soon.
func (f *follower) wake() {
	select {
	case f.look <- struct{}{}:
	default:
	}
}

// committed makes other processes look soon.
func (f *follower) committed() {
	select {
	case f.tell <- struct{}{}:
	default:
	}
}

// run looks when there is news, and once in a while.
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
				sqldb.Pause(ctx, rand.N(200*time.Millisecond))
			}
		case <-f.look:
		case <-timer.C:
		}
		f.drain()
		f.looking.Lock()
		err := f.catchUp(ctx)
		f.looking.Unlock()
		if err != nil && ctx.Err() == nil {
			f.store.Log.WarnContext(ctx, "cannot follow other servers at the moment", "error", err)
		}
		wait := idleLook
		if !f.hearing.Load() || time.Since(time.Unix(0, f.caughtUp.Load())) > deafLook {
			wait = deafLook
		}
		timer.Reset(wait + rand.N(wait/4))
	}
}

// drain drops further calls to look: one look serves all.
func (f *follower) drain() {
	for {
		select {
		case <-f.listener.NotificationChannel():
		case <-f.look:
		default:
			return
		}
	}
}

// announce tells other processes of commits, those of a moment together.
func (f *follower) announce(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.tell:
		}
		sqldb.Pause(ctx, coalesce)
		select {
		case <-f.tell:
		default:
		}
		err := f.store.Execute(ctx, f.store.Pool, `SELECT pg_notify($1, $2)`, f.channel, f.name)
		if err != nil && ctx.Err() == nil {
			f.store.Log.WarnContext(ctx, "cannot tell other servers of a commit; they will find it when they look", "error", err)
		}
	}
}

// bring makes the world have news of this process that builds on commits which
// it lacks: one look brings all of them at once.
func (f *follower) bring(ctx context.Context, n news) {
	f.looking.Lock()
	defer f.looking.Unlock()
	if f.store.resident.follow(n) {
		return // another look brought what was lacking
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reconcileWithin)
	defer cancel()
	if err := f.catchUp(ctx); err != nil {
		f.store.Log.WarnContext(ctx, "cannot follow other servers at the moment", "error", err)
	}
	f.store.resident.apply(n)
}

// catchUp applies what was committed since the last look.
func (f *follower) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sqldb.StatementTimeout)
	defer cancel()
	started := time.Now()
	if started.Sub(time.Unix(0, f.caughtUp.Load())) > reloadAfter {
		since, err := f.store.loadWorld(ctx)
		if err != nil {
			return err
		}
		f.since = since
		f.caughtUp.Store(started.UnixNano())
		return nil
	}
	since, err := f.store.applyChanges(ctx, f.since)
	if err != nil {
		return err
	}
	f.since = since
	f.caughtUp.Store(started.UnixNano())
	return nil
}

// age is how old the world may be: nothing while news is heard as it happens.
func (f *follower) age() time.Duration {
	age := time.Since(time.Unix(0, f.caughtUp.Load()))
	if f.hearing.Load() && age < idleLook+idleLook/2 {
		return 0
	}
	return age
}

// WorldAge is how old the placement world may be: 0 while this process is told
// of every commit as it happens, else the time since it last looked with
// success.
func (s *PlacementStore) WorldAge() time.Duration {
	if s.follower == nil {
		return 0
	}
	return s.follower.age()
}
