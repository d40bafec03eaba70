package placementdb

import (
	"context"
	"time"

	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// PlacementStore reads and writes placement, and keeps the world in memory.
type PlacementStore struct {
	*sqldb.DB
	cache    worldCache
	follower *follower // nil on SQLite, whose file belongs to one server
	resident *sqldb.Resident
	claims   claimQueue
	also     []func(context.Context) error // other things that follow what is committed
}

// New returns the placement of a database, whose world is empty until Load.
func New(db *sqldb.DB) *PlacementStore {
	s := &PlacementStore{DB: db}
	if db.Postgres() {
		s.claims.atOnce = min(claimTransactions, db.Places().Statements/2)
	}
	s.resident = &sqldb.Resident{Held: func() any { return s.cache.held.Load() }, At: s.heldAt}
	db.AddResident(s.resident)
	return s
}

// AlsoFollow has a function called that brings something else forward to what is
// committed, whenever the world is brought forward to what other servers commit.
// It is called before Load.
func (s *PlacementStore) AlsoFollow(catchUp func(context.Context) error) {
	s.also = append(s.also, catchUp)
}

// ShowWorld brings the world forward until it shows what some transactions changed
// that are committed; for nil, all that were before the call.
func (s *PlacementStore) ShowWorld(ctx context.Context, transactions []sqldb.TransactionID) error {
	shows := func() bool { return transactions != nil && s.cache.Shows(transactions) }
	switch {
	case shows():
		return nil
	case s.follower == nil:
		return s.AwaitTurn(ctx)
	}
	return s.follower.exclusively(ctx, func() error {
		if shows() {
			return nil
		}
		return s.follower.catchUp(ctx)
	})
}

// Tell has other servers told that there is something to see.
func (s *PlacementStore) Tell() {
	if s.follower != nil {
		s.follower.notify()
	}
}

// Reconcile has it found out what became of a transaction whose COMMIT had no
// answer: when it has ended, all that follows what is committed is brought up to
// it, and other servers are told.
func (s *PlacementStore) Reconcile(transaction sqldb.TransactionID) {
	if s.follower != nil {
		s.follower.reconcile(transaction)
	}
}

// Load loads the world, and begins to follow what other servers commit.
func (s *PlacementStore) Load(ctx context.Context) error {
	if s.Postgres() {
		follower, err := s.follow(ctx, s.Address())
		if err != nil {
			return err
		}
		s.follower = follower
	}
	began := time.Now()
	if _, err := s.loadWorld(ctx); err != nil {
		return err
	}
	if s.follower != nil {
		s.follower.start(began)
	}
	return nil
}

// Close stops following.
func (s *PlacementStore) Close() error {
	if s.follower == nil {
		return nil
	}
	return s.follower.close()
}
