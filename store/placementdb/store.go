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

// Open loads the world of a database, and follows what other servers commit to
// it.
func Open(ctx context.Context, db *sqldb.DB) (*PlacementStore, error) {
	s := &PlacementStore{DB: db}
	if !s.Postgres() {
		_, err := s.loadWorld(ctx)
		return s, err
	}
	// Subscribe, load, apply: nothing that is committed meanwhile is missed.
	follower, err := s.follow(ctx, s.Address())
	if err != nil {
		return s, err
	}
	s.follower = follower
	since, err := s.loadWorld(ctx)
	if err != nil {
		return s, err
	}
	follower.start(since)
	return s, nil
}

// Close stops following.
func (s *PlacementStore) Close() error {
	if s.follower == nil {
		return nil
	}
	return s.follower.close()
}
