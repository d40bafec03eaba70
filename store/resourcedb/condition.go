package resourcedb

import (
	"context"
	"fmt"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/capability"
	"github.com/cadastre-dev/cadastre/ent/capabilitymember"
	"github.com/cadastre-dev/cadastre/ent/capabilityvalue"
	"github.com/cadastre-dev/cadastre/ent/metadataitem"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/metadefdb"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
)

// condition is a condition that the database evaluates. Capabilities are the
// registry entries that a name stands for, those that
// the viewer may know of: a private one is nowhere in the statement.
type condition struct {
	resource.Condition
	capabilities map[string][]int64
}

// holds returns the condition as a predicate on resources. Tests are sets of
// resources, which an index finds.
func (c condition) holds(s *entsql.Selector) *entsql.Predicate {
	switch {
	case c.Kind == resource.ConditionAll && len(c.Members) == 0:
		return entsql.ExprP("1 = 1")
	case c.Kind == resource.ConditionAll:
		members := lists.Map(c.Members, func(member resource.Condition) *entsql.Predicate { return condition{member, c.capabilities}.holds(s) })
		return entsql.And(members...)
	case c.Kind == resource.ConditionNot:
		return entsql.Not(condition{c.Members[0], c.capabilities}.holds(s))
	}
	build := entsql.Dialect(s.Dialect())
	of := alternatives{s: s, items: build.Table(metadataitem.Table), values: build.Table(capabilityvalue.Table), members: build.Table(capabilitymember.Table)}
	of.add(c)
	return of.hold()
}

// alternatives are tests of which one is enough. Those of one table come to one
// set of resources: ten values asked for are not ten sets.
type alternatives struct {
	s                                *entsql.Selector
	items, values, members           *entsql.SelectTable
	ofItems, ofValues, ofMembers, of []*entsql.Predicate
}

func (a *alternatives) add(c condition) {
	ids := c.capabilities[c.Test.Name]
	switch {
	case c.Kind == resource.ConditionAny:
		for _, member := range c.Members {
			a.add(condition{member, c.capabilities})
		}
	case c.Kind == resource.ConditionAll, c.Kind == resource.ConditionNot:
		a.of = append(a.of, c.holds(a.s))
	case c.Kind == resource.ConditionMetadata:
		a.ofItems = append(a.ofItems, a.itemTest(c.Test))
	case c.Kind != resource.ConditionCapability || len(ids) == 0: // never holds
	case c.Test.Operator == resource.Exists:
		a.ofValues = append(a.ofValues, sqldb.IsAmong(a.s, a.values.C(capabilityvalue.FieldCapabilityID), ids))
	case c.Test.Operator == resource.HasAll:
		each := lists.Map(c.Test.Operands, func(operand string) *entsql.Predicate {
			return resourcesWith(a.s, a.members, a.memberTest(c.Test, ids, operand))
		})
		a.of = append(a.of, entsql.And(each...))
	default:
		for _, operand := range c.Test.Operands {
			a.ofMembers = append(a.ofMembers, a.memberTest(c.Test, ids, operand))
		}
	}
}

// hold returns all that was added, as a predicate on resources.
func (a *alternatives) hold() *entsql.Predicate {
	all := a.of
	for _, of := range []struct {
		table *entsql.SelectTable
		tests []*entsql.Predicate
	}{{a.items, a.ofItems}, {a.values, a.ofValues}, {a.members, a.ofMembers}} {
		if len(of.tests) > 0 {
			all = append(all, resourcesWith(a.s, of.table, of.tests...))
		}
	}
	if len(all) == 0 {
		return entsql.ExprP("1 = 0")
	}
	return entsql.Or(all...)
}

// resourcesWith holds for the resources that have a row in a table of which one
// of the tests holds.
func resourcesWith(s *entsql.Selector, table *entsql.SelectTable, tests ...*entsql.Predicate) *entsql.Predicate {
	return entsql.In(s.C(entresource.FieldID), entsql.Dialect(s.Dialect()).Select(table.C("resource_id")).From(table).Where(entsql.Or(tests...)))
}

// itemTest holds for the metadata items that a test holds of.
func (a *alternatives) itemTest(test resource.Test) *entsql.Predicate {
	value, is := a.items.C(metadataitem.FieldValue), entsql.EQ(a.items.C(metadataitem.FieldKey), test.Name)
	switch test.Operator {
	case resource.Equals:
		return entsql.And(is, hasValue(a.s, a.items, test.Operands))
	case resource.HasPrefix:
		return entsql.And(is, hasPrefix(value, a.items.C(metadataitem.FieldValuePrefix), test.Operands[0]))
	case resource.Has:
		part := test.Operands[0]
		return entsql.And(entsql.EQ(sqldb.Beside(a.s, a.items.C(metadataitem.FieldKey), part), test.Name), sqldb.MetadataValues.ContainsExactly(a.items.C, part))
	}
	return is
}

