// Package placementdb stores resource providers with their inventories, traits
// and aggregates, and consumers with their allocations. It keeps the resident
// world in memory, which answers candidate requests.
//
// # The resident world
//
// The world is an immutable value in memory. It has everything that one
// snapshot of the database saw, plus the commits of this process that are newer
// than the snapshot (cache.go). Readers load a pointer and never wait. Two
// things produce the next world:
//
//   - A commit of this process is added before its writer is answered, if the
//     world has every state that the commit was built on (ApplyIfComplete).
//   - A catch up takes a new snapshot, reads the change log from the oldest
//     transaction that ran at the last snapshot, and moves the world forward to
//     the new one (Apply, or Replace if the log does not reach back). A pure
//     function of the held world, the snapshot and the log decides what to read
//     (decide, catchup.go). A catch up follows a notification, an incomplete
//     commit, and a new connection. The next one starts at the latest after
//     idlePoll and a random delay.
//
// An operation that reads at one instant uses the same decision to build its
// own world, based on a world that was held before its snapshot (heldAt). If
// nothing has changed since, it may move the process's world forward to its
// snapshot. A catch up with an older snapshot then changes nothing.
//
// On SQLite one process uses the file. It adds its commits to the world in
// their order. After each, the world counts as the world of a snapshot that
// sees the commit.
//
// # What holds
//
// In any interleaving of the commits of several processes, of transactions that
// commit out of the order of their numbers, of notifications that are late or
// lost, connections that are cut and servers that crash:
//
//	I1  No world shows a part of a commit.
//	    TestAWriteBringsAllThatItSaw
//	I2  A state never goes back: each world has everything from the one before.
//	    TestACacheForgetsWhatASnapshotSees, TestAnOlderSnapshotTakesNothingBack
//	I3  A deleted thing stays deleted, unless it is created again as another row.
//	    TestALateStateBringsNoDeletedProviderBack, TestAUUIDCanBeGivenAgainAndAgain
//	I4  When a writer gets its answer, the world of its process has the commit. If
//	    catch ups fail for catchUpWithin, or one takes longer than the request may,
//	    the writer gets ErrOutcomeUnknown, although the commit is made.
//	    TestNothingIsLostByCutConnections
//	I5  Each world obeys the rules of the data: parents exist, no provider is below
//	    itself, names of providers are unique, and the traits and classes of a
//	    provider exist. The rule that a resource has at most one provider is not
//	    included: nothing in a world depends on it.
//	    TestAWorldObeysTheRules
//	I6  A successful catch up brings every commit from before its start. It ends as
//	    soon as the world accepts its snapshot.
//	    TestTheWorldIsTheDatabase
//	I7  A process that misses no notification has every commit once all activity
//	    ends. A ready process has every commit older than StaleAfter, even if it
//	    missed notifications.
//	    TestServersFollowEachOther, TestAReadyWorldIsFresh
//	I8  If COMMIT gets no answer, the outcome counts as unknown until a snapshot has
//	    seen the end of the transaction.
//	    TestWhatACrashUndidHasEnded, TestNothingIsLostByARestartOfPostgres
//	I9  An operation that reads at one instant has the world of that instant.
//	    TestTheWorldOfAnInstantIsTheDatabases
//
// TestWorldModel checks all of them with a model of the database.
// TestWorldModelCatchesABrokenDecision checks that the model detects forgotten
// changes. TestWorldReplay checks the invariants on two servers of one
// PostgreSQL database. store/changedb waits until the world shows a commit
// before it notifies clients (ShowWorld); graph/told_test.go checks that.
//
// # Why it holds
//
// A later snapshot sees everything that an earlier one saw, and a writer locks
// its rows until it ends. So of several commits that wrote one row, a snapshot
// sees the first ones and none of the rest. Each transaction increments the
// version of every provider that it writes by one, even if it leaves the
// provider unchanged (TestEveryWriteMovesTheVersionByOne). Providers of one
// uuid are created one at a time, with growing row ids. So if the states of a
// commit follow the states of the world by one version, the commit was built on
// nothing that the world lacks. And a commit that the process has ahead of a
// snapshot is newer than the snapshot's state of the same provider. Names have
// no versions: a commit that changes names always waits for a snapshot.
//
// A commit ahead may not fit an earlier snapshot that lacks another process's
// change in between. The world then refuses the snapshot, and the follower
// takes another one, which sees the change.
//
// A transaction is identified by its number and the run of the server, since a
// crash makes the server reuse numbers. After a snapshot of another run, a
// process reloads the world. A process counts the runs in the order in which it
// meets them (changelog.Snapshot.Branch), and refuses a server of an earlier
// timeline. So if the database lost commits, such as after a failover to a
// lagging standby, the first snapshot of the new primary drops them from the
// world (TestAFormerPrimaryIsThePast). Where the order of two runs is not
// known, the world drops the lost commits as soon as later transactions have
// passed their numbers. Until then it refuses each snapshot, and after
// StaleAfter the process is not ready (TestALaterRunOfTheServerIsTheTruth).
//
// The change log records from which transaction on it is complete. A process
// that needs more reloads the world, so it does not rely on a clock to detect
// missed changes.
//
// # When a connection is lost
//
// A notification only says that there is a commit. It is sent in a separate
// transaction after the commit, at most once per coalesce, and retried until it
// is sent. A transaction that holds consumers also sends one itself. So a
// notification is lost only with the process, or with the connection of a
// listener. That connection is reopened automatically, and makes the process
// catch up. Until then the process catches up every poll. Without notifications
// it catches up every idlePoll, which is less than StaleAfter.
//
// If a catch up loses its connection, it changes nothing, and the next one
// follows after poll. If COMMIT gets no answer, the writer gets an error. Each
// catch up looks for that transaction until it sees its end, and then notifies
// other servers. The world is served throughout. If no catch up has succeeded
// for StaleAfter, Ready returns an error. TestAFollowerOutlivesItsConnections
// checks this.
//
// # Locks
//
// In memory, in this order:
//
//  1. on SQLite the turn of the write transaction (sqldb), until the world has its
//     commit;
//  2. follower.catching, for a catch up with its statements; or the mutex of an
//     operation's sqldb.Reading, for the statements that build its world;
//  3. worldCache.applying, while the next world is built; no statement runs under
//     it. follower.uncertain guards a list, and no code waits under it.
//
// On PostgreSQL, code that waits for one of these locks holds no lock of the
// database: a commit is added to the world after its transaction has ended. A
// transaction locks the uuid of a new provider or the consumers of a policy,
// then consumers by uuid, then providers by row id, then the limits of the
// projects of its claims by row id. It locks referenced traits, classes and
// resources in share mode, before or after. To set limits, a transaction locks
// their table, and no provider or consumer. A transaction that deletes a trait,
// class or resource locks no provider or consumer.
package placementdb
