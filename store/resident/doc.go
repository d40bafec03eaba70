// Package resident keeps values of the database in memory and updates them from
// the change log. A Copy keeps one such value. Its Domain defines how to load,
// update and measure the value. The Copy handles the rest: pointer, snapshot,
// catch up, waiting and size limit.
//
// # The protocol
//
// A value belongs to one snapshot of the database and is immutable. Readers
// load a pointer and never wait for each other. The next value is built from
// the last one and the rows of the change log since its snapshot
// (changelog.Log.Since). Two things build it:
//
//   - A catch up takes a new snapshot. One runs at a time and serves all that
//     wait. It follows a commit of this process, a notification of another
//     server, a new connection, and the poll of an idle server.
//   - A reading at one instant updates the value to the instant. The process then
//     keeps that value if it is later than its own.
//
// A writer waits for a snapshot that sees its commit (Copy.FollowCommits). If
// all readers of a domain read at one instant, its writers need not wait: a
// read after the commit has a later instant (Domain.Beside).
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
//	C3  When a writer gets its answer, the value of its process has the commit. If
//	    catch ups fail for retriedFor, or one takes longer than the request may, the
//	    writer gets problem.ErrOutcomeUnknown, though the commit is made.
//	    TestAWriterWaitsForItsCommit, TestALongCatchUpIsNotAbandoned
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
// A later snapshot sees everything that an earlier one saw. The log is read
// from the oldest transaction that ran at the last snapshot. So no commit
// between the two snapshots is missed, regardless of its number. Reading a
// change twice does no harm, because each read returns the rows of the
// snapshot.
//
// A transaction is identified by its number and the run of the server, since a
// crash makes the server reuse numbers. A snapshot of another run makes the
// Copy reload the value.
//
// # Locks
//
// Copy.turn is held during a catch up with its statements. Copy.placing is held
// while a value is stored, and no statement runs under it. No goroutine waits
// for one of these while it holds a lock of PostgreSQL: a catch up runs after
// the transaction has ended.
package resident