// memberTest holds for the members of capabilities that a test holds of.
func (a *alternatives) memberTest(test resource.Test, ids []int64, operand string) *entsql.Predicate {
	value, number := a.members.C(capabilitymember.FieldValue), a.members.C(capabilitymember.FieldNumberKey)
	among := func(column string) *entsql.Predicate { return sqldb.IsAmong(a.s, column, ids) }
	of := among(a.members.C(capabilitymember.FieldCapabilityID))
	same := entsql.And(entsql.EQ(a.members.C(capabilitymember.FieldValueHash), sqldb.HashOf(operand)), entsql.EQ(value, operand))
	key, isNumber := resource.NumberKey(operand)
	var holds *entsql.Predicate
	switch {
	case test.Operator == resource.Has || test.Operator == resource.HasAll:
		inText := entsql.And(entsql.EQ(a.members.C(capabilitymember.FieldInList), false), sqldb.CapabilityValues.ContainsExactly(a.members.C, operand))
		return entsql.Or(entsql.And(of, same), entsql.And(among(sqldb.Beside(a.s, a.members.C(capabilitymember.FieldCapabilityID), operand)), inText))
	case test.Comparison == resource.AsText:
		holds = compared(test.Operator, value, operand, same)
	case isNumber:
		holds = compared(test.Operator, number, key, entsql.EQ(number, key))
	case test.Comparison == resource.Pairwise:
		holds = entsql.And(entsql.IsNull(number), compared(test.Operator, value, operand, same))
	default:
		return entsql.ExprP("1 = 0")
	}
	return entsql.And(of, holds)
}

// compared returns the comparison of a column with an operand; equal is the
// fastest test of equality.
func compared(operator resource.Operator, column, operand string, equal *entsql.Predicate) *entsql.Predicate {
	switch operator {
	case resource.Equals:
		return equal
	case resource.Differs:
		return entsql.NEQ(column, operand)
	case resource.Less:
		return entsql.LT(column, operand)
	case resource.LessOrEqual:
		return entsql.LTE(column, operand)
	case resource.Greater:
		return entsql.GT(column, operand)
	}
	return entsql.GTE(column, operand)
}

func hashesOf(texts []string) []int64 {
	return lists.Map(texts, sqldb.HashOf)
}

// namesIn returns the names of capabilities that are known, as the conditions of
// a filter ask for them.
func namesIn(known map[string][]int64, all []string) resource.CapabilityNames {
	return resource.CapabilityNames{Knows: func(name string) bool { return known[name] != nil }, All: all}
}

// maxSuggested bounds the names among which the nearest one is looked for: the
// first ones by code point.
const maxSuggested = 10_000

// capabilitiesToSuggest returns the names of all capabilities of the types, or of
// all types when types is nil, that the viewer may know of, where one of those
// that must be known is not; else none.
func (s *ResourceStore) capabilitiesToSuggest(ctx context.Context, known map[string][]int64, names, types []string) ([]string, error) {
	unknown := slices.ContainsFunc(names, func(name string) bool { return known[name] == nil })
	if !unknown || resource.MayDiscover(access.ViewerFrom(ctx), s.options.CapabilityDiscovery) != nil {
		return nil, nil
	}
	all, err := s.capabilitiesOfTypes(ctx, types).Order(capability.ByName()).Limit(maxSuggested).Unique(true).Select(capability.FieldName).Strings(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the names of capabilities: %w", err)
	}
	return all, nil
}

// capabilitiesOfTypes returns a query for the registry entries that the viewer
// may know of: of the types, or of all types when types is nil.
func (s *ResourceStore) capabilitiesOfTypes(ctx context.Context, types []string) *ent.CapabilityQuery {
	return s.Ent.Capability.Query().Where(capabilitiesSeen(access.ViewerFrom(ctx), true), visible.OfResourceTypes(ctx), func(s *entsql.Selector) {
		if types != nil {
			s.Where(metadefdb.IsOfType(s, s.C(capability.FieldResourceTypeID), types))
		}
	})
}

// knownCapabilities returns the registry entries of names that the viewer may
// know of: of the types, or of all types when types is nil.
func (s *ResourceStore) knownCapabilities(ctx context.Context, names, types []string) (map[string][]int64, error) {
	if len(names) == 0 || resource.MayDiscover(access.ViewerFrom(ctx), s.options.CapabilityDiscovery) != nil {
		return nil, nil
	}
	rows, err := s.capabilitiesOfTypes(ctx, types).Where(sqldb.Among(capability.FieldName, names)).Order(ent.Asc(capability.FieldID)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("look up capabilities: %w", err)
	}
	known := map[string][]int64{}
	for _, row := range rows {
		known[row.Name] = append(known[row.Name], row.ID)
	}
	return known, nil
}
