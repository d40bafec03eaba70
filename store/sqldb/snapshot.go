package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Snapshot is what a transaction that reads sees of others: of those that had
// ended when it began everything, of others nothing. Transactions are numbered
// when they begin to write. On PostgreSQL they commit in any order, so that their
// numbers alone do not tell. Of two snapshots the later one sees all that the
// earlier one does.
type Snapshot struct {
	// Server tells a run of the database server from others: transactions that a
	// crash undid leave their numbers to later ones. It is 0 on SQLite.
	Server int64
	// Oldest is the oldest transaction that ran: all before it had ended.
	Oldest int64
	// Next is greater than the number of every transaction that had begun.
	Next int64
	// Running are the transactions from Oldest to Next that ran, sorted.
	Running []int64
}

// TransactionID is a transaction of a run of the database server.
type TransactionID struct{ Server, Number int64 }

// Contains reports whether a transaction had ended, so that all it committed is
// seen. It is false for one of another run of the server, of which that is not
// known.
func (s Snapshot) Contains(t TransactionID) bool {
	return t.Server == s.Server && s.Sees(t.Number)
}

// Sees reports whether a transaction of the same run of the server had ended.
func (s Snapshot) Sees(number int64) bool {
	_, running := slices.BinarySearch(s.Running, number)
	return number < s.Next && !running
}

// HasEnded reports whether a transaction does not run any more, given that it had
// begun when the snapshot was taken. What a crash undid has ended, too.
func (s Snapshot) HasEnded(t TransactionID) bool {
	return s.Sees(t.Number) || s.Server != t.Server && t.Number >= s.Next
}

// IsBefore reports whether a snapshot was taken before another one of the same
// run of the server, and sees less.
func (s Snapshot) IsBefore(other Snapshot) bool {
	return s.Next < other.Next || s.Next == other.Next && len(s.Running) > len(other.Running)
}

// ParseSnapshot reads a snapshot as PostgreSQL writes it: "10:20:10,14,15" is
// the oldest running transaction, the next one, and those that run.
func ParseSnapshot(server int64, text string) (Snapshot, error) {
	oldest, rest, _ := strings.Cut(text, ":")
	next, running, whole := strings.Cut(rest, ":")
	s := Snapshot{Server: server}
	fields := strings.FieldsFunc(running, func(r rune) bool { return r == ',' })
	for i, field := range append([]string{oldest, next}, fields...) {
		number, err := strconv.ParseInt(field, 10, 64)
		if err != nil || !whole {
			return Snapshot{}, fmt.Errorf("the snapshot %q is not oldest:next:running", text)
		}
		switch i {
		case 0:
			s.Oldest = number
		case 1:
			s.Next = number
		default:
			s.Running = append(s.Running, number)
		}
	}
	slices.Sort(s.Running)
	return s, nil
}

// ServerRun is the run of a PostgreSQL server (Snapshot.Server) as an expression. After a crash of
// one of its processes the server recovers without starting anew, but its
// statistics begin again.
const ServerRun = `(extract(epoch FROM greatest(pg_postmaster_start_time(), pg_stat_get_bgwriter_stat_reset_time())) * 1000000)::bigint`

// SnapshotOf returns the snapshot of a transaction that sees one instant.
func (d *DB) SnapshotOf(ctx context.Context, on Conn) (at Snapshot, err error) {
	if !d.Postgres() {
		err = d.Query(ctx, on, `SELECT COALESCE(MAX(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'changes'`,
			func(rows *sql.Rows) error { return rows.Scan(&at.Next) })
		at.Oldest = at.Next
		return at, err
	}
	err = d.Query(ctx, on, `SELECT `+ServerRun+`, pg_current_snapshot()::text`, func(rows *sql.Rows) error {
		var server int64
		var text string
		if err := rows.Scan(&server, &text); err != nil {
			return err
		}
		at, err = ParseSnapshot(server, text)
		return err
	})
	return at, err
}
