package placementdb

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
)

// PlacementStore reads and writes placement data, and keeps the world in
// memory.
type PlacementStore struct {
	*sqldb.DB
	cache    worldCache
	follower *follower // nil on SQLite, where one server uses the file
	resident *sqldb.Resident
	claims   claimQueue
	// repeated counts the choices that places made again.
	repeated  atomic.Int64
	rankings  placement.Rankings            // of recent places
	survivals placement.Survivals           // for viewers who see all consumers
	also      []func(context.Context) error // updates other in-memory copies
	// holdsMade wakes the release of ended holds, since a hold may end before
	// all known ones. stopReleasing stops it; nil before it starts.
	holdsMade     chan struct{}
	stopReleasing func()
	// auditAllocations makes audit events show allocations of consumers.
	auditAllocations bool
}

// New returns the placement store of a database. It has no world until Load.
// With auditAllocations, audit events show consumers with their allocations.
func New(db *sqldb.DB, auditAllocations bool) *PlacementStore {
	s := &PlacementStore{DB: db, holdsMade: make(chan struct{}, 1), auditAllocations: auditAllocations}
	s.AlsoFollow(func(context.Context) error {
		signal(s.holdsMade)
		return nil
	})
	if db.Postgres() {
		s.claims.atOnce = min(claimTransactions, db.Places().Statements/2)
	}
	s.resident = &sqldb.Resident{Held: func() any { return s.cache.held.Load() }, At: s.heldAt}
	db.AddResident(s.resident)
	return s
}

// AlsoFollow registers a function that updates another in-memory copy. On
// PostgreSQL the follower's loop runs it after each successful catch up, on
// SQLite it never runs. Register it before Load.
func (s *PlacementStore) AlsoFollow(catchUp func(context.Context) error) {
	s.also = append(s.also, catchUp)
}

// ShowWorld updates the world until it has the given committed transactions;
// nil means all that committed before the call.
func (s *PlacementStore) ShowWorld(ctx context.Context, transactions []changelog.TransactionID) error {
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

// Tell notifies other servers of a commit. On SQLite it does nothing.
func (s *PlacementStore) Tell() {
	if s.follower != nil {
		s.follower.notify()
	}
}

// Reconcile registers a transaction whose COMMIT got no answer. Once it has
// ended, the in-memory copies are updated and other servers are notified.
func (s *PlacementStore) Reconcile(transaction changelog.TransactionID) {
	if s.follower != nil {
		s.follower.reconcile(transaction)
	}
}

// Load loads the world, and starts following the commits of other servers.
func (s *PlacementStore) Load(ctx context.Context) error {
	if s.Postgres() {
		follower, err := s.follow(ctx, s.ListenAddress())
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

// Close stops the release of ended holds, and following other servers.
func (s *PlacementStore) Close() error {
	if s.stopReleasing != nil {
		s.stopReleasing()
	}
	if s.follower == nil {
		return nil
	}
	return s.follower.close()
}
