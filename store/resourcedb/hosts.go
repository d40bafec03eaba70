package resourcedb

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/capabilitymember"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/ent/resourceprovider"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/query"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// Hosts returns the row ids of the visible resources that match a filter,
// unordered. The database returns only resources that providers are linked to,
// memory returns all. Problems of the filter are at paths below path.
func (s *ResourceStore) Hosts(ctx context.Context, path string, filter resource.Filter) ([]int64, error) {
	clauses, err := s.clausesOf(ctx, path, filter)
	if err != nil {
		return nil, err
	}
	hosts, err := s.hostsOf(filtered(ctx, filter), [][]clause{clauses})
	if err != nil {
		return nil, err
	}
	return hosts[0], nil
}

// RequiredCapabilities are the capabilities in requirements that the viewer may
// know of.
type RequiredCapabilities struct {
	Names resource.CapabilityNames
	known map[string][]int64
}

// Required returns the capabilities in requirements that the viewer may know
// of.
func (s *ResourceStore) Required(ctx context.Context,
	requirements []resource.Requirement) (RequiredCapabilities, error) {
	names := resource.CapabilitiesOf(requirements)
	known, err := s.knownCapabilities(ctx, names, nil)
	if err != nil {
		return RequiredCapabilities{}, err
	}
	all, err := s.capabilitiesToSuggest(ctx, known, names, nil)
	return RequiredCapabilities{namesIn(known, all), known}, err
}

// HostsMeeting is Hosts for several requirement lists together. Beyond
// resource.MaxHostSets different lists it returns ErrTooComplex. The
// requirements must be valid and their capabilities known.
func (s *ResourceStore) HostsMeeting(ctx context.Context, requirements [][]resource.Requirement,
	of RequiredCapabilities) ([][]int64, error) {
	if len(requirements) == 0 {
		return nil, nil
	}
	numbers := make([]int, len(requirements))
	var sets [][]resource.Requirement
	for i, list := range requirements {
		numbers[i] = slices.IndexFunc(sets, func(set []resource.Requirement) bool { return slices.Equal(set, list) })
		if numbers[i] >= 0 {
			continue
		}
		numbers[i] = len(sets)
		sets = append(sets, list)
	}
	if len(sets) > resource.MaxHostSets {
		return nil, problem.Refuse(problem.ErrTooComplex,
			"hosts are requested for %d different lists of requirements, at most %d are allowed", len(sets),
			resource.MaxHostSets)
	}
	var problems problem.Problems // stays empty: the conditions are valid
	all := lists.Map(sets, func(set []resource.Requirement) []clause {
		plan := resource.Filter{Requirements: set}.Plan(&problems, "")
		return clausesUnder(ctx, plan, of.known, nil, &problems)
	})
	found, err := s.hostsOf(sqldb.Unprepared(ctx), all)
	if err != nil {
		return nil, err
	}
	return lists.Map(numbers, func(number int) []int64 { return found[number] }), nil
}

// hostsOf returns, for each list, the row ids of the visible resources that meet
// all its clauses. Memory answers some lists. One statement answers the others.
func (s *ResourceStore) hostsOf(ctx context.Context, sets [][]clause) ([][]int64, error) {
	hosts, asked := make([][]int64, len(sets)), map[int][]clause{}
	for i, clauses := range sets {
		found, err := s.answerOf(ctx, query.Question{Use: query.Hosts}, clauses)
		if err != nil {
			return nil, err
		}
		if found.bySets() {
			hosts[i] = found.held.Matching(found.sets)
		} else {
			asked[i] = found.clauses
		}
	}
	if len(asked) == 0 {
		return hosts, nil
	}
	return hosts, s.readHosts(ctx, asked, hosts)
}

