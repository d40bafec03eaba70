package placementdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/cadastre-dev/cadastre/internal/pause"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// Bounds of a catch up.
const (
	// catchUpWithin bounds how long a writer waits for one.
	catchUpWithin = 2 * time.Second
	// loadTimeout bounds the loading of a whole world, and each statement of it: a
	// million providers take some ten seconds on a core that does nothing else.
	loadTimeout = 5 * time.Minute
	// refusals is how often a snapshot may be refused until everything is read.
	refusals = 5
)

// catchUpTo brings the world forward to a commit of this process which builds on
// others that it lacks. One catch up serves all that wait. It outlives the
// request.
func (f *follower) catchUpTo(ctx context.Context, commit *ownCommit) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), catchUpWithin)
	defer cancel()
	for {
		err := f.exclusively(ctx, func() error {
			if f.store.cache.ApplyIfComplete(commit) {
				return nil
			}
			return f.catchUp(ctx)
		})
		if err == nil {
			return nil
		}
		f.store.Log.WarnContext(ctx, "cannot bring the world up to a commit, will try again", "error", err)
		if pause.For(ctx, catchUpWithin/20); ctx.Err() != nil {
			f.wake()
			return errBehind(err)
		}
	}
}

// reconcile has it found out what became of a transaction whose COMMIT had no
// answer: when it has ended, the world is brought up to it, and others are told.
func (f *follower) reconcile(transaction sqldb.TransactionID) {
	f.uncertain.Lock()
	f.uncertain.of = append(f.uncertain.of, transaction)
	f.uncertain.Unlock()
	f.wake()
}

// exclusively runs a function while no other catch up runs.
func (f *follower) exclusively(ctx context.Context, run func() error) error {
	select {
	case f.catching <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-f.catching }()
	return run()
}

// catchUp brings the world forward to a new snapshot. The caller sees to it that
// no other one runs.
func (f *follower) catchUp(ctx context.Context) error {
	ctx = sqldb.Uncounted(ctx)
	for attempt := 1; ; attempt++ {
		began := time.Now()
		uncertain := f.takeUncertain()
		done, err := f.forward(ctx)
		if errors.Is(err, errNotInLog) || err == nil && !done && attempt > refusals {
			done, err = f.load(ctx)
		}
		if err == nil && done {
			f.caughtUp.Store(began.UnixNano())
		}
		f.settle(uncertain, err == nil && done)
		if err != nil || done {
			return err
		}
		if attempt > refusals {
			pause.For(ctx, poll/10)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// catchUpAll brings the world, and what follows with it, forward to what is
// committed.
func (f *follower) catchUpAll(ctx context.Context) error {
	if err := f.exclusively(ctx, func() error { return f.catchUp(ctx) }); err != nil {
		return err
	}
	for _, catchUp := range f.store.also {
		if err := catchUp(sqldb.Uncounted(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// errNotInLog says that the change log does not reach back to the world.
var errNotInLog = errors.New("the change log does not reach back to the world")

// forward takes a snapshot and brings the world forward to it. It reports false
// if the world refuses this one.
func (f *follower) forward(ctx context.Context) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, sqldb.StatementTimeout)
	defer cancel()
	s, held := f.store, f.store.cache.held.Load()
	var r reading
	err = s.ReadAt(ctx, func(on sqldb.Conn, at sqldb.Snapshot) error {
		notes, err := s.readNotes(ctx, on, held.upTo.Oldest)
		if err != nil {
			return err
		}
		p := decide(held, at, notes)
		if p.everything {
			return errNotInLog
		}
		r, err = s.readPlanned(ctx, on, at, p)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("read what other servers changed: %w", err)
	}
	return s.cache.Apply(r), nil
}

// load makes the world anew.
func (f *follower) load(ctx context.Context) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	return f.store.loadWorld(ctx)
}

// takeUncertain returns the transactions of which it is not known whether they
// happened.
func (f *follower) takeUncertain() []sqldb.TransactionID {
	f.uncertain.Lock()
	defer f.uncertain.Unlock()
	of := f.uncertain.of
	f.uncertain.of = nil
	return of
}

// settle keeps those of the transactions that may still run, after a catch up that
// began when all had been sent COMMIT, and tells others if some have ended.
func (f *follower) settle(uncertain []sqldb.TransactionID, caughtUp bool) {
	if len(uncertain) == 0 {
		return
	}
	var run []sqldb.TransactionID
	upTo := f.store.cache.UpTo()
	for _, transaction := range uncertain {
		if !caughtUp || !upTo.HasEnded(transaction) {
			run = append(run, transaction)
		}
	}
	if len(run) < len(uncertain) {
		f.notify()
	}
	f.uncertain.Lock()
	defer f.uncertain.Unlock()
	f.uncertain.of = append(f.uncertain.of, run...)
}

// readNotes reads the change log from a transaction on, with what there is
// of the providers in it.
func (s *PlacementStore) readNotes(ctx context.Context, on sqldb.Conn, from int64) ([]placementNote, error) {
	var notes []placementNote
	err := s.Query(ctx, on, `SELECT c.kind, c.key, COALESCE(p.id, 0), COALESCE(p.version, 0)
		FROM (SELECT DISTINCT kind, key FROM changes WHERE "transaction" >= $1 AND kind IN ('`+providerKind+`', '`+traitKind+`', '`+resourceClassKind+`', '`+sqldb.PrunedKind+`')) AS c
		LEFT JOIN resource_providers p ON c.kind = '`+providerKind+`' AND p.uuid = c.key`, func(rows *sql.Rows) error {
		var note placementNote
		err := rows.Scan(&note.kind, &note.key, &note.row, &note.version)
		notes = append(notes, note)
		return err
	}, from)
	return notes, err
}

// readPlanned reads what a plan asks for.
func (s *PlacementStore) readPlanned(ctx context.Context, on sqldb.Conn, at sqldb.Snapshot, p plan) (reading, error) {
	r := reading{at: at, absent: p.absent}
	if p.names {
		names, err := s.readNames(ctx, on)
		if err != nil {
			return reading{}, err
		}
		r.names = &names
	}
	if len(p.rows) == 0 {
		return r, nil
	}
	var err error
	r.states, err = s.readProviders(ctx, on, p.rows, func() {})
	return r, err
}
