package changelog

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// prunedAtOnce bounds the changes that one statement deletes.
	prunedAtOnce = 5000
	// NotingLock is a PostgreSQL advisory lock. Transactions share it from
	// before they draw the ids of their changes until they end.
	NotingLock = 7_261_005
)

// Log reads and prunes the log of a database. Its functions run statements on
// one connection or transaction.
type Log struct {
	Postgres bool
	// Query runs a query and passes each row to scan.
	Query func(ctx context.Context, query string, scan func(*sql.Rows) error, args ...any) error
	// Delete runs a DELETE or an UPDATE and returns the number of rows.
	Delete func(ctx context.Context, statement string, args ...any) (int64, error)
	// Branch returns the branch of the run of a snapshot, or an error if the
	// run is of an earlier timeline.
	Branch func(ctx context.Context, at Snapshot) (int64, error)
	// Follows is the run of the primary that a standby follows; nil for the primary
	// itself.
	Follows *int64
}

// now returns the SQL expressions for the run of the PostgreSQL server, for the
// snapshot and for the number of the transaction itself. A snapshot of a standby
// does not name the running transactions, so it counts up to the oldest of them.
func (l Log) now() (server, snapshot, own string) {
	if l.Follows == nil {
		return ServerRun, "pg_current_snapshot()::text", "pg_current_xact_id_if_assigned()::text::bigint"
	}
	const oldest = "pg_snapshot_xmin(pg_current_snapshot())::text"
	return strconv.FormatInt(*l.Follows, 10) + "::bigint", oldest + " || ':' || " + oldest + " || ':'", "NULL::bigint"
}

// Snapshot returns the snapshot of a repeatable-read transaction.
func (l Log) Snapshot(ctx context.Context) (at Snapshot, err error) {
	if !l.Postgres {
		err = l.Query(ctx, `SELECT COALESCE(MAX(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'changes'`,
			func(rows *sql.Rows) error { return rows.Scan(&at.Next) })
		at.Oldest = at.Next
		return at, err
	}
	run, snapshot, _ := l.now()
	err = l.Query(ctx, `SELECT `+run+`, `+snapshot, func(rows *sql.Rows) error {
		var server int64
		var text string
		if err := rows.Scan(&server, &text); err != nil {
			return err
		}
		at, err = ParseSnapshot(server, text)
		return err
	})
	if err == nil {
		at.Branch, err = l.Branch(ctx, at)
	}
	return at, err
}

// Note is a row of the log of changes, as in-memory copies read it.
type Note struct{ Kind, Key string }

// Since reads the changes of some kinds that the snapshot since does not see. It
// also returns at, the snapshot of its statement. ok is false if the log does not
// reach back far enough, or if since belongs to another run of the PostgreSQL
// server.
func (l Log) Since(ctx context.Context, since Snapshot,
	kinds ...string) (at Snapshot, notes []Note, ok bool, err error) {
	now := `SELECT 0 AS server, COALESCE(MAX(seq), 0) + 1 AS snapshot, NULL AS own FROM sqlite_sequence WHERE name = 'changes'`
	if l.Postgres {
		run, snapshot, own := l.now()
		now = `SELECT ` + run + ` AS server, ` + snapshot + ` AS snapshot, ` + own + ` AS own`
	}
	ok = true
	err = l.Query(ctx, `SELECT s.server, s.snapshot, s.own, c."transaction", c.kind, c.key FROM (`+now+`) AS s
		LEFT JOIN (SELECT DISTINCT "transaction", kind, key FROM changes WHERE "transaction" >= $1 AND kind IN ('`+strings.Join(append([]string{PrunedKind}, kinds...), "', '")+`')) AS c ON true`,
		func(rows *sql.Rows) error {
			var server int64
			var snapshot string
			var own, number sql.Null[int64]
			var kind, key sql.Null[string]
			if err := rows.Scan(&server, &snapshot, &own, &number, &kind, &key); err != nil {
				return err
			}
			if at.Next == 0 {
				if at, err = l.snapshotWritten(server, snapshot, own); err != nil {
					return err
				}
				ok = at.Server == since.Server
			}
			switch {
			case kind.V == PrunedKind:
				whole, err := strconv.ParseInt(key.V, 10, 64)
				ok = ok && err == nil && whole <= since.Oldest
			case number.Valid && !since.Sees(number.V):
				notes = append(notes, Note{kind.V, key.V})
			}
			return nil
		}, since.Oldest)
	if err == nil && l.Postgres {
		at.Branch, err = l.Branch(ctx, at)
	}
	return at, notes, ok, err
}

