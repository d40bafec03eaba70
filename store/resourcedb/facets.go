package resourcedb

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/ent/capabilitymember"
	"github.com/cadastre-dev/cadastre/ent/metadataitem"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/ent/resourcetag"
	"github.com/cadastre-dev/cadastre/ent/resourcetype"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/query"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// Facets returns, for each key of a scope, the values that the resources of a
// filter have, with counts: one facet for each request, counted without the
// facet's own condition. A facet with IncludeUnused also has known values, with
// the count 0. Without a scope, 0 is the only key. At most one statement counts
// all facets.
func (s *ResourceStore) Facets(ctx context.Context, scope resource.Scope, keys []int64, filter resource.Filter,
	wanted []resource.FacetRequest) (map[int64][]*resource.Facet, error) {
	facets := make(map[int64][]*resource.Facet, len(keys))
	for _, key := range keys {
		facets[key] = []*resource.Facet{}
		for _, of := range wanted {
			facets[key] = append(facets[key], &resource.Facet{By: of.By, Key: of.Key, Values: []resource.FacetValue{}})
		}
	}
	counts, err := s.facetCounts(ctx, facetScope{scope, keys}, filter, wanted)
	if err != nil {
		return nil, err
	}
	inUse := map[facetOf]map[string]bool{}
	for _, count := range counts {
		facet := facets[count.key][count.index]
		if facet.HasMore = len(facet.Values) == wanted[count.index].First; !facet.HasMore {
			facet.Values = append(facet.Values, count.FacetValue)
		}
		if inUse[count.facetOf] == nil {
			inUse[count.facetOf] = map[string]bool{}
		}
		inUse[count.facetOf][count.group] = true
	}
	unused, err := s.knownValues(ctx, facetScope{scope, keys}, filter, wanted)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		for i, of := range wanted {
			if of.IncludeUnused {
				addUnused(facets[key][i], of, unused.of(key, i, of.By), inUse[facetOf{key, i}])
			}
		}
	}
	return facets, nil
}

// facetScope is the parents of the lists for which facets are counted.
type facetScope struct {
	resource.Scope
	keys []int64
}

// facetOf identifies a facet: the key of the parent, 0 without one, and the index
// of the requested facet.
type facetOf struct {
	key   int64
	index int
}

// facetCount is a value of a facet, its group, and its rank.
type facetCount struct {
	facetOf
	resource.FacetValue
	group string
	place int
}

