package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/internal/pause"
	"github.com/cadastre-dev/cadastre/internal/tracing"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
)

// Attempts is the maximum number of times that a transaction runs, if each
// error allows a retry.
const Attempts = 10

// Tx is a write transaction. Besides its statements it carries audit events and
// changes, which are written before COMMIT (events earlier with Flush), and
// functions that run after COMMIT.
//
// Transactions take locks in a fixed order to avoid deadlocks:
//
//  1. the advisory lock of moves of resources, of the uuid of a new provider, or
//     of the consumers of a policy;
//  2. namespaces by name, then the advisory lock of an owner, then resource types
//     by name;
//  3. resources by row id, then capabilities by type and name, then the counts of
//     their values;
//  4. consumers by uuid;
//  5. providers by row id; the rows of a locked provider or consumer need no
//     separate lock;
//  6. limits of projects by row id; a transaction that sets limits locks their
//     table and then no further rows;
//  7. the rows that a row refers to (traits, resource classes, a parent, a linked
//     resource), shared, to prevent their deletion; a transaction that deletes
//     such a row takes no further locks.
//
// A transaction that records the capacity history locks its buckets alone, by size
// and series.
//
// SQLite has one write transaction at a time (DB.turn), and no other locks.
type Tx struct {
	*ent.Tx
	changelog.Changes
	db           *DB
	Mutation     string
	events       []attributedEvent // to be written
	written      []attributedEvent // without values, for the server log
	changesBegun bool              // whether some changes are written already
	last         timedParts        // of WriteLast, written together with the changes
	isKept       bool              // whether to commit without an event or change
	afterCommit  []func(ctx context.Context, outcome Outcome) error
	// detach lets the transaction outlive its request, and reports whether the
	// request still runs. A COMMIT that waits for a standby must not be canceled:
	// PostgreSQL would report success although the standby lacks it.
	detach func() bool
	kept   [][]any  // rows of idempotency_keys
	keptOf []string // the projects of kept
	// ID identifies the transaction, once it has written to the log of changes, on
	// PostgreSQL also without changes from before its COMMIT on.
	ID changelog.TransactionID
}

// Outcome is the result of a COMMIT, as far as the server knows.
type Outcome int

const (
	// Committed means that the transaction was committed.
	Committed Outcome = iota
	// Uncertain means that COMMIT failed and its effect is unknown. The
	// transaction may have been committed.
	Uncertain
)

// Write runs a mutation in one transaction. It commits if write returns nil,
// and rolls back otherwise. mutation is the name of a field of the API's type
// Mutation: it decides the required permission, and is the action of the audit
// events.
//
// An accepted mutation records at least one event, even if it changes nothing.
// If write returns nil without any event or change, everything was refused:
// Write rolls back and returns nil, except after KeepAnyway.
//
// In the context of a trial (Try) the mutation runs in the trial's transaction.
//
// Write retries if the database aborts the transaction in favor of another one.
// So write must have no side effects except setting its results. Write also
// retries on a foreign key violation, which means that a row found before is
// gone. A mutation that deletes rows must itself refuse to delete referenced
// ones.
//
// Results are pointers to everything that write sets. For a request with an
// idempotency key (MakeOnce) their values are stored with the transaction. On a
// retry of the request Write does not call write, and sets the results to the
// stored values.
func (d *DB) Write(ctx context.Context, mutation string, write func(tx *Tx) error, results ...any) error {
	if _, err := access.ViewerFrom(ctx).Authorize(mutation); err != nil {
		return err
	}
	if trial := d.trialOf(ctx); trial != nil {
		return trial.write(ctx, mutation, write)
	}
	if IsDryRun(ctx) {
		return d.tryWrite(ctx, mutation, write)
	}
	return d.writeRetrying(ctx, mutation, write, results)
}

type dryRunKey struct{}

// DryRun returns a context in which Write rolls back, or ctx if dryRun is false.
// Write decides on locked rows as always, sets its results, and stores nothing.
// Unlike a Trial, it is not aborted if another transaction changes those rows.
func DryRun(ctx context.Context, dryRun bool) context.Context {
	if !dryRun {
		return ctx
	}
	return context.WithValue(ctx, dryRunKey{}, true)
}

// IsDryRun reports whether Write rolls back in a context.
func IsDryRun(ctx context.Context) bool { return ctx.Value(dryRunKey{}) != nil }

