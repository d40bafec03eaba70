package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/internal/lists"
)

// The log of changes records each thing of the API that a transaction created,
// changed or deleted. A row has the kind and the key of the thing, the number
// of the transaction, an audience, and what happened as that audience sees it
// (change.RowsOf). The transaction writes its rows itself, at its end.
// In-memory copies read the log to learn what to reload, and clients read it to
// learn what happened (changedb).
//
// PostgreSQL does not commit transactions in the order of their numbers. A
// reader that has read everything as of a snapshot resumes at the oldest
// transaction that ran at that time: all earlier ones had ended. When old
// changes are deleted, a change of kind Pruned records the first transaction
// from which the log is complete. A reader that would resume earlier must start
// over. On SQLite the numbers grow with the commits.
//
// PostgreSQL does not commit in the order of the row ids either. A transaction
// holds NotingLock while it holds ids. A reader that sees an id waits for every
// transaction that held the lock at that moment. After that, no lower id can
// appear. A transaction takes all its other locks before it writes its rows. So
// if one transaction waited for another, it has the higher ids.
//
// A change concerns a whole thing: a namespace with all its contents, a
// resource with its metadata, tags and capabilities, a provider with its
// inventories, traits and aggregates, a consumer with its allocations. A rename
// is recorded under both names. Cascading deletes are recorded too.

const (
	// DefaultChangesKept is the default of Options.ChangesKept.
	DefaultChangesKept = 90 * 24 * time.Hour
	// prunedLate is how much longer changes stay in the log than promised. So a
	// cursor can be refused as too old before the changes after it are gone.
	prunedLate = 10 * time.Minute
	// prunedEvery is how often a server deletes expired changes.
	prunedEvery = 10 * time.Minute
	// changesAtOnce bounds the changes that one statement deletes.
	changesAtOnce = 5000
	// NotingLock is a PostgreSQL advisory lock. Transactions share it from
	// before they draw the ids of their changes until they end.
	NotingLock = 7_261_005
)

// changes are the things that a transaction changes, each once, in the order of
// the first note.
type changes struct {
	list []*notedThing
	of   map[thing]*notedThing
	// begun reports whether some changes are written already.
	begun bool
}

// thing identifies a thing of the API.
type thing struct{ kind, key string }

// notedThing is a thing that the transaction changed, or one with a new
// audience, with its audiences before and after.
type notedThing struct {
	thing
	changed, affected       bool
	before, after           *change.Audience
	knowsBefore, knowsAfter bool
}

// AudienceReader reads the audiences of things of a kind within a transaction,
// by key. Its result has no entry for a missing thing.
type AudienceReader func(ctx context.Context, tx *Tx, keys []string) (map[string]*change.Audience, error)

// defaultAudience returns the audience of a thing of a kind without an
// AudienceReader. Providers, traits and resource classes are visible to
// everyone who may read their kind. Other kinds have an empty audience.
func defaultAudience(kind string) *change.Audience {
	switch change.Kind(kind) {
	case change.ResourceProvider, change.Trait, change.ResourceClass:
		return change.ToEveryone()
	}
	return change.ToProjects()
}

// AddAudienceReader registers the reader for a kind. Call it before the first
// write.
func (d *DB) AddAudienceReader(kind change.Kind, reader AudienceReader) {
	if d.audiences == nil {
		d.audiences = map[string]AudienceReader{}
	}
	d.audiences[string(kind)] = reader
}

// Changed notes things that the transaction creates, changes or deletes, by
// name or uuid. Kind is a type name of the API. A caller may note a thing
// without knowing whether it changes. At its end the transaction reads the new
// audience, unless SeenBy has set it. The old audience counts as the same,
// unless SawBefore or Was has set it.
func (tx *Tx) Changed(kind string, keys ...string) {
	for _, key := range keys {
		tx.changes.at(thing{kind, key}).changed = true
	}
}

// Created is Changed for new things.
func (tx *Tx) Created(kind string, keys ...string) {
	for _, key := range keys {
		tx.SawBefore(kind, key, nil)
	}
	tx.Changed(kind, keys...)
}

// Deleted is Changed for deleted things.
func (tx *Tx) Deleted(kind string, keys ...string) {
	for _, key := range keys {
		tx.SeenBy(kind, key, nil)
	}
	tx.Changed(kind, keys...)
}