// snapshotWritten parses a snapshot read by Since. It counts the current
// transaction as still running, so that the snapshot excludes its own writes.
func (l Log) snapshotWritten(server int64, text string, own sql.Null[int64]) (Snapshot, error) {
	if !l.Postgres {
		next, err := strconv.ParseInt(text, 10, 64)
		return Snapshot{Oldest: next, Next: next}, err
	}
	at, err := ParseSnapshot(server, text)
	if err == nil && own.Valid && at.Sees(own.V) {
		at.Running = append(at.Running, own.V)
		slices.Sort(at.Running)
		at.Oldest = min(at.Oldest, own.V)
	}
	return at, err
}

// PrunedKind is the kind of the change that records pruning: its key is the
// number of the first transaction from which the log is complete. Only PostgreSQL
// has such changes, for the other servers that read the log.
const PrunedKind = "Pruned"

// Prune deletes expired changes, the lowest ids first. On SQLite it deletes the
// changes before the given time. PostgreSQL uses its clock, and deletes the
// changes that are older than the given age.
func (l Log) Prune(ctx context.Context, before time.Time, age time.Duration) error {
	for {
		deleted, err := int64(0), error(nil)
		if l.Postgres {
			deleted, err = l.prunePostgres(ctx, age)
		} else {
			deleted, err = l.Delete(ctx, fmt.Sprintf(`DELETE FROM changes
				WHERE id IN (SELECT id FROM changes ORDER BY id LIMIT %d) AND created_at < $1`, prunedAtOnce), before)
		}
		if err != nil {
			return fmt.Errorf("delete old changes: %w", err)
		}
		if deleted < prunedAtOnce {
			return nil
		}
	}
}

// prunePostgres deletes at most prunedAtOnce old changes and returns their
// number. One new change of kind Pruned replaces the earlier ones.
func (l Log) prunePostgres(ctx context.Context, age time.Duration) (deleted int64, err error) {
	statement := fmt.Sprintf(`WITH gone AS (
			DELETE FROM changes WHERE id IN (SELECT id FROM changes WHERE kind <> '%[1]s' ORDER BY id LIMIT %[2]d)
				AND created_at < clock_timestamp() - make_interval(secs => %[3]d) RETURNING "transaction"
		), replaced AS (
			DELETE FROM changes WHERE kind = '%[1]s' AND EXISTS (SELECT 1 FROM gone) RETURNING key::bigint AS whole
		), noted AS (
			INSERT INTO changes ("transaction", kind, key, created_at)
			SELECT pg_current_xact_id()::text::bigint, '%[1]s', greatest(max("transaction") + 1, (SELECT max(whole) FROM replaced))::text, clock_timestamp()
			FROM gone HAVING count(*) > 0
		) SELECT count(*) FROM gone`, PrunedKind, prunedAtOnce, int(age.Seconds()))
	err = l.Query(ctx, statement, func(rows *sql.Rows) error { return rows.Scan(&deleted) })
	return deleted, err
}

// Renumber replaces transaction numbers that this PostgreSQL server has not yet
// reached, as in a backup of another server, by the number of the current
// transaction. Otherwise readers would read such changes again and again.
func (l Log) Renumber(ctx context.Context) error {
	if !l.Postgres {
		return nil
	}
	future, some := ` WHERE "transaction" >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint`, false
	err := l.Query(ctx, `SELECT EXISTS (SELECT 1 FROM changes`+future+`)`, func(rows *sql.Rows) error {
		return rows.Scan(&some)
	})
	if err == nil && some {
		_, err = l.Delete(ctx, `UPDATE changes SET "transaction" = pg_current_xact_id()::text::bigint,
			key = CASE kind WHEN '`+PrunedKind+`' THEN pg_current_xact_id()::text ELSE key END`+future)
	}
	if err != nil {
		return fmt.Errorf("renumber the changes of another server: %w", err)
	}
	return nil
}
