package resident

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// fewTransactions is up to how many transactions, which changed nothing of the
// value, each reader reads again. Where there are more, the value of the
// process is brought forward to the reader's snapshot.
const fewTransactions = 32

// Domain describes the value of a Copy. The functions get a connection whose
// statements all see one snapshot.
type Domain[T any] struct {
	// Name names the value in the log of the server, in the plural.
	Name string
	// Kinds are the kinds of things in the change log that the value is made of.
	Kinds []string
	// Load reads the value. It returns TooBig where the value takes more memory than
	// a number of bytes.
	Load func(ctx context.Context, on sqldb.Conn, most int64) (*T, error)
	// Differs returns the notes whose things differ between value and database. It is
	// optional, for a domain whose change log notes unchanged things, too.
	Differs func(ctx context.Context, on sqldb.Conn, value *T, notes []sqldb.Note) ([]sqldb.Note, error)
	// Next returns the value after the changes that notes tell of. It reads them
	// and leaves the value as it is.
	Next func(ctx context.Context, on sqldb.Conn, value *T, notes []sqldb.Note) (*T, error)
	// Size returns about how many bytes the value takes.
	Size func(value *T) int64
	// Most is how many bytes the value may take to be kept.
	Most int64
	// Beside, unless 0, has the value loaded beside requests, because loading takes
	// longer than a request may wait. A reading follows at most this many notes, and
	// no writer waits, because every reader reads at one instant.
	Beside int
}

// TooBig is the error of Load for a value that takes more memory than it may, by
// the bytes that were counted.
type TooBig int64

// Error says how much it takes.
func (t TooBig) Error() string { return fmt.Sprintf("the value takes %d bytes or more", int64(t)) }

// State is a value and the snapshot that it is of. It never changes.
type State[T any] struct {
	Value *T // nil where none is kept
	UpTo  sqldb.Snapshot
}

// shows reports whether all that a transaction committed is seen; the zero
// TransactionID is none.
func (s *State[T]) shows(transaction sqldb.TransactionID) bool {
	return transaction.Number > 0 && s.UpTo.Contains(transaction)
}

// Copy keeps the value of a domain.
type Copy[T any] struct {
	db       *sqldb.DB
	domain   Domain[T]
	current  atomic.Pointer[State[T]]
	resident *sqldb.Resident
	others   Others
	turn     chan struct{} // held for a catch up
	placing  sync.Mutex
	tooBig   atomic.Bool
	beside   beside
}

// New returns a copy without a value, which Load, or Soon, loads.
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

// State returns the value of the process and its snapshot.
func (c *Copy[T]) State() *State[T] { return c.current.Load() }

// Held returns the value of the process, nil where none is kept.
func (c *Copy[T]) Held() *T { return c.current.Load().Value }

// Of returns the value as the reading of the context sees it, nil where none is
// kept: then all that follows is read at one instant.
func (c *Copy[T]) Of(ctx context.Context) (*T, error) {
	state, err := c.db.ResidentOf(ctx, c.resident)
	if err != nil {
		return nil, fmt.Errorf("bring the %s to the instant that is read: %w", c.domain.Name, err)
	}
	value := state.(*State[T]).Value
	if value == nil {
		c.db.ReadAtOnce(ctx)
	}
	return value, nil
}

// At returns the value as it is at one instant, which is that of the reading from
// then on. It returns nil where the reading has no such instant, in a trial, and
// where no value is kept or too much has changed: then the database is asked.
func (c *Copy[T]) At(ctx context.Context) (*T, error) {
	if c.Held() == nil || c.db.IsTrial(ctx) {
		return nil, nil
	}
	state, ok, err := c.db.ResidentAt(ctx, c.resident)
	if err != nil {
		return nil, fmt.Errorf("bring the %s to the instant that is read: %w", c.domain.Name, err)
	}
	if !ok {
		return nil, nil
	}
	return state.(*State[T]).Value, nil
}

// Unchanged returns the value of the process if a transaction sees it as it is,
// and nil otherwise.
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

