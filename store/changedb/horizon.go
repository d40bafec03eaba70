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
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
)

const (
	// settleWithin limits how long a reader waits for transactions that are
	// about to commit.
	settleWithin = 200 * time.Millisecond
	// settlePoll is the interval for checking whether these have ended.
	settlePoll = 5 * time.Millisecond
	// showWithin limits how long a reader waits for the in-memory copies.
	showWithin = 3 * time.Second
	// unknown is the settled id until the first one is known.
	unknown = -1
	// mostToShow bounds the transactions that are looked up in an in-memory
	// copy. If there are more, the copy is updated to all commits.
	mostToShow = 1000
)

// horizon tracks the id up to which the log is settled: no further row with
// this or a lower id can appear, and the in-memory copies of this process have
// the changes of all rows up to it. So a client that receives a change and then
// asks for the thing sees the change. On SQLite transactions write one after
// the other, so no lower id can appear after a visible row.
//
// On PostgreSQL a transaction takes changelog.NotingLock before it draws ids, and
// holds it until its end. So the highest id in a snapshot is settled once all
// transactions have ended that held the lock after the snapshot was taken. The
// snapshot may see some of them already, since a transaction becomes visible
// before it releases its locks.
type horizon struct {
	db       *sqldb.DB
	isThere  func(ctx context.Context, p change.Position) error // refuses a lost change
	memories []memory
	resident *sqldb.Resident
	settled  atomic.Int64
	asked    atomic.Int64 // how often the highest id was queried
	lost     atomic.Int64 // how often the database lost settled changes
	turn     chan struct{}

	// Guarded by turn:
	began    bool            // whether settled is known
	server   int64           // the run of the database server
	last     change.Position // of the settled id
	answered int64           // the number of the newest query whose highest id is settled
	waiting  waiting
}

// Show updates an in-memory copy until it has the given committed transactions;
// nil means all that committed before the call.
type Show func(ctx context.Context, transactions []changelog.TransactionID) error

// memory is an in-memory copy. kinds is the SQL list of the kinds of things in
// it.
type memory struct {
	kinds string
	show  Show
}

// memoriesOf returns the in-memory copies of definitions and of placement.
func memoriesOf(definitions, world Show) []memory {
	of := func(show Show, kinds ...string) memory { return memory{"'" + strings.Join(kinds, "', '") + "'", show} }
	return []memory{
		of(definitions, string(change.Namespace), string(change.ResourceType)),
		of(world, string(change.ResourceProvider), string(change.Trait), string(change.ResourceClass)),
	}
}

// seen is the log as a snapshot saw it, with the transactions that held
// NotingLock afterwards.
type seen struct {
	highest int64     // id
	at      time.Time // of that row
	server  int64     // the run of the database server
	holders []string
}

// waiting is an id that is settled once the holders have ended. asking is the
// number of the query that returned it.
type waiting struct {
	id      int64
	at      time.Time
	asking  int64
	holders []string
}

func newHorizon(db *sqldb.DB, memories []memory, isThere func(context.Context, change.Position) error) *horizon {
	h := &horizon{db: db, isThere: isThere, memories: memories, turn: make(chan struct{}, 1)}
	h.resident = &sqldb.Resident{
		Held: func() any { return h.upTo() },
		At:   func(_ context.Context, _ sqldb.Conn, held any) (any, error) { return held, nil },
	}
	h.settled.Store(unknown)
	return h
}

// upTo returns the id up to which the log is known to be settled, or unknown.
func (h *horizon) upTo() int64 { return h.settled.Load() }

// Settle waits until the commits from before the call are settled. If that
// takes too long, it returns nil, and the horizon is before some of them. A
// Reading sees the horizon from before its start.
func (s *ChangeStore) Settle(ctx context.Context) error { return s.horizon.settle(ctx) }

// settledIn returns the id up to which the log is settled: in the Reading of a
// context, or now if there is none.
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

// settle waits for a limited time until earlier commits are settled. Concurrent
// callers share one query.
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

// advance looks once for newly settled rows. open reports whether it saw rows
// that are not settled yet.
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

// errNotShown means that the in-memory copies could not be updated to the
// settled rows.
var errNotShown = errors.New("the copies in memory lag behind the change log")

