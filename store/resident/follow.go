package resident

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cadastre-dev/cadastre/internal/pause"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

const (
	// caughtUpWithin is how long a writer waits until its commit is in memory.
	caughtUpWithin = 2 * time.Second
	// triedAgain is how long after a failure a value is loaded again beside requests.
	triedAgain = 10 * time.Second
)

// Others are the other servers of a database.
type Others struct {
	// Tell tells them that there is something to see.
	Tell func()
	// Reconcile finds out what became of a transaction whose COMMIT had no answer,
	// has the process catch up, and tells them.
	Reconcile func(sqldb.TransactionID)
}

// FollowCommits has each writer of this process that changes something of the
// domain wait until the value shows its commit, and others told. It is called once,
// before anything is written.
func (c *Copy[T]) FollowCommits() { c.db.FollowKinds(c.followCommit, c.domain.Kinds...) }

// Tells says who the other servers are. It is called before the first Load.
func (c *Copy[T]) Tells(others Others) { c.others = others }

// CatchUp brings the value forward to all commits before the call.
func (c *Copy[T]) CatchUp(ctx context.Context) error { return c.followTo(ctx, sqldb.TransactionID{}) }

// Show brings the value forward until it shows what some transactions changed that
// are committed; for nil, all that were before the call.
func (c *Copy[T]) Show(ctx context.Context, transactions []sqldb.TransactionID) error {
	if transactions == nil {
		return c.CatchUp(ctx)
	}
	for _, transaction := range transactions {
		if err := c.followTo(ctx, transaction); err != nil {
			return err
		}
	}
	return nil
}

// Exclusively runs a function while no catch up runs.
func (c *Copy[T]) Exclusively(ctx context.Context, run func() error) error {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.turn }()
	return run()
}

// followTo brings the value forward to all commits, unless it shows a
// transaction already, or does once no other catch up runs: one serves all that
// wait.
func (c *Copy[T]) followTo(ctx context.Context, transaction sqldb.TransactionID) error {
	if c.current.Load().shows(transaction) {
		return nil
	}
	return c.Exclusively(ctx, func() error {
		if c.current.Load().shows(transaction) {
			return nil
		}
		return c.Forward(ctx)
	})
}

// Forward is CatchUp for a caller under Exclusively.
func (c *Copy[T]) Forward(ctx context.Context) error {
	held := c.current.Load()
	if held.Value == nil {
		return nil
	}
	err := c.db.ReadAt(ctx, func(on sqldb.Conn, _ sqldb.Snapshot) error {
		next, err := c.next(ctx, on, held, 0)
		if err == nil {
			c.place(next)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("bring the %s up to what is committed: %w", c.domain.Name, err)
	}
	return nil
}

// place puts the state of a catch up in place, unless a reading left one of a later
// snapshot of the same run of the server meanwhile.
func (c *Copy[T]) place(next *State[T]) {
	c.placing.Lock()
	defer c.placing.Unlock()
	held := c.current.Load()
	if c.tooBig.Load() {
		return
	}
	if held.Value == nil || next.UpTo.Server != held.UpTo.Server || held.UpTo.IsBefore(next.UpTo) {
		c.current.Store(next)
	}
}

// followCommit brings the value forward to a commit of this process, and has others
// told. If no catch up succeeds within caughtUpWithin, the writer gets the error; the
// next catch up brings the commit.
func (c *Copy[T]) followCommit(ctx context.Context, transaction sqldb.TransactionID, outcome sqldb.Outcome) error {
	if outcome == sqldb.Uncertain && c.others.Reconcile != nil {
		c.others.Reconcile(transaction)
		return nil
	}
	if c.others.Tell != nil {
		defer c.others.Tell()
	}
	ctx, cancel := context.WithTimeout(sqldb.Uncounted(context.WithoutCancel(ctx)), caughtUpWithin)
	defer cancel()
	for {
		err := c.followTo(ctx, transaction)
		if err == nil {
			return nil
		}
		c.db.Log.WarnContext(ctx, "cannot bring the "+c.domain.Name+" up to a commit, will try again", "error", err)
		if !pause.For(ctx, caughtUpWithin/20) {
			return err
		}
	}
}

// beside is what runs beside requests.
type beside struct {
	mu        sync.Mutex
	running   sync.WaitGroup
	isRunning bool
	isClosed  bool
	notBefore time.Time
	cancel    context.CancelFunc
}

// Soon has the value loaded or brought forward beside requests, unless that is
// going on or failed just now, or the value takes too much memory.
func (c *Copy[T]) Soon() {
	b := &c.beside
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.tooBig.Load() || b.isRunning || b.isClosed || time.Now().Before(b.notBefore) {
		return
	}
	b.isRunning = true
	ctx, cancel := context.WithCancel(sqldb.Uncounted(context.Background()))
	b.cancel = cancel
	b.running.Go(func() {
		defer cancel()
		err := c.bring(ctx)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.isRunning = false
		if err != nil && ctx.Err() == nil {
			b.notBefore = time.Now().Add(triedAgain)
			c.db.Log.WarnContext(ctx, "the "+c.domain.Name+" are read from the database: they could not be brought into memory, will try again", "error", err)
		}
	})
}

// bring brings the value forward, however much has changed, and loads one where
// there is none.
func (c *Copy[T]) bring(ctx context.Context) error {
	return c.Exclusively(ctx, func() error {
		if c.Held() == nil {
			return c.reload(ctx)
		}
		return c.Forward(ctx)
	})
}

// close ends what runs beside requests.
func (b *beside) close() {
	b.mu.Lock()
	b.isClosed = true
	if b.cancel != nil {
		b.cancel()
	}
	b.mu.Unlock()
	b.running.Wait()
}
