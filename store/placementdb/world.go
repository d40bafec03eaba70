package placementdb

import (
	"context"
	"fmt"
	"time"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
)

// World returns the placement world as the reading of the context sees it
// (sqldb.Reading), and otherwise as fresh as the last commit that this process
// made or was told of. Any role may read it.
func (s *PlacementStore) World(ctx context.Context) (*placement.World, error) {
	if err := visible.SeesPlacement(ctx); err != nil {
		return nil, err
	}
	held, err := s.ResidentOf(ctx, s.resident)
	if err != nil {
		return nil, fmt.Errorf("bring the world to the instant that is read: %w", err)
	}
	return held.(*heldWorld).world, nil
}

// HeldWorld returns the world of this process, whatever a reading sees, and a
// channel that is closed once there is another one. Who may not read placement
// gets nothing that way but the moment of a change.
func (s *PlacementStore) HeldWorld() (held *placement.World, next <-chan struct{}) {
	next = s.cache.Next()
	return s.cache.World(), next
}

// heldAt returns the world as the snapshot of a transaction sees it, given one
// that was held before the transaction began. So the snapshot sees all that the
// world has, commits of this process included.
func (s *PlacementStore) heldAt(ctx context.Context, on sqldb.Conn, before any) (any, error) {
	held := before.(*heldWorld)
	at, err := s.SnapshotOf(ctx, on)
	if err != nil {
		return nil, err
	}
	notes, err := s.readNotes(ctx, on, held.upTo.Oldest)
	if err != nil {
		return nil, err
	}
	p := decide(held, at, notes)
	if p.everything {
		r, err := s.readEverything(ctx, on, at, func() {})
		if err != nil {
			return nil, err
		}
		return &heldWorld{world: r.world(), upTo: at}, nil
	}
	if p.isEmpty() {
		if len(notes) > fewNotes || at.Oldest-held.upTo.Oldest > fewNotes {
			s.cache.Apply(reading{at: at, only: held})
		}
		return &heldWorld{world: held.world, upTo: at}, nil
	}
	r, err := s.readPlanned(ctx, on, at, p)
	if err != nil {
		return nil, err
	}
	return &heldWorld{world: held.world.With(r.since(held.world, nil).Update), upTo: at}, nil
}

// fewNotes is up to how many notes, or transactions, are left to be read again by
// the next operation where they changed nothing in the world. Where there are
// more, the world of the process is brought forward to the snapshot.
const fewNotes = 32

// publish has the world brought up to what the transaction does, once it is
// committed and before its writer is answered. Where that cannot be, the writer
// is refused with ErrOutcomeUnknown, though it is done.
func (s *PlacementStore) publish(tx *sqldb.Tx, commit ownCommit) {
	tx.After(func(ctx context.Context, outcome sqldb.Outcome) error {
		commit.transaction = tx.ID
		switch {
		case s.follower == nil:
			return s.publishInOrder(ctx, &commit, outcome)
		case outcome == sqldb.Uncertain:
			s.follower.reconcile(tx.ID)
			return nil
		}
		defer s.follower.notify()
		if s.cache.ApplyIfComplete(&commit) {
			return nil
		}
		return s.follower.catchUpTo(ctx, &commit)
	})
}

// PublishAll is publish for a transaction that writes too much to be kept: what
// it wrote is read.
func (s *PlacementStore) PublishAll(tx *sqldb.Tx) { s.publish(tx, ownCommit{more: true}) }

// publishInOrder is publish on SQLite, where transactions are published in the
// order of their numbers, each as the snapshot that follows it. One of which it
// is not known whether it happened makes the world be loaded anew.
func (s *PlacementStore) publishInOrder(ctx context.Context, commit *ownCommit, outcome sqldb.Outcome) error {
	if outcome == sqldb.Committed && !commit.more && s.cache.Apply(commit.reading(s.cache.World())) {
		return nil
	}
	if _, err := s.loadWorld(context.WithoutCancel(ctx)); err != nil {
		return errBehind(err)
	}
	return nil
}

// errBehind refuses a writer whose world could not be brought up to what it
// committed.
func errBehind(err error) error {
	return problem.Refuse(problem.ErrOutcomeUnknown, "the change is made, and cannot be shown: the database cannot be reached").Because(err)
}

// loadWorld makes the world anew from the database. It reports false if the world
// has commits of this process that do not go with what was read.
func (s *PlacementStore) loadWorld(ctx context.Context) (done bool, err error) {
	started := time.Now()
	var r reading
	err = s.ReadAt(ctx, func(on sqldb.Conn, at sqldb.Snapshot) (err error) {
		if err := s.Bound(ctx, on, loadTimeout); err != nil {
			return err
		}
		r, err = s.readEverything(ctx, on, at, s.loading())
		return err
	})
	if err != nil {
		return false, fmt.Errorf("load the providers: %w", err)
	}
	if !s.cache.Replace(r) {
		return false, nil
	}
	s.Log.Info("the resource providers are loaded", "providers", len(r.states), "took", time.Since(started))
	return true, nil
}

// readEverything reads the world as a snapshot sees it. Seen is called for each
// row.
func (s *PlacementStore) readEverything(ctx context.Context, on sqldb.Conn, at sqldb.Snapshot, seen func()) (reading, error) {
	names, err := s.readNames(ctx, on)
	if err != nil {
		return reading{}, err
	}
	states, err := s.readProviders(ctx, on, nil, seen)
	return reading{at: at, everything: true, states: states, names: &names}, err
}

// loading writes to the log every second how many rows of the world are read.
func (s *PlacementStore) loading() (seen func()) {
	rows, told := 0, time.Now()
	return func() {
		rows++
		if time.Since(told) >= time.Second {
			told = time.Now()
			s.Log.Info("loading the resource providers", "rows", rows)
		}
	}
}

// WorldAge returns how old the placement world may be: 0 while this process is
// told of every commit as it happens, else the time since it last looked with
// success.
func (s *PlacementStore) WorldAge() time.Duration {
	if s.follower == nil {
		return 0
	}
	return s.follower.age(time.Now())
}
