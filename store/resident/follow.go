package resident

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cadastre-dev/cadastre/internal/pause"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
)

const (
	// retriedFor is the time for which a writer retries failed catch ups. A catch
	// up that runs may take longer, up to the deadline of the request.
	retriedFor = 2 * time.Second
	// triedAgain is the interval between failed attempts to load a value in the
	// background.
	triedAgain = 10 * time.Second
)

// Others notifies the other servers of a database.
type Others struct {
	// Tell notifies them of a commit.
	Tell func()
	// Reconcile finds the outcome of a transaction whose COMMIT got no answer.
	// It then makes this process catch up, and notifies the other servers.
	Reconcile func(changelog.TransactionID)
}

// FollowCommits makes each writer of this process that changes the domain wait,
// after its commit, until the value includes it; see followCommit for failures.
// The writer then notifies other servers. Call FollowCommits before the first write.
func (c *Copy[T]) FollowCommits() { c.db.FollowKinds(c.followCommit, c.domain.Kinds...) }

// Tells sets how to notify other servers. Call it before the first Load.
func (c *Copy[T]) Tells(others Others) { c.others = others }

// CatchUp updates the value to all commits from before the call. It does nothing
// if no value is kept.
func (c *Copy[T]) CatchUp(ctx context.Context) error {
	return c.followTo(ctx, changelog.TransactionID{})
}

// Show updates the value until it has the given committed transactions; nil
// means all that committed before the call.
func (c *Copy[T]) Show(ctx context.Context, transactions []changelog.TransactionID) error {
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

// Exclusively runs a function while no catch up runs, and returns its error. If
// ctx ends before, it returns the error of ctx and runs nothing.
func (c *Copy[T]) Exclusively(ctx context.Context, run func() error) error {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.turn }()
	return run()
}

// followTo updates the value to all commits, unless it has the transaction
// already. It checks again once no other catch up runs, since one catch up
// serves all waiting callers.
func (c *Copy[T]) followTo(ctx context.Context, transaction changelog.TransactionID) error {
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
	err := c.db.ReadAt(ctx, func(on sqldb.Conn, _ changelog.Snapshot) error {
		next, err := c.next(ctx, on, held, 0)
		if err == nil {
			c.place(next)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("update the %s in memory to the last commit: %w", c.domain.Name, err)
	}
	return nil
}

// place stores the state of a catch up, unless a Reading has stored one with a
// later snapshot, or the value is too big.
func (c *Copy[T]) place(next *State[T]) {
	c.placing.Lock()
	defer c.placing.Unlock()
	held := c.current.Load()
	if c.tooBig.Load() {
		return
	}
	later := next.UpTo.Server != held.UpTo.Server && !next.UpTo.IsBefore(held.UpTo) || held.UpTo.IsBefore(next.UpTo)
	if held.Value == nil || later {
		c.current.Store(next)
	}
}

// followCommit updates the value to a commit of this process, and notifies
// other servers. It leaves both to Others.Reconcile if the outcome of the commit
// is uncertain. If catch ups fail for retriedFor, or the deadline of the request
// passes, the writer gets the error, and the next catch up brings the commit.
func (c *Copy[T]) followCommit(ctx context.Context, transaction changelog.TransactionID, outcome sqldb.Outcome) error {
	if outcome == sqldb.Uncertain && c.others.Reconcile != nil {
		c.others.Reconcile(transaction)
		return nil
	}
	if c.others.Tell != nil {
		defer c.others.Tell()
	}
	ctx, cancel := sqldb.AfterCommit(sqldb.Uncounted(ctx), retriedFor)
	defer cancel()
	for began := time.Now(); ; {
		err := c.followTo(ctx, transaction)
		if err == nil {
			return nil
		}
		c.db.Log.WarnContext(ctx, "cannot update the "+c.domain.Name+" in memory to a commit, will retry", "error", err)
		if !pause.For(ctx, retriedFor/20) || time.Since(began) > retriedFor {
			return err
		}
	}
}

// beside is the state of the background update.
type beside struct {
	mu        sync.Mutex
	running   sync.WaitGroup
	isRunning bool
	isClosed  bool
	notBefore time.Time
	cancel    context.CancelFunc
}

// Soon starts loading or updating the value in the background. It does nothing
// if such an update is running or failed recently, if the value is too big, or
// after close.
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
			c.db.Log.WarnContext(ctx,
				"the "+c.domain.Name+" cannot be loaded into memory and are read from the database, will retry",
				"error", err)
		}
	})
}

// bring updates the value, regardless of the number of changes, or loads it if
// there is none.
func (c *Copy[T]) bring(ctx context.Context) error {
	return c.Exclusively(ctx, func() error {
		if c.Held() == nil {
			return c.reload(ctx)
		}
		return c.Forward(ctx)
	})
}

// close cancels the background update and waits for its end.
func (b *beside) close() {
	b.mu.Lock()
	b.isClosed = true
	if b.cancel != nil {
		b.cancel()
	}
	b.mu.Unlock()
	b.running.Wait()
}
