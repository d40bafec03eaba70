package placementdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cadastre-dev/cadastre/internal/pause"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
)

// Limits of a catch up.
const (
	// catchUpWithin is how long a writer retries failed catch ups. The last
	// catch up may take longer, up to the deadline of the request. catchUpWithin
	// also limits the sending of a notification.
	catchUpWithin = 2 * time.Second
	// loadTimeout limits each statement that loads a whole world, and the whole
	// load of a follower. A million providers take some ten seconds on an idle
	// core.
	loadTimeout = 5 * time.Minute
	// refusals is how many refused snapshots a catch up tolerates. After one
	// more it loads the whole world.
	refusals = 5
)

// catchUpTo updates the world to a commit of this process that builds on
// commits that the world lacks. One catch up serves all waiting writers.
// catchUpTo continues if the request is canceled, and returns ErrOutcomeUnknown
// if catch ups fail for catchUpWithin.
func (f *follower) catchUpTo(ctx context.Context, commit *ownCommit) error {
	ctx, cancel := sqldb.AfterCommit(ctx, catchUpWithin)
	defer cancel()
	for began := time.Now(); ; {
		err := f.exclusively(ctx, func() error {
			if f.store.cache.ApplyIfComplete(commit) {
				return nil
			}
			return f.catchUp(ctx)
		})
		if err == nil {
			return nil
		}
		f.store.Log.WarnContext(ctx, "cannot update the world in memory to a commit, will retry", "error", err)
		if !pause.For(ctx, catchUpWithin/20) || time.Since(began) > catchUpWithin {
			f.wake()
			return errBehind(err)
		}
	}
}

// reconcile registers a transaction whose COMMIT got no answer. Once it has
// ended, a catch up shows its outcome in the world, and other servers are
// notified.
func (f *follower) reconcile(transaction changelog.TransactionID) {
	f.uncertain.Lock()
	f.uncertain.of = append(f.uncertain.of, transaction)
	f.uncertain.Unlock()
	f.wake()
}

// exclusively waits until no catch up runs, and runs a function. If ctx ends
// first, it returns the error of ctx.
func (f *follower) exclusively(ctx context.Context, run func() error) error {
	select {
	case f.catching <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-f.catching }()
	return run()
}

// catchUp updates the world to a new snapshot. The caller must hold catching,
// see exclusively.
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

// catchUpAll updates the world, and the other in-memory copies, to everything
// that is committed.
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

// errNotInLog means that the change log does not reach back to the snapshot of
// the world, or that the snapshot is of another run of the server.
var errNotInLog = errors.New("the change log no longer reaches back to the world in memory")

// forward takes a snapshot and updates the world to it. It returns false if the
// world refuses the snapshot, and errNotInLog if all must be read.
func (f *follower) forward(ctx context.Context) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, sqldb.StatementTimeout)
	defer cancel()
	s, held := f.store, f.store.cache.held.Load()
	var r reading
	err = s.ReadAt(ctx, func(on sqldb.Conn, at changelog.Snapshot) error {
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
		return false, fmt.Errorf("read changes of other servers: %w", err)
	}
	return s.cache.Apply(r), nil
}

// load reads the whole world again. The listening connection may lead to a former
// primary, so another one replaces it, and a notification must prove that it listens.
func (f *follower) load(ctx context.Context) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	f.listening.Store(false)
	f.dialer.hangUp()
	f.notify()
	return f.store.loadWorld(ctx)
}

// takeUncertain takes the transactions with an unknown outcome off the list.
func (f *follower) takeUncertain() []changelog.TransactionID {
	f.uncertain.Lock()
	defer f.uncertain.Unlock()
	of := f.uncertain.of
	f.uncertain.of = nil
	return of
}

// settle runs after a catch up that began after all COMMITs of the
// transactions. It puts back the ones that may still run, and notifies other
// servers if some have ended.
func (f *follower) settle(uncertain []changelog.TransactionID, caughtUp bool) {
	if len(uncertain) == 0 {
		return
	}
	var run []changelog.TransactionID
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

// readNotes reads the distinct placement changes of the log from a transaction
// on, itself included, with the row id and version of each provider.
func (s *PlacementStore) readNotes(ctx context.Context, on sqldb.Conn, from int64) ([]placementNote, error) {
	var notes []placementNote
	err := s.Query(ctx, on, `SELECT c.kind, c.key, COALESCE(p.id, 0), COALESCE(p.version, 0)
		FROM (SELECT DISTINCT kind, key FROM changes WHERE "transaction" >= $1 AND kind IN ('`+providerKind+`', '`+traitKind+`', '`+resourceClassKind+`', '`+changelog.PrunedKind+`')) AS c
		LEFT JOIN resource_providers p ON c.kind = '`+providerKind+`' AND p.uuid = c.key`, func(rows *sql.Rows) error {
		var note placementNote
		err := rows.Scan(&note.kind, &note.key, &note.row, &note.version)
		notes = append(notes, note)
		return err
	}, from)
	return notes, err
}

// readPlanned reads the rows of a plan.
func (s *PlacementStore) readPlanned(ctx context.Context, on sqldb.Conn,
	at changelog.Snapshot, p plan) (reading, error) {
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

// placementNote is a row of the change log, with the provider that it concerns
// as the snapshot sees it.
type placementNote struct {
	changeKey
	row, version int64 // of the provider; row 0 if there is none
}

// plan lists the rows to read from a snapshot to update the world to it.
type plan struct {
	everything bool     // the change log does not reach back, or is of another run of the server
	rows       []int64  // row ids of providers
	absent     []string // uuids of providers that the snapshot lacks
	names      bool
}

func (p plan) isEmpty() bool { return !p.everything && !p.names && len(p.rows)+len(p.absent) == 0 }

// changeKey identifies a thing in the world: a provider by uuid, a trait or a
// resource class by name.
type changeKey struct{ kind, key string }

// Kinds of changes.
const (
	providerKind      = "ResourceProvider"
	traitKind         = "Trait"
	resourceClassKind = "ResourceClass"
)

// decide returns what to read from a snapshot, given the held world and the
// change log as the snapshot sees it. The notes must include all transactions
// that the held snapshot may have missed: those from its oldest on. More notes
// do no harm. A provider that is absent in the snapshot was deleted, or was
// created after the snapshot. staysAhead decides which.
func decide(held *heldWorld, at changelog.Snapshot, notes []placementNote) plan {
	if at.Server != held.upTo.Server {
		return plan{everything: true}
	}
	var p plan
	for _, note := range notes {
		switch note.kind {
		case changelog.PrunedKind:
			if kept, err := strconv.ParseInt(note.key, 10, 64); err != nil || kept > held.upTo.Oldest {
				return plan{everything: true}
			}
		case traitKind, resourceClassKind:
			p.names = true
		case providerKind:
			provider, found := held.world.Provider(note.key)
			switch {
			case note.row == 0:
				p.absent = append(p.absent, note.key)
			case !found || provider.Row != note.row || provider.Version != note.version:
				p.rows = append(p.rows, note.row)
			}
		}
	}
	return p
}