// readHosts reads, for each list, the row ids of the resources that meet all
// clauses and that providers are linked to. It sends one statement.
func (s *ResourceStore) readHosts(ctx context.Context, asked map[int][]clause, hosts [][]int64) error {
	build := entsql.Dialect(s.Pool.Dialect())
	providers := build.Table(resourceprovider.Table)
	linked := build.Select(entsql.As(providers.C(resourceprovider.FieldResourceID), entresource.FieldID)).
		From(providers).Where(entsql.NotNull(providers.C(resourceprovider.FieldResourceID)))
	var statement *entsql.Selector
	for _, i := range slices.Sorted(maps.Keys(asked)) {
		of := hostsThat(ctx, build, i, asked[i])
		if statement == nil {
			statement = of.Prefix(build.With(hostLinks).As(linked))
		} else {
			statement.UnionAll(of)
		}
	}
	err := s.Select(ctx, statement, func(rows *entsql.Rows) error {
		var number int
		var all sql.NullString
		if err := rows.Scan(&number, &all); err != nil {
			return err
		}
		for text := range strings.SplitSeq(all.String, ",") {
			if id, err := strconv.ParseInt(text, 10, 64); err == nil { // an empty string has none
				hosts[number] = append(hosts[number], id)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("look up hosts by their resources: %w", err)
	}
	return nil
}

// hostLinks is the WITH query for the ids of the resources that providers are
// linked to.
const hostLinks = "links"

// hostsThat selects a number, and the row ids of the resources joined into one
// string: reading thousands of rows takes longer than finding them. It reads
// only the links of providers if it needs no column of the resources except the
// id.
func hostsThat(ctx context.Context, build *entsql.DialectBuilder, number int, clauses []clause) *entsql.Selector {
	links := build.Table(hostLinks)
	statement := build.Select().From(links)
	if !visible.AreResourcesOpen(ctx) || slices.ContainsFunc(clauses, func(c clause) bool {
		return !c.Ignored && c.among == nil && !asksForID(c.Condition)
	}) {
		resources := build.Table(entresource.Table)
		statement = build.Select().From(resources)
		statement.Join(links).On(links.C(entresource.FieldID), resources.C(entresource.FieldID))
		visible.Resources(ctx)(statement)
	}
	keep(statement, clauses)
	joined := "group_concat(%s, ',')"
	if statement.Dialect() == dialect.Postgres {
		joined = "string_agg(%s::text, ',')"
	}
	return statement.SelectExpr(entsql.Raw(strconv.Itoa(number)),
		entsql.Raw(fmt.Sprintf(joined, links.C(entresource.FieldID))))
}

// maxHostValues is the maximum number of values that HostValues returns.
const maxHostValues = 200_000

// HostValues returns the values of a capability, by the row ids of the visible
// resources that root providers are linked to. For a value that is a list, it
// returns each member. It adds a problem at a path if the viewer may know of no
// such capability, and returns ErrTooComplex beyond maxHostValues.
func (s *ResourceStore) HostValues(ctx context.Context, path, name string,
	problems *problem.Problems) (map[int64][]string, error) {
	before := len(*problems)
	text.Check(problems, path, name, 1, resource.MaxCapabilityName)
	if len(*problems) > before {
		return nil, nil
	}
	known, err := s.knownCapabilities(ctx, []string{name}, nil)
	if err != nil {
		return nil, err
	}
	all, err := s.capabilitiesToSuggest(ctx, known, []string{name}, nil)
	if err != nil {
		return nil, err
	}
	if namesIn(known, all).Check(problems, path, name); len(*problems) > before {
		return nil, nil
	}
	rows, err := s.Ent.CapabilityMember.Query().
		Where(paging.Among(capabilitymember.FieldCapabilityID, known[name]), visible.OfResources(ctx), ofRoots).
		Limit(maxHostValues+1).Select(capabilitymember.FieldResourceID, capabilitymember.FieldValue).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the values of a capability: %w", err)
	}
	if len(rows) > maxHostValues {
		return nil, problem.Refuse(problem.ErrTooComplex,
			"the hosts have more than %d values of the capability", maxHostValues)
	}
	return lists.Group(rows, func(row *ent.CapabilityMember) (int64, string) { return row.ResourceID, row.Value }), nil
}

// ofRoots keeps the members of resources that root providers are linked to.
func ofRoots(s *entsql.Selector) {
	providers := entsql.Dialect(s.Dialect()).Table(resourceprovider.Table)
	s.Where(entsql.In(s.C(capabilitymember.FieldResourceID), entsql.Dialect(s.Dialect()).
		Select(providers.C(resourceprovider.FieldResourceID)).From(providers).
		Where(entsql.And(entsql.NotNull(providers.C(resourceprovider.FieldResourceID)),
			entsql.IsNull(providers.C(resourceprovider.FieldParentID))))))
}
