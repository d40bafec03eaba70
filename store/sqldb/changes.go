package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
)

const (
	// DefaultChangesKept is the default of Options.ChangesKept.
	DefaultChangesKept = 90 * 24 * time.Hour
	// prunedLate is how much longer changes stay in the log than promised. So a
	// cursor can be refused as too old before the changes after it are gone.
	prunedLate = 10 * time.Minute
	// prunedEvery is how often a server deletes expired changes.
	prunedEvery = 10 * time.Minute
)

// ChangeLog returns the log of changes as a connection or a transaction reads it.
func (d *DB) ChangeLog(on Conn) changelog.Log {
	log := changelog.Log{Postgres: d.Postgres(),
		Query: func(ctx context.Context, query string, scan func(*sql.Rows) error, args ...any) error {
			return d.Query(ctx, on, query, scan, args...)
		},
		Delete: func(ctx context.Context, statement string, args ...any) (int64, error) {
			return d.delete(ctx, on, statement, args...)
		},
		Branch: func(ctx context.Context, at changelog.Snapshot) (int64, error) {
			d.Shows(at.Next)
			return d.branchOf(ctx, on, at.Server)
		},
	}
	if of := followedBy(on); of != nil {
		log.Follows = &of.run
		log.Branch = func(context.Context, changelog.Snapshot) (int64, error) { return of.branch, nil }
	}
	return log
}

// delete runs a DELETE or an UPDATE and returns the number of rows.
func (d *DB) delete(ctx context.Context, on Conn, statement string, args ...any) (int64, error) {
	result, err := on.ExecContext(ctx, d.statement(statement), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// KeepsChanges returns the minimum time for which changes are kept.
func (d *DB) KeepsChanges() time.Duration { return d.changesKept }

// PruneChanges deletes expired changes, the lowest ids first.
func (d *DB) PruneChanges(ctx context.Context) error {
	age := d.changesKept + prunedLate
	return d.ChangeLog(d.Pool).Prune(ctx, d.Now().Add(-age), age)
}

// audienceReader reads the audiences of things of a kind within a transaction,
// by key. Its result has no entry for a missing thing.
type audienceReader func(ctx context.Context, tx *Tx, keys []string) (map[string]*change.Audience, error)

// AddAudienceReader registers the reader for a kind. Call it before the first
// write.
func (d *DB) AddAudienceReader(kind change.Kind, reader audienceReader) {
	if d.audiences == nil {
		d.audiences = map[string]audienceReader{}
	}
	d.audiences[string(kind)] = reader
}

// Was reads and records the audiences of things, unless they are known already.
// Call it before the transaction changes the things.
func (tx *Tx) Was(ctx context.Context, kind string, keys ...string) error {
	keys = slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return tx.KnowsBefore(kind, key) })
	read, err := tx.audiences(ctx, kind, lists.Distinct(keys))
	for _, key := range keys {
		tx.SawBefore(kind, key, read[key])
	}
	return err
}

// Affects notes things that stay the same while their audience changes. Call it
// before the transaction changes the audience.
func (tx *Tx) Affects(ctx context.Context, kind string, keys ...string) error {
	err := tx.Was(ctx, kind, keys...)
	tx.Affected(kind, keys...)
	return err
}

// audiences reads the audiences of things of a kind.
func (tx *Tx) audiences(ctx context.Context, kind string, keys []string) (map[string]*change.Audience, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	read, found := tx.db.audiences[kind]
	if !found {
		return lists.Index(keys, func(key string) (string, *change.Audience) {
			return key, changelog.DefaultAudience(kind)
		}), nil
	}
	audiences, err := read(ctx, tx, keys)
	if err != nil {
		return nil, fmt.Errorf("look up the audiences of changes: %w", err)
	}
	return audiences, nil
}

// changeRows returns the rows for everything noted. It reads the audiences that
// are not set.
func (tx *Tx) changeRows(ctx context.Context) ([]changelog.Row, error) {
	unknown := tx.WithoutAudience()
	for _, kind := range slices.Sorted(maps.Keys(unknown)) {
		read, err := tx.audiences(ctx, kind, unknown[kind])
		if err != nil {
			return nil, err
		}
		for _, key := range unknown[kind] {
			tx.SeenBy(kind, key, read[key])
		}
	}
	return tx.Rows(), nil
}

// changeStamp returns SQL expressions for the number of the transaction and the
// time of its changes. PostgreSQL numbers its transactions. On SQLite the
// number is the id of the transaction's first change, the next id of the
// sequence. The time comes from PostgreSQL, since servers with different clocks
// compare it. On SQLite it is the parameter.
func (tx *Tx) changeStamp(parameter string) (number, at string) {
	switch {
	case tx.db.Postgres():
		return "pg_current_xact_id()::text::bigint", "clock_timestamp()"
	case tx.changesBegun: // in an earlier statement
		return `(SELECT "transaction" FROM changes ORDER BY id DESC LIMIT 1)`, parameter
	}
	tx.changesBegun = true
	return `(SELECT COALESCE(MAX(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'changes')`, parameter
}

// insertOfChanges returns the INSERT of rows into the log, and appends their
// values to args. On PostgreSQL it takes changelog.NotingLock before it draws the first
// id, as the rows are joined to the subquery with the lock. That subquery first
// evaluates the condition. If that is false, the statement inserts nothing.
func (tx *Tx) insertOfChanges(args *[]any, rows []changelog.Row, condition string) string {
	number, at := tx.changeStamp("$1")
	into := `INSERT INTO changes ("transaction", created_at, kind, key, audience, what, named) `
	values := lists.Map(rows, changelog.Row.Values)
	few := isFew(*args, values)
	if few && !tx.db.Postgres() {
		return into + "VALUES " + valuesOf(args, number+", "+at+", ", values)
	}
	noted := ""
	if few {
		noted = "(VALUES " + valuesOf(args, "", values) + ") AS n (kind, key, audience, what, named)"
	} else {
		*args = append(*args, JSONOf(values))
		noted = tx.db.Rows("$"+strconv.Itoa(len(*args)), "n", "kind text", "key text",
			"audience text", "what text", "named text")
	}
	selected := fmt.Sprintf(`SELECT %s, %s, n.kind, n.key, n.audience, n.what, n.named FROM `, number, at)
	if !tx.db.Postgres() {
		return into + selected + noted + " WHERE true"
	}
	return into + selected + fmt.Sprintf(`(SELECT pg_advisory_xact_lock_shared(%d) IS NULL AS held WHERE %s OFFSET 0) AS lock
		JOIN %s ON lock.held IS NOT NULL`, changelog.NotingLock, condition, noted)
}