// atInstant returns the state that the snapshot of a transaction sees, given one that was
// held before the transaction began.
func (c *Copy[T]) atInstant(ctx context.Context, on sqldb.Conn, before any) (any, error) {
	held := before.(*State[T])
	if held.Value == nil {
		return held, nil
	}
	next, err := c.next(ctx, on, held, c.domain.Beside)
	if err != nil {
		return nil, err
	}
	if next.Value != held.Value || next.UpTo.Oldest-held.UpTo.Oldest > fewTransactions {
		c.advance(next)
	}
	return next, nil
}

// next returns the state that a transaction sees which reads at one instant,
// given an earlier one. Most is how many notes it follows, 0 for all; where there
// are more, or the value would be loaded anew, it has that done beside requests,
// and the state has no value.
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

// since returns what changed since a state as a statement sees it, and the snapshot
// of that statement. It reports false where the change log does not tell.
func (c *Copy[T]) since(ctx context.Context, on sqldb.Conn, held *State[T]) (at sqldb.Snapshot, notes []sqldb.Note, ok bool, err error) {
	at, notes, ok, err = c.db.NotesSince(ctx, on, held.UpTo, c.domain.Kinds...)
	if err == nil && ok && len(notes) > 0 && c.domain.Differs != nil {
		notes, err = c.domain.Differs(ctx, on, held.Value, notes)
	}
	return at, notes, ok, err
}

// read reads the state that a snapshot sees, which has no value where it takes
// more memory than it may.
func (c *Copy[T]) read(ctx context.Context, on sqldb.Conn, at sqldb.Snapshot) (*State[T], error) {
	value, err := c.domain.Load(ctx, on, c.domain.Most)
	if bytes, tooBig := err.(TooBig); tooBig {
		return c.refuse(int64(bytes)), nil
	}
	if err != nil {
		return nil, err
	}
	return c.bounded(&State[T]{value, at}), nil
}

// bounded returns a state, or one without a value where that takes more memory
// than it may.
func (c *Copy[T]) bounded(state *State[T]) *State[T] {
	if bytes := c.domain.Size(state.Value); bytes > c.domain.Most {
		return c.refuse(bytes)
	}
	return state
}

// refuse drops the value, which takes too many bytes, until it is loaded anew.
func (c *Copy[T]) refuse(bytes int64) *State[T] {
	if c.tooBig.CompareAndSwap(false, true) {
		c.db.Log.Warn("the "+c.domain.Name+" take too much memory to be kept, and are read from the database", "bytes", bytes, "limit", c.domain.Most)
	}
	none := &State[T]{}
	c.Replace(none)
	return none
}

// Replace puts a state in place, whatever is there.
func (c *Copy[T]) Replace(next *State[T]) {
	c.placing.Lock()
	defer c.placing.Unlock()
	c.current.Store(next)
}

// advance puts a state in place if it is of a later snapshot of the same run of the
// server than the one that is there.
func (c *Copy[T]) advance(next *State[T]) {
	c.placing.Lock()
	defer c.placing.Unlock()
	held := c.current.Load()
	if held.Value != nil && next.Value != nil && next.UpTo.Server == held.UpTo.Server && held.UpTo.IsBefore(next.UpTo) {
		c.current.Store(next)
	}
}

// Load loads the value, unless it takes more memory than it may.
func (c *Copy[T]) Load(ctx context.Context) error {
	return c.Exclusively(ctx, func() error { return c.reload(ctx) })
}

// reload is Load where no other catch up runs. It drops the value first: so no
// reading puts a later one in place meanwhile.
func (c *Copy[T]) reload(ctx context.Context) error {
	started := time.Now()
	c.tooBig.Store(false)
	c.Replace(&State[T]{})
	err := c.db.ReadAt(sqldb.Uncounted(ctx), func(on sqldb.Conn, at sqldb.Snapshot) error {
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
		c.db.Log.InfoContext(ctx, "the "+c.domain.Name+" are loaded", "bytes", c.domain.Size(value), "took", time.Since(started))
	}
	return nil
}
