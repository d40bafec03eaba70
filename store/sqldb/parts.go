package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/internal/lists"
)

// Part is one of several statements that write together. Each returns a row for
// every row that it writes. If their number is not Rows, the transaction is
// retried (ErrRetry). On PostgreSQL the parts form one statement: each part
// sees the rows from before the statement, and the output of another part only
// under that part's name.
type Part struct {
	Name string
	// Text is the statement. {at} is a placeholder for the time of the write,
	// {rows} for the rows as JSON.
	Text string
	Rows int
	JSON string
}

// PartOf returns a Part for rows.
func PartOf[R any](name, text string, rows []R) Part {
	return Part{Name: name, Text: text, Rows: len(rows), JSON: JSONOf(rows)}
}

// spelled returns the text of a part with its placeholders replaced.
func (d *DB) spelled(p Part, at, rows string) string {
	return strings.NewReplacer("{at}", d.Time(at), "{rows}", rows).Replace(p.Text)
}

// timedParts are parts and the time of their write.
type timedParts struct {
	at    time.Time
	parts []Part
}

// WriteParts runs parts with the given time, unless no part has rows.
func (tx *Tx) WriteParts(ctx context.Context, at time.Time, parts []Part) error {
	if !writeRows(parts) {
		return nil
	}
	if !tx.db.Postgres() {
		return tx.writeEach(ctx, at, parts)
	}
	var args []any
	with, whole := tx.db.together(&args, timedParts{at, parts})
	written, err := Column[int](ctx, tx.db, tx, "WITH "+strings.Join(with, ", ")+" SELECT 1 WHERE "+whole, args...)
	if err == nil && len(written) == 0 {
		err = ErrRetry
	}
	return err
}

// WriteLast runs parts together with the statement that writes the notes of the
// transaction. This saves a round trip to PostgreSQL. They must be its last
// writes, in one call: later reads of the transaction may or may not see them.
// They count as part of that statement, on SQLite too.
func (tx *Tx) WriteLast(ctx context.Context, at time.Time, parts []Part) error {
	if !tx.db.Postgres() {
		return tx.WriteParts(Uncounted(ctx), at, parts)
	}
	if writeRows(parts) {
		tx.last = timedParts{at, parts}
	}
	return nil
}

// flushLast runs the postponed parts alone, as no statement with changes follows.
func (tx *Tx) flushLast(ctx context.Context) error {
	last := tx.last
	tx.last = timedParts{}
	return tx.WriteParts(ctx, last.at, last.parts)
}

// writeRows reports whether any part has rows.
func writeRows(parts []Part) bool {
	return slices.ContainsFunc(parts, func(p Part) bool { return p.Rows > 0 })
}

// together returns parts as entries of a WITH clause, and the condition that
// they wrote all their rows. It appends their parameters to args. The text
// depends only on which parts there are.
func (d *DB) together(args *[]any, of timedParts) (with []string, whole string) {
	parameter := func(value any) string {
		*args = append(*args, value)
		return "$" + strconv.Itoa(len(*args))
	}
	at := parameter(of.at)
	var counts []string
	for _, p := range of.parts {
		with = append(with, fmt.Sprintf("%s AS (%s)", p.Name, d.spelled(p, at, parameter(p.JSON))))
		counts = append(counts, "(SELECT count(*) FROM "+p.Name+")")
	}
	expected := lists.Map(of.parts, func(p Part) string { return strconv.Itoa(p.Rows) })
	return with, "ARRAY[" + strings.Join(counts, ", ") + "] = " +
		parameter("{"+strings.Join(expected, ",")+"}") + "::bigint[]"
}

// writeEach runs parts one after the other, except parts without rows. They
// count as one statement, as on PostgreSQL.
func (tx *Tx) writeEach(ctx context.Context, at time.Time, parts []Part) error {
	for _, p := range parts {
		if p.Rows == 0 {
			continue
		}
		written := 0
		err := tx.db.Query(ctx, tx, tx.db.spelled(p, "$1", "$2"), func(*sql.Rows) error {
			written++
			return nil
		}, at, p.JSON)
		if err == nil && written != p.Rows {
			err = ErrRetry
		}
		if err != nil {
			return err
		}
		ctx = Uncounted(ctx)
	}
	return nil
}
