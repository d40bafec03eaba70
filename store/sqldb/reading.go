package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	entsql "entgo.io/ent/dialect/sql"
)

// Reading is how the statements of one operation see the database: each for
// itself, or all of them as of one instant. What a process keeps in memory of the
// database is seen as of the same instant. A Reading is in the context of the
// statements, and concerns those outside of transactions that write.
type Reading struct {
	db  *DB
	how How

	mu        sync.Mutex
	begun     *instant
	held      map[*Resident]any // as it was before the instant began, or as it is at it
	kept      map[any]any       // what KeptOf keeps
	committed bool              // what the request of the reading changes
	// statements and residents are how many there were under Each.
	statements, residents int
}

// IsWhole reports whether all that was read was of one instant. Under Each it is
// where there was not more than one statement, or the residents alone.
func (r *Reading) IsWhole() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.statements+min(r.residents, 1) <= 1
}

// How says how the statements of a Reading see the database.
type How int

const (
	// Each statement sees the instant at which it is sent, and residents are as
	// they were when the first was asked for.
	Each How = iota
	// AtOnce has all of them see the instant of the first one.
	AtOnce
	// AtOnceAfterWrite is Each until a transaction has written, and AtOnce after.
	AtOnceAfterWrite
	// EachAfterWrite is Each, and counts after a transaction has written.
	EachAfterWrite
)

// instant is a transaction that reads.
type instant struct {
	on transaction
	at map[*Resident]bool // those that were brought to the instant
}

// Resident is a value that processes keep in memory and bring forward by the log
// of changes.
type Resident struct {
	// Held returns the value that this process has at the moment. It is of a
	// snapshot that had been taken before, and never changes.
	Held func() any
	// At returns the value as a later snapshot sees it, given one that was held
	// before.
	At func(ctx context.Context, on Conn, held any) (any, error)
}

type readingKey struct{}

// WithReading returns a context in whose Reading statements read. The caller ends
// the reading.
func (d *DB) WithReading(ctx context.Context, how How) (context.Context, *Reading) {
	reading := &Reading{db: d, how: how}
	return context.WithValue(ctx, readingKey{}, reading), reading
}

// Apart returns a context without its Reading: for statements about what no answer
// shows, such as an input that was sent before.
func Apart(ctx context.Context) context.Context {
	return context.WithValue(ctx, readingKey{}, (*Reading)(nil))
}

// readingOf returns the reading of a context on a database, nil if there is none.
func readingOf(ctx context.Context, db *Database) *Reading {
	if reading, ok := ctx.Value(readingKey{}).(*Reading); ok && reading != nil && reading.db.Pool == db {
		return reading
	}
	return nil
}

// IsReading reports whether the statements of a context are those of a Reading.
func (d *DB) IsReading(ctx context.Context) bool { return readingOf(ctx, d.Pool) != nil }

// Wrote says that the request of a context has written. What it reads from then
// on, to show what it did, is as of an instant after that.
func (d *DB) Wrote(ctx context.Context) {
	if reading := readingOf(ctx, d.Pool); reading != nil {
		reading.End()
		switch reading.how {
		case AtOnceAfterWrite:
			reading.how = AtOnce
		case EachAfterWrite:
			reading.how = Each
		}
	}
}

// Committed says that what the request of a context changes is committed.
func (d *DB) Committed(ctx context.Context) {
	if reading := readingOf(ctx, d.Pool); reading != nil {
		reading.mu.Lock()
		defer reading.mu.Unlock()
		reading.committed = true
	}
}

// HasCommitted reports whether a change of the reading's request is committed.
func (r *Reading) HasCommitted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.committed
}

// wroteElsewhere is Wrote for what may have been written by another process: what
// is shown of it is read at an instant after that, since this process need not
// have been told of it yet.
func (d *DB) wroteElsewhere(ctx context.Context) {
	if reading := readingOf(ctx, d.Pool); reading != nil {
		reading.End()
		reading.how = AtOnce
	}
}

// End ends the reading.
func (r *Reading) End() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun != nil {
		_ = r.begun.on.Rollback() // nothing was written
	}
	r.begun, r.held, r.kept = nil, nil, nil
}

// begin returns the transaction of the instant, which begins with the first
// call. Residents are held before it begins: so none is later than the instant.
func (r *Reading) begin(ctx context.Context) (*instant, error) {
	if r.begun != nil {
		return r.begun, nil
	}
	r.holdAll()
	tx, err := r.db.beginReading(ctx, r.db.Pool.readersFor(ctx))
	if err != nil {
		return nil, err
	}
	r.begun = &instant{on: transaction{Tx: tx, of: r.db.Pool}, at: map[*Resident]bool{}}
	return r.begun, nil
}

func (r *Reading) holdAll() {
	if r.held != nil {
		return
	}
	r.held = make(map[*Resident]any, len(r.db.residents))
	for _, resident := range r.db.residents {
		r.held[resident] = resident.Held()
	}
}

