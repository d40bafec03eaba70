// Package placementdb keeps resource providers, their inventories, traits and
// aggregates, and consumers with their allocations; and the resident world, on
// which candidates are decided.
//
// # The resident world
//
// The world is an immutable value in memory: what one snapshot of the database
// saw, with the commits of this process that the snapshot did not see yet
// (cache.go). Readers load a pointer and never wait. Two things make the next
// world:
//
//   - A commit of this process is added before its writer is answered, if the
//     world has every state that the commit was built on (ApplyIfComplete).
//   - A catch up takes a new snapshot, reads what the change log has since the
//     oldest transaction that ran at the last one, and brings the world forward
//     to it (Apply, or Replace where the log does not reach back). What to read
//     is decided by a pure function of what is held, the snapshot and the log
//     (decide, follower.go). A catch up follows a notification, a commit that
//     is not complete, a new connection, and at the latest idlePoll.
//
// An operation that reads at one instant decides in the same way what to read for
// a world of its own, from a world that was held before its snapshot was taken
// (heldAt). Where nothing has changed since, it may take the world forward to its
// snapshot. A catch up that was under way meanwhile is then the older one of the
// two, and changes nothing.
//
// On SQLite, whose file belongs to one process, each transaction is added in its
// turn as the snapshot that follows it.
//
// # What holds
//
// In any interleaving of the commits of several processes, of transactions that
// commit out of the order of their numbers, of notifications that are late or
// lost, connections that are cut and servers that crash:
//
//	I1  No world shows a part of a commit.
//	    TestAWriteBringsAllThatItSaw
//	I2  A state never goes back: each world has at least what the one before had.
//	    TestACacheForgetsWhatASnapshotSees, TestAnOlderSnapshotTakesNothingBack
//	I3  What was deleted stays deleted, unless it is created again: then it is
//	    another row.
//	    TestALateStateBringsNoDeletedProviderBack, TestAUUIDCanBeGivenAgainAndAgain
//	I4  What a writer was answered is in the world of its process. Where the world
//	    cannot be brought up to a commit within catchUpWithin, the writer is
//	    refused with ErrUnavailable, though the commit is made.
//	    TestNothingIsLostByCutConnections
//	I5  Each world obeys the rules of the data: a parent is there, no provider is
//	    below itself, no two providers have one name, traits and classes of a
//	    provider exist. That a resource has one provider is not among them:
//	    nothing in a world depends on it.
//	    TestAWorldObeysTheRules
//	I6  A catch up that ends well brings everything that was committed before it
//	    began, and it ends as soon as no commit refuses its snapshot.
//	    TestTheWorldIsTheDatabase
//	I7  A process that misses no notification has every commit as soon as nothing
//	    is under way; one that is ready has every commit older than StaleAfter,
//	    whatever it missed.
//	    TestServersFollowEachOther, TestAReadyWorldIsFresh
//	I8  A transaction whose COMMIT had no answer is taken neither for done nor for
//	    undone: it is waited for until a snapshot has seen its end.
//	    TestWhatACrashUndidHasEnded, TestNothingIsLostByARestartOfPostgres
//	I9  An operation that reads at one instant has the world of that instant.
//	    TestTheWorldOfAnInstantIsTheDatabases
//
// TestWorldModel holds all of them with a model of the database, and
// TestWorldModelCatchesABrokenDecision that the model finds what is forgotten.
// TestWorldReplay holds the same on two servers of one PostgreSQL database. That the
// world shows each commit before clients are told of it (ShowWorld) is for
// store/changedb to ask for; graph/told_test.go holds it.
//
// # Why it holds
//
// A later snapshot sees all that an earlier one did, and whoever writes a row
// holds it until its end: so of the commits that wrote one row, a snapshot sees
// the first ones and none of the rest. Each transaction moves the version of
// every provider that it notes in the change log by one, also where it leaves the
// provider as it is (TestEveryWriteMovesTheVersionByOne), and providers of one
// uuid are created one at a time, with growing rows. So a commit whose states
// follow those of the world by one version was built on nothing that the world
// lacks, and what a process has ahead of a snapshot is newer than what the
// snapshot sees of it. Names have no versions: a commit that changes them always
// waits for a snapshot.
//
// What is ahead may not go with a snapshot that was taken before it, where that
// lacks what another process did in between. Then the snapshot is refused and
// another one taken, which sees it.
//
// Transactions are known by their number and the run of the server: a crash gives
// numbers again. A snapshot of another run makes the world be loaded anew. A
// database that lost commits, as a standby that was behind, takes them from the
// world as soon as their numbers are past; until then each snapshot is refused,
// and after StaleAfter the process is not ready (TestALaterRunOfTheServerIsTheTruth).
//
// The change log says from which transaction on it is whole. A process that needs
// more loads the world anew, so no clock decides what it may have missed.
//
// # When a connection is lost
//
// A notification says only that there is something to see. It is sent in a
// transaction of its own, after the commit and at most once per coalesce, and
// tried again until it is sent: so it is lost only with the process, or with the
// connection of who listens. That one comes again by itself and makes the process
// catch up; until then a catch up follows every poll. Without a notification one
// follows idlePoll, which is less than StaleAfter.
//
// A catch up whose connection is lost changes nothing, and the next one follows
// after poll. A COMMIT without an answer refuses its writer, and is looked for by
// each catch up until its end is seen; others are told then. The world is served
// all the while; where no catch up has ended well for StaleAfter, Ready says so.
// TestAFollowerOutlivesItsConnections holds this.
//
// # Locks
//
// In memory, in this order:
//
//  1. on SQLite the turn of the transaction that writes (sqldb), until its world
//     is there;
//  2. follower.catching, for a catch up, with its statements; or the mutex of an
//     operation's sqldb.Reading, with those that bring its world to its instant;
//  3. worldCache.applying, while the next world is made: no statement runs under
//     it. follower.uncertain guards a list, and nothing is waited for under it.
//
// On PostgreSQL no lock of the database is held while one of these is waited for:
// a commit is added to the world after its transaction has ended. A transaction
// locks the uuid of a provider that it creates, then consumers by uuid, then
// providers by row id. Traits, classes and resources that it refers to are locked
// in share, before or after; whoever deletes one locks no provider or consumer.
package placementdb
