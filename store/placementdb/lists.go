package placementdb

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strconv"

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
	"github.com/cadastre-dev/cadastre/problem"
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

// usageKeys are the SQL expressions of the group keys. Consumers without a type
// have the key "".
var usageKeys = map[placement.UsageGrouping]string{
	placement.UsagesByProject: "o.project_id",
	placement.UsagesByUser:    "o.user_id",
	placement.UsagesByType:    "COALESCE(o.consumer_type, '')",
}

// Usages returns the usage of the consumers that match the filter and that the
// viewer sees, grouped and ordered by key. first limits the groups.
func (s *PlacementStore) Usages(ctx context.Context, filter placement.UsageFilter,
	first *int) ([]*placement.UsageGroup, error) {
	if err := visible.SeesPlacement(ctx); err != nil {
		return nil, err
	}
	request := page.Request{First: first}
	if err := checkUsages(filter, request).Err(); err != nil {
		return nil, err
	}
	key := usageKeys[filter.By]
	where, args := usagesThat(ctx, filter)
	groups := []*placement.UsageGroup{}
	byKey := map[string]*placement.UsageGroup{}
	// Sums stay below 2^63: there are fewer than 2^32 allocations, each at most
	// 2^31. The groups are materialized: SQLite would count all consumers again
	// for each allocation.
	err := s.Query(ctx, s.Pool, `WITH n AS MATERIALIZED (
			SELECT `+key+` AS grouped, COUNT(*) AS consumers FROM consumers o WHERE `+where+`
			GROUP BY `+key+` ORDER BY `+key+` LIMIT `+strconv.Itoa(request.Limit())+`
		) SELECT n.grouped, n.consumers, c.name, CAST(SUM(a.used) AS bigint),
			CAST(SUM(CASE WHEN o.expires_at IS NULL THEN 0 ELSE a.used END) AS bigint)
		FROM n JOIN consumers o ON `+key+` = n.grouped
		JOIN allocations a ON a.consumer_id = o.id JOIN resource_classes c ON c.id = a.resource_class_id WHERE `+where+`
		GROUP BY n.grouped, n.consumers, c.name ORDER BY n.grouped, c.name`, func(rows *sql.Rows) error {
		var of string
		var count int
		var usage placement.ResourceUsage
		if err := rows.Scan(&of, &count, &usage.ResourceClass, &usage.Used, &usage.Held); err != nil {
			return err
		}
		group := byKey[of]
		if group == nil {
			group = usageGroup(filter.By, of, count)
			groups, byKey[of] = append(groups, group), group
		}
		group.Usages = append(group.Usages, usage)
		return nil
	}, args...)
	if err != nil {
		return nil, fmt.Errorf("sum the usage of consumers: %w", err)
	}
	return groups, nil
}

// checkUsages returns the problems of the arguments of Usages.
func checkUsages(filter placement.UsageFilter, request page.Request) problem.Problems {
	var problems problem.Problems
	text.CheckOptional(&problems, "projectId", filter.ProjectID, 1, placement.MaxNameLength)
	text.CheckOptional(&problems, "userId", filter.UserID, 1, placement.MaxNameLength)
	if filter.ConsumerType != nil {
		problems = append(problems, problemsOf(placement.ValidateName("consumerType", *filter.ConsumerType))...)
	}
	text.CheckOptional(&problems, "after", filter.After, 0, placement.MaxNameLength)
	request.Check(&problems)
	return problems
}

// usagesThat returns the SQL condition for the consumers to sum up, and its
// parameters.
func usagesThat(ctx context.Context, filter placement.UsageFilter) (where string, args []any) {
	where, args = visible.ConsumerClause(ctx, "o.project_id", 1)
	for _, condition := range []struct {
		column, operator string
		value            *string
	}{
		{"o.project_id", "=", filter.ProjectID}, {"o.user_id", "=", filter.UserID},
		{"o.consumer_type", "=", filter.ConsumerType}, {usageKeys[filter.By], ">", filter.After},
	} {
		if condition.value != nil {
			args = append(args, *condition.value)
			where += " AND " + condition.column + " " + condition.operator + " $" + strconv.Itoa(len(args))
		}
	}
	return where, args
}

// usageGroup returns a group of consumers for a key.
func usageGroup(by placement.UsageGrouping, key string, consumers int) *placement.UsageGroup {
	group := &placement.UsageGroup{ConsumerCount: consumers}
	switch {
	case by == placement.UsagesByProject:
		group.ProjectID = &key
	case by == placement.UsagesByUser:
		group.UserID = &key
	case key != "":
		group.ConsumerType = &key
	}
	return group
}

// HeldOfProviders returns the units that held consumers use on providers, by
// uuid and resource class. A class without held units is absent. It returns nil
// to a viewer who does not see the consumers of all projects.
func (s *PlacementStore) HeldOfProviders(ctx context.Context, uuids []string) (map[string]map[string]int64, error) {
	if !visible.SeesEveryConsumer(ctx) {
		return nil, nil
	}
	held := map[string]map[string]int64{}
	for _, uuid := range uuids {
		held[uuid] = map[string]int64{}
	}
	err := s.Query(ctx, s.Pool, `SELECT p.uuid, c.name, CAST(SUM(a.used) AS bigint) FROM consumers o
		JOIN allocations a ON a.consumer_id = o.id JOIN resource_providers p ON p.id = a.provider_id
		JOIN resource_classes c ON c.id = a.resource_class_id
		WHERE o.expires_at IS NOT NULL AND `+s.Listed("p.uuid", "$1", "text")+` GROUP BY p.uuid, c.name`,
		func(rows *sql.Rows) error {
			var uuid, class string
			var units int64
			if err := rows.Scan(&uuid, &class, &units); err != nil {
				return err
			}
			held[uuid][class] = units
			return nil
		}, sqldb.JSONOf(uuids))
	if err != nil {
		return nil, fmt.Errorf("sum the held units of providers: %w", err)
	}
	return held, nil
}
