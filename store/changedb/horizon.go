package changedb

import (
	"context"
	"database/sql"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cadastre-dev/cadastre/internal/pause"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

const (
	// settleWithin bounds how long a reader waits for transactions that are about to
	// commit.
	settleWithin = 200 * time.Millisecond
	// settlePoll is how often it looks whether they have.
	settlePoll = 5 * time.Millisecond
)

// horizon knows up to which id the log is settled: every row that there will ever
// be up to there can be read. On SQLite transactions write one after the other,
// and all that is there is settled.
//
// On PostgreSQL whoever draws ids holds sqldb.NotingLock from before until the end
// of the transaction. So what a snapshot sees up to its highest id is settled when
// all those have ended who held the lock after the snapshot was taken. A transaction
// can be seen before it gives its locks back.
type horizon struct {
	db       *sqldb.DB
	resident *sqldb.Resident
	settled  atomic.Int64
	asked    atomic.Int64 // how often the highest id was asked for
	turn     chan struct{}

	// Guarded by turn:
	answered int64 // the newest asking whose answer is settled
	waiting  waiting
}

// waiting is an id that is settled once the transactions have ended.
type waiting struct {
	id      int64
	asking  int64
	holders []string
}

func newHorizon(db *sqldb.DB) *horizon {
	h := &horizon{db: db, turn: make(chan struct{}, 1)}
	h.resident = &sqldb.Resident{
		Held: func() any { return h.upTo() },
		At:   func(_ context.Context, _ sqldb.Conn, held any) (any, error) { return held, nil },
	}
	return h
}

// upTo returns the id up to which the log is settled, as far as is known.
func (h *horizon) upTo() int64 {
	if !h.db.Postgres() {
		return math.MaxInt64
	}
	return h.settled.Load()
}

// Settle has this server know that what was committed before the call is settled,
// or, where that takes too long, what was before. A reading sees what was settled
// before it began.
func (s *ChangeStore) Settle(ctx context.Context) error {
	if !s.Postgres() {
		return nil
	}
	return s.horizon.settle(ctx)
}

// settledIn returns the id up to which the log is settled in the reading of a
// context, and as of now where there is none.
func (s *ChangeStore) settledIn(ctx context.Context) (int64, error) {
	if !s.IsReading(ctx) {
		if err := s.Settle(ctx); err != nil {
			return 0, err
		}
	}
	upTo, err := s.ResidentOf(ctx, s.horizon.resident)
	if err != nil {
		return 0, err
	}
	return upTo.(int64), nil
}

// settle waits until what was committed before is settled, but not for ever.
// Callers at the same time share what one of them asks.
func (h *horizon) settle(ctx context.Context) error {
	before := h.asked.Load()
	within, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	for {
		select {
		case h.turn <- struct{}{}:
		case <-within.Done():
			return ctx.Err()
		}
		err := error(nil)
		done := h.answered > before
		if !done {
			err = h.look(ctx)
			done = h.answered > before
		}
		<-h.turn
		if err != nil || done {
			return err
		}
		pause.For(within, settlePoll)
	}
}

// advance is one look at what is settled, and reports whether something that was
// seen is not yet.
func (h *horizon) advance(ctx context.Context) (open bool, err error) {
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	defer func() { <-h.turn }()
	err = h.look(ctx)
	return h.waiting.holders != nil, err
}

// look asks for the highest id and for who may hold lower ones, and settles what
// can be settled. The turn is held.
func (h *horizon) look(ctx context.Context) error {
	asking := h.asked.Add(1)
	highest, holders, err := h.ask(ctx)
	if err != nil {
		return sqldb.Refused(err)
	}
	if h.waiting.holders != nil && !haveAny(holders, h.waiting.holders) {
		h.settled.Store(h.waiting.id)
		h.answered, h.waiting = h.waiting.asking, waiting{}
	}
	switch {
	case len(holders) == 0 || highest == h.settled.Load():
		h.settled.Store(highest)
		h.answered, h.waiting = asking, waiting{}
	case h.waiting.holders == nil:
		h.waiting = waiting{id: highest, asking: asking, holders: holders}
	}
	return nil
}

// ask returns the highest id of the log as a snapshot sees it, and the
// transactions that held NotingLock after it was taken, by their virtual ids,
// which are not given again.
func (h *horizon) ask(ctx context.Context) (highest int64, holders []string, err error) {
	ctx = sqldb.Uncounted(sqldb.Apart(ctx))
	err = h.db.Query(ctx, h.db.Pool.FollowerPool(), `SELECT COALESCE((SELECT max(id) FROM changes), 0),
		COALESCE((SELECT string_agg(virtualtransaction, ' ') FROM pg_locks WHERE locktype = 'advisory' AND classid = 0 AND objid = $1::bigint::oid AND objsubid = 1
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())), '')`, func(rows *sql.Rows) error {
		var text string
		err := rows.Scan(&highest, &text)
		holders = strings.Fields(text)
		return err
	}, sqldb.NotingLock)
	return highest, holders, err
}

// haveAny reports whether a list has any value of another one.
func haveAny(list, of []string) bool {
	return slices.ContainsFunc(list, func(value string) bool { return slices.Contains(of, value) })
}
