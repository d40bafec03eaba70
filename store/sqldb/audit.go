package sqldb

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
	"github.com/cadastre-dev/cadastre/text"
)

// Fields are the fields of a thing in the audit log, under their names in the
// API.
type Fields map[string]any

// Event is the effect of a mutation on one thing, for the audit log. Before and
// After are Fields or a document; nil means that the thing did not exist. If
// both are equal, the log has neither.
type Event struct {
	Kind          string // the type of the thing
	Key           string // its name or uuid
	Before, After any
}

// attributedEvent is an event with the context and the mutation of its request.
// One transaction can serve several requests.
type attributedEvent struct {
	ctx      context.Context
	mutation string
	Event
}

// Record queues an event for the audit log. The transaction writes it. After
// the commit the server logs it too, without the values. ctx is the context of
// the request that caused the event.
func (tx *Tx) Record(ctx context.Context, event Event) { tx.RecordFor(ctx, tx.Mutation, event) }

// RecordFor is Record for a given mutation. It may differ from the mutation
// that began the transaction.
func (tx *Tx) RecordFor(ctx context.Context, mutation string, event Event) {
	tx.events = append(tx.events, attributedEvent{ctx, mutation, event})
}

// Flush writes the queued events, and the parts of WriteLast. Write flushes at
// the end. A mutation with too many events for memory calls Flush now and then.
func (tx *Tx) Flush(ctx context.Context) error { return tx.flushWith(ctx, nil) }

const (
	// notesAtOnce bounds the events, and the changes, of one statement.
	notesAtOnce = 1000
	// eventBytesAtOnce bounds the JSON of the events in one statement. A single
	// event may be larger.
	eventBytesAtOnce = 8 << 20
	// fewNotes bounds the parameters of a statement that has one for each value
	// of its events or changes. Beyond it, the rows are one JSON parameter.
	fewNotes = 32
)

// flushWith writes the events and the changes. The last events, the first
// changes and the parts that WriteLast postponed share a statement. Without
// changes, the parts have their own.
func (tx *Tx) flushWith(ctx context.Context, changed []changelog.Row) error {
	var rows [][]any
	size := 0
	for _, event := range tx.events {
		row, bytes, err := eventRow(event)
		if err == nil && len(rows) > 0 && (size+bytes > eventBytesAtOnce || len(rows) == notesAtOnce) {
			err = tx.writeNotes(ctx, rows, nil)
			rows, size = nil, 0
		}
		if err != nil {
			return fmt.Errorf("write audit events of %q: %w", tx.Mutation, err)
		}
		rows, size = append(rows, row), size+bytes
		event.Before, event.After = nil, nil
		tx.written = append(tx.written, event)
	}
	tx.events = nil
	if len(changed) == 0 {
		if err := tx.flushLast(ctx); err != nil {
			return err
		}
	}
	for len(rows)+len(changed) > 0 {
		n := min(len(changed), notesAtOnce)
		if err := tx.writeNotes(ctx, rows, changed[:n]); err != nil {
			return fmt.Errorf("write audit events of %q: %w", tx.Mutation, err)
		}
		rows, changed = nil, changed[n:]
	}
	return nil
}

// writeNotes inserts rows into the audit log and the log of changes, in one
// round trip. If there are changes, it sets the ID of the transaction.
func (tx *Tx) writeNotes(ctx context.Context, events [][]any, changed []changelog.Row) error {
	var statements []string
	var args []any
	if len(events) > 0 || !tx.db.Postgres() {
		args = append(args, tx.db.Now())
	}
	if len(events) > 0 {
		statements = append(statements,
			`INSERT INTO audit_events (created_at, uuid, user_id, project_id, action, kind, key, before, after) `+
				tx.eventSource(&args, events))
	}
	if tx.db.Postgres() {
		return tx.writePostgresNotes(ctx, statements, changed, args)
	}
	if len(changed) > 0 {
		statements = append(statements, tx.insertOfChanges(&args, changed, ""))
	}
	written, err := tx.ExecContext(ctx, tx.db.statement(strings.Join(statements, "; ")), args...)
	if err == nil && len(changed) > 0 && tx.ID.Number == 0 {
		tx.ID.Number, err = written.LastInsertId()
		tx.ID.Number -= int64(len(changed)) - 1 // the id of the first change
	}
	return err
}

