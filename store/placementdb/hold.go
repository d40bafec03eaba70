package placementdb

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/internal/pause"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
	"github.com/cadastre-dev/cadastre/store/visible"
)

const (
	// releaseEvery is the delay of the search for ended holds after a failed
	// one, and at most the delay after a claim with holds and after a catch up.
	// The API promises the release within two seconds, and no hold is shorter
	// than one.
	releaseEvery = time.Second
	// releasedAtOnce is the maximum number of consumers released in one
	// transaction, because claims of the same providers wait for it.
	releasedAtOnce = 100
	// releaseHold is the action of the audit events of a release.
	releaseHold = "releaseHold"
)

// ConfirmAllocations makes the allocations of held consumers permanent, all or
// none. It returns the consumers, in the order of the input, or ErrNotFound if
// one has no allocations or a hold that has ended.
//
// It locks only the consumers. A release locks them, too, so the later one of
// the two sees the earlier.
func (s *PlacementStore) ConfirmAllocations(ctx context.Context,
	confirmation placement.Confirmation) ([]*placement.Consumer, error) {
	if err := problemsOf(confirmation.Validate("input")).Err(); err != nil {
		return nil, err
	}
	var consumers []*placement.Consumer
	err := s.Write(ctx, "confirmAllocations", func(tx *sqldb.Tx) error {
		c := &claimTx{Tx: tx, consumers: map[string]*consumerRow{}, now: s.Now()}
		inLedger, _, err := s.lockConsumers(ctx, c, confirmation.Consumers)
		if err != nil {
			return err
		}
		c.ledger = placement.NewLedger(inLedger, nil)
		if err := s.checkSeen(ctx, c, c.Mutation, concerned{consumers: confirmation.Consumers}); err != nil {
			return err
		}
		before := s.contentsOf(c, confirmation.Consumers)
		if refusals := c.ledger.Confirm(&confirmation, "input"); len(refusals) > 0 {
			return refusalOf(s.cache.World(), refusals)
		}
		consumers = lists.Map(confirmation.Consumers, c.consumer)
		s.recordConsumers(ctx, c, c.Mutation, confirmation.Consumers, before)
		return s.writeConfirmed(ctx, c, confirmation.Consumers)
	}, &consumers)
	if err != nil {
		return nil, fmt.Errorf("confirm allocations: %w", err)
	}
	return holding(consumers...), nil
}

// writeConfirmed clears expires_at of the held consumers, and notes them and
// their providers as changed.
func (s *PlacementStore) writeConfirmed(ctx context.Context, c *claimTx, uuids []string) error {
	var held []int64
	for _, uuid := range uuids {
		if row := c.consumers[uuid]; row.ExpiresAt != nil {
			held = append(held, row.id)
			after := c.ledger.Consumer(uuid)
			c.noteConsumer(uuid, row, after)
			for _, key := range after.SortedKeys() {
				c.Changed("ResourceProvider", key.Provider) // its held units change
			}
		}
	}
	if len(held) == 0 {
		return nil
	}
	return s.Execute(ctx, c, `UPDATE consumers SET expires_at = NULL WHERE `+s.Listed("id", "$1", "bigint"),
		sqldb.JSONOf(held))
}

// ReleaseHolds starts deleting the allocations of consumers whose hold has
// ended, and old refusals of places. Close stops it. Each server of a database
// does this.
//
// A server searches for ended holds when the first known hold ends, and at
// least every idlePoll. It also searches after its own claims with holds, and
// after commits of other servers, which notify it.
func (s *PlacementStore) ReleaseHolds() {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.keepReleasing(ctx) })
	stopSweeping := s.Repeat(refusalsSwept, "cannot delete old refusals of places, will retry", s.sweepRefusals)
	s.stopReleasing = func() {
		stopSweeping()
		cancel()
		running.Wait()
	}
}

func (s *PlacementStore) keepReleasing(ctx context.Context) {
	for ctx.Err() == nil {
		wait, err := s.releaseEnded(ctx)
		if err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "cannot release ended holds, will retry", "error", err)
			wait = releaseEvery
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-s.holdsMade:
			pause.For(ctx, min(wait, releaseEvery))
		}
		timer.Stop()
	}
}

// releaseEnded releases all consumers whose hold has ended, in several
// transactions. It returns the time until the next search.
func (s *PlacementStore) releaseEnded(ctx context.Context) (time.Duration, error) {
	for {
		// The subquery reads the clock once, so that the index serves.
		uuids, err := sqldb.Column[string](ctx, s.DB, s.Pool,
			`SELECT c.uuid FROM consumers c WHERE c.expires_at IS NOT NULL
			AND c.expires_at <= (SELECT `+s.databaseClock()+`) ORDER BY c.expires_at, c.uuid LIMIT $1`, releasedAtOnce)
		if err != nil {
			return 0, err
		}
		if len(uuids) == 0 {
			return s.untilNextEnd(ctx)
		}
		if err := s.release(ctx, uuids); err != nil {
			return 0, err
		}
	}
}