// SawBefore sets the audience of a thing before the transaction, nil if the
// thing did not exist. The first call wins.
func (tx *Tx) SawBefore(kind, key string, audience *change.Audience) {
	if noted := tx.changes.at(thing{kind, key}); !noted.knowsBefore {
		noted.before, noted.knowsBefore = audience, true
	}
}

// SeenBy sets the audience of a thing after the transaction, nil if the thing
// is gone. The last call wins.
func (tx *Tx) SeenBy(kind, key string, audience *change.Audience) {
	noted := tx.changes.at(thing{kind, key})
	noted.after, noted.knowsAfter = audience, true
}

// Was reads the audiences of things before the transaction changes them.
func (tx *Tx) Was(ctx context.Context, kind string, keys ...string) error {
	keys = slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return tx.changes.at(thing{kind, key}).knowsBefore })
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
	for _, key := range keys {
		tx.changes.at(thing{kind, key}).affected = true
	}
	return err
}

// audiences reads the audiences of things of a kind.
func (tx *Tx) audiences(ctx context.Context, kind string, keys []string) (map[string]*change.Audience, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	read, found := tx.db.audiences[kind]
	if !found {
		return lists.Index(keys, func(key string) (string, *change.Audience) { return key, defaultAudience(kind) }), nil
	}
	audiences, err := read(ctx, tx, keys)
	if err != nil {
		return nil, fmt.Errorf("look up who sees what changed: %w", err)
	}
	return audiences, nil
}

// at returns the entry of a thing, and adds it if missing.
func (c *changes) at(of thing) *notedThing {
	noted := c.of[of]
	if noted != nil {
		return noted
	}
	if c.of == nil {
		c.of = map[thing]*notedThing{}
	}
	noted = &notedThing{thing: of}
	c.of[of] = noted
	c.list = append(c.list, noted)
	return noted
}

// isEmpty reports whether nothing changed.
func (c *changes) isEmpty() bool {
	return !slices.ContainsFunc(c.list, func(noted *notedThing) bool { return noted.changed })
}

// has reports whether a thing of one of the kinds changed.
func (c *changes) has(kinds []string) bool {
	return slices.ContainsFunc(c.list, func(noted *notedThing) bool { return noted.changed && slices.Contains(kinds, noted.kind) })
}

// changeRow is a row of the log of changes. A silent row has no audience: only
// in-memory copies read it.
type changeRow struct {
	thing
	change.Row
	silent bool
}

// values returns a row as parameters.
func (r changeRow) values() []any {
	if r.silent {
		return []any{r.kind, r.key, nil, nil, nil}
	}
	var named any
	if r.Named != nil {
		named = JSONOf(r.Named)
	}
	return []any{r.kind, r.key, string(r.Readers), string(r.What), named}
}

// changeRows returns the rows for everything noted. It reads the audiences that
// are not set.
func (tx *Tx) changeRows(ctx context.Context) ([]changeRow, error) {
	list := slices.DeleteFunc(slices.Clone(tx.changes.list), func(noted *notedThing) bool { return !noted.changed && !noted.affected })
	unknown := map[string][]string{}
	for _, noted := range list {
		if !noted.knowsAfter {
			unknown[noted.kind] = append(unknown[noted.kind], noted.key)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(unknown)) {
		read, err := tx.audiences(ctx, kind, unknown[kind])
		if err != nil {
			return nil, err
		}
		for _, key := range unknown[kind] {
			tx.SeenBy(kind, key, read[key])
		}
	}
	rows := make([]changeRow, 0, len(list))
	for _, noted := range list {
		before := noted.after
		switch {
		case noted.knowsBefore:
			before = noted.before
		case before == nil:
			before = defaultAudience(noted.kind)
		}
		said := change.RowsOf(before, noted.after, noted.changed)
		for _, row := range said {
			rows = append(rows, changeRow{thing: noted.thing, Row: row})
		}
		if len(said) == 0 && noted.changed {
			rows = append(rows, changeRow{thing: noted.thing, silent: true})
		}
	}
	return rows, nil
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
	case tx.changes.begun: // in an earlier statement
		return `(SELECT "transaction" FROM changes ORDER BY id DESC LIMIT 1)`, parameter
	}
	tx.changes.begun = true
	return `(SELECT COALESCE(MAX(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'changes')`, parameter
}

