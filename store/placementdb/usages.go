package placementdb

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

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
