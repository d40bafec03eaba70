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

// The log of changes has rows for each thing of the API that a transaction
// created, changed or deleted: its kind, its key, the number of the transaction,
// which writes the rows itself at its end, and for whom a row is, with what
// happened as those see it (change.RowsOf). Whoever keeps things in memory reads
// there what to read again, and clients read there what happened (changedb).
//
// On PostgreSQL transactions do not commit in the order of their numbers. A
// reader that has read everything as of a snapshot reads the next time from the
// oldest transaction that ran then: all before it had ended. Where changes were
// deleted, one of the kind Pruned says from which transaction on the log is
// whole; a reader that would begin before it begins anew. On SQLite the numbers
// grow with the commits.
//
// Nor do they commit in the order of the ids of their rows. While a transaction
// holds ids it holds NotingLock, too: what is found below an id once all have
// gone who held the lock when the id was seen is all that there will ever be.
// The rows are written when the transaction has every other lock that it takes,
// so of two of which one waited for the other the later one has the higher ids.
//
// A thing is noted whole: a namespace stands for all that it holds, a resource
// for its metadata, tags and capabilities, a provider for its inventories, traits
// and aggregates, and a consumer for its allocations. A thing that is renamed is
// noted under both names. What a foreign key takes along is noted too.

const (
	// DefaultChangesKept is how long changes are kept, where nothing else is said.
	DefaultChangesKept = 90 * 24 * time.Hour
	// prunedLate is how much longer they stay, so that a place in the log can be
	// told to be too old before what follows it is gone.
	prunedLate = 10 * time.Minute
	// prunedEvery is how often a server deletes what is kept no longer.
	prunedEvery = 10 * time.Minute
	// changesAtOnce bounds how many changes are deleted in one statement.
	changesAtOnce = 5000
	// NotingLock is the advisory lock of PostgreSQL that transactions share from
	// before they draw the ids of their changes until they end.
	NotingLock = 7_261_005
)

// changes are the things that a transaction changes, each once, in the order in
// which they were noted.
type changes struct {
	list []*notedThing
	of   map[thing]*notedThing
	// begun says that some are written.
	begun bool
}

// thing is a thing of the API.
type thing struct{ kind, key string }

// notedThing is a thing that a transaction changed, or that others may see than
// before, with who sees it.
type notedThing struct {
	thing
	changed, affected       bool
	before, after           *change.Audience
	knowsBefore, knowsAfter bool
}

// AudienceReader reads who sees things of a kind, by their keys, as a transaction
// sees them. Those that are not there are left out.
type AudienceReader func(ctx context.Context, tx *Tx, keys []string) (map[string]*change.Audience, error)

// defaultAudience returns who sees a thing of a kind where nothing says it: of some
// kinds whoever may read them sees all things, of others nobody else is told.
func defaultAudience(kind string) *change.Audience {
	switch change.Kind(kind) {
	case change.ResourceProvider, change.Trait, change.ResourceClass:
		return change.ToEveryone()
	}
	return change.ToProjects()
}

// AddAudienceReader says how it is read who sees things of a kind. It is called
// before anything is written.
func (d *DB) AddAudienceReader(kind change.Kind, reader AudienceReader) {
	if d.audiences == nil {
		d.audiences = map[string]AudienceReader{}
	}
	d.audiences[string(kind)] = reader
}

// Changed notes things of a kind that the transaction creates, changes or
// deletes, by their names or uuids. Kind is the name of the type in the API. It
// may be called also where it is not known whether a thing changes. Who sees it
// after is read when the transaction ends, unless SeenBy says so; who saw it
// before is taken to be the same, unless SawBefore or Was say otherwise.
func (tx *Tx) Changed(kind string, keys ...string) {
	for _, key := range keys {
		tx.changes.at(thing{kind, key}).changed = true
	}
}

// Created is Changed for things that were not there.
func (tx *Tx) Created(kind string, keys ...string) {
	for _, key := range keys {
		tx.SawBefore(kind, key, nil)
	}
	tx.Changed(kind, keys...)
}

// Deleted is Changed for things that are not there any more.
func (tx *Tx) Deleted(kind string, keys ...string) {
	for _, key := range keys {
		tx.SeenBy(kind, key, nil)
	}
	tx.Changed(kind, keys...)
}

// SawBefore says who saw a thing before the transaction changed anything, nil
// where it was not there. What is said first holds.
func (tx *Tx) SawBefore(kind, key string, audience *change.Audience) {
	if noted := tx.changes.at(thing{kind, key}); !noted.knowsBefore {
		noted.before, noted.knowsBefore = audience, true
	}
}

// SeenBy says who sees a thing when the transaction has ended, nil where it is
// not there. What is said last holds.
func (tx *Tx) SeenBy(kind, key string, audience *change.Audience) {
	noted := tx.changes.at(thing{kind, key})
	noted.after, noted.knowsAfter = audience, true
}

// Was reads who sees things of a kind, before the transaction changes that.
func (tx *Tx) Was(ctx context.Context, kind string, keys ...string) error {
	keys = slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return tx.changes.at(thing{kind, key}).knowsBefore })
	read, err := tx.audiences(ctx, kind, Distinct(keys))
	for _, key := range keys {
		tx.SawBefore(kind, key, read[key])
	}
	return err
}

// Affects notes things of a kind that stay as they are and that others may see
// than before, once the transaction has changed what decides that.
func (tx *Tx) Affects(ctx context.Context, kind string, keys ...string) error {
	err := tx.Was(ctx, kind, keys...)
	for _, key := range keys {
		tx.changes.at(thing{kind, key}).affected = true
	}
	return err
}

// audiences reads who sees things of a kind.
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

// at returns what is noted of a thing.
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

// has reports whether a thing of some kinds changed.
func (c *changes) has(kinds []string) bool {
	return slices.ContainsFunc(c.list, func(noted *notedThing) bool { return noted.changed && slices.Contains(kinds, noted.kind) })
}

// changeRow is a row of the log of changes; without readers nobody reads it but
// who keeps things in memory.
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

// changeRows returns the rows of all that was noted. It reads who sees the things
// of which that is not known.
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

// insertOfChanges returns the statement that writes rows of the log, whose values
// are added to its parameters. On PostgreSQL it takes NotingLock before the first
// id is drawn: the rows are joined to what takes it. It does so after what a condition
// reads, and writes nothing where that does not hold.
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

// Note is a row of the log of changes to whoever keeps things in memory.
type Note struct {
	Transaction int64
	Kind, Key   string
}

// NotesSince reads what the log has of some kinds of the transactions that a
// snapshot may not have seen, which are those from its oldest on, and the snapshot
// of the statement itself. It reports false where the log does not reach back so
// far, or where the numbers of the transactions are those of another run of the
// server.
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

// snapshotWritten reads a snapshot as a statement of NotesSince has it. What the
// transaction of the statement wrote itself is not among what it sees of others.
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

// KeepsChanges returns how long changes are kept at least.
func (d *DB) KeepsChanges() time.Duration { return d.changesKept }

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
		) SELECT count(*) FROM gone`, PrunedKind, changesAtOnce, int((d.changesKept + prunedLate).Seconds()))
	err = d.Query(ctx, d.Pool, statement, func(rows *sql.Rows) error { return rows.Scan(&deleted) })
	return deleted, err
}