// facetCounts returns the first values of all facets in their order, at most one
// more than each request wants.
func (s *ResourceStore) facetCounts(ctx context.Context, scope facetScope, filter resource.Filter,
	wanted []resource.FacetRequest) ([]facetCount, error) {
	var problems problem.Problems
	resource.CheckFacets(&problems, "of", wanted)
	filter.Check(&problems, "filter")
	plan := filter.Plan(&problems, "filter")
	if err := s.metadefs.CheckNames(ctx, problems.Err(), filter.Mentions("filter")...); err != nil || len(wanted) == 0 {
		return nil, err
	}
	known, everywhere, err := s.capabilitiesFor(ctx, filter, plan, wanted)
	if err != nil {
		return nil, err
	}
	all, err := s.capabilitiesToSuggest(ctx, known, append(plan.NamesToKnow(), resource.Capabilities(wanted)...),
		filter.Types)
	if err != nil {
		return nil, err
	}
	clauses, names := make([][]clause, len(wanted)), make([]map[string][]int64, len(wanted))
	for i, of := range wanted {
		names[i] = known
		if of.By == resource.FacetType {
			names[i] = everywhere
		}
		clauses[i] = clausesUnder(ctx, plan.Without(of), names[i], all, &problems)
		if of.By == resource.FacetCapabilityValue {
			namesIn(names[i], all).Check(&problems, problem.Join(problem.Index("of", i), "key"), *of.Key)
		}
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	return s.countValues(ctx, scope, wanted, clauses, names)
}

// countValues returns the first values of facets, given the clauses and the
// capabilities of each. Memory answers some facets. One statement counts the
// others.
func (s *ResourceStore) countValues(ctx context.Context, scope facetScope, wanted []resource.FacetRequest,
	clauses [][]clause, names []map[string][]int64) (counts []facetCount, err error) {
	var statement *entsql.Selector
	for i, of := range wanted {
		found, err := s.answerOf(ctx,
			query.Question{Use: query.Facet, By: of.By, IsNested: scope.Scope != resource.EveryResource}, clauses[i])
		if err != nil {
			return nil, err
		}
		if found.bySets() {
			for place, value := range found.facet(of) {
				counts = append(counts, facetCount{facetOf: facetOf{0, i}, group: value.Group, place: place + 1,
					FacetValue: resource.FacetValue{Value: value.Value, ResourceCount: value.Count}})
			}
			continue
		}
		if part := s.facetPart(ctx, scope, i, of, found.clauses, names[i]); statement == nil {
			statement = part
		} else {
			statement.UnionAll(part)
		}
	}
	if statement == nil {
		return counts, nil
	}
	err = s.Select(ctx, statement, func(rows *entsql.Rows) error {
		var count facetCount
		err := rows.Scan(&count.index, &count.key, &count.group, &count.Value, &count.ResourceCount, &count.place)
		counts = append(counts, count)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("count facets: %w", err)
	}
	slices.SortFunc(counts, func(a, b facetCount) int { return cmp.Compare(a.place, b.place) })
	return counts, nil
}

// capabilitiesFor returns the capabilities that a filter and facets name. known
// has the capabilities of the filter's types. everywhere has the capabilities
// of all types, for facets that are counted without the condition on types.
func (s *ResourceStore) capabilitiesFor(ctx context.Context, filter resource.Filter, plan resource.FilterPlan,
	wanted []resource.FacetRequest) (known, everywhere map[string][]int64, err error) {
	names := lists.Distinct(append(plan.CapabilityNames(), resource.Capabilities(wanted)...))
	known, err = s.knownCapabilities(ctx, names, filter.Types)
	byType := slices.ContainsFunc(wanted, func(of resource.FacetRequest) bool { return of.By == resource.FacetType })
	if err != nil || filter.Types == nil || !byType {
		return known, known, err
	}
	everywhere, err = s.knownCapabilities(ctx, names, nil)
	return known, everywhere, err
}

// facetPart returns the SELECT that counts the values of one facet on the
// matching resources, for each key of the scope, and keeps the first ones.
func (s *ResourceStore) facetPart(ctx context.Context, scope facetScope, index int, of resource.FacetRequest,
	clauses []clause, capabilities map[string][]int64) *entsql.Selector {
	build := entsql.Dialect(s.Pool.Dialect())
	resources := build.Table(entresource.Table)
	counted := build.Select().From(resources)
	column, scoped := scopeColumns[scope.Scope]
	group, value := facetColumns(counted, resources, of, capabilities, !scoped && countsAll(ctx, clauses))
	matchingAll(ctx, clauses)(counted)
	if start := text.OrEmpty(of.StartsWith); start != "" {
		if of.By == resource.FacetTag {
			start = text.Fold(start)
		}
		counted.Where(beginsWith(group, start))
	}
	if value != group {
		value = entsql.Min(value)
	}
	counted.Select(entsql.As(group, "facet_group"), entsql.As(value, "facet_value"),
		entsql.As(entsql.Count("*"), "resource_count"))
	if scoped {
		return s.firstOfScopes(counted, resources.C(column), scope.keys, group, index, of.First+1)
	}
	counted.GroupBy(group).OrderExpr(mostFrequent(group)...).Limit(of.First + 1).As("counted")
	place := entsql.RowNumber().
		OrderExpr(entsql.Expr(entsql.Desc(counted.C("resource_count"))), entsql.Expr(counted.C("facet_group")))
	return build.Select().AppendSelectExprAs(entsql.Raw(fmt.Sprint(index)), "facet").
		AppendSelectExprAs(entsql.Raw("0"), "scope_key").
		AppendSelect(counted.C("facet_group"), counted.C("facet_value"), counted.C("resource_count")).
		AppendSelectExprAs(place, "place").From(counted)
}

// mostFrequent orders the values of a facet by descending count, then by group.
func mostFrequent(group string) []entsql.Querier {
	return []entsql.Querier{entsql.Expr(entsql.Desc(entsql.Count("*"))), entsql.Expr(group)}
}

// firstOfScopes returns the SELECT of the first values for each key of a scope.
func (s *ResourceStore) firstOfScopes(counted *entsql.Selector, column string, keys []int64, group string,
	index, first int) *entsql.Selector {
	counted.Where(paging.IsAmong(counted, column, keys)).AppendSelectAs(column, "scope_key")
	counted.AppendSelectExprAs(entsql.RowNumber().PartitionBy(column).OrderExpr(mostFrequent(group)...), "place")
	counted.GroupBy(group, column).As("counted")
	return entsql.Dialect(counted.Dialect()).Select().AppendSelectExprAs(entsql.Raw(fmt.Sprint(index)), "facet").
		AppendSelect(counted.C("scope_key"), counted.C("facet_group"), counted.C("facet_value"),
			counted.C("resource_count"), counted.C("place")).
		From(counted).Where(entsql.LTE(counted.C("place"), first))
}

// countsAll reports whether the viewer sees every resource and clauses keep all,
// so that tags and items can be counted without a join.
func countsAll(ctx context.Context, clauses []clause) bool {
	return visible.AreResourcesOpen(ctx) && !slices.ContainsFunc(clauses, func(c clause) bool { return !c.Ignored })
}

// facetColumns joins the resources with the table that has the values of a
// facet, or reads only that table if all is set. It returns the column to group
// by and the column of the values.
func facetColumns(s *entsql.Selector, resources *entsql.SelectTable, of resource.FacetRequest,
	capabilities map[string][]int64, all bool) (group, value string) {
	build := entsql.Dialect(s.Dialect())
	joined := func(table string) *entsql.SelectTable {
		t := build.Table(table)
		if all {
			s.From(t)
			return t
		}
		s.Join(t).On(resources.C(entresource.FieldID), t.C("resource_id"))
		return t
	}
	switch of.By {
	case resource.FacetProject:
		group = resources.C(entresource.FieldProjectID)
	case resource.FacetVisibility:
		group = resources.C(entresource.FieldVisibility)
	case resource.FacetTag:
		tags := joined(resourcetag.Table)
		return tags.C(resourcetag.FieldNameKey), tags.C(resourcetag.FieldName)
	case resource.FacetMetadataKey:
		group = joined(metadataitem.Table).C(metadataitem.FieldKey)
	case resource.FacetMetadataValue:
		items := joined(metadataitem.Table)
		s.Where(entsql.EQ(items.C(metadataitem.FieldKey), *of.Key))
		group = items.C(metadataitem.FieldValue)
	case resource.FacetCapabilityValue:
		members := joined(capabilitymember.Table)
		s.Where(paging.IsAmong(s, members.C(capabilitymember.FieldCapabilityID), capabilities[*of.Key]))
		group = members.C(capabilitymember.FieldValue)
	default:
		types := build.Table(resourcetype.Table)
		s.Join(types).On(resources.C(entresource.FieldResourceTypeID), types.C(resourcetype.FieldID))
		group = types.C(resourcetype.FieldName)
	}
	return group, group
}

// beginsWith holds where a column begins with start, which must not be empty.
func beginsWith(column, start string) *entsql.Predicate {
	if end, ok := text.PrefixEnd(start); ok {
		return entsql.And(entsql.GTE(column, start), entsql.LT(column, end))
	}
	return entsql.GTE(column, start)
}
