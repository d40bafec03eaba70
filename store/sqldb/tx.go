package sqldb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/internal/pause"
	"github.com/cadastre-dev/cadastre/problem"
)

// Attempts is how often a transaction is tried that the database gave up for
// another one's sake.
const Attempts = 10

// Tx is a transaction that writes. It carries, besides its statements, what is
// to be written and done with it: audit events and changes, which are written
// just before COMMIT, and functions that run after it.
//
// Locks are taken in one order, so that transactions do not wait for each other
// in a deadlock:
//
//  1. the advisory lock of moves of resources, or of the uuid of a provider that
//     is to be created;
//  2. namespaces by name, then the advisory lock of an owner, then resource types
//     by name;
//  3. resources by row id, then capabilities by type and name, then the counts of
//     their values;
//  4. consumers by uuid;
//  5. providers by row id; what belongs to a locked provider or consumer needs no
//     lock of its own;
//  6. what a row refers to (traits, resource classes, a parent, a linked
//     resource), shared and against deletion only; whoever deletes it waits for
//     nothing more.
//
// On SQLite there is one writing transaction at a time, which is the only lock.
type Tx struct {
	*ent.Tx
	db          *DB
	Mutation    string
	events      []attributedEvent // to be written
	written     []attributedEvent // without their values, for the log of the server
	changes     changes
	last        timedParts // to be written with the changes
	afterCommit []func(ctx context.Context, outcome Outcome) error
	kept        []*ent.IdempotencyKeyCreate
	keptOf      []string // the projects of those
	// ID names the transaction in the log of changes, once it has written there.
	ID TransactionID
}

// Outcome is what is known of a transaction after its COMMIT.
type Outcome int

const (
	// Committed says that the transaction happened.
	Committed Outcome = iota
	// Uncertain says that COMMIT had no answer: the transaction may have
	// happened.
	Uncertain
)

// Write runs a mutation in one transaction, begun and ended here: committed when
// write returns nil, else rolled back. Mutation is the name of the field of
// Mutation: the table of permissions is asked by it, and its events stand under it
// in the audit log.
//
// A mutation that is accepted records at least one event, also where it changes
// nothing. A transaction that has recorded nothing and changed nothing when write
// returns nil, since all that was asked was refused, is rolled back.
//
// With the context of a trial (Try) it is all in that transaction.
//
// Write is tried again when the database ended the transaction for the sake of
// another one, so it must have no effect outside the transaction but to set what
// it returns. It is also tried again when a foreign key refused, since then a row
// that was found is gone; a write that deletes what others may refer to makes a
// refusal of that itself.
//
// Results are pointers to all that write sets. In a request that is made once
// (MakeOnce) what they point to is kept with what is written; where it was
// before, write is not called, and they are set to that.
func (d *DB) Write(ctx context.Context, mutation string, write func(tx *Tx) error, results ...any) error {
	if _, err := access.ViewerFrom(ctx).Authorize(mutation); err != nil {
		return err
	}
	if trial := d.trialOf(ctx); trial != nil {
		return trial.write(ctx, mutation, write)
	}
	return d.writeRetrying(ctx, mutation, write, results)
}

// Fill is Write for what no viewer asks for: what is built in, and the content of
// an empty database. It leaves no audit events.
func (d *DB) Fill(ctx context.Context, write func(tx *Tx) error) error {
	return d.writeRetrying(ctx, "", write, nil)
}

func (d *DB) writeRetrying(ctx context.Context, mutation string, write func(tx *Tx) error, results []any) error {
	transient := func(err error) bool { return isTransient(err) || IsReferred(err) }
	err := d.retrying(ctx, transient, func() error { return d.writeOnce(ctx, mutation, write, results) })
	if err != nil {
		d.health.note(err)
	}
	return err
}

// retrying runs a transaction until it ends, unless it failed for a reason that
// is not transient.
func (d *DB) retrying(ctx context.Context, transient func(error) bool, run func() error) error {
	d.Wrote(ctx) // a transaction that waits for another connection while it holds one can wait for ever
	defer d.Wrote(ctx)
	for attempt := 1; ; attempt++ {
		err := run()
		if err == nil || isRefusal(err) || !transient(err) {
			return err
		}
		if attempt == Attempts {
			return problem.Refuse(problem.ErrUnavailable, "the database is too busy, try again").Because(err)
		}
		if !pause.For(ctx, time.Duration(attempt)*time.Duration(1+rand.IntN(10))*time.Millisecond) {
			return ctx.Err()
		}
	}
}