// errTried ends the transaction of a dry run.
var errTried = errors.New("the dry run is over")

func (d *DB) tryWrite(ctx context.Context, mutation string, write func(tx *Tx) error) error {
	err := d.writeRetrying(NotOnce(ctx), mutation, func(tx *Tx) error {
		if err := write(tx); err != nil {
			return err
		}
		return errTried
	}, nil)
	if errors.Is(err, errTried) {
		return nil
	}
	return err
}

// Fill is Write without a viewer: for built-in things and for the initial
// content of an empty database. write must record no audit events.
func (d *DB) Fill(ctx context.Context, write func(tx *Tx) error) error {
	return d.writeRetrying(ctx, "", write, nil)
}

// Act is Write without a viewer, for background jobs of the server. Action is
// the action of its audit events, which have no user and no project.
func (d *DB) Act(ctx context.Context, action string, act func(tx *Tx) error) error {
	return d.writeRetrying(ctx, action, act, nil)
}

func (d *DB) writeRetrying(ctx context.Context, mutation string, write func(tx *Tx) error, results []any) error {
	transient := func(err error) bool { return isTransient(err) || IsReferred(err) }
	err := d.retrying(ctx, transient, func() error { return d.writeOnce(ctx, mutation, write, results) })
	if err != nil {
		d.health.note(err)
	}
	if d.Postgres() && faultOf(err) == readOnly {
		d.Pool.history.renew()
	}
	return err
}

// retrying runs a transaction until it succeeds or its error is not transient.
// After Attempts tries it returns ErrUnavailable.
func (d *DB) retrying(ctx context.Context, transient func(error) bool, run func() error) error {
	d.Wrote(ctx) // holding one connection while waiting for another could deadlock
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
		return vanished.refuse(err)
	}
	lifetime, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	detach := context.AfterFunc(ctx, cancel)
	defer detach()
	begun, err := d.Ent.Tx(lifetime)
	if err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	defer func() { _ = begun.Rollback() }() // also after a panic in write; does nothing after a commit
	tx := &Tx{Tx: begun, db: d, Mutation: mutation, detach: detach}
	if replayed, err := tx.Replay(ctx, results...); err != nil || replayed {
		return err
	}
	if err := write(tx); err != nil {
		return err
	}
	if tx.IsEmpty() && !tx.isKept {
		return nil
	}
	if err := tx.Keep(ctx, results...); err != nil {
		return err
	}
	return tx.commit(ctx)
}

// commit writes the kept results, events and changes, commits, and runs the
// functions for after the commit.
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
	if err := tx.numbered(ctx); err != nil {
		return err
	}
	if !tx.detach() {
		return Refused(ctx.Err()) // otherwise COMMIT would not be sent, but its outcome would count as unknown
	}
	outcome := Committed
	_, end := tracing.Statement(ctx, databaseSystems[tx.db.Pool.dialectName], "COMMIT")
	err = tx.Commit()
	tx.db.Shows(tx.ID.Number + 1)
	if err == nil {
		err = tx.db.Pool.file.check()
	}
	end(err)
	if err != nil {
		if err = (&commitError{err}); isTransient(err) {
			return err
		}
		if fault := faultOf(err); fault == full || fault == readOnly || fault == unprivileged {
			return fault.refuse(err) // nothing was written
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
		after = problem.Refuse(problem.ErrOutcomeUnknown,
			"the change was made, but its result cannot be read").Because(after)
	}
	return after
}

// numbered sets the ID of a transaction on PostgreSQL that wrote no changes. A
// standby then answers reads of this process only once it has the transaction. It
// refuses a server of the past, which would lose the commit.
func (tx *Tx) numbered(ctx context.Context) error {
	if !tx.db.Postgres() || tx.ID.Number != 0 {
		return nil
	}
	err := tx.db.Query(Uncounted(ctx), tx, "SELECT "+changelog.ServerRun+", pg_current_xact_id()::text::bigint",
		func(rows *sql.Rows) error { return rows.Scan(&tx.ID.Server, &tx.ID.Number) })
	if err == nil {
		_, err = tx.db.branchOf(ctx, tx, tx.ID.Server)
	}
	return err
}

