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
	"github.com/cadastre-dev/cadastre/text"
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

// attributedEvent is an event with the context and the mutation of the request
// that made it: a transaction can serve several.
type attributedEvent struct {
	ctx      context.Context
	mutation string
	Event
}

// Record notes an event, which is written into the audit log with the
// transaction, and without its values into the log of the server once that is
// committed. The context is that of the request that it is due to.
func (tx *Tx) Record(ctx context.Context, event Event) { tx.RecordFor(ctx, tx.Mutation, event) }

// RecordFor is Record for a request whose mutation need not be the one that the
// transaction was begun for.
func (tx *Tx) RecordFor(ctx context.Context, mutation string, event Event) {
	tx.events = append(tx.events, attributedEvent{ctx, mutation, event})
}

// Flush writes the events that were recorded so far. Write does so at the end; a
// mutation that records more than is to be kept in memory does so from time to
// time.
func (tx *Tx) Flush(ctx context.Context) error { return tx.flushWith(ctx, nil) }

const (
	// notesAtOnce bounds the events, and the changes, of one statement.
	notesAtOnce = 1000
	// eventBytesAtOnce bounds the texts of the events of one statement; a single
	// event may have more.
	eventBytesAtOnce = 8 << 20
	// fewNotes bounds the parameters of statements that write notes; where there
	// were more, rows are lists in one parameter.
	fewNotes = 32
)

// flushWith writes events, with the last of them changes, and with the first of these
// what was left for the last statement (WriteLast).
func (tx *Tx) flushWith(ctx context.Context, changed []changeRow) error {
	var rows [][]any
	size := 0
	for _, event := range tx.events {
		row, bytes, err := eventRow(event)
		if err == nil && len(rows) > 0 && (size+bytes > eventBytesAtOnce || len(rows) == notesAtOnce) {
			err = tx.writeNotes(ctx, rows, nil)
			rows, size = nil, 0
		}
		if err != nil {
			return fmt.Errorf("record what %q did: %w", tx.Mutation, err)
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
			return fmt.Errorf("record what %q did: %w", tx.Mutation, err)
		}
		rows, changed = nil, changed[n:]
	}
	return nil
}

// writeNotes writes rows of the audit log and of the log of changes, sent to the
// database as one statement.
func (tx *Tx) writeNotes(ctx context.Context, events [][]any, changed []changeRow) error {
	var statements []string
	var args []any
	if len(events) > 0 || !tx.db.Postgres() {
		args = append(args, tx.db.Now())
	}
	if len(events) > 0 {
		statements = append(statements, `INSERT INTO audit_events (created_at, uuid, user_id, project_id, action, kind, key, before, after) `+
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

// isFew reports whether rows of notes are parameters each. Many are one parameter:
// SQLite looks for the name of each among those of all.
func isFew(args []any, rows [][]any) bool {
	return len(args)+len(rows)*len(rows[0]) <= fewNotes
}

// eventSource returns where the rows of an INSERT of events come from.
func (tx *Tx) eventSource(args *[]any, events [][]any) string {
	if isFew(*args, events) {
		return "VALUES " + valuesOf(args, "$1, ", events)
	}
	*args = append(*args, JSONOf(events))
	return `SELECT ` + tx.db.Time("$1") + `, n.uuid, n.user_id, n.project_id, n.action, n.kind, n.key, n.before, n.after FROM ` +
		tx.db.Rows("$"+strconv.Itoa(len(*args)), "n", "uuid text", "user_id text", "project_id text", "action text", "kind text", "key text", "before text", "after text") +
		` WHERE true`
}

// writePostgresNotes writes events, with them changes and what was left for the last
// statement, and reads what the transaction is named in the log of changes.
func (tx *Tx) writePostgresNotes(ctx context.Context, statements []string, changed []changeRow, args []any) error {
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
		returned += ", " + ServerRun + `, "transaction"`
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
		return ReadOnly.Refuse(nil)
	}
	return err
}

// readOnlySetting is by which an operator keeps PostgreSQL from being written. The
// driver begins transactions that write as such, whatever it says.
const readOnlySetting = `current_setting('default_transaction_read_only')`

// eventRow returns an event as a row of the audit log, with the bytes of its
// texts.
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
	id, err := uuid.NewV7() // sorts as the events were recorded
	row = []any{id.String(), viewer.UserID, viewer.ProjectID, event.mutation, event.Kind, event.Key, before, after}
	return row, len(text.OrEmpty(before)) + len(text.OrEmpty(after)), err
}

// eventText returns one side of an event as JSON; nil for nothing.
func eventText(side any) (*string, error) {
	if side == nil {
		return nil, nil
	}
	raw, err := json.Marshal(side)
	text := string(raw)
	return &text, err
}

// logEvents writes a line for each event into the log of the server.
func (d *DB) logEvents(events []attributedEvent) {
	for _, event := range events {
		viewer := access.ViewerFrom(event.ctx)
		d.Log.InfoContext(event.ctx, "changed", "action", event.mutation, "kind", event.Kind, "key", event.Key,
			"user", viewer.UserID, "project", viewer.ProjectID, "requestId", d.requestID(event.ctx))
	}
}
