package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/cadastre-dev/cadastre/access"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/resource"
)

// ResourcesByUUID are the resources that the viewer may see.
func (s *Store) ResourcesByUUID(ctx context.Context, uuids []string) (map[string]*resource.Resource, error) {
	rows, err := s.ent.Resource.Query().Where(visibleResources(ctx), among(entresource.FieldUUID, uuids)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("look up resources: %w", err)
	}
	found := make(map[string]*resource.Resource, len(rows))
	for _, row := range rows {
		found[row.UUID] = resourceNoun(row)
	}
	return found, nil
}

// ProvidersOfResources are the providers linked to resources, by the rows of the
// resources, with the world that they are in. A viewer without any role sees
// none.
func (s *Store) ProvidersOfResources(ctx context.Context, resources []int64) (*placement.World, map[int64]*placement.Provider, error) {
	if access.MayReadPlacement(access.ViewerFrom(ctx)) != nil {
		return nil, nil, nil
	}
	of := map[int64]string{}
	var uuids []string
	err := s.query(ctx, s.db, `SELECT resource_id, uuid FROM resource_providers WHERE `+s.listed("resource_id", "$1", "bigint"), func(rows *sql.Rows) error {
		var id int64
		var uuid string
		err := rows.Scan(&id, &uuid)
		of[id], uuids = uuid, append(uuids, uuid)
		return err
	}, jsonOf(resources))
	if err != nil {
		return nil, nil, fmt.Errorf("look up the providers of resources: %w", err)
	}
	world, err := s.Providers(ctx, uuids)
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