// reader returns what a statement runs on: the instant, or one of the pool's
// connections.
func (d *Database) reader(ctx context.Context) (entsql.ExecQuerier, error) {
	reading := readingOf(ctx, d)
	if reading == nil {
		return d.on(d.readersFor(ctx), nil), nil
	}
	reading.mu.Lock()
	defer reading.mu.Unlock()
	if reading.how != AtOnce {
		if reading.how == Each {
			reading.statements++
		}
		return d.on(d.readersFor(ctx), nil), nil
	}
	begun, err := reading.begin(ctx)
	if err != nil {
		return nil, err
	}
	return d.on(d.readersFor(ctx), begun.on.Tx), nil
}

// ReadAtOnce has all that a reading reads from now on be of one instant. It is for
// a reading of which nothing was shown yet: one that began with what is resident,
// which turns out not to tell. It changes nothing in one that reads at one instant
// anyway, or that is to write.
func (d *DB) ReadAtOnce(ctx context.Context) {
	reading := readingOf(ctx, d.Pool)
	if reading == nil {
		return
	}
	reading.mu.Lock()
	defer reading.mu.Unlock()
	if reading.how == Each && reading.statements == 0 {
		reading.how, reading.residents, reading.held = AtOnce, 0, nil
	}
}

// AddResident has a value followed by every Reading. It is called before anything
// is read.
func (d *DB) AddResident(resident *Resident) { d.residents = append(d.residents, resident) }

// ResidentOf returns a resident value as the reading of the context sees it, and
// as it is at the moment if there is none.
func (d *DB) ResidentOf(ctx context.Context, resident *Resident) (any, error) {
	reading := readingOf(ctx, d.Pool)
	if reading == nil {
		return resident.Held(), nil
	}
	reading.mu.Lock()
	defer reading.mu.Unlock()
	if reading.how != AtOnce {
		if reading.how == Each {
			reading.residents++
		}
		reading.holdAll()
		return reading.held[resident], nil
	}
	begun, err := reading.begin(ctx)
	if err != nil {
		return nil, err
	}
	if !begun.at[resident] {
		value, err := resident.At(Uncounted(ctx), &begun.on, reading.held[resident])
		if err != nil {
			return nil, err
		}
		reading.held[resident], begun.at[resident] = value, true
	}
	return reading.held[resident], nil
}

// ResidentAt returns a resident value as it is at one instant: that of the reading
// of the context, from then on, or one of its own where there is none. It reports
// false where the reading sees another instant with each statement.
func (d *DB) ResidentAt(ctx context.Context, resident *Resident) (value any, ok bool, err error) {
	d.ReadAtOnce(ctx)
	reading := readingOf(ctx, d.Pool)
	if reading == nil {
		held := resident.Held() // which is of no later instant than what begins now
		err = d.ReadAt(Uncounted(ctx), func(on Conn, _ Snapshot) (err error) {
			value, err = resident.At(Uncounted(ctx), on, held)
			return err
		})
		return value, err == nil, err
	}
	reading.mu.Lock()
	isAtOnce := reading.how == AtOnce
	reading.mu.Unlock()
	if !isAtOnce {
		return nil, false, nil
	}
	value, err = d.ResidentOf(ctx, resident)
	return value, err == nil, err
}

// ReadAt reads several things as of one instant, and passes what that instant
// sees. It has connections of its own: requests that each keep one do not keep it
// waiting.
func (d *DB) ReadAt(ctx context.Context, read func(on Conn, at Snapshot) error) error {
	tx, err := d.beginReading(ctx, d.Pool.followers)
	if err != nil {
		return err
	}
	on := &transaction{Tx: tx, of: d.Pool}
	at, err := d.SnapshotOf(ctx, on)
	if err == nil {
		err = read(on, at)
	}
	return errors.Join(err, tx.Rollback())
}

// Bound has the statements of a transaction take so long at most, in place of what
// the pool allows: for those that read whole tables. On SQLite the context alone
// bounds them.
func (d *DB) Bound(ctx context.Context, on Conn, limit time.Duration) error {
	if !d.Postgres() {
		return nil
	}
	return d.Execute(Uncounted(ctx), on, fmt.Sprintf("SET LOCAL %s = %d", timeoutSetting, limit.Milliseconds()))
}

// beginReading begins a transaction whose statements see what the first of them
// sees.
func (d *DB) beginReading(ctx context.Context, pool *sql.DB) (*sql.Tx, error) {
	options := sql.TxOptions{ReadOnly: true}
	if d.Postgres() {
		options.Isolation = sql.LevelRepeatableRead
	}
	tx, err := pool.BeginTx(ctx, &options)
	return tx, Refused(err)
}

// KeptOf returns what the reading of a context keeps under a key, which is made
// where there is nothing yet: what one statement read spares others the reading.
// Nothing is kept where there is no reading, or before it has written what it is
// to show.
func KeptOf[V any](ctx context.Context, d *DB, key any, create func() V) V {
	reading := readingOf(ctx, d.Pool)
	if reading == nil {
		return create()
	}
	reading.mu.Lock()
	defer reading.mu.Unlock()
	if reading.how != AtOnce && reading.how != Each {
		return create()
	}
	if kept, ok := reading.kept[key]; ok {
		return kept.(V)
	}
	if reading.kept == nil {
		reading.kept = map[any]any{}
	}
	created := create()
	reading.kept[key] = created
	return created
}
