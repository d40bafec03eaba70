package placementdb

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
)

// World returns the placement world, as fresh as the last commit that this
// process made or was notified of. Any role may read it.
func (s *PlacementStore) World(ctx context.Context) (*placement.World, error) {
	if err := visible.SeesPlacement(ctx); err != nil {
		return nil, err
	}
	return s.resident.world.Load(), nil
}

// loadWorld makes the world anew from the database. On PostgreSQL it returns the
// oldest transaction that ran then, whose notes are to be read next.
func (s *PlacementStore) loadWorld(ctx context.Context) (since int64, err error) {
	started := time.Now()
	s.resident.naming.Lock()
	defer s.resident.naming.Unlock()
	s.resident.writing.Lock()
	defer s.resident.writing.Unlock()
	var names placement.Names
	var states []providerRow
	err = s.Snapshot(ctx, func(on sqldb.Conn) (err error) {
		if s.Postgres() {
			if since, err = s.OldestTransaction(ctx, on); err != nil {
				return err
			}
		}
		if names, err = s.readNames(ctx, on); err != nil {
			return err
		}
		states, err = s.readProviders(ctx, on, nil, s.loading())
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("load the providers: %w", err)
	}
	providers := make([]placement.Provider, len(states))
	for i, state := range states {
		providers[i] = state.Provider
	}
	s.resident.replace(states)
	s.resident.world.Store(placement.NewWorld(names, providers))
	s.Log.Info("the resource providers are loaded", "providers", len(providers), "took", time.Since(started))
	return since, nil
}

// ReloadWorld loads the world after a transaction that wrote much, and makes
// other servers look.
func (s *PlacementStore) ReloadWorld(ctx context.Context) error {
	_, err := s.loadWorld(ctx)
	if s.follower != nil {
		s.follower.committed()
	}
	return err
}

// loading returns a function that is told of each row, and logs every second
// how many rows of the world are read.
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

// publish has the world brought up to what the transaction does, once it is
// committed and before its writer is answered.
func (s *PlacementStore) publish(tx *sqldb.Tx, n news) {
	tx.After(func(ctx context.Context, outcome sqldb.Outcome) {
		if outcome == sqldb.Uncertain {
			s.reconcile(ctx, n)
			return
		}
		s.arrive(ctx, n)
		if s.follower != nil {
			s.follower.committed()
		}
	})
}

// arrive brings the world up to a commit of this process. One that saw what
// others committed and the world lacks arrives together with that.
func (s *PlacementStore) arrive(ctx context.Context, n news) {
	switch {
	case s.resident.follow(n):
	case s.follower != nil:
		s.follower.bring(ctx, n)
	default:
		s.resident.apply(n)
	}
}

// reconcile finds out what became of a transaction whose COMMIT had no answer,
// and brings the world up to whatever is the case. It outlives the request. Where
// the database does not answer, the follower finds out later.
func (s *PlacementStore) reconcile(ctx context.Context, attempted news) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reconcileWithin)
	defer cancel()
	for {
		n, err := s.commitOutcome(ctx, attempted)
		if err == nil {
			s.arrive(ctx, n)
			return
		}
		sqldb.Pause(ctx, reconcileWithin/20)
		if ctx.Err() == nil {
			continue
		}
		s.Log.ErrorContext(ctx, "the world may lack a commit until the database answers", "error", err, "providers", len(attempted.states))
		if s.follower != nil {
			s.follower.wake()
		}
		return
	}
}

// reconcileWithin bounds how long reconcile asks.
const reconcileWithin = 2 * time.Second

// commitOutcome reads what a transaction was to write.
func (s *PlacementStore) commitOutcome(ctx context.Context, attempted news) (n news, err error) {
	err = s.Snapshot(ctx, func(on sqldb.Conn) (err error) {
		names, err := s.readNames(ctx, on)
		if err != nil {
			return err
		}
		n.added, n.removed = namesThere(attempted, names)
		ids := make([]int64, 0, len(attempted.states)+len(attempted.deleted))
		gone := map[int64]string{}
		for _, state := range attempted.states {
			ids, gone[state.id] = append(ids, state.id), state.UUID
		}
		for _, row := range attempted.deleted {
			ids, gone[row.id] = append(ids, row.id), row.uuid
		}
		n.states, err = s.readProviders(ctx, on, ids, func() {})
		for _, state := range n.states {
			delete(gone, state.id)
		}
		for id, uuid := range gone {
			n.deleted = append(n.deleted, deletedRow{id: id, uuid: uuid})
		}
		return err
	})
	return n, err
}

// namesThere divides the names that a transaction was to write into those that
// are there and those that are not.
func namesThere(attempted news, there placement.Names) (added, removed placement.Names) {
	split := func(written, there []string) (in, out []string) {
		for _, name := range written {
			if slices.Contains(there, name) {
				in = append(in, name)
			} else {
				out = append(out, name)
			}
		}
		return in, out
	}
	added.Traits, removed.Traits = split(slices.Concat(attempted.added.Traits, attempted.removed.Traits), there.Traits)
	added.ResourceClasses, removed.ResourceClasses = split(slices.Concat(attempted.added.ResourceClasses, attempted.removed.ResourceClasses), there.ResourceClasses)
	return added, removed
}