// AfterCommit returns the context of work that follows the commit of a request.
// It ends at the deadline of the request, or after StatementTimeout if there is
// none, but not before least has passed. A canceled request does not end it.
func AfterCommit(ctx context.Context, least time.Duration) (context.Context, context.CancelFunc) {
	now := time.Now()
	until, ok := ctx.Deadline()
	if !ok {
		until = now.Add(StatementTimeout)
	}
	if soonest := now.Add(least); until.Before(soonest) {
		until = soonest
	}
	return context.WithDeadline(context.WithoutCancel(ctx), until)
}

// refusedCommit converts an error of COMMIT that leaves the outcome unknown
// into ErrOutcomeUnknown. It returns other errors unchanged.
func refusedCommit(err error) error {
	if faultOf(err) == "" && !isTimeout(err) {
		return err
	}
	return problem.Refuse(problem.ErrOutcomeUnknown,
		"the database did not confirm the commit: check whether the change was made before you retry, "+
			"or retry with the same %s if this request had one", IdempotencyKeyHeader).Because(err)
}

// ended runs the callbacks after a COMMIT. If the outcome is Committed, it also
// logs the events and counts the new idempotency keys.
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
		if tx.Concerns(of.kinds) {
			errs = append(errs, of.follow(ctx, tx.ID, outcome))
		}
	}
	for _, after := range tx.afterCommit {
		errs = append(errs, after(ctx, outcome))
	}
	return errors.Join(errs...)
}

// After registers a function that runs after COMMIT, also if the outcome is
// Uncertain, before Write returns. If the function fails, the change stays, and
// Write returns ErrOutcomeUnknown. On SQLite the functions run in commit order.
func (tx *Tx) After(run func(ctx context.Context, outcome Outcome) error) {
	tx.afterCommit = append(tx.afterCommit, run)
}

// IsEmpty reports whether the transaction recorded no event and no change.
func (tx *Tx) IsEmpty() bool { return len(tx.written)+len(tx.events) == 0 && tx.IsUnchanged() }

// KeepAnyway lets the transaction be committed also without an event or change: for
// state that no reader of the audit log or the change log needs, such as a lease.
func (tx *Tx) KeepAnyway() { tx.isKept = true }

// takeTurn waits for DB.turn on SQLite. A write transaction holds it until its
// functions for after the commit have returned. PostgreSQL has many writers, so
// there takeTurn does nothing.
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

// AwaitTurn waits on SQLite until no transaction writes, or returns an error if
// ctx ends first. The in-memory copies of this process then have all earlier
// commits. On PostgreSQL it does nothing.
func (d *DB) AwaitTurn(ctx context.Context) error {
	release, err := d.takeTurn(ctx)
	if err == nil {
		release()
	}
	return err
}

// LockName takes the advisory lock of a name until the transaction ends, so that
// its writers take turns. Each class has separate names. SQLite has one writer,
// so it needs no lock.
func (tx *Tx) LockName(ctx context.Context, class int, name string) error {
	if !tx.db.Postgres() {
		return nil
	}
	_, err := tx.ExecContext(Uncounted(ctx), "SELECT pg_advisory_xact_lock($1, hashtext($2))", class, name)
	return err
}

// Clock returns the time of PostgreSQL, which all its servers share, in UTC. On
// SQLite it is Now.
func (tx *Tx) Clock(ctx context.Context) (now time.Time, err error) {
	if now = tx.db.Now(); tx.db.Postgres() {
		err = tx.db.Query(Uncounted(ctx), tx, "SELECT clock_timestamp()", func(rows *sql.Rows) error {
			return rows.Scan(&now)
		})
	}
	return now.UTC(), err
}

// Locked returns a modifier with which a query locks its rows. SQLite has one
// writer, so there it does nothing.
func (d *DB) Locked() func(*entsql.Selector) {
	return func(selector *entsql.Selector) {
		if d.Postgres() {
			selector.ForUpdate()
		}
	}
}

// isRefusal reports whether err is a Refusal: of the domain, or of the database
// as converted by Refused.
func isRefusal(err error) bool {
	of := new(problem.Refusal)
	return errors.As(err, &of)
}

// commitError is an error of COMMIT. The transaction may have been committed.
type commitError struct{ cause error }

func (e *commitError) Error() string { return "commit a transaction: " + e.cause.Error() }

func (e *commitError) Unwrap() error { return e.cause }
