package placementdb

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

const (
	// releaseEvery is the interval at which each server looks for ended holds.
	// The API promises the release within two seconds.
	releaseEvery = time.Second
	// releasedAtOnce is the maximum number of consumers released in one
	// transaction, because claims of the same providers wait for it.
	releasedAtOnce = 100
	// releaseHold is the action of the audit events of a release.
	releaseHold = "releaseHold"
)

// ConfirmAllocations ends the holds of consumers, all or none. It returns the
// consumers, in the order of the input.
//
// It locks the consumers alone: a release locks them, too, so that one of the
// two sees the other.
func (s *PlacementStore) ConfirmAllocations(ctx context.Context, confirmation placement.Confirmation) ([]*placement.Consumer, error) {
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
		if refusals := c.ledger.Confirm(&confirmation, "input"); len(refusals) > 0 {
			return refusalOf(s.cache.World(), refusals)
		}
		consumers = lists.Map(confirmation.Consumers, c.consumer)
		return s.writeConfirmed(ctx, c, confirmation.Consumers)
	}, &consumers)
	if err != nil {
		return nil, fmt.Errorf("confirm allocations: %w", err)
	}
	return holding(consumers...), nil
}

// writeConfirmed writes confirmed consumers.
func (s *PlacementStore) writeConfirmed(ctx context.Context, c *claimTx, uuids []string) error {
	rows := make([]int64, len(uuids))
	for i, uuid := range uuids {
		rows[i] = c.consumers[uuid].id
		c.noteConsumer(uuid, c.consumers[uuid], c.ledger.Consumer(uuid))
	}
	recordConsumers(ctx, c.Tx, c.Mutation, uuids)
	return s.Execute(ctx, c, `UPDATE consumers SET expires_at = NULL WHERE expires_at IS NOT NULL AND `+s.Listed("id", "$1", "bigint"), sqldb.JSONOf(rows))
}

// ReleaseHolds starts deleting the allocations of consumers whose hold has
// ended. Close stops it. Each server of a database does this.
func (s *PlacementStore) ReleaseHolds() {
	s.stopReleasing = s.Repeat(releaseEvery, "cannot release ended holds, will retry", s.releaseEnded)
}

// releaseEnded releases all consumers whose hold has ended, in several
// transactions.
func (s *PlacementStore) releaseEnded(ctx context.Context) error {
	for {
		uuids, err := sqldb.Column[string](ctx, s.DB, s.Pool, `SELECT c.uuid FROM consumers c WHERE `+s.hasEnded("c")+`
			ORDER BY c.expires_at, c.uuid LIMIT $1`, releasedAtOnce)
		if err != nil || len(uuids) == 0 {
			return err
		}
		if err := s.release(ctx, uuids); err != nil {
			return err
		}
	}
}

// release deletes the allocations of those consumers whose hold has ended. It
// decides once they are locked: meanwhile they may be confirmed, or released by
// another server.
func (s *PlacementStore) release(ctx context.Context, uuids []string) error {
	return s.Act(ctx, releaseHold, func(tx *sqldb.Tx) error {
		c, err := s.lockForClaim(ctx, tx, concerned{consumers: uuids})
		if err != nil {
			return err
		}
		for _, uuid := range uuids {
			c.ledger.ReleaseEnded(uuid)
		}
		released := c.ledger.Written()
		if len(released) == 0 {
			return nil
		}
		recordConsumers(ctx, tx, releaseHold, released)
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

// hasEnded returns the condition that the hold of a consumer has ended. It is
// NULL for a consumer that is not held.
func (s *PlacementStore) hasEnded(alias string) string {
	return alias + ".expires_at <= " + s.databaseClock()
}

// databaseTime returns the current time of the database.
func (s *PlacementStore) databaseTime(ctx context.Context, on sqldb.Conn) (now time.Time, err error) {
	clock := s.databaseClock()
	if s.Postgres() {
		clock = `to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '+00:00'`
	}
	err = s.Query(ctx, on, `SELECT `+clock, func(rows *sql.Rows) error {
		var text string
		if err := rows.Scan(&text); err != nil {
			return err
		}
		now, err = time.Parse(timeLayout, text)
		return err
	})
	return now.UTC(), err
}

// timeLayout is the form of times in a JSON parameter. SQLite stores it as it
// is.
const timeLayout = "2006-01-02 15:04:05.999999999-07:00"

// timeText returns a time for a JSON parameter, or nil for none.
func timeText(t *time.Time) *string {
	if t == nil {
		return nil
	}
	return new(t.UTC().Format(timeLayout))
}

// inUTC returns a time in UTC, or nil for none.
func inUTC(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	return new(t.UTC())
}
