package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
)

// Reading controls the consistency of the reads of one operation: each
// statement may see its own instant, or all see the same one. In-memory copies
// follow the same rule. A Reading travels in the context. It does not apply to
// write transactions.
type Reading struct {
	db  *DB
	how How

	mu        sync.Mutex
	begun     *instant
	held      map[*Resident]any // values from before the instant began, or at the instant
	kept      map[any]any       // values of KeptOf
	committed bool              // whether the request has committed a change
	maySpread bool              // whether a standby may answer
	// statements and residents count the reads under Each.
	statements, residents int
}

// IsWhole reports whether all reads saw one instant. Under Each that holds for
// a single statement, or for in-memory values alone.
func (r *Reading) IsWhole() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.statements+min(r.residents, 1) <= 1
}

// How is the consistency of a Reading.
type How int

const (
	// Each lets every statement see the instant at which it is sent. All
	// residents show the instant of the first access to one of them.
	Each How = iota
	// AtOnce makes all statements see the instant of the first one.
	AtOnce
	// AtOnceAfterWrite is Each until a write transaction begins, then AtOnce.
	AtOnceAfterWrite
	// EachAfterWrite is Each, but IsWhole ignores reads before a write begins.
	EachAfterWrite
)

// instant is a read transaction.
type instant struct {
	on      transaction
	at      map[*Resident]bool // residents that were updated to the instant
	pool    *sql.DB            // of the transaction
	standby *standby           // that answers, nil for the primary
	cancel  func()             // ends the transaction on a standby
}

// end ends an instant. Nothing was written.
func (i *instant) end() {
	if i.on.Tx != nil {
		_ = i.on.Rollback()
	}
	if i.cancel != nil {
		i.cancel()
	}
}

// Resident is a value that processes keep in memory and update from the log of
// changes.
type Resident struct {
	// Held returns the current value of this process. It is immutable and
	// belongs to a snapshot that was taken before the call.
	Held func() any
	// At returns the value as the snapshot of the transaction on sees it, given
	// held, an earlier result of Held.
	At func(ctx context.Context, on Conn, held any) (any, error)
}

type readingKey struct{}

// WithReading returns a context with a new Reading. The caller must call End.
func (d *DB) WithReading(ctx context.Context, how How) (context.Context, *Reading) {
	reading := &Reading{db: d, how: how}
	return context.WithValue(ctx, readingKey{}, reading), reading
}

// Apart returns a context without its Reading. It is for reads that do not show
// up in the answer, such as looking up an earlier request.
func Apart(ctx context.Context) context.Context {
	return context.WithValue(ctx, readingKey{}, (*Reading)(nil))
}

// readingOf returns the Reading of a context on a database, or nil.
func readingOf(ctx context.Context, db *Database) *Reading {
	if reading, ok := ctx.Value(readingKey{}).(*Reading); ok && reading != nil && reading.db.Pool == db {
		return reading
	}
	return nil
}

// IsReading reports whether a context has a Reading.
func (d *DB) IsReading(ctx context.Context) bool { return readingOf(ctx, d.Pool) != nil }

// Wrote ends the current instant of a request that writes, and turns
// AtOnceAfterWrite into AtOnce, EachAfterWrite into Each. Later reads, which show
// the result, see a later instant.
func (d *DB) Wrote(ctx context.Context) {
	if reading := readingOf(ctx, d.Pool); reading != nil {
		reading.End()
		reading.mu.Lock()
		defer reading.mu.Unlock()
		switch reading.how {
		case AtOnceAfterWrite:
			reading.how = AtOnce
		case EachAfterWrite:
			reading.how = Each
		}
	}
}

// Committed records that a change of the request is committed. In a context of
// NotOnce it does nothing.
func (d *DB) Committed(ctx context.Context) {
	if reading := readingOf(ctx, d.Pool); reading != nil && !isOfSeveral(ctx) {
		reading.mu.Lock()
		defer reading.mu.Unlock()
		reading.committed = true
	}
}

// HasCommitted reports whether the request has committed a change.
func (r *Reading) HasCommitted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.committed
}

// wroteElsewhere is Wrote for a change that another process may have made. All
// later reads see one instant, as the in-memory copies of this process may not
// have the change yet.
func (d *DB) wroteElsewhere(ctx context.Context) {
	if reading := readingOf(ctx, d.Pool); reading != nil {
		reading.End()
		reading.mu.Lock()
		defer reading.mu.Unlock()
		reading.how = AtOnce
	}
}

// End ends the instant, if one began, and drops the kept values.
func (r *Reading) End() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun != nil {
		r.begun.end()
	}
	r.begun, r.held, r.kept = nil, nil, nil
}

// begin returns the read transaction, and begins it on the first call. It
// records the residents first, so that none is later than the instant.
func (r *Reading) begin(ctx context.Context) (*instant, error) {
	if r.begun != nil {
		return r.begun, nil
	}
	if r.beginOnStandby(ctx) {
		return r.begun, nil
	}
	r.holdAll()
	pool := r.db.Pool.readersFor(ctx)
	tx, err := r.db.beginReading(ctx, pool)
	if err != nil {
		return nil, err
	}
	r.begun = &instant{on: transaction{Tx: tx, of: r.db.Pool}, pool: pool, at: map[*Resident]bool{}}
	return r.begun, nil
}

