package changedb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/internal/pause"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

const (
	// settleWithin bounds how long a reader waits for transactions that are about to
	// commit.
	settleWithin = 200 * time.Millisecond
	// settlePoll is how often it looks whether they have.
	settlePoll = 5 * time.Millisecond
	// showWithin bounds how long a reader waits for what is held in memory.
	showWithin = 3 * time.Second
	// mostToShow is of how many transactions it is asked whether memory shows them.
	mostToShow = 1000
)

// horizon knows up to which id the log is settled: every row that there will ever
// be up to there can be read, and what this process holds in memory shows what they
// tell of. So whoever is told of a change, and asks for the thing, sees it. On SQLite
// transactions write one after the other, and all rows that are there can be read.
//
// On PostgreSQL whoever draws ids holds sqldb.NotingLock from before until the end
// of the transaction. So what a snapshot sees up to its highest id is settled when
// all those have ended who held the lock after the snapshot was taken. A transaction
// can be seen before it gives its locks back.
type horizon struct {
	db       *sqldb.DB
	memories []memory
	resident *sqldb.Resident
	settled  atomic.Int64
	asked    atomic.Int64 // how often the highest id was asked for
	turn     chan struct{}

	// Guarded by turn:
	began    bool  // whether settled is known
	answered int64 // the newest asking whose answer is settled
	waiting  waiting
}

// Show brings what a process holds in memory forward until it shows what some
// transactions changed that are committed; for nil, all that were before the call.
type Show func(ctx context.Context, transactions []sqldb.TransactionID) error

// memory shows the things of some kinds, which are a list of SQL.
type memory struct {
	kinds string
	show  Show
}

// memoriesOf returns what shows definitions, and what shows placement.
func memoriesOf(definitions, world Show) []memory {
	of := func(show Show, kinds ...string) memory { return memory{"'" + strings.Join(kinds, "', '") + "'", show} }
	return []memory{
		of(definitions, string(change.Namespace), string(change.ResourceType)),
		of(world, string(change.ResourceProvider), string(change.Trait), string(change.ResourceClass)),
	}
}

// seen is what a snapshot saw of the log.
type seen struct {
	highest int64 // id
	server  int64 // the run of the database server
	holders []string
}

// waiting is an id that is settled once the transactions have ended.
type waiting struct {
	id      int64
	asking  int64
	holders []string
}

func newHorizon(db *sqldb.DB, memories []memory) *horizon {
	h := &horizon{db: db, memories: memories, turn: make(chan struct{}, 1)}
	h.resident = &sqldb.Resident{
		Held: func() any { return h.upTo() },
		At:   func(_ context.Context, _ sqldb.Conn, held any) (any, error) { return held, nil },
	}
	return h
}

// upTo returns the id up to which the log is settled, as far as is known.
func (h *horizon) upTo() int64 { return h.settled.Load() }

// Settle has this server know that what was committed before the call is settled,
// or, where that takes too long, what was before. A reading sees what was settled
// before it began.
func (s *ChangeStore) Settle(ctx context.Context) error { return s.horizon.settle(ctx) }

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
	before, began := h.asked.Load(), time.Now()
	within, cancel := context.WithTimeout(ctx, showWithin)
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
			err = h.look(ctx, within)
			done = h.answered > before
		}
		<-h.turn
		switch {
		case done:
			return nil
		case err != nil && !errors.Is(err, errNotShown):
			return err
		case time.Since(began) > settleWithin:
			return ctx.Err()
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
	within, cancel := context.WithTimeout(ctx, showWithin)
	defer cancel()
	err = h.look(ctx, within)
	return h.waiting.holders != nil, err
}

// errNotShown says that memory could not be brought forward to what is settled.
var errNotShown = errors.New("what is held in memory is behind the log of changes")

// look asks for the highest id and for who may hold lower ones, and settles what
// can be settled and shown within the time of another context. The turn is held.
func (h *horizon) look(ctx, within context.Context) error {
	asking := h.asked.Add(1)
	at, err := h.ask(ctx)
	if err != nil {
		return sqldb.Refused(err)
	}
	before := h.settled.Load()
	settled, answered := before, int64(0)
	if h.waiting.holders != nil && !haveAny(at.holders, h.waiting.holders) {
		settled, answered = h.waiting.id, h.waiting.asking
		h.waiting = waiting{}
	}
	switch {
	case len(at.holders) == 0 || at.highest == settled:
		settled, answered = at.highest, asking
		h.waiting = waiting{}
	case h.waiting.holders == nil:
		h.waiting = waiting{id: at.highest, asking: asking, holders: at.holders}
	}
	if answered == 0 {
		return nil
	}
	if err := h.show(within, before, settled, at.server); err != nil {
		return fmt.Errorf("%w: %w", errNotShown, err)
	}
	h.began = true
	h.settled.Store(settled)
	h.answered = answered
	return nil
}

// show has memory show what the rows between two ids tell of.
func (h *horizon) show(ctx context.Context, after, upTo, server int64) error {
	ctx = sqldb.Uncounted(sqldb.Apart(ctx))
	for _, memory := range h.memories {
		var transactions []sqldb.TransactionID
		if h.began && after < upTo {
			err := h.db.Query(ctx, h.db.Pool.FollowerPool(), `SELECT DISTINCT "transaction" FROM changes WHERE id > $1 AND id <= $2 AND kind IN (`+memory.kinds+`) LIMIT $3`,
				func(rows *sql.Rows) error {
					of := sqldb.TransactionID{Server: server}
					err := rows.Scan(&of.Number)
					transactions = append(transactions, of)
					return err
				}, after, upTo, mostToShow)
			if err != nil {
				return err
			}
		}
		switch {
		case h.began && len(transactions) == 0:
			continue
		case len(transactions) == mostToShow: // there may be more
			transactions = nil
		}
		if err := memory.show(ctx, transactions); err != nil {
			return err
		}
	}
	return nil
}

// ask returns the highest id of the log as a snapshot sees it, and the
// transactions that held NotingLock after it was taken, by their virtual ids,
// which are not given again.
func (h *horizon) ask(ctx context.Context) (at seen, err error) {
	ctx = sqldb.Uncounted(sqldb.Apart(ctx))
	if !h.db.Postgres() {
		err = h.db.Query(ctx, h.db.Pool.FollowerPool(), `SELECT COALESCE(max(id), 0) FROM changes`, func(rows *sql.Rows) error { return rows.Scan(&at.highest) })
		return at, err
	}
	err = h.db.Query(ctx, h.db.Pool.FollowerPool(), `SELECT COALESCE((SELECT max(id) FROM changes), 0), `+sqldb.ServerRun+`,
		COALESCE((SELECT string_agg(virtualtransaction, ' ') FROM pg_locks WHERE locktype = 'advisory' AND classid = 0 AND objid = $1::bigint::oid AND objsubid = 1
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())), '')`, func(rows *sql.Rows) error {
		var text string
		err := rows.Scan(&at.highest, &at.server, &text)
		at.holders = strings.Fields(text)
		return err
	}, sqldb.NotingLock)
	return at, err
}

// haveAny reports whether a list has any value of another one.
func haveAny(list, of []string) bool {
	return slices.ContainsFunc(list, func(value string) bool { return slices.Contains(of, value) })
}
