package sqldb

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/cadastre-dev/cadastre/access"
)

// Fields is how a thing looked in the audit log: its fields under their names in
// the API.
type Fields map[string]any

// Event is what a mutation did to one thing, for the audit log. Before and After
// are fields or a document; nil stands for nothing. One that leaves the thing as
// it was is written without either.
type Event struct {
	Kind          string // the type of the thing
	Key           string // its name or uuid
	Before, After any
}

// attributedEvent is an event with the context of the request that made it: a
// transaction can serve several.
type attributedEvent struct {
	ctx context.Context
	Event
}

// Record notes an event, which is written into the audit log with the
// transaction, and without its values into the log of the server once that is
// committed. The context is that of the request that it is due to.
func (tx *Tx) Record(ctx context.Context, event Event) {
	tx.events = append(tx.events, attributedEvent{ctx, event})
}

// Flush writes the events that were recorded so far. Write does so at the end; a
// mutation that records more than is to be kept in memory does so from time to
// time.
func (tx *Tx) Flush(ctx context.Context) error { return tx.flush(ctx, nil) }

// mostEventBytes bounds the texts of the events that are written in one
// statement; one event may have more.
const mostEventBytes = 8 << 20

// flush writes events, and with the last of them changes.
func (tx *Tx) flush(ctx context.Context, changes [][2]string) error {
	rows := make([][]any, 0, len(tx.events))
	size := 0
	for _, event := range tx.events {
		row, bytes, err := tx.eventRow(event)
		if err == nil && len(rows) > 0 && size+bytes > mostEventBytes {
			err = tx.writeNotes(ctx, rows, nil)
			rows, size = rows[:0], 0
		}
		if err != nil {
			return fmt.Errorf("record %s: %w", tx.Mutation, err)
		}
		rows, size = append(rows, row), size+bytes
		event.Before, event.After = nil, nil
		tx.written = append(tx.written, event)
	}
	tx.events = nil
	if len(rows)+len(changes) == 0 {
		return nil
	}
	if err := tx.writeNotes(ctx, rows, changes); err != nil {
		return fmt.Errorf("record %s: %w", tx.Mutation, err)
	}
	return nil
}

// writeNotes writes rows of the audit log and of the log of changes, sent to the
// database as one statement.
func (tx *Tx) writeNotes(ctx context.Context, events [][]any, changes [][2]string) error {
	d := tx.db
	audit := `INSERT INTO audit_events (created_at, user_id, project_id, action, kind, key, before, after)
		SELECT ` + d.Time("$1") + `, e.user_id, e.project_id, e.action, e.kind, e.key, e.before, e.after FROM ` +
		d.Rows("$2", "e", "user_id text", "project_id text", "action text", "kind text", "key text", "before text", "after text")
	into := `INSERT INTO changes ("transaction", kind, key, created_at) SELECT `
	from := `, c.kind, c.key, ` + d.sharedTime("$1") + ` FROM ` + d.Rows("$3", "c", "kind text", "key text")
	statement := audit + `; ` + into + sqliteTransaction + from
	if d.Postgres() {
		statement = `WITH audit AS (` + audit + `) ` + into + postgresTransaction + from
	}
	return d.Execute(ctx, tx, statement, d.Now(), JSONOf(events), JSONOf(changes))
}

// eventRow is an event as a row of the audit log, with the bytes of its texts.
func (tx *Tx) eventRow(event attributedEvent) (row []any, bytes int, err error) {
	viewer := access.ViewerFrom(event.ctx)
	before, err := eventText(event.Before)
	if err != nil {
		return nil, 0, err
	}
	after, err := eventText(event.After)
	if err != nil {
		return nil, 0, err
	}
	if TextOrEmpty(before) == TextOrEmpty(after) {
		before, after = nil, nil
	}
	row = []any{viewer.UserID, viewer.ProjectID, tx.Mutation, event.Kind, event.Key, before, after}
	return row, len(TextOrEmpty(before)) + len(TextOrEmpty(after)), nil
}

// eventText is one side of an event as JSON; nil for nothing.
func eventText(side any) (*string, error) {
	if side == nil {
		return nil, nil
	}
	raw, err := json.Marshal(side)
	text := string(raw)
	return &text, err
}

// logEvents writes a line for each event into the log of the server.
func (d *DB) logEvents(mutation string, events []attributedEvent) {
	for _, event := range events {
		viewer := access.ViewerFrom(event.ctx)
		d.Log.InfoContext(event.ctx, "changed", "action", mutation, "kind", event.Kind, "key", event.Key,
			"user", viewer.UserID, "project", viewer.ProjectID, "requestId", d.requestID(event.ctx))
	}
}
