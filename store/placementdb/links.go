package placementdb

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
)

// ProvidersOfResources returns the providers linked to resources, by the rows
// of the resources, with the world that they are in. A viewer without any role
// sees none.
func (s *PlacementStore) ProvidersOfResources(ctx context.Context, resources []int64) (*placement.World, map[int64]*placement.Provider, error) {
	if visible.SeesPlacement(ctx) != nil {
		return nil, nil, nil
	}
	of := map[int64]string{}
	err := s.Query(ctx, s.Pool, `SELECT resource_id, uuid FROM resource_providers WHERE `+s.Listed("resource_id", "$1", "bigint"), func(rows *sql.Rows) error {
		var id int64
		var uuid string
		err := rows.Scan(&id, &uuid)
		of[id] = uuid
		return err
	}, sqldb.JSONOf(resources))
	if err != nil {
		return nil, nil, fmt.Errorf("look up the providers of resources: %w", err)
	}
	world, err := s.World(ctx)
	if err != nil {
		return nil, nil, err
	}
	found := map[int64]*placement.Provider{}
	for id, uuid := range of {
		if provider, known := world.Provider(uuid); known {
			found[id] = provider
		}
	}
	return world, found, nil
}
