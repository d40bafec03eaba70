package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
)

// Trial is a transaction in which mutations run to see their effect. It is
// always rolled back: it stores nothing, records no events and notes no
// changes.
type Trial struct {
	*ent.Tx
	db    *DB
	noted changelog.Changes
}

type trialKey struct{}

// trialSavepoint marks the start of a trial, writeSavepoint the start of a
// mutation in it.
const (
	trialSavepoint = "trial"
	writeSavepoint = "mutation"
)

// Try runs a function in a trial. Write with the context of the trial writes
// into the trial, each mutation completely or not at all. All reads see one
// instant, plus the trial's own writes. Try retries like Write, so the function
// must have no side effects except setting its results.
func (d *DB) Try(ctx context.Context, run func(ctx context.Context, trial *Trial) error) error {
	transient := func(err error) bool { return isTransient(err) || IsReferred(err) || IsDuplicate(err) }
	return d.retrying(ctx, transient, func() error { return d.tryOnce(ctx, run) })
}

func (d *DB) tryOnce(ctx context.Context, run func(ctx context.Context, trial *Trial) error) error {
	release, err := d.takeTurn(ctx)
	if err != nil {
		return err
	}
	defer release()
	var options *sql.TxOptions
	if d.Postgres() {
		options = &sql.TxOptions{Isolation: sql.LevelRepeatableRead}
	}
	begun, err := d.Ent.BeginTx(ctx, options)
	if err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	defer func() { _ = begun.Rollback() }() // a trial stores nothing
	trial := &Trial{Tx: begun, db: d}
	if err := trial.control(ctx, "SAVEPOINT "+trialSavepoint); err != nil {
		return err
	}
	return run(context.WithValue(ctx, trialKey{}, trial), trial)
}

// IsTrial reports whether a context belongs to a trial.
func (d *DB) IsTrial(ctx context.Context) bool { return d.trialOf(ctx) != nil }

// trialOf returns the trial of a context on the database, or nil.
func (d *DB) trialOf(ctx context.Context) *Trial {
	if trial, ok := ctx.Value(trialKey{}).(*Trial); ok && trial.db == d {
		return trial
	}
	return nil
}

// write runs a mutation in the trial.
func (t *Trial) write(ctx context.Context, mutation string, write func(tx *Tx) error) error {
	if err := t.control(ctx, "SAVEPOINT "+writeSavepoint); err != nil {
		return err
	}
	tx := &Tx{Tx: t.Tx, db: t.db, Mutation: mutation}
	err := write(tx)
	if err == nil {
		err = tx.flushLast(ctx)
	}
	if err != nil {
		if undone := t.control(context.WithoutCancel(ctx), "ROLLBACK TO SAVEPOINT "+writeSavepoint); undone != nil {
			return undone
		}
		return err
	}
	t.noted.Add(&tx.Changes)
	return t.control(ctx, "RELEASE SAVEPOINT "+writeSavepoint)
}

// Changed returns the keys of the things of a kind that were created, changed
// or deleted, in the order of the first note.
func (t *Trial) Changed(kind string) []string { return t.noted.ChangedOf(kind) }

// Undo rolls back to the start of the trial.
func (t *Trial) Undo(ctx context.Context) error {
	return t.control(ctx, "ROLLBACK TO SAVEPOINT "+trialSavepoint)
}

func (t *Trial) control(ctx context.Context, statement string) error {
	_, err := t.ExecContext(Uncounted(ctx), statement)
	return err
}

// Load runs one transaction that writes rows as they are. It notes no change, and
// is not repeated.
func (d *DB) Load(ctx context.Context, write func(on Conn) error) error {
	release, err := d.takeTurn(ctx)
	if err != nil {
		return err
	}
	defer release()
	tx, err := d.Pool.writer.BeginTx(ctx, nil)
	if err != nil {
		return refusedToBegin(err)
	}
	if err := write(&transaction{Tx: tx, of: d.Pool}); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
