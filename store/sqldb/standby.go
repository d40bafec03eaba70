package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lib/pq"

	"github.com/cadastre-dev/cadastre/problem"
)

// PositionHeader is the HTTP header of a Position. An answer to a mutation has
// it. A request that sends it sees the mutation on every server.
const PositionHeader = "Cadastre-Position"

// standbys are PostgreSQL servers that follow the primary, and answer reads of
// requests. A standby answers a Reading only if it has everything that this
// process has shown or committed, and everything before the position of the
// request. It does not commit transactions in the order of the primary, so its
// snapshot counts only up to the oldest transaction that it sees running.
type standbys struct {
	all []*standby
	// shown is above the number of every transaction that this process has
	// committed or seen in a snapshot of the primary.
	shown atomic.Int64
	turns atomic.Uint64
}

// standby is one server, or an address behind which there are several.
type standby struct {
	name    string
	pool    *sql.DB
	answers atomic.Bool // false while it is unreachable or of another history
	logged  string      // the last outcome of a try that is in the log
	// Counts of readings.
	read, behind, failed atomic.Int64
}

const (
	// standbyTime limits how long a standby may take to begin a transaction.
	standbyTime = time.Second
	// standbyEvery is the interval at which a standby is tried.
	standbyEvery = time.Second
	// standbyPart divides the statement timeout: a statement on a standby may
	// take a third, so that the primary can still answer in time.
	standbyPart = 3
)

// errNoStandby means that a server does not stream from a primary, or that the
// role may not see it.
var errNoStandby = errors.New("it does not stream from the primary, or the role lacks pg_read_all_stats")

// followed is the run of the primary that a standby follows, and its branch.
type followed struct{ run, branch int64 }

// readsOn adds the standbys of a URL, whose hosts are one standby each.
func (d *Database) readsOn(databaseURL string, limit time.Duration) error {
	config, err := postgresConfig(databaseURL)
	if err != nil {
		return err
	}
	if limit <= 0 {
		limit = StatementTimeout
	}
	for _, one := range eachHost(config.bounded(limit / standbyPart)) {
		one.TargetSessionAttrs = pq.TargetSessionAttrsAny
		connector, err := newConnector(one)
		if err != nil {
			return err
		}
		pool := newPool(connector, d.places.Statements+d.places.Searches+1, idleConnections)
		d.standbys.all = append(d.standbys.all,
			&standby{name: net.JoinHostPort(one.Host, fmt.Sprint(one.Port)), pool: pool})
	}
	return nil
}

// CheckFurtherURL returns an error unless furtherURL can be another address of a
// database or name its standbys, or is "".
func CheckFurtherURL(databaseURL, furtherURL string) error {
	for _, one := range []string{databaseURL, furtherURL} {
		path, err := parseURL(one)
		switch {
		case furtherURL == "":
			return nil
		case err != nil || path != "":
			return errors.New("belongs to a PostgreSQL database; both must have URLs of the form postgres://")
		}
	}
	return CheckURL(furtherURL)
}

func (s *standbys) close() (err error) {
	for _, one := range s.all {
		err = errors.Join(err, closed(one.pool))
	}
	return err
}

// Shows notes that this process shows the transactions before a number. From then
// on a standby answers only if it has them.
func (d *DB) Shows(next int64) {
	for {
		shown := d.Pool.standbys.shown.Load()
		if next <= shown || d.Pool.standbys.shown.CompareAndSwap(shown, next) {
			return
		}
	}
}

// ShowsAll requires that a standby has every commit that a new statement on a
// connection to the primary sees, before it answers this process again.
func (d *DB) ShowsAll(ctx context.Context, on Conn) error {
	if !d.Postgres() {
		return nil
	}
	return d.Query(Uncounted(Apart(ctx)), on, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint",
		func(rows *sql.Rows) error {
			var next int64
			err := rows.Scan(&next)
			d.Shows(next)
			return err
		})
}

// Position returns the position of this process in the history of a PostgreSQL
// database: a Reading after it sees all commits that this process has confirmed.
// It is "" on SQLite.
func (d *DB) Position() string {
	if !d.Postgres() {
		return ""
	}
	return strconv.FormatInt(d.Pool.standbys.shown.Load(), 36)
}

type positionKey struct{}

// After returns a context whose reads see all commits before a Position, or ctx
// for "". It refuses a string that is not a Position.
func After(ctx context.Context, position string) (context.Context, error) {
	if position == "" {
		return ctx, nil
	}
	next, err := strconv.ParseInt(position, 36, 64)
	if err != nil || next < 0 {
		return nil, problem.Invalid(PositionHeader, "is not a position; send the value of an earlier answer")
	}
	return context.WithValue(ctx, positionKey{}, next), nil
}

// isAfter reports whether reads must see all commits before a position.
func isAfter(ctx context.Context) bool { return ctx.Value(positionKey{}) != nil }

