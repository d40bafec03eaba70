package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/problem"
)

// attempts is how often a transaction is tried that the database gave up for
// another one's sake.
const attempts = 10

// transact runs a write in one transaction, begun and ended here: committed when
// write returns nil, else rolled back. It tries again when the database ended it
// for the sake of another transaction, so write must have no effect outside it:
// also when a foreign key refused, since then a row that was found is gone. Who
// deletes what others may refer to makes a refusal of that in write itself.
func (s *Store) transact(ctx context.Context, write func(tx *ent.Tx) error) error {
	for attempt := 1; ; attempt++ {
		err := s.transactOnce(ctx, write)
		if err == nil || isRefusal(err) || !isTransient(err) && !isReferred(err) {
			return err
		}
		if attempt == attempts {
			return problem.Refuse(problem.ErrUnavailable, "the database is too busy, try again").Because(err)
		}
		pause := time.Duration(attempt) * time.Duration(1+rand.IntN(10)) * time.Millisecond
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

func (s *Store) transactOnce(ctx context.Context, write func(tx *ent.Tx) error) error {
	tx, err := s.ent.Tx(ctx)
	if err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // also where write panics; after a commit it does nothing
	if err := write(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return &commitError{err}
	}
	return nil
}

// lockName makes the writers of one name of a class wait for each other until the
// transaction ends, by an advisory lock. On SQLite there is one writer anyway.
func (s *Store) lockName(ctx context.Context, tx *ent.Tx, class int, name string) error {
	if !s.postgres() {
		return nil
	}
	_, err := tx.ExecContext(uncounted(ctx), "SELECT pg_advisory_xact_lock($1, hashtext($2))", class, name)
	return err
}

// locked locks the rows that a query finds. On SQLite a transaction has the
// database for itself.
func (s *Store) locked() func(*entsql.Selector) {
	return func(selector *entsql.Selector) {
		if s.postgres() {
			selector.ForUpdate()
		}
	}
}

// isRefusal tells whether the house refused, rather than the database.
func isRefusal(err error) bool {
	of := new(problem.Refusal)
	return errors.As(err, &of)
}

// commitError is an error that followed COMMIT: the transaction may have
// happened.
type commitError struct{ cause error }

func (e *commitError) Error() string { return "commit a transaction: " + e.cause.Error() }

func (e *commitError) Unwrap() error { return e.cause }

// isUncertain tells whether it is not known if a transaction happened.
func isUncertain(err error) bool {
	of := new(commitError)
	return errors.As(err, &of)
}
