package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// The log of changes has one row for each thing of the API that a transaction
// created, changed or deleted: its kind, its key, and the number of the
// transaction, which writes the rows itself at its end. Whoever keeps things in
// memory reads there what to read again.
//
// On PostgreSQL transactions do not commit in the order of their numbers. A
// reader that has read everything as of a snapshot reads the next time from the
// oldest transaction that ran then: all before it had ended. Where changes were
// deleted, one of the kind Pruned says from which transaction on the log is
// whole; a reader that would begin before it begins anew. On SQLite the numbers
// grow with the commits.
//
// A thing is noted whole: a namespace stands for all that it holds, a resource
// for its metadata, tags and capabilities, a provider for its inventories, traits
// and aggregates, and a consumer for its allocations. A thing that is renamed is
// noted under both names. What a foreign key takes along is noted too.

const (
	// keepChanges is how long changes are kept at least. A reader that has not
	// read for longer begins anew.
	keepChanges = 10 * time.Minute
	// changesAtOnce bounds how many changes are deleted in one statement.
	changesAtOnce = 5000
)

// changes are the things that a transaction changes, each once, in the order in
// which they were noted.
type changes struct {
	list [][2]string // kind and key
	seen map[[2]string]bool
	// begun says that some are written.
	begun bool
}

// Changed notes things of a kind that the transaction creates, changes or
// deletes, by their names or uuids. Kind is the name of the type in the API. It
// may be called also where it is not known whether a thing changes.
func (tx *Tx) Changed(kind string, keys ...string) {
	for _, key := range keys {
		tx.changes.add([2]string{kind, key})
	}
}

// add notes a thing, once.
func (c *changes) add(thing [2]string) {
	if c.seen[thing] {
		return
	}
	if c.seen == nil {
		c.seen = map[[2]string]bool{}
	}
	c.seen[thing] = true
	c.list = append(c.list, thing)
}

// changeStamp returns the number of the transaction and the time of its changes,
// as expressions. PostgreSQL numbers its transactions; on SQLite the first change
// of a transaction gets the id after the last one that was ever used, which is
// the number of the transaction. The time is that of PostgreSQL, since servers
// whose clocks differ compare it; on SQLite it is the parameter.
func (tx *Tx) changeStamp(parameter string) (number, at string) {
	switch {
	case tx.db.Postgres():
		return "pg_current_xact_id()::text::bigint", "clock_timestamp()"
	case tx.changes.begun: // in an earlier statement
		return `(SELECT "transaction" FROM changes ORDER BY id DESC LIMIT 1)`, parameter
	}
	tx.changes.begun = true
	return `(SELECT COALESCE(MAX(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'changes')`, parameter
}

// PrunedKind is the kind of the change that records pruning: its key is the
// number of the first transaction from which the log is complete. Only PostgreSQL
// has such changes, for the other servers that read the log.
const PrunedKind = "Pruned"

// PruneChanges deletes the changes that are kept no longer, which are the oldest
// by their ids.
func (d *DB) PruneChanges(ctx context.Context) error {
	for {
		deleted, err := int64(0), error(nil)
		if d.Postgres() {
			deleted, err = d.prunePostgresChanges(ctx)
		} else {
			var result sql.Result
			result, err = d.Pool.ExecContext(ctx, d.statement(fmt.Sprintf(`DELETE FROM changes
				WHERE id IN (SELECT id FROM changes ORDER BY id LIMIT %d) AND created_at < $1`, changesAtOnce)), d.Now().Add(-keepChanges))
			if err == nil {
				deleted, err = result.RowsAffected()
			}
		}
		if err != nil {
			return fmt.Errorf("delete old changes: %w", err)
		}
		if deleted < changesAtOnce {
			return nil
		}
	}
}

// prunePostgresChanges deletes some old changes, leaves one that says so in the
// place of those that said so before, and returns how many it deleted.
func (d *DB) prunePostgresChanges(ctx context.Context) (deleted int64, err error) {
	statement := fmt.Sprintf(`WITH gone AS (
			DELETE FROM changes WHERE id IN (SELECT id FROM changes WHERE kind <> '%[1]s' ORDER BY id LIMIT %[2]d)
				AND created_at < clock_timestamp() - make_interval(secs => %[3]d) RETURNING "transaction"
		), replaced AS (
			DELETE FROM changes WHERE kind = '%[1]s' AND EXISTS (SELECT 1 FROM gone) RETURNING key::bigint AS whole
		), noted AS (
			INSERT INTO changes ("transaction", kind, key, created_at)
			SELECT pg_current_xact_id()::text::bigint, '%[1]s', greatest(max("transaction") + 1, (SELECT max(whole) FROM replaced))::text, clock_timestamp()
			FROM gone HAVING count(*) > 0
		) SELECT count(*) FROM gone`, PrunedKind, changesAtOnce, int(keepChanges.Seconds()))
	err = d.Query(ctx, d.Pool, statement, func(rows *sql.Rows) error { return rows.Scan(&deleted) })
	return deleted, err
}
