package placementdb

import (
	"context"

	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// PlacementStore reads and writes placement, and keeps the world in memory.
type PlacementStore struct {
	*sqldb.DB
	resident resident
	follower *follower // nil on SQLite, whose file belongs to one server
	claims   claimQueue
}

// New returns the placement of a database, whose world is empty until Load.
func New(db *sqldb.DB) *PlacementStore { return &PlacementStore{DB: db} }

// Load loads the world, and begins to follow what other servers commit.
func (s *PlacementStore) Load(ctx context.Context) error {
	if !s.Postgres() {
		_, err := s.loadWorld(ctx)
		return err
	}
	// Subscribe, load, apply: nothing that is committed meanwhile is missed.
	follower, err := s.follow(ctx, s.Address())
	if err != nil {
		return err
	}
	s.follower = follower
	since, err := s.loadWorld(ctx)
	if err != nil {
		return err
	}
	follower.start(since)
	return nil
}

// Close stops following.
func (s *PlacementStore) Close() error {
	if s.follower == nil {
		return nil
	}
	return s.follower.close()
}
