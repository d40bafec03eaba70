package placementdb

import (
	"context"
	"math"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/allocation"
	"github.com/cadastre-dev/cadastre/ent/consumer"
	"github.com/cadastre-dev/cadastre/ent/predicate"
	"github.com/cadastre-dev/cadastre/ent/providertrait"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/ent/resourceclass"
	"github.com/cadastre-dev/cadastre/ent/resourceprovider"
	"github.com/cadastre-dev/cadastre/ent/trait"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

var (
	consumerOrders = map[string]paging.SortKey{"CREATED_AT": {Column: consumer.FieldCreatedAt, IsTime: true}}
	traitOrders    = map[string]paging.SortKey{"NAME": {Column: trait.FieldName, Tie: trait.FieldName}}
	classOrders    = map[string]paging.SortKey{"NAME": {Column: resourceclass.FieldName, Tie: resourceclass.FieldName}}
)

// The tables of the lists.
var (
	consumerTable = sqldb.NewTable[ent.Consumer](consumer.Table, consumer.Columns, consumer.FieldMappings)
	traitTable    = sqldb.NewTable[ent.Trait](trait.Table, trait.Columns)
	classTable    = sqldb.NewTable[ent.ResourceClass](resourceclass.Table, resourceclass.Columns)
)

// byName is the order by name, the only one for traits and classes.
var byName = page.Order{Field: "NAME"}

// Consumers returns a page of the consumers that match a filter and that the
// viewer sees.
func (s *PlacementStore) Consumers(ctx context.Context, filter placement.ConsumerFilter, order page.Order,
	request page.Request) (page.Page[*placement.Consumer], error) {
	var none page.Page[*placement.Consumer]
	if err := visible.SeesPlacement(ctx); err != nil {
		return none, err
	}
	err := text.CheckAny("filter.projectId", text.OrEmpty(filter.ProjectID), "filter.userId",
		text.OrEmpty(filter.UserID), "filter.type", text.OrEmpty(filter.Type))
	if err != nil {
		return none, err
	}
	pages, err := paging.New("consumers", consumerOrders, order, request)
	return paging.PageOf(sqldb.Unprepared(ctx), s.DB, consumerTable, pages, err, consumerNoun,
		func(row *ent.Consumer) (any, string) { return row.CreatedAt, row.UUID },
		visible.Consumers(ctx), consumersThat(ctx, filter))
}

// CountConsumers returns the number of consumers in the list Consumers.
func (s *PlacementStore) CountConsumers(ctx context.Context, filter placement.ConsumerFilter) (int, error) {
	return consumerTable.Count(ctx, s.DB, visible.Consumers(ctx), consumersThat(ctx, filter))
}

// consumersThat keeps the consumers that match a filter.
func consumersThat(ctx context.Context, filter placement.ConsumerFilter) predicate.Consumer {
	viewer := access.ViewerFrom(ctx)
	return func(s *entsql.Selector) {
		build := entsql.Dialect(s.Dialect())
		equals := func(column string, value *string) {
			if value != nil {
				s.Where(entsql.EQ(s.C(column), *value))
			}
		}
		equals(consumer.FieldProjectID, filter.ProjectID)
		equals(consumer.FieldUserID, filter.UserID)
		equals(consumer.FieldConsumerType, filter.Type)
		if filter.OlderThan != nil {
			s.Where(entsql.LT(s.C(consumer.FieldCreatedAt), filter.OlderThan.UTC()))
		}
		if filter.Held != nil {
			if *filter.Held {
				s.Where(entsql.NotNull(s.C(consumer.FieldExpiresAt)))
			} else {
				s.Where(entsql.IsNull(s.C(consumer.FieldExpiresAt)))
			}
		}
		if filter.WithoutResource != nil {
			resources := build.Table(entresource.Table)
			has := entsql.Exists(build.Select(resources.C(entresource.FieldID)).From(resources).Where(entsql.And(
				entsql.ColumnsEQ(resources.C(entresource.FieldUUID), s.C(consumer.FieldUUID)),
				visible.ResourceCondition(viewer, resources.C))))
			if *filter.WithoutResource {
				has = entsql.Not(has)
			}
			s.Where(has)
		}
		if filter.Provider != nil {
			allocations, providers := build.Table(allocation.Table), build.Table(resourceprovider.Table)
			s.Where(entsql.In(s.C(consumer.FieldID), build.Select(allocations.C(allocation.FieldConsumerID)).
				From(allocations).
				Join(providers).On(allocations.C(allocation.FieldProviderID), providers.C(resourceprovider.FieldID)).
				Where(entsql.EQ(providers.C(resourceprovider.FieldUUID), *filter.Provider))))
		}
	}
}

func consumerNoun(row *ent.Consumer) *placement.Consumer {
	return &placement.Consumer{UUID: row.UUID, ProjectID: row.ProjectID, UserID: row.UserID, Type: row.ConsumerType,
		Generation: row.Generation, CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(),
		ExpiresAt: sqldb.InUTC(row.ExpiresAt)}
}

// Traits returns a page of the traits that match a filter, ordered by name.
func (s *PlacementStore) Traits(ctx context.Context, filter placement.TraitFilter,
	request page.Request) (page.Page[*placement.Trait], error) {
	var none page.Page[*placement.Trait]
	if err := visible.SeesPlacement(ctx); err != nil {
		return none, err
	}
	world, err := s.worldOfNames(ctx, filter.Names)
	if err != nil {
		return none, err
	}
	problems := problemsIn(world, filter.Validate(world, "filter"))
	text.CheckOptional(&problems, "filter.startsWith", filter.StartsWith, 0, math.MaxInt)
	if err := problems.Err(); err != nil {
		return none, err
	}
	pages, err := paging.New("traits", traitOrders, byName, request)
	return paging.PageOf(ctx, s.DB, traitTable, pages, err, func(row *ent.Trait) *placement.Trait {
		return &placement.Trait{Name: row.Name, Custom: !row.Standard}
	}, func(row *ent.Trait) (any, string) { return row.Name, row.Name }, traitsThat(filter))
}

// worldOfNames returns the world for looking up names, or nil without names.
func (s *PlacementStore) worldOfNames(ctx context.Context, names []string) (*placement.World, error) {
	if len(names) == 0 {
		return nil, nil
	}
	return s.World(ctx)
}

// CountTraits returns the number of traits in the list Traits.
func (s *PlacementStore) CountTraits(ctx context.Context, filter placement.TraitFilter) (int, error) {
	return traitTable.Count(ctx, s.DB, traitsThat(filter))
}

// traitsThat keeps the traits that match a filter.
func traitsThat(filter placement.TraitFilter) predicate.Trait {
	return func(s *entsql.Selector) {
		if filter.StartsWith != nil {
			// Both databases compare by code point.
			s.Where(entsql.And(entsql.GTE(s.C(trait.FieldName), *filter.StartsWith),
				entsql.LT(s.C(trait.FieldName), *filter.StartsWith+"\U0010FFFF")))
		}
		if filter.Names != nil {
			s.Where(paging.IsAmong(s, s.C(trait.FieldName), filter.Names))
		}
		if filter.Custom != nil {
			s.Where(entsql.EQ(s.C(trait.FieldStandard), !*filter.Custom))
		}
		if filter.Associated != nil {
			build := entsql.Dialect(s.Dialect())
			held := build.Table(providertrait.Table)
			associated := entsql.Exists(build.Select(held.C(providertrait.FieldID)).From(held).
				Where(entsql.ColumnsEQ(held.C(providertrait.FieldTraitID), s.C(trait.FieldID))))
			if !*filter.Associated {
				associated = entsql.Not(associated)
			}
			s.Where(associated)
		}
	}
}

// ResourceClasses returns a page of the resource classes that match a filter,
// ordered by name.
func (s *PlacementStore) ResourceClasses(ctx context.Context, filter placement.ResourceClassFilter,
	request page.Request) (page.Page[*placement.ResourceClass], error) {
	var none page.Page[*placement.ResourceClass]
	if err := visible.SeesPlacement(ctx); err != nil {
		return none, err
	}
	world, err := s.worldOfNames(ctx, filter.Names)
	if err != nil {
		return none, err
	}
	if err := problemsIn(world, filter.Validate(world, "filter")).Err(); err != nil {
		return none, err
	}
	pages, err := paging.New("resourceClasses", classOrders, byName, request)
	return paging.PageOf(ctx, s.DB, classTable, pages, err, func(row *ent.ResourceClass) *placement.ResourceClass {
		return &placement.ResourceClass{Name: row.Name, Custom: !row.Standard}
	}, func(row *ent.ResourceClass) (any, string) { return row.Name, row.Name }, classesThat(filter))
}

// CountResourceClasses returns the number of classes in the list
// ResourceClasses.
func (s *PlacementStore) CountResourceClasses(ctx context.Context, filter placement.ResourceClassFilter) (int, error) {
	return classTable.Count(ctx, s.DB, classesThat(filter))
}

// classesThat keeps the resource classes that match a filter.
func classesThat(filter placement.ResourceClassFilter) predicate.ResourceClass {
	return func(s *entsql.Selector) {
		if filter.Names != nil {
			s.Where(paging.IsAmong(s, s.C(resourceclass.FieldName), filter.Names))
		}
		if filter.Custom != nil {
			s.Where(entsql.EQ(s.C(resourceclass.FieldStandard), !*filter.Custom))
		}
	}
}