// isFew reports whether each value of the rows gets its own parameter. Many
// rows are one parameter, since SQLite searches the list of all parameter names
// once for each parameter.
func isFew(args []any, rows [][]any) bool {
	return len(args)+len(rows)*len(rows[0]) <= fewNotes
}

// eventSource returns the source of an INSERT of events: VALUES or a SELECT.
func (tx *Tx) eventSource(args *[]any, events [][]any) string {
	if isFew(*args, events) {
		return "VALUES " + valuesOf(args, "$1, ", events)
	}
	*args = append(*args, JSONOf(events))
	return `SELECT ` + tx.db.Time("$1") +
		`, n.uuid, n.user_id, n.project_id, n.action, n.kind, n.key, n.before, n.after FROM ` +
		tx.db.Rows("$"+strconv.Itoa(len(*args)), "n", "uuid text", "user_id text", "project_id text", "action text",
			"kind text", "key text", "before text", "after text") +
		` WHERE true`
}

// writePostgresNotes writes events, changes and the postponed parts together.
// If there are changes, it sets the ID of the transaction.
func (tx *Tx) writePostgresNotes(ctx context.Context, statements []string, changed []changelog.Row, args []any) error {
	var with []string
	setting := ""
	scanned := []any{&setting}
	returned := " RETURNING " + readOnlySetting
	if len(changed) > 0 {
		whole, last := "true", tx.last
		tx.last = timedParts{}
		if len(last.parts) > 0 {
			with, whole = tx.db.together(&args, last)
		}
		for _, audit := range statements {
			with = append(with, "audit AS ("+audit+")")
		}
		statements = []string{tx.insertOfChanges(&args, changed, whole)}
		scanned = append(scanned, &tx.ID.Server, &tx.ID.Number)
		returned += ", " + changelog.ServerRun + `, "transaction"`
	}
	statement := statements[0] + returned
	if len(with) > 0 {
		statement = "WITH " + strings.Join(with, ", ") + " " + statement
	}
	err := tx.db.Query(ctx, tx, statement, func(rows *sql.Rows) error { return rows.Scan(scanned...) }, args...)
	switch {
	case err == nil && setting == "":
		return ErrRetry // a part did not write all of its rows
	case err == nil && setting == "on":
		return readOnly.refuse(nil)
	case err == nil && tx.ID.Server != 0:
		_, err = tx.db.branchOf(ctx, tx, tx.ID.Server) // a server of the past would lose the commit
	}
	return err
}

// readOnlySetting is the SQL expression for the setting with which an operator
// makes PostgreSQL read-only. The driver begins write transactions explicitly as
// READ WRITE, so the setting alone would not stop them.
const readOnlySetting = `current_setting('default_transaction_read_only')`

// eventRow returns an event as a row of the audit log, and the size of its
// JSON.
func eventRow(event attributedEvent) (row []any, bytes int, err error) {
	viewer := access.ViewerFrom(event.ctx)
	before, err := eventText(event.Before)
	if err != nil {
		return nil, 0, err
	}
	after, err := eventText(event.After)
	if err != nil {
		return nil, 0, err
	}
	if text.OrEmpty(before) == text.OrEmpty(after) {
		before, after = nil, nil
	}
	id, err := uuid.NewV7() // ids sort in the order of recording
	row = []any{id.String(), viewer.UserID, viewer.ProjectID, event.mutation, event.Kind, event.Key, before, after}
	return row, len(text.OrEmpty(before)) + len(text.OrEmpty(after)), err
}

// eventText returns one side of an event as JSON, or nil if there is none.
func eventText(side any) (*string, error) {
	if side == nil {
		return nil, nil
	}
	raw, err := json.Marshal(side)
	text := string(raw)
	return &text, err
}

func (d *DB) logEvents(events []attributedEvent) {
	for _, event := range events {
		viewer := access.ViewerFrom(event.ctx)
		d.Log.InfoContext(event.ctx, "changed", "action", event.mutation, "kind", event.Kind, "key", event.Key,
			"user", viewer.UserID, "project", viewer.ProjectID, "requestId", d.requestID(event.ctx))
	}
}