// look queries the highest id and the holders of the lock, and advances the
// horizon. within limits the time for updating the in-memory copies; beyond it
// look returns errNotShown. The caller holds turn.
func (h *horizon) look(ctx, within context.Context) error {
	asking := h.asked.Add(1)
	at, err := h.ask(ctx)
	if err != nil {
		return sqldb.Refused(err)
	}
	if at.server != h.server {
		if err := h.meet(ctx, at.server); err != nil {
			return err
		}
	}
	before, last := h.settled.Load(), h.last
	settled, answered := before, int64(0)
	if h.waiting.holders != nil && !haveAny(at.holders, h.waiting.holders) {
		settled, answered = h.waiting.id, h.waiting.asking
		last = change.Position{ID: h.waiting.id, Row: h.waiting.at}
		h.waiting = waiting{}
	}
	switch {
	case len(at.holders) == 0 || at.highest == max(0, settled):
		settled, answered = at.highest, asking
		last = change.Position{ID: at.highest, Row: at.at}
		h.waiting = waiting{}
	case h.waiting.holders == nil:
		h.waiting = waiting{id: at.highest, at: at.at, asking: asking, holders: at.holders}
	}
	if answered == 0 {
		return nil
	}
	if err := h.show(within, before, settled, at.server); err != nil {
		return fmt.Errorf("%w: %w", errNotShown, err)
	}
	// Settled changes may be newer than the snapshot that read their highest id,
	// so only a new statement is sure to see them all.
	if len(h.db.StandbyReads()) > 0 {
		if err := h.db.ShowsAll(ctx, h.db.Pool.FollowerPool()); err != nil {
			return err
		}
	}
	h.began, h.last = true, last
	h.settled.Store(settled)
	h.answered = answered
	return nil
}

// meet turns to another run of the database server. It refuses an earlier run.
// If the new run lacks the settled change, the horizon starts over.
func (h *horizon) meet(ctx context.Context, server int64) error {
	if err := h.db.CheckRun(ctx, server); err != nil {
		return err
	}
	err := h.isThere(ctx, h.last)
	if err != nil && !errors.Is(err, problem.ErrInvalidInput) {
		return err
	}
	h.server, h.began, h.waiting = server, false, waiting{}
	if err != nil {
		h.last = change.Position{}
		h.settled.Store(unknown)
		h.lost.Add(1)
	}
	return nil
}

// show updates the in-memory copies to the rows with after < id <= upTo, or to
// all commits if no id is known to be settled yet.
func (h *horizon) show(ctx context.Context, after, upTo, server int64) error {
	ctx = sqldb.Uncounted(sqldb.Apart(ctx))
	for _, memory := range h.memories {
		var transactions []changelog.TransactionID
		if h.began && after < upTo {
			err := h.db.Query(ctx, h.db.Pool.FollowerPool(),
				`SELECT DISTINCT "transaction" FROM changes WHERE id > $1 AND id <= $2 AND kind IN (`+memory.kinds+
					`) LIMIT $3`,
				func(rows *sql.Rows) error {
					of := changelog.TransactionID{Server: server}
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

// ask returns the highest id of the log in a snapshot, and the transactions
// that held NotingLock after the snapshot was taken. These are virtual
// transaction ids, which are not reused.
func (h *horizon) ask(ctx context.Context) (at seen, err error) {
	ctx = sqldb.Uncounted(sqldb.Apart(ctx))
	if !h.db.Postgres() {
		err = h.db.Query(ctx, h.db.Pool.FollowerPool(), `SELECT COALESCE(max(id), 0) FROM changes`,
			func(rows *sql.Rows) error { return rows.Scan(&at.highest) })
		return at, err
	}
	err = h.db.Query(ctx, h.db.Pool.FollowerPool(), `SELECT COALESCE(c.id, 0), COALESCE(c.created_at, 'epoch'),
		`+changelog.ServerRun+`,
		COALESCE((SELECT string_agg(virtualtransaction, ' ') FROM pg_locks WHERE locktype = 'advisory' AND classid = 0 AND objid = $1::bigint::oid AND objsubid = 1
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())), '')
		FROM (SELECT 1) AS one
		LEFT JOIN (SELECT id, created_at FROM changes ORDER BY id DESC LIMIT 1) AS c ON true`,
		func(rows *sql.Rows) error {
			var text string
			err := rows.Scan(&at.highest, &at.at, &at.server, &text)
			at.holders = strings.Fields(text)
			return err
		}, changelog.NotingLock)
	return at, err
}

// haveAny reports whether two lists share a value.
func haveAny(list, of []string) bool {
	return slices.ContainsFunc(list, func(value string) bool { return slices.Contains(of, value) })
}
