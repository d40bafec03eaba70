package changelog

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Snapshot is the set of the transactions that had ended when a read transaction
// began, which sees all their writes and no others. A transaction gets its
// number at its first write. PostgreSQL commits in any order, so numbers alone
// do not decide. A later snapshot sees all that an earlier one sees.
type Snapshot struct {
	// Server identifies a run of the database server. Transactions that a crash
	// rolled back leave their numbers to later ones. It is 0 on SQLite.
	Server int64
	// Branch is the number of runs that this process has met, this one included.
	// After a fail-over, the commits of earlier runs can be lost.
	Branch int64
	// Oldest is the oldest running transaction; all before it had ended.
	Oldest int64
	// Next is greater than the number of every transaction that had begun.
	Next int64
	// Running are the running transactions in [Oldest, Next), sorted.
	Running []int64
}

// TransactionID identifies a transaction, with the run of its database server.
type TransactionID struct{ Server, Number int64 }

// Contains reports whether a transaction had ended, so that the snapshot sees
// its commit. For another run of the server the answer is unknown, and Contains
// returns false.
func (s Snapshot) Contains(t TransactionID) bool {
	return t.Server == s.Server && s.Sees(t.Number)
}

// Sees is Contains for a transaction of the same run of the server.
func (s Snapshot) Sees(number int64) bool {
	_, running := slices.BinarySearch(s.Running, number)
	return number < s.Next && !running
}

// HasEnded reports whether a transaction no longer runs. The caller knows that
// it began before the snapshot. A transaction that a crash rolled back has
// ended, too.
func (s Snapshot) HasEnded(t TransactionID) bool {
	return s.Sees(t.Number) || s.Server != t.Server && t.Number >= s.Next
}

// IsBefore reports whether a snapshot is of an earlier run of the server than
// other, or is earlier in the same run and sees less. Two runs whose order is
// unknown are not before each other.
func (s Snapshot) IsBefore(other Snapshot) bool {
	if s.Server != other.Server || s.Branch != other.Branch {
		return s.Branch < other.Branch
	}
	return s.Next < other.Next || s.Next == other.Next && len(s.Running) > len(other.Running)
}

// ParseSnapshot parses a snapshot in PostgreSQL's format: "10:20:10,14,15" is
// the oldest running transaction, the next one, and all running ones.
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

// ServerRun is the SQL expression for the run of a PostgreSQL server
// (Snapshot.Server). After a crash of one of its processes the server recovers
// without a restart, but resets its statistics. So the expression uses the later
// of the times of the start and of the reset.
const ServerRun = `(extract(epoch FROM greatest(pg_postmaster_start_time(), pg_stat_get_bgwriter_stat_reset_time())) * 1000000)::bigint`
