// Package resident keeps values of the database in memory and brings them
// forward by the change log. A Copy is one such value. Its Domain says how the
// value is loaded, how it changes and how large it is; the Copy does the rest:
// pointer, snapshot, catch up, waiting and bound.
//
// # The protocol
//
// A value is of one snapshot of the database and never changes. Readers load a
// pointer and never wait for each other. The next value is made of the last one
// and of the rows of the change log since its snapshot (sqldb.DB.NotesSince). Two
// things make it:
//
//   - A catch up takes a new snapshot. One runs at a time and serves all that
//     wait. It follows a commit of this process, a notification of another
//     server, a new connection, and the poll of an idle server.
//   - A reading at one instant brings the value to the instant. It leaves that
//     value to the process where it is later than the value of the process.
//
// A writer waits for a snapshot that shows its commit (Copy.FollowCommits).
// Domains whose readers all read at one instant need no such wait: a read after
// the commit has an instant after it (Domain.Beside).
//
// # What holds
//
// In any interleaving of the commits of several servers, of transactions that
// commit out of the order of their numbers, of notifications that are late or
// lost, connections that are cut and servers that crash:
//
//	C1  A value equals one snapshot: it has all of a commit or nothing of it.
//	    TestAValueIsWhatItsSnapshotSees
//	C2  A value never goes back: each one is of a later snapshot than the one
//	    before, or of another run of the server.
//	    TestAnOlderSnapshotTakesNothingBack
//	C3  When a writer gets its answer, the value of its process has the commit. If no
//	    catch up succeeds within caughtUpWithin, the writer gets
//	    problem.ErrOutcomeUnknown, though the commit is made.
//	    TestAWriterWaitsForItsCommit
//	C4  A catch up that ends well brings everything that was committed before it
//	    began. One catch up serves all that wait.
//	    TestOneCatchUpServesAllThatWait
//	C5  A reading at one instant has the value of that instant.
//	    TestAValueIsWhatItsSnapshotSees
//	C6  Where the change log does not reach back to the snapshot of a value, the
//	    value is loaded again. No clock decides whether it missed a change.
//	    TestAPrunedLogLoadsTheValueAnew
//	C7  A value takes no more memory than its bound. One that would is not kept,
//	    and readers ask the database.
//	    TestAValueBeyondItsBoundIsNotKept
//
// # Why it holds
//
// A later snapshot sees all that an earlier one did. The log is read from the
// oldest transaction that ran at the last snapshot, so no commit is missed that
// ended between the two, whatever its number. A change that is read twice does
// no harm, because each read returns the rows of the snapshot.
//
// Transactions are known by their number and the run of the server: a crash
// gives numbers again. A snapshot of another run makes the Copy load the value again.
//
// # Locks
//
// Copy.turn is held for a catch up, with its statements; Copy.placing while a
// value is put in place, and no statement runs under it. No lock of PostgreSQL is
// held while a goroutine waits for one of these: a catch up follows the end of
// the transaction.
package resident
