package placementdb

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
)

// ProviderPage is a page of the resource providers, with the world that they
// come from and how many there are in the whole list.
type ProviderPage struct {
	page.Page[*placement.Provider]
	World *placement.World
	Total int
}

// providerKeys are what providers can be ordered by.
var providerKeys = map[string]func(*placement.Provider) string{
	"NAME":       func(p *placement.Provider) string { return p.Name },
	"CREATED_AT": func(p *placement.Provider) string { return sortableTime(p.CreatedAt) },
	"UPDATED_AT": func(p *placement.Provider) string { return sortableTime(p.UpdatedAt) },
}

// sortableTime returns a time as text that sorts as the time does.
func sortableTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// ResourceProviders returns a page of the providers, each judged by itself,
// from the world. Problems are what the caller found wrong with the rest of the
// input: they are refused together with what is wrong here.
func (s *PlacementStore) ResourceProviders(ctx context.Context, filter placement.ProviderFilter, order page.Order, request page.Request, problems problem.Problems) (ProviderPage, error) {
	world, err := s.World(ctx)
	if err != nil {
		return ProviderPage{}, err
	}
	problems = append(problems, problemsOf(filter.Validate(world, "filter"))...)
	var found []*placement.Provider
	if len(problems) == 0 {
		found = world.Filter(filter)
	}
	key := providerKeys[order.Field]
	page, err := page.OfList("resourceProviders", order, found, request, problems,
		func(p *placement.Provider) (string, string) { return key(p), p.UUID })
	return ProviderPage{Page: page, World: world, Total: len(found)}, err
}

// ConsumerByUUID returns a consumer, or ErrNotFound.
func (s *PlacementStore) ConsumerByUUID(ctx context.Context, uuid string) (*placement.Consumer, error) {
	found, err := s.ConsumersByUUID(ctx, []string{uuid})
	if err != nil {
		return nil, err
	}
	if found[uuid] == nil {
		return nil, problem.Refuse(problem.ErrNotFound, "consumer %s has no allocations", uuid)
	}
	return found[uuid], nil
}

// ConsumersByUUID returns the consumers that the viewer sees.
func (s *PlacementStore) ConsumersByUUID(ctx context.Context, uuids []string) (map[string]*placement.Consumer, error) {
	if err := visible.SeesPlacement(ctx); err != nil {
		return nil, err
	}
	found := map[string]*placement.Consumer{}
	seen, args := visible.ConsumerClause(ctx, "c.project_id", 2)
	err := s.Query(ctx, s.Pool, `SELECT `+consumerColumns+` FROM consumers c WHERE `+s.Listed("c.uuid", "$1", "text")+` AND `+seen,
		func(rows *sql.Rows) error {
			_, consumer, err := scanConsumer(rows)
			found[consumer.UUID] = consumer
			return err
		}, append([]any{sqldb.JSONOf(uuids)}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("look up consumers: %w", err)
	}
	return found, nil
}

const consumerColumns = `c.id, c.uuid, c.project_id, c.user_id, c.consumer_type, c.generation, c.created_at, c.updated_at`

func scanConsumer(rows *sql.Rows) (int64, *placement.Consumer, error) {
	var id int64
	c := new(placement.Consumer)
	err := rows.Scan(&id, &c.UUID, &c.ProjectID, &c.UserID, &c.Type, &c.Generation, &c.CreatedAt, &c.UpdatedAt)
	c.CreatedAt, c.UpdatedAt = c.CreatedAt.UTC(), c.UpdatedAt.UTC()
	return id, c, err
}

// AllocationsOfConsumers returns the allocations of the consumers that the
// viewer sees, by provider and class.
func (s *PlacementStore) AllocationsOfConsumers(ctx context.Context, uuids []string) (map[string][]*placement.Allocation, error) {
	if err := visible.SeesPlacement(ctx); err != nil {
		return nil, err
	}
	found := map[string][]*placement.Allocation{}
	seen, args := visible.ConsumerClause(ctx, "o.project_id", 2)
	err := s.Query(ctx, s.Pool, `SELECT o.uuid, p.uuid, c.name, a.used FROM allocations a
		JOIN consumers o ON o.id = a.consumer_id JOIN resource_providers p ON p.id = a.provider_id
		JOIN resource_classes c ON c.id = a.resource_class_id
		WHERE `+s.Listed("o.uuid", "$1", "text")+` AND `+seen+` ORDER BY o.uuid, p.uuid, c.name`, func(rows *sql.Rows) error {
		a := new(placement.Allocation)
		err := rows.Scan(&a.Consumer, &a.Provider, &a.ResourceClass, &a.Used)
		found[a.Consumer] = append(found[a.Consumer], a)
		return err
	}, append([]any{sqldb.JSONOf(uuids)}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("list allocations of consumers: %w", err)
	}
	return found, nil
}

// ProvidersOfResources returns the providers linked to resources, by the rows
// of the resources, with the world that they are in. A viewer without any role
// sees none.
func (s *PlacementStore) ProvidersOfResources(ctx context.Context, resources []int64) (*placement.World, map[int64]*placement.Provider, error) {
	if visible.SeesPlacement(ctx) != nil {
		return nil, nil, nil
	}
	of, err := sqldb.Pairs[int64, string](ctx, s.DB, s.Pool,
		`SELECT resource_id, uuid FROM resource_providers WHERE `+s.Listed("resource_id", "$1", "bigint"), sqldb.JSONOf(resources))
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