func (d *DB) writeOnce(ctx context.Context, mutation string, write func(tx *Tx) error, results []any) error {
	release, err := d.takeTurn(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := d.Pool.file.check(); err != nil {
		return Vanished.Refuse(err)
	}
	begun, err := d.Ent.Tx(ctx)
	if err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	defer func() { _ = begun.Rollback() }() // also where write panics; after a commit it does nothing
	tx := &Tx{Tx: begun, db: d, Mutation: mutation}
	if replayed, err := tx.Replay(ctx, results...); err != nil || replayed {
		return err
	}
	if err := write(tx); err != nil {
		return err
	}
	if tx.IsEmpty() {
		return nil
	}
	if err := tx.Keep(ctx, results...); err != nil {
		return err
	}
	return tx.commit(ctx)
}

// commit writes what the transaction carries, commits it and does what is to
// follow.
func (tx *Tx) commit(ctx context.Context) error {
	if err := tx.writeKept(ctx); err != nil {
		return err
	}
	changed, err := tx.changeRows(ctx)
	if err != nil {
		return err
	}
	if err := tx.flushWith(ctx, changed); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return Refused(err) // COMMIT would not be sent, and the outcome be taken for unknown
	}
	outcome := Committed
	if err = tx.Commit(); err == nil {
		err = tx.db.Pool.file.check()
	}
	if err != nil {
		if err = (&commitError{err}); isTransient(err) {
			return err
		}
		if fault := faultOf(err); fault == Full || fault == ReadOnly || fault == Unprivileged {
			return fault.Refuse(err) // nothing was written
		}
		outcome, err = Uncertain, refusedCommit(err)
	}
	after := tx.ended(ctx, outcome)
	if outcome == Uncertain {
		return errors.Join(err, after)
	}
	tx.db.Committed(ctx)
	tx.db.health.note(nil)
	if after != nil && !errors.Is(after, problem.ErrOutcomeUnknown) {
		after = problem.Refuse(problem.ErrOutcomeUnknown, "the change is made, and cannot be shown").Because(after)
	}
	return after
}

// refusedCommit returns the error of a COMMIT of which it is not known whether it
// was one.
func refusedCommit(err error) error {
	if faultOf(err) == "" && !isTimeout(err) {
		return err
	}
	return problem.Refuse(problem.ErrOutcomeUnknown, "the database did not say whether the change was made: see whether it was before trying again, "+
		"or ask again with the same %s if this request had one", IdempotencyKeyHeader).Because(err)
}

// ended does what is to follow a commit.
func (tx *Tx) ended(ctx context.Context, outcome Outcome) error {
	for _, noted := range tx.db.noted {
		noted()
	}
	if outcome == Committed {
		tx.db.logEvents(tx.written)
		tx.db.keys.added(tx.keptOf)
	}
	var errs []error
	for _, of := range tx.db.kinds {
		if tx.changes.has(of.kinds) {
			errs = append(errs, of.follow(ctx, tx.ID, outcome))
		}
	}
	for _, after := range tx.afterCommit {
		errs = append(errs, after(ctx, outcome))
	}
	return errors.Join(errs...)
}

// After has a function run once the transaction has ended with COMMIT, before
// Write returns; its error is Write's. On SQLite such functions run in the order
// of the commits.
func (tx *Tx) After(run func(ctx context.Context, outcome Outcome) error) {
	tx.afterCommit = append(tx.afterCommit, run)
}

// IsEmpty reports whether nothing was recorded and nothing changed.
func (tx *Tx) IsEmpty() bool { return len(tx.written)+len(tx.events) == 0 && tx.changes.isEmpty() }

// takeTurn waits on SQLite until no other transaction writes, nor what follows
// one runs. PostgreSQL has many writers.
func (d *DB) takeTurn(ctx context.Context) (release func(), err error) {
	if d.Postgres() {
		return func() {}, nil
	}
	select {
	case d.turn <- struct{}{}:
		return func() { <-d.turn }, nil
	case <-ctx.Done():
		return nil, Refused(ctx.Err())
	}
}

// AwaitTurn waits on SQLite until no transaction is written: what was committed
// before has then been added to what the process holds in memory.
func (d *DB) AwaitTurn(ctx context.Context) error {
	release, err := d.takeTurn(ctx)
	if err == nil {
		release()
	}
	return err
}

// LockName makes the writers of one name of a class wait for each other until the
// transaction ends, by an advisory lock. On SQLite there is one writer anyway.
func (tx *Tx) LockName(ctx context.Context, class int, name string) error {
	if !tx.db.Postgres() {
		return nil
	}
	_, err := tx.ExecContext(Uncounted(ctx), "SELECT pg_advisory_xact_lock($1, hashtext($2))", class, name)
	return err
}

// Locked locks the rows that a query finds. On SQLite a transaction has the
// database for itself.
func (d *DB) Locked() func(*entsql.Selector) {
	return func(selector *entsql.Selector) {
		if d.Postgres() {
			selector.ForUpdate()
		}
	}
}

// isRefusal reports whether the operation was refused, rather than failed in the
// database.
func isRefusal(err error) bool {
	of := new(problem.Refusal)
	return errors.As(err, &of)
}

// commitError is an error that followed COMMIT: the transaction may have
// happened.
type commitError struct{ cause error }

func (e *commitError) Error() string { return "commit a transaction: " + e.cause.Error() }

func (e *commitError) Unwrap() error { return e.cause }
