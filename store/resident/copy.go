package resident

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
)

// fewTransactions is the number of transactions without an effect on the value
// that each reader may read again. Above it, the value of the process moves to
// the reader's snapshot.
const fewTransactions = 32

// Domain describes the value of a Copy. All statements on a connection passed
// to its functions see one snapshot.
type Domain[T any] struct {
	// Name names the value in the server's log, in the plural.
	Name string
	// Kinds are the kinds of things in the change log that affect the value.
	Kinds []string
	// Load reads the value. It returns TooBig if the value takes more than most
	// bytes.
	Load func(ctx context.Context, on sqldb.Conn, most int64) (*T, error)
	// Differs returns the notes of things that differ between value and
	// database. It is optional, for a domain whose change log also notes
	// unchanged things.
	Differs func(ctx context.Context, on sqldb.Conn, value *T, notes []changelog.Note) ([]changelog.Note, error)
	// Next returns the value after the noted changes, which it reads. It does
	// not modify value.
	Next func(ctx context.Context, on sqldb.Conn, value *T, notes []changelog.Note) (*T, error)
	// Size returns the approximate size of the value in bytes.
	Size func(value *T) int64
	// Most is the maximum size of the value in bytes.
	Most int64
	// Beside, unless 0, makes the value load in the background, because loading
	// takes longer than a request may wait. A Reading applies at most this many
	// notes. No writer waits, because every reader reads at one instant.
	Beside int
}

// TooBig is the error of Load for a value above the maximum size. Its value is
// the number of bytes counted.
type TooBig int64

// Error returns a message with the size.
func (t TooBig) Error() string { return fmt.Sprintf("the value takes %d bytes or more", int64(t)) }

// State is an immutable value with its snapshot.
type State[T any] struct {
	Value *T // nil if none is kept
	UpTo  changelog.Snapshot
}

// shows reports whether the snapshot sees a transaction's commit. It is false
// for the zero TransactionID.
func (s *State[T]) shows(transaction changelog.TransactionID) bool {
	return transaction.Number > 0 && s.UpTo.Contains(transaction)
}

// Copy keeps the value of a domain in memory.
type Copy[T any] struct {
	db       *sqldb.DB
	domain   Domain[T]
	current  atomic.Pointer[State[T]]
	resident *sqldb.Resident
	others   Others
	turn     chan struct{} // held during a catch up
	placing  sync.Mutex
	tooBig   atomic.Bool
	beside   beside
}

// New returns a Copy without a value. Load or Soon loads it.
func New[T any](db *sqldb.DB, domain Domain[T]) *Copy[T] {
	c := &Copy[T]{db: db, domain: domain, turn: make(chan struct{}, 1)}
	c.current.Store(&State[T]{})
	c.resident = &sqldb.Resident{Held: func() any { return c.current.Load() }, At: c.atInstant}
	db.AddResident(c.resident)
	if domain.Beside > 0 {
		db.UntilClose(c.beside.close)
	}
	return c
}

// State returns the current value of the process with its snapshot.
func (c *Copy[T]) State() *State[T] { return c.current.Load() }

// Held returns the current value of the process, nil if none is kept.
func (c *Copy[T]) Held() *T { return c.current.Load().Value }

// Of returns the value as the Reading of the context sees it. It returns nil if
// none is kept, and then makes the Reading see one instant (ReadAtOnce).
func (c *Copy[T]) Of(ctx context.Context) (*T, error) {
	state, err := c.db.ResidentOf(ctx, c.resident)
	if err != nil {
		return nil, fmt.Errorf("update the %s in memory to the snapshot: %w", c.domain.Name, err)
	}
	value := state.(*State[T]).Value
	if value == nil {
		c.db.ReadAtOnce(ctx)
	}
	return value, nil
}

// At returns the value at one instant, and later reads of the Reading see the
// same instant. It returns nil in a trial, if the Reading has no single
// instant, if no value is kept, and if too much has changed. The caller then
// asks the database.
func (c *Copy[T]) At(ctx context.Context) (*T, error) {
	if c.Held() == nil || c.db.IsTrial(ctx) {
		return nil, nil
	}
	state, ok, err := c.db.ResidentAt(ctx, c.resident)
	if err != nil {
		return nil, fmt.Errorf("update the %s in memory to the snapshot: %w", c.domain.Name, err)
	}
	if !ok {
		return nil, nil
	}
	return state.(*State[T]).Value, nil
}

// Unchanged returns the value of the process if a transaction sees the same
// value, otherwise nil. In a trial it always returns nil.
func (c *Copy[T]) Unchanged(ctx context.Context, on sqldb.Conn) (*T, error) {
	held := c.current.Load()
	if held.Value == nil || c.db.IsTrial(ctx) {
		return nil, nil
	}
	at, notes, ok, err := c.since(ctx, on, held)
	if err != nil || !ok || len(notes) > 0 {
		return nil, err
	}
	if at.Oldest-held.UpTo.Oldest > fewTransactions {
		c.advance(&State[T]{held.Value, at})
	}
	return held.Value, nil
}