// untilNextEnd returns the time until the next hold ends, at most idlePoll.
func (s *PlacementStore) untilNextEnd(ctx context.Context) (time.Duration, error) {
	left := `CAST((julianday(c.expires_at) - julianday('now')) * 86400000 AS integer)`
	if s.Postgres() {
		left = `CAST(EXTRACT(epoch FROM c.expires_at - clock_timestamp()) * 1000 AS bigint)`
	}
	ends, err := sqldb.Column[int64](ctx, s.DB, s.Pool,
		`SELECT `+left+` FROM consumers c WHERE c.expires_at IS NOT NULL ORDER BY c.expires_at LIMIT 1`)
	if err != nil || len(ends) == 0 {
		return idlePoll, err
	}
	const rounded = 2 // milliseconds
	return min(idlePoll, time.Duration(max(ends[0], 0)+rounded)*time.Millisecond), nil
}

// release deletes the allocations of those consumers whose hold has ended. It
// decides once the consumers are locked: until then they may be confirmed, or
// released by another server.
func (s *PlacementStore) release(ctx context.Context, uuids []string) error {
	return s.Act(ctx, releaseHold, func(tx *sqldb.Tx) error {
		c, err := s.lockForClaim(ctx, tx, concerned{consumers: uuids})
		if err != nil {
			return err
		}
		before := s.contentsOf(c, uuids)
		for _, uuid := range uuids {
			c.ledger.ReleaseEnded(uuid)
		}
		released := c.ledger.Written()
		if len(released) == 0 {
			return nil
		}
		s.recordConsumers(ctx, c, releaseHold, released, before)
		return s.writeAndPublish(ctx, c)
	})
}

// databaseClock returns the SQL for the current time of the database, in the
// form of the column expires_at.
func (s *PlacementStore) databaseClock() string {
	if s.Postgres() {
		return "clock_timestamp()"
	}
	return "(strftime('%Y-%m-%d %H:%M:%f', 'now') || '+00:00')"
}

// timeOfHold returns the current time of the database, for a transaction that
// holds consumers. After the commit it makes all servers read when the first
// hold ends. The transaction itself notifies the other servers, since this
// process may end right after the commit.
func (s *PlacementStore) timeOfHold(ctx context.Context, tx *sqldb.Tx) (now time.Time, err error) {
	tx.After(func(context.Context, sqldb.Outcome) error {
		signal(s.holdsMade)
		return nil
	})
	statement, args := `SELECT `+s.databaseClock()+`, 0`, []any{}
	if s.follower != nil {
		statement = `SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '+00:00',
			pg_notify($1, $2::text || ` + changelog.ServerRun + `)`
		args = []any{s.follower.channel, s.follower.name}
	}
	err = s.Query(ctx, tx, statement, func(rows *sql.Rows) error {
		var text string
		if err := rows.Scan(&text, new(any)); err != nil {
			return err
		}
		now, err = time.Parse(sqldb.TimeLayout, text)
		return err
	}, args...)
	return now.UTC(), err
}

// timeText returns a time for a JSON parameter, or nil for none.
func timeText(t *time.Time) *string {
	if t == nil {
		return nil
	}
	return new(t.UTC().Format(sqldb.TimeLayout))
}

// HeldUnits returns the units that held consumers use, by provider and resource
// class, as allocations without a consumer. Only consumers that the viewer sees
// count.
func (s *PlacementStore) HeldUnits(ctx context.Context) ([]*placement.Allocation, error) {
	if err := visible.SeesPlacement(ctx); err != nil {
		return nil, err
	}
	seen, args := visible.ConsumerClause(ctx, "o.project_id", 1)
	var held []*placement.Allocation
	err := s.Query(ctx, s.Pool, `SELECT p.uuid, c.name, CAST(SUM(a.used) AS bigint) FROM consumers o JOIN allocations a ON a.consumer_id = o.id
		JOIN resource_providers p ON p.id = a.provider_id JOIN resource_classes c ON c.id = a.resource_class_id
		WHERE o.expires_at IS NOT NULL AND `+seen+` GROUP BY p.uuid, c.name`, func(rows *sql.Rows) error {
		of := new(placement.Allocation)
		held = append(held, of)
		return rows.Scan(&of.Provider, &of.ResourceClass, &of.Used)
	}, args...)
	if err != nil {
		return nil, fmt.Errorf("sum the units of held consumers: %w", err)
	}
	return held, nil
}
