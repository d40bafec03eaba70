package sqldb

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

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

// changedThing is a thing of the API that a transaction created, changed or
// deleted.
type changedThing struct{ kind, key string }

// Record notes an event, which is written into the audit log with the
// transaction, and without its values into the log of the server once that is
// committed. The context is that of the request that it is due to.
func (tx *Tx) Record(ctx context.Context, event Event) {
	tx.events = append(tx.events, attributedEvent{ctx, event})
}

// Changed notes things of a kind that the transaction creates, changes or
// deletes, by their names or uuids. Each gets one row in the log of changes. Kind
// is the name of the type in the API.
func (tx *Tx) Changed(kind string, keys ...string) {
	for _, key := range keys {
		thing := changedThing{kind, key}
		if !tx.changed[thing] {
			tx.changed[thing] = true
			tx.changes = append(tx.changes, thing)
		}
	}
}

// Flush writes what has been noted so far. Write does so at the end; a mutation
// that notes more than is to be kept in memory does so from time to time.
func (tx *Tx) Flush(ctx context.Context) error {
	if len(tx.events)+len(tx.changes) == 0 {
		return nil
	}
	now := tx.db.Now()
	events := make([][]any, len(tx.events))
	for i, event := range tx.events {
		var err error
		if events[i], err = tx.eventRow(event); err != nil {
			return fmt.Errorf("record %s: %w", tx.mutation, err)
		}
	}
	if err := tx.writeNotes(ctx, events, now); err != nil {
		return fmt.Errorf("record %s: %w", tx.mutation, err)
	}
	for _, event := range tx.events {
		event.Before, event.After = nil, nil
		tx.log = append(tx.log, event)
	}
	tx.events, tx.changes = nil, nil
	return nil
}

// eventRow is an event as a row of the audit log.
func (tx *Tx) eventRow(event attributedEvent) ([]any, error) {
	viewer := access.ViewerFrom(event.ctx)
	before, err := eventText(event.Before)
	if err != nil {
		return nil, err
	}
	after, err := eventText(event.After)
	if err != nil {
		return nil, err
	}
	if TextOrEmpty(before) == TextOrEmpty(after) {
		before, after = nil, nil
	}
	return []any{viewer.UserID, viewer.ProjectID, tx.mutation, event.Kind, event.Key, before, after}, nil
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

// writeNotes writes events and changes, in one statement.
func (tx *Tx) writeNotes(ctx context.Context, events [][]any, now time.Time) error {
	return tx.db.Execute(ctx, tx, `INSERT INTO audit_events (created_at, user_id, project_id, action, kind, key, before, after)
		SELECT `+tx.db.Time("$1")+`, e.user_id, e.project_id, e.action, e.kind, e.key, e.before, e.after FROM `+
		tx.db.Rows("$2", "e", "user_id text", "project_id text", "action text", "kind text", "key text", "before text", "after text"),
		now, JSONOf(events))
}

// logEvents writes a line for each event into the log of the server.
func (d *DB) logEvents(mutation string, events []attributedEvent) {
	for _, event := range events {
		viewer := access.ViewerFrom(event.ctx)
		d.Log.InfoContext(event.ctx, "changed", "action", mutation, "kind", event.Kind, "key", event.Key,
			"user", viewer.UserID, "project", viewer.ProjectID, "requestId", d.requestID(event.ctx))
	}
}

// IsEmpty reports whether nothing has been noted.
func (tx *Tx) IsEmpty() bool { return len(tx.log)+len(tx.events)+len(tx.changed) == 0 }