// atInstant returns the state for the snapshot of a transaction, based on a
// state held before the transaction began.
func (c *Copy[T]) atInstant(ctx context.Context, on sqldb.Conn, before any) (any, error) {
	held := before.(*State[T])
	if held.Value == nil {
		return held, nil
	}
	next, err := c.next(ctx, on, held, c.domain.Beside)
	if err != nil {
		return nil, err
	}
	if !sqldb.OnStandby(on) && (next.Value != held.Value || next.UpTo.Oldest-held.UpTo.Oldest > fewTransactions) {
		c.advance(next)
	}
	return next, nil
}

// next returns the state for a read transaction at one instant, based on an
// earlier state. If most is 0, it applies all notes, or reloads the value if the
// change log does not reach back. If most is not 0, it applies up to most notes;
// for more notes or a reload, it starts an update in the background and returns a
// state without a value.
func (c *Copy[T]) next(ctx context.Context, on sqldb.Conn, held *State[T], most int) (*State[T], error) {
	at, notes, ok, err := c.since(ctx, on, held)
	switch {
	case err != nil:
		return nil, err
	case most > 0 && (!ok || len(notes) > most):
		c.Soon()
		return &State[T]{}, nil
	case !ok:
		return c.read(ctx, on, at)
	case len(notes) == 0:
		return &State[T]{held.Value, at}, nil
	}
	value, err := c.domain.Next(ctx, on, held.Value, notes)
	if err != nil {
		return nil, err
	}
	return c.bounded(&State[T]{value, at}), nil
}

// since returns the changes since a state, and the snapshot of the statement.
// ok is false if the change log does not reach back.
func (c *Copy[T]) since(ctx context.Context, on sqldb.Conn,
	held *State[T]) (at changelog.Snapshot, notes []changelog.Note, ok bool, err error) {
	at, notes, ok, err = c.db.ChangeLog(on).Since(ctx, held.UpTo, c.domain.Kinds...)
	if err == nil && ok && len(notes) > 0 && c.domain.Differs != nil {
		notes, err = c.domain.Differs(ctx, on, held.Value, notes)
	}
	return at, notes, ok, err
}

// read reads the state for a snapshot. The state has no value if that is too
// big.
func (c *Copy[T]) read(ctx context.Context, on sqldb.Conn, at changelog.Snapshot) (*State[T], error) {
	value, err := c.domain.Load(ctx, on, c.domain.Most)
	if bytes, tooBig := err.(TooBig); tooBig {
		return c.refuse(int64(bytes)), nil
	}
	if err != nil {
		return nil, err
	}
	return c.bounded(&State[T]{value, at}), nil
}

// bounded returns the state, or one without a value if its value is too big.
func (c *Copy[T]) bounded(state *State[T]) *State[T] {
	if bytes := c.domain.Size(state.Value); bytes > c.domain.Most {
		return c.refuse(bytes)
	}
	return state
}

// refuse empties the Copy until the next reload, because the value is too big. It
// returns a state without a value.
func (c *Copy[T]) refuse(bytes int64) *State[T] {
	if c.tooBig.CompareAndSwap(false, true) {
		c.db.Log.Warn("the "+c.domain.Name+" need too much memory and are read from the database", "bytes", bytes,
			"limit", c.domain.Most)
	}
	none := &State[T]{}
	c.Replace(none)
	return none
}

// Replace sets the current state unconditionally.
func (c *Copy[T]) Replace(next *State[T]) {
	c.placing.Lock()
	defer c.placing.Unlock()
	c.current.Store(next)
}

// advance sets the current state if both states have a value, and next has a later
// snapshot of the same run of the server.
func (c *Copy[T]) advance(next *State[T]) {
	c.placing.Lock()
	defer c.placing.Unlock()
	held := c.current.Load()
	if held.Value != nil && next.Value != nil && next.UpTo.Server == held.UpTo.Server && held.UpTo.IsBefore(next.UpTo) {
		c.current.Store(next)
	}
}

// Load loads the value, unless it is too big.
func (c *Copy[T]) Load(ctx context.Context) error {
	return c.Exclusively(ctx, func() error { return c.reload(ctx) })
}

// reload is Load for a caller under Exclusively. It drops the value first, so
// that no Reading stores a later one meanwhile.
func (c *Copy[T]) reload(ctx context.Context) error {
	started := time.Now()
	c.tooBig.Store(false)
	c.Replace(&State[T]{})
	err := c.db.ReadAt(sqldb.Uncounted(ctx), func(on sqldb.Conn, at changelog.Snapshot) error {
		next, err := c.read(sqldb.Uncounted(ctx), on, at)
		if err == nil {
			c.Replace(next)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("load the %s: %w", c.domain.Name, err)
	}
	if value := c.Held(); value != nil {
		c.db.Log.InfoContext(ctx, "the "+c.domain.Name+" are loaded", "bytes",
			c.domain.Size(value), "took", time.Since(started))
	}
	return nil
}