// tryStandbys finds out which standbys answer, and logs each change.
func (d *DB) tryStandbys(ctx context.Context) error {
	var tries sync.WaitGroup
	for _, one := range d.Pool.standbys.all {
		tries.Go(func() { d.tryStandby(ctx, one) })
	}
	tries.Wait()
	return nil
}

func (d *DB) tryStandby(ctx context.Context, one *standby) {
	within, cancel := context.WithTimeout(ctx, standbyTime)
	begun := &instant{standby: one, cancel: cancel}
	_, err := d.beginWithin(within, begun)
	begun.end()
	one.answers.Store(err == nil)
	outcome := fmt.Sprint(err)
	switch {
	case one.logged == outcome || ctx.Err() != nil:
	case err == nil:
		d.Log.InfoContext(ctx, "the standby answers reads", "standby", one.name)
	default:
		d.Log.WarnContext(ctx, "the standby answers no reads, will retry", "standby", one.name, "error", err)
	}
	one.logged = outcome
}

// standing returns the number before which a standby has all transactions, and
// the run that the standby follows. It refuses a standby of another history than
// the primary's. A standby receives WAL before it replays that WAL. So the
// snapshot is never of a later timeline than received_tli, read after it.
func (d *Database) standing(ctx context.Context, tx *sql.Tx) (next int64, of followed, err error) {
	var system int64
	var timeline sql.Null[int64]
	err = tx.QueryRowContext(ctx, `SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint, `+askedSystem+`,
		CASE WHEN pg_is_in_recovery() THEN (SELECT received_tli FROM pg_stat_wal_receiver)::bigint ELSE `+askedTimeline+
		` END`).
		Scan(&next, &system, &timeline)
	if err == nil && !timeline.Valid {
		err = errNoStandby
	}
	if err != nil {
		return 0, of, err
	}
	d.history.mu.Lock()
	defer d.history.mu.Unlock()
	seen := d.history.seen
	if system != seen.system || timeline.V != seen.timeline {
		return 0, of, fmt.Errorf("it follows timeline %d of the system %d, not %d of %d",
			timeline.V, system, seen.timeline, seen.system)
	}
	return next, followed{seen.run, d.history.branch}, nil
}

// onStandby begins the instant of a Reading on a standby that has all that the
// Reading must see. It returns nil if no standby has.
func (d *DB) onStandby(ctx context.Context) *instant {
	of := &d.Pool.standbys
	least := of.shown.Load()
	if position, ok := ctx.Value(positionKey{}).(int64); ok {
		least = max(least, position)
	}
	first := of.turns.Add(1)
	for i := range of.all {
		one := of.all[(first+uint64(i))%uint64(len(of.all))]
		if one.answers.Load() {
			if begun := d.beginOn(ctx, one, least); begun != nil {
				return begun
			}
		}
	}
	return nil
}

// beginOn begins an instant on a standby, or returns nil if the standby is
// behind or fails.
func (d *DB) beginOn(ctx context.Context, one *standby, least int64) *instant {
	lifetime, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(standbyTime, cancel)
	begun := &instant{standby: one, cancel: cancel, at: map[*Resident]bool{}}
	next, err := d.beginWithin(lifetime, begun)
	switch {
	case ctx.Err() != nil:
	case err != nil || !late.Stop():
		one.leave()
	case next < least:
		one.behind.Add(1)
	default:
		one.read.Add(1)
		return begun
	}
	begun.end()
	return nil
}

// beginWithin begins the transaction of an instant on a standby, and returns the
// number before which the standby has all transactions.
func (d *DB) beginWithin(ctx context.Context, begun *instant) (next int64, err error) {
	tx, err := d.beginReading(ctx, begun.standby.pool)
	if err != nil {
		return 0, err
	}
	begun.on = transaction{Tx: tx, of: d.Pool, followed: new(followed)}
	next, *begun.on.followed, err = d.Pool.standing(ctx, tx)
	return next, err
}

// leave leaves a standby that failed, until tryStandby succeeds.
func (s *standby) leave() {
	s.failed.Add(1)
	s.answers.Store(false)
}

// OnStandby reports whether a transaction of a Reading is on a standby. Its
// snapshot can show commits that the primary does not show yet.
func OnStandby(on Conn) bool { return followedBy(on) != nil }

// followedBy returns the run that the standby of a transaction follows, nil for
// the primary.
func followedBy(on Conn) *followed {
	if tx, ok := on.(*transaction); ok {
		return tx.followed
	}
	return nil
}

// StandbyReads counts the readings of a standby since the start of the process:
// it answered them, was behind, or failed.
type StandbyReads struct{ Read, Behind, Failed int64 }

// StandbyReads returns the readings by the address of the standby.
func (d *DB) StandbyReads() map[string]StandbyReads {
	all := make(map[string]StandbyReads, len(d.Pool.standbys.all))
	for _, one := range d.Pool.standbys.all {
		all[one.name] = StandbyReads{one.read.Load(), one.behind.Load(), one.failed.Load()}
	}
	return all
}
