// Package changelog is the log of changes. It records each thing of the API
// that a transaction created, changed or deleted. A row has the kind and the
// key of the thing, the number of the transaction, an audience, and what
// happened as that audience sees it (change.RowsOf). The transaction writes its
// rows itself, at its end. In-memory copies read the log to learn what to
// reload, and clients read it to learn what happened (changedb).
//
// PostgreSQL does not commit transactions in the order of their numbers. A
// reader that has read everything as of a snapshot resumes at the oldest
// transaction that ran at that time: all earlier ones had ended. When old
// changes are deleted, a change of kind Pruned records the first transaction
// from which the log is complete. A reader that would resume earlier must start
// over. On SQLite the numbers grow with the commits.
//
// PostgreSQL does not commit in the order of the row ids either. A transaction
// holds NotingLock while it holds ids. A reader that sees an id waits for every
// transaction that held the lock at that moment. After that, no lower id can
// appear. A transaction takes all its other locks before it writes its rows. So
// if one transaction waited for another, the waiting one has the higher ids.
//
// A change concerns a whole thing: a namespace with all its contents, a
// resource with its metadata, tags and capabilities, a provider with its
// inventories, traits and aggregates, a consumer with its allocations. A rename
// is recorded under both names. Cascading deletes are recorded too.
package changelog
