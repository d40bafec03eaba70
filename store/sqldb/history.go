package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lib/pq"

	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
)

// history is the newest history of a PostgreSQL database that this process has
// seen: the run of a server, its cluster and its timeline. A standby that is
// promoted begins a timeline. A server of an earlier timeline was a primary and
// may not know it yet: it shows the past, and its commits are lost.
type history struct {
	pools []*sql.DB

	mu   sync.Mutex
	seen identity
	// branch counts the runs that this process has seen one after the other.
	branch  int64
	retires int64     // the branch for which older connections are being retired, or 0
	past    time.Time // since when only servers of the past have answered, or zero
}

// identity identifies the history that a server has.
type identity struct{ run, system, timeline int64 }

// asked selects the identity of a server. Any role may do that. The timeline of a
// standby is 0: it can lack commits of its primary until it is promoted.
const asked = `SELECT ` + changelog.ServerRun + `, ` + askedSystem + `,
	CASE WHEN pg_is_in_recovery() THEN 0 ELSE ` + askedTimeline + ` END`

// askedSystem is the SQL expression for the cluster of a server, and askedTimeline
// for the timeline of a primary.
const (
	askedSystem   = `(SELECT system_identifier FROM pg_control_system())`
	askedTimeline = `('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint`
)

// errPast means that a server has an earlier timeline than another one.
var errPast = errors.New("the database server is a standby, or was the primary of an earlier timeline")

// note records the identity of a server, and returns the number of its branch.
// For another run than the newest it retires the present connections. After a
// primary it refuses a standby of the same cluster, and for pastFor an earlier
// timeline.
func (h *history) note(of identity) (branch int64, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case of.run == h.seen.run:
		h.seen.timeline, h.past = max(h.seen.timeline, of.timeline), time.Time{} // a standby may be promoted
		return h.branch, nil
	case of.system == h.seen.system && of.timeline < h.seen.timeline &&
		(of.timeline == 0 || h.isPast(time.Now())):
		h.retire()
		return 0, fmt.Errorf("%w: timeline %d, not %d", errPast, of.timeline, h.seen.timeline)
	}
	h.seen, h.branch, h.past = of, h.branch+1, time.Time{}
	if h.branch > 1 {
		h.retire()
	}
	return h.branch, nil
}

// pastFor is how long servers of earlier timelines are refused if no other one
// answers. After that, theirs is the only history left, as after a restored backup.
const pastFor = time.Minute

// isPast reports whether servers of earlier timelines are refused at a time. It
// starts the period of pastFor unless that has begun. The caller holds mu.
func (h *history) isPast(now time.Time) bool {
	if h.past.IsZero() {
		h.past = now
	}
	return now.Sub(h.past) < pastFor
}

// known returns the number of the branch if the run, which has just answered, is
// the newest one.
func (h *history) known(run int64) (branch int64, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ok = run == h.seen.run; ok {
		h.past = time.Time{}
	}
	return h.branch, ok
}

// branchOf returns the number of the branch of a run that a statement on the same
// connection returned. Unless the run is the newest one, branchOf asks the server
// for its identity, and notes that.
func (d *DB) branchOf(ctx context.Context, on Conn, run int64) (branch int64, err error) {
	if branch, ok := d.Pool.history.known(run); ok {
		return branch, nil
	}
	var of identity
	err = d.Query(Uncounted(ctx), on, asked, func(rows *sql.Rows) error {
		return rows.Scan(&of.run, &of.system, &of.timeline)
	})
	if err == nil {
		branch, err = d.Pool.history.note(of)
	}
	return branch, Refused(err)
}

// CheckRun returns an error if a run of the server is not the newest one.
func (d *DB) CheckRun(ctx context.Context, run int64) error {
	if _, ok := d.Pool.history.known(run); ok {
		return nil
	}
	if err := d.ReadAt(ctx, func(Conn, changelog.Snapshot) error { return nil }); err != nil {
		return err
	}
	if _, ok := d.Pool.history.known(run); !ok {
		return Refused(errPast)
	}
	return nil
}

// renew retires connections to a server that does not accept writes: another one
// may be the primary.
func (h *history) renew() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.retire()
}

// retiredFor is how long connections are retired. After that time no statement
// with a time limit still runs on an old connection.
const retiredFor = 30 * time.Second

// retire closes the present connections once they are idle: they may lead to a
// server that is no longer the primary. A new branch begins again. The caller
// holds mu.
func (h *history) retire() {
	if h.retires == h.branch {
		return
	}
	branch := h.branch
	h.retires = branch
	go func() {
		for age := time.Second; h.limit(branch, age); age += time.Second {
			time.Sleep(time.Second)
		}
	}()
}

// limit sets the age at which connections close, and reports whether they are
// still being retired for a branch. After retiredFor it sets no age.
func (h *history) limit(branch int64, age time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.retires != branch {
		return false
	}
	if age > retiredFor {
		h.retires, age = 0, 0
	}
	for _, pool := range h.pools {
		pool.SetConnMaxLifetime(age)
	}
	return age > 0
}

// postgresConnector opens connections to servers that are not of the past.
type postgresConnector struct {
	*pq.Connector
	history *history
	hosts   []*pq.Connector // of each host, if the URL has several
}

// errNoPrimary means that none of several hosts accepts writes.
var errNoPrimary = errors.New("no host is a primary that answers")

// Connect opens a connection, and notes which server answers. If the first of
// several hosts that accepts writes is of the past, Connect tries each host.
func (c *postgresConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.dial(ctx, c.Connector)
	if errors.Is(err, errPast) {
		for _, host := range c.hosts {
			if conn, err := c.dial(ctx, host); err == nil {
				return conn, nil
			}
		}
	}
	return conn, err
}

// dial opens a connection by one connector, and notes which server answers. It
// refuses a server of the past.
func (c *postgresConnector) dial(ctx context.Context, by *pq.Connector) (driver.Conn, error) {
	conn, err := by.Connect(ctx)
	if err != nil && len(c.hosts) > 0 {
		err = fmt.Errorf("%w: %w", errNoPrimary, err)
	}
	if err != nil {
		return nil, err
	}
	of, err := identityOf(ctx, conn)
	if err == nil {
		_, err = c.history.note(of)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// meet notes every host that accepts writes, before the first one is used: a
// former primary may precede the primary.
func (c *postgresConnector) meet(ctx context.Context) {
	for _, host := range c.hosts {
		if conn, err := c.dial(ctx, host); err == nil {
			_ = conn.Close()
		}
	}
}

// identityOf asks a new connection for the identity of its server.
func identityOf(ctx context.Context, conn driver.Conn) (of identity, err error) {
	rows, err := conn.(driver.QueryerContext).QueryContext(ctx, asked, nil)
	if err != nil {
		return of, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	values := make([]driver.Value, 3)
	if err := rows.Next(values); err != nil {
		return of, err
	}
	for i, into := range []*int64{&of.run, &of.system, &of.timeline} {
		number, ok := values[i].(int64)
		if !ok {
			return of, fmt.Errorf("%w: its identity is %v", errUnfit, values)
		}
		*into = number
	}
	return of, nil
}