// insertOfChanges returns the INSERT of rows into the log, and appends their
// values to args. On PostgreSQL it takes NotingLock before it draws the first
// id, as the rows are joined to the subquery with the lock. That subquery first
// evaluates the condition. If it is false, the statement inserts nothing.
func (tx *Tx) insertOfChanges(args *[]any, rows []changeRow, condition string) string {
	number, at := tx.changeStamp("$1")
	into := `INSERT INTO changes ("transaction", created_at, kind, key, audience, what, named) `
	values := lists.Map(rows, changeRow.values)
	few := isFew(*args, values)
	if few && !tx.db.Postgres() {
		return into + "VALUES " + valuesOf(args, number+", "+at+", ", values)
	}
	noted := ""
	if few {
		noted = "(VALUES " + valuesOf(args, "", values) + ") AS n (kind, key, audience, what, named)"
	} else {
		*args = append(*args, JSONOf(values))
		noted = tx.db.Rows("$"+strconv.Itoa(len(*args)), "n", "kind text", "key text", "audience text", "what text", "named text")
	}
	selected := fmt.Sprintf(`SELECT %s, %s, n.kind, n.key, n.audience, n.what, n.named FROM `, number, at)
	if !tx.db.Postgres() {
		return into + selected + noted + " WHERE true"
	}
	return into + selected + fmt.Sprintf(`(SELECT pg_advisory_xact_lock_shared(%d) IS NULL AS held WHERE %s OFFSET 0) AS lock
		JOIN %s ON lock.held IS NOT NULL`, NotingLock, condition, noted)
}

// Note is a row of the log of changes, as in-memory copies read it.
type Note struct {
	Transaction int64
	Kind, Key   string
}

// NotesSince reads the changes of some kinds that a snapshot may have missed:
// those from its oldest transaction on. It also returns the snapshot of its
// statement. ok is false if the log does not reach back far enough, or if the
// snapshot belongs to another run of the PostgreSQL server.
func (d *DB) NotesSince(ctx context.Context, on Conn, since Snapshot, kinds ...string) (at Snapshot, notes []Note, ok bool, err error) {
	now := `SELECT 0 AS server, COALESCE(MAX(seq), 0) + 1 AS snapshot, NULL AS own FROM sqlite_sequence WHERE name = 'changes'`
	if d.Postgres() {
		now = `SELECT ` + ServerRun + ` AS server, pg_current_snapshot()::text AS snapshot, pg_current_xact_id_if_assigned()::text::bigint AS own`
	}
	ok = true
	err = d.Query(ctx, on, `SELECT s.server, s.snapshot, s.own, c."transaction", c.kind, c.key FROM (`+now+`) AS s
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
				if at, err = d.snapshotWritten(server, snapshot, own); err != nil {
					return err
				}
				ok = at.Server == since.Server
			}
			switch {
			case kind.V == PrunedKind:
				whole, err := strconv.ParseInt(key.V, 10, 64)
				ok = ok && err == nil && whole <= since.Oldest
			case number.Valid && !since.Sees(number.V):
				notes = append(notes, Note{number.V, kind.V, key.V})
			}
			return nil
		}, since.Oldest)
	return at, notes, ok, err
}

// snapshotWritten parses a snapshot read by NotesSince. It counts the current
// transaction as still running, so that the snapshot excludes its own writes.
func (d *DB) snapshotWritten(server int64, text string, own sql.Null[int64]) (Snapshot, error) {
	if !d.Postgres() {
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

// KeepsChanges returns the minimum time for which changes are kept.
func (d *DB) KeepsChanges() time.Duration { return d.changesKept }

// PruneChanges deletes expired changes, the lowest ids first.
func (d *DB) PruneChanges(ctx context.Context) error {
	for {
		deleted, err := int64(0), error(nil)
		if d.Postgres() {
			deleted, err = d.prunePostgresChanges(ctx)
		} else {
			var result sql.Result
			result, err = d.Pool.ExecContext(ctx, d.statement(fmt.Sprintf(`DELETE FROM changes
				WHERE id IN (SELECT id FROM changes ORDER BY id LIMIT %d) AND created_at < $1`, changesAtOnce)), d.Now().Add(-d.changesKept-prunedLate))
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

// prunePostgresChanges deletes some old changes and returns their number. One
// new change of kind Pruned replaces the earlier ones.
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
		) SELECT count(*) FROM gone`, PrunedKind, changesAtOnce, int((d.changesKept + prunedLate).Seconds()))
	err = d.Query(ctx, d.Pool, statement, func(rows *sql.Rows) error { return rows.Scan(&deleted) })
	return deleted, err
}