// Spread lets standbys answer, if they have everything that the Reading must
// see.
func (r *Reading) Spread() { r.maySpread = len(r.db.Pool.standbys.all) > 0 }

// LeaveStandby reports whether a standby answers. If so, it ends the instant,
// and the standby, which has failed, is not used until tryStandbys succeeds.
func (r *Reading) LeaveStandby() bool {
	r.mu.Lock()
	begun := r.begun
	r.mu.Unlock()
	if begun == nil || begun.standby == nil {
		return false
	}
	begun.standby.leave()
	r.End()
	return true
}

// IsSpread reports whether a standby answers.
func (r *Reading) IsSpread() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begun != nil && r.begun.standby != nil
}

// beginOnStandby begins the instant on a standby, and reports whether one may
// answer and has all that the Reading must see. It records the residents first,
// as begin does.
func (r *Reading) beginOnStandby(ctx context.Context) bool {
	if !r.maySpread {
		return false
	}
	r.holdAll()
	r.begun = r.db.onStandby(ctx)
	return r.begun != nil
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

// reader returns the target for a query: the transaction of the instant, which
// it begins if needed, or a pool. Under Each it counts the query; if the first
// one goes to a standby, all later reads see that instant, too.
func (d *Database) reader(ctx context.Context) (entsql.ExecQuerier, error) {
	reading := readingOf(ctx, d)
	if reading == nil {
		return d.on(d.readersFor(ctx), nil), nil
	}
	reading.mu.Lock()
	defer reading.mu.Unlock()
	if reading.how == Each && reading.statements+reading.residents == 0 && reading.beginOnStandby(ctx) {
		reading.how = AtOnce
	}
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
	return d.on(begun.pool, begun.on.Tx), nil
}

// ReadAtOnce makes a Reading under Each see one instant from now on. Call it
// before any result is shown, when an in-memory copy turns out not to be
// enough. It has no effect if the Reading has sent a statement, already reads
// at one instant, or is to write.
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

// AddResident registers a value that every Reading follows. Call it before the
// first read.
func (d *DB) AddResident(resident *Resident) { d.residents = append(d.residents, resident) }

// ResidentOf returns the value of a resident as the Reading of the context sees
// it. Without a Reading it returns the current value.
func (d *DB) ResidentOf(ctx context.Context, resident *Resident) (any, error) {
	reading := readingOf(ctx, d.Pool)
	if reading == nil {
		return resident.Held(), nil
	}
	reading.mu.Lock()
	defer reading.mu.Unlock()
	if reading.how == Each && reading.statements+reading.residents == 0 && isAfter(ctx) {
		reading.how = AtOnce // the copy may lack commits of other processes before the client's Position
	}
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

// ResidentAt returns the value of a resident at one instant. With a Reading,
// later reads see the same instant. Without a Reading it uses a separate
// instant. ok is false, and value nil, if the statements of the Reading see
// different instants.
func (d *DB) ResidentAt(ctx context.Context, resident *Resident) (value any, ok bool, err error) {
	d.ReadAtOnce(ctx)
	reading := readingOf(ctx, d.Pool)
	if reading == nil {
		held := resident.Held() // never later than the transaction that begins next
		err = d.ReadAt(Uncounted(ctx), func(on Conn, _ changelog.Snapshot) (err error) {
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

// ReadAt runs read in a read transaction at one instant, with its snapshot. It
// uses the follower pool: on PostgreSQL it does not compete with requests.
func (d *DB) ReadAt(ctx context.Context, read func(on Conn, at changelog.Snapshot) error) error {
	tx, err := d.beginReading(ctx, d.Pool.followers)
	if err != nil {
		return err
	}
	on := &transaction{Tx: tx, of: d.Pool}
	at, err := d.ChangeLog(on).Snapshot(ctx)
	if err == nil {
		err = read(on, at)
	}
	return errors.Join(err, tx.Rollback())
}

// Bound replaces the statement timeout of a transaction, for statements that
// read whole tables. On SQLite only the context limits statements.
func (d *DB) Bound(ctx context.Context, on Conn, limit time.Duration) error {
	if !d.Postgres() {
		return nil
	}
	return d.Execute(Uncounted(ctx), on, fmt.Sprintf("SET LOCAL %s = %d", timeoutSetting, limit.Milliseconds()))
}

// beginReading begins a read transaction in which all statements see the
// snapshot of the first.
func (d *DB) beginReading(ctx context.Context, pool *sql.DB) (*sql.Tx, error) {
	options := sql.TxOptions{ReadOnly: true}
	if d.Postgres() {
		options.Isolation = sql.LevelRepeatableRead
	}
	tx, err := pool.BeginTx(ctx, &options)
	return tx, Refused(err)
}

// KeptOf returns the value cached under a key in the Reading of a context. If
// there is no value, it calls create, which must not use the Reading. Without a
// Reading, or before the first write of a Reading that will write, it caches
// nothing.
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
