package resourcedb

import (
	"context"
	"fmt"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/capability"
	"github.com/cadastre-dev/cadastre/ent/predicate"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/metadefdb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/visible"
)

// clause is one condition of a filter, ready for either compiler.
type clause struct {
	resource.FilterCondition
	compiler sqlCompiler
	// among are the row ids of the resources that earlier conditions left. It
	// is nil for a clause that is a condition.
	among []int64
}

// holds returns the clause as a predicate on resources.
func (c clause) holds(s *entsql.Selector) *entsql.Predicate {
	if c.among != nil {
		return paging.IsAmong(s, s.C(entresource.FieldID), c.among)
	}
	return c.compiler.holds(s, c.Condition)
}

// conditionsOf returns the conditions of the clauses, without ignored ones.
func conditionsOf(clauses []clause) (conditions []resource.Condition) {
	for _, c := range clauses {
		if !c.Ignored {
			conditions = append(conditions, c.Condition)
		}
	}
	return conditions
}

// resourcesMatching checks a filter and returns a predicate that keeps the
// resources that the viewer may see and that match it.
func (s *ResourceStore) resourcesMatching(ctx context.Context, filter resource.Filter) (predicate.Resource, error) {
	clauses, err := s.clausesOf(ctx, "filter", filter)
	if err != nil {
		return nil, err
	}
	return matchingAll(ctx, clauses), nil
}

// matchingAll keeps the resources that the viewer may see and that meet all
// clauses.
func matchingAll(ctx context.Context, clauses []clause) predicate.Resource {
	visible := visible.Resources(ctx)
	return func(s *entsql.Selector) {
		visible(s)
		keep(s, clauses)
	}
}

// keep keeps the rows that meet clauses.
func keep(s *entsql.Selector, clauses []clause) {
	for i, clause := range clauses {
		if clause.Ignored {
			continue
		}
		holds := clause.holds(s) // rendered with the table's current name, which an outer statement may change
		if i >= joinedClauses {
			holds = isTrue(holds)
		}
		s.Where(holds)
	}
}

// isTrue returns a predicate that the planner neither looks up in an index nor
// joins.
func isTrue(holds *entsql.Predicate) *entsql.Predicate {
	return entsql.P(func(b *entsql.Builder) { b.WriteString("(").Join(holds).WriteString(") IS TRUE") })
}

// joinedClauses is the maximum number of clauses that PostgreSQL may join with
// the resources. Its planner weighs every order of joins, which takes seconds
// for 60 clauses. It tests the other clauses, under IS TRUE, one by one.
const joinedClauses = 8

// clausesOf checks a filter at a path and returns its conditions.
func (s *ResourceStore) clausesOf(ctx context.Context, path string, filter resource.Filter) ([]clause, error) {
	var problems problem.Problems
	filter.Check(&problems, path)
	plan := filter.Plan(&problems, path)
	if err := s.metadefs.CheckNames(ctx, problems.Err(), filter.Mentions(path)...); err != nil {
		return nil, err
	}
	known, err := s.knownCapabilities(ctx, plan.CapabilityNames(), filter.Types)
	if err != nil {
		return nil, err
	}
	all, err := s.capabilitiesToSuggest(ctx, known, plan.NamesToKnow(), filter.Types)
	if err != nil {
		return nil, err
	}
	clauses := clausesUnder(ctx, plan, known, all, &problems)
	return clauses, problems.Err()
}

// clausesUnder returns the conditions of a plan. known are the capabilities
// that the viewer may know of. all are the names to suggest if one is unknown.
func clausesUnder(ctx context.Context, plan resource.FilterPlan, known map[string][]int64, all []string,
	problems *problem.Problems) []clause {
	compiler := sqlCompiler{access.ViewerFrom(ctx), known}
	return lists.Map(plan.Conditions(namesIn(known, all), problems), func(c resource.FilterCondition) clause {
		return clause{FilterCondition: c, compiler: compiler}
	})
}

// namesIn returns the names of known capabilities in the form that the
// conditions of a filter need.
func namesIn(known map[string][]int64, all []string) resource.CapabilityNames {
	return resource.CapabilityNames{Knows: func(name string) bool { return known[name] != nil }, All: all}
}

// maxSuggested is the maximum number of names, the first by code point, that
// are searched for the nearest one.
const maxSuggested = 10_000

// capabilitiesToSuggest returns the names of capabilities of the types that the
// viewer may know of, for suggestions, at most maxSuggested. A nil types means
// all types. It returns nil if every given name is known, or if the viewer may
// not discover capabilities.
func (s *ResourceStore) capabilitiesToSuggest(ctx context.Context, known map[string][]int64,
	names, types []string) ([]string, error) {
	unknown := slices.ContainsFunc(names, func(name string) bool { return known[name] == nil })
	if !unknown || resource.MayDiscover(access.ViewerFrom(ctx), s.options.CapabilityDiscovery) != nil {
		return nil, nil
	}
	all, err := s.capabilitiesOfTypes(ctx, types).Order(capability.ByName()).Limit(maxSuggested).Unique(true).
		Select(capability.FieldName).Strings(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the names of capabilities: %w", err)
	}
	return all, nil
}

// capabilitiesOfTypes returns a query for the registry entries of the types
// that the viewer may know of. A nil types means all types.
func (s *ResourceStore) capabilitiesOfTypes(ctx context.Context, types []string) *ent.CapabilityQuery {
	return s.Ent.Capability.Query().
		Where(capabilitiesSeen(access.ViewerFrom(ctx), true), visible.OfResourceTypes(ctx), func(s *entsql.Selector) {
			if types != nil {
				s.Where(metadefdb.IsOfType(s, s.C(capability.FieldResourceTypeID), types))
			}
		})
}

// knownCapabilities returns, by name, the row ids of the registry entries with
// the names, if the viewer may know of them. A nil types means all types.
func (s *ResourceStore) knownCapabilities(ctx context.Context, names, types []string) (map[string][]int64, error) {
	if len(names) == 0 || resource.MayDiscover(access.ViewerFrom(ctx), s.options.CapabilityDiscovery) != nil {
		return nil, nil
	}
	rows, err := s.capabilitiesOfTypes(ctx, types).Where(paging.Among(capability.FieldName, names)).
		Order(ent.Asc(capability.FieldID)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("look up capabilities: %w", err)
	}
	return lists.Group(rows, func(row *ent.Capability) (string, int64) { return row.Name, row.ID }), nil
}
