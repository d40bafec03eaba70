package resourcedb

import (
	"context"
	"fmt"
	"slices"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/capability"
	"github.com/cadastre-dev/cadastre/ent/capabilitymember"
	"github.com/cadastre-dev/cadastre/ent/capabilityvalue"
	"github.com/cadastre-dev/cadastre/ent/metadataitem"
	"github.com/cadastre-dev/cadastre/ent/namespace"
	"github.com/cadastre-dev/cadastre/ent/predicate"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/ent/resourcetag"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/metadefdb"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/sqldb/textindex"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// sqlCompiler turns conditions into predicates on resources. Its capabilities
// are the registry entries that the viewer may know of, so that no statement
// reads a private one that the viewer may not.
type sqlCompiler struct {
	viewer       access.Viewer
	capabilities map[string][]int64
}

// holds returns a condition as a predicate on the resources of s.
func (c sqlCompiler) holds(s *entsql.Selector, of resource.Condition) *entsql.Predicate {
	if predicate := c.holdsPlainly(s, of); predicate != nil {
		return predicate
	}
	switch {
	case of.Kind == resource.ConditionAll && len(of.Members) == 0:
		return entsql.ExprP("1 = 1")
	case of.Kind == resource.ConditionAll:
		return entsql.And(lists.Map(of.Members, func(member resource.Condition) *entsql.Predicate {
			return c.holds(s, member)
		})...)
	case of.Kind == resource.ConditionNot && asksForID(of):
		return entsql.Not(c.holds(s, of.Members[0]))
	case of.Kind == resource.ConditionNot: // IS TRUE, so that it holds for a resource without a parent
		return entsql.Not(isTrue(c.holds(s, of.Members[0])))
	}
	alternatives := newAlternatives(s, c)
	alternatives.add(of)
	return alternatives.hold()
}

// holdsPlainly returns a condition on the resource itself as a predicate, and
// nil for any other condition.
func (c sqlCompiler) holdsPlainly(s *entsql.Selector, of resource.Condition) *entsql.Predicate {
	operands := of.Test.Operands
	switch of.Kind {
	case resource.ConditionType:
		return metadefdb.IsOfType(s, s.C(entresource.FieldResourceTypeID), operands)
	case resource.ConditionProject:
		return among(s, s.C(entresource.FieldProjectID), operands)
	case resource.ConditionVisibility:
		return among(s, s.C(entresource.FieldVisibility), operands)
	case resource.ConditionName:
		return among(s, s.C(entresource.FieldName), operands)
	case resource.ConditionNameContains:
		return textindex.ResourceNames.Contains(s.C, operands[0])
	case resource.ConditionSearch:
		return mentions(s, operands[0])
	case resource.ConditionUpdatedSince:
		return entsql.GTE(s.C(entresource.FieldUpdatedAt), of.Since.UTC())
	case resource.ConditionUUID:
		return paging.IsAmong(s, s.C(entresource.FieldUUID), operands)
	case resource.ConditionParent:
		parents := entsql.Dialect(s.Dialect()).Table(entresource.Table).As("parents")
		return entsql.In(s.C(entresource.FieldParentID), entsql.Dialect(s.Dialect()).
			Select(parents.C(entresource.FieldID)).From(parents).
			Where(entsql.And(entsql.EQ(parents.C(entresource.FieldUUID), operands[0]),
				visible.ResourceCondition(c.viewer, parents.C))))
	case resource.ConditionAncestor:
		return isBelow(s, c.viewer, operands[0])
	}
	return nil
}

// asksForID reports whether the predicate of a condition reads no column of
// resources except the id.
func asksForID(c resource.Condition) bool {
	switch c.Kind {
	case resource.ConditionMetadata, resource.ConditionCapability, resource.ConditionTag, resource.ConditionNever:
		return true
	case resource.ConditionAll, resource.ConditionAny, resource.ConditionNot:
		return !slices.ContainsFunc(c.Members, func(member resource.Condition) bool { return !asksForID(member) })
	}
	return false
}

// alternatives are tests joined by OR. Tests of the same table share one
// subquery: ten values do not need ten.
type alternatives struct {
	sqlCompiler
	s                                        *entsql.Selector
	items, values, members, tags             *entsql.SelectTable
	ofItems, ofValues, ofMembers, ofTags, of []*entsql.Predicate
}

func newAlternatives(s *entsql.Selector, c sqlCompiler) *alternatives {
	build := entsql.Dialect(s.Dialect())
	return &alternatives{sqlCompiler: c, s: s, items: build.Table(metadataitem.Table),
		values:  build.Table(capabilityvalue.Table),
		members: build.Table(capabilitymember.Table), tags: build.Table(resourcetag.Table)}
}

func (a *alternatives) add(c resource.Condition) {
	ids := a.capabilities[c.Test.Name]
	switch {
	case c.Kind == resource.ConditionAny:
		for _, member := range c.Members {
			a.add(member)
		}
	case c.Kind == resource.ConditionNever:
	case c.Kind == resource.ConditionMetadata:
		a.ofItems = append(a.ofItems, a.itemTest(c.Test))
	case c.Kind == resource.ConditionTag:
		a.ofTags = append(a.ofTags, a.tagTest(c))
	case c.Kind != resource.ConditionCapability:
		a.of = append(a.of, a.holds(a.s, c))
	case len(ids) == 0: // never holds
	case c.Test.Operator == resource.Exists:
		a.ofValues = append(a.ofValues, paging.IsAmong(a.s, a.values.C(capabilityvalue.FieldCapabilityID), ids))
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

// hold returns the alternatives as a predicate on resources.
func (a *alternatives) hold() *entsql.Predicate {
	all := a.of
	for _, of := range []struct {
		table *entsql.SelectTable
		tests []*entsql.Predicate
	}{{a.items, a.ofItems}, {a.tags, a.ofTags}, {a.values, a.ofValues}, {a.members, a.ofMembers}} {
		if len(of.tests) > 0 {
			all = append(all, resourcesWith(a.s, of.table, of.tests...))
		}
	}
	if len(all) == 0 {
		return entsql.ExprP("1 = 0")
	}
	return entsql.Or(all...)
}

// resourcesWith holds for the resources that have a row in a table for which
// one of the tests holds.
func resourcesWith(s *entsql.Selector, table *entsql.SelectTable, tests ...*entsql.Predicate) *entsql.Predicate {
	return entsql.In(s.C(entresource.FieldID), entsql.Dialect(s.Dialect()).Select(table.C("resource_id")).
		From(table).Where(entsql.Or(tests...)))
}

// tagTest holds for the tags with a name and, if the condition includes them,
// the tags below it.
func (a *alternatives) tagTest(c resource.Condition) *entsql.Predicate {
	nameKey, folded := a.tags.C(resourcetag.FieldNameKey), c.Test.Operands[0]
	if c.Below {
		return entsql.Or(entsql.EQ(nameKey, folded), isBelowTag(a.s, a.viewer, nameKey, folded))
	}
	return entsql.EQ(nameKey, folded)
}

// itemTest holds for the metadata items that pass a test.
func (a *alternatives) itemTest(test resource.Test) *entsql.Predicate {
	value, is := a.items.C(metadataitem.FieldValue), entsql.EQ(a.items.C(metadataitem.FieldKey), test.Name)
	switch test.Operator {
	case resource.Equals:
		return entsql.And(is, hasValue(a.s, a.items, test.Operands))
	case resource.HasPrefix:
		return entsql.And(is, hasPrefix(value, a.items.C(metadataitem.FieldValuePrefix), test.Operands[0]))
	case resource.Has:
		part := test.Operands[0]
		return entsql.And(entsql.EQ(textindex.Beside(a.s, a.items.C(metadataitem.FieldKey), part), test.Name),
			textindex.MetadataValues.ContainsExactly(a.items.C, part))
	}
	return is
}

// memberTest holds for the members of capabilities that pass a test.
func (a *alternatives) memberTest(test resource.Test, ids []int64, operand string) *entsql.Predicate {
	value, number := a.members.C(capabilitymember.FieldValue), a.members.C(capabilitymember.FieldNumberKey)
	among := func(column string) *entsql.Predicate { return paging.IsAmong(a.s, column, ids) }
	of := among(a.members.C(capabilitymember.FieldCapabilityID))
	same := entsql.And(entsql.EQ(a.members.C(capabilitymember.FieldValueHash), sqldb.HashOf(operand)),
		entsql.EQ(value, operand))
	key, isNumber := resource.NumberKey(operand)
	var holds *entsql.Predicate
	switch {
	case test.Operator == resource.Has || test.Operator == resource.HasAll:
		inText := entsql.And(entsql.EQ(a.members.C(capabilitymember.FieldInList), false),
			textindex.CapabilityValues.ContainsExactly(a.members.C, operand))
		return entsql.Or(entsql.And(of, same),
			entsql.And(among(textindex.Beside(a.s, a.members.C(capabilitymember.FieldCapabilityID), operand)), inText))
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

// compared returns the comparison of a column with an operand. equal is the
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

// mentions holds for the resources with a folded string in their name, their
// description or the value of a metadata item. Each of the three is a separate
// search where an index can serve it.
func mentions(s *entsql.Selector, folded string) *entsql.Predicate {
	build := entsql.Dialect(s.Dialect())
	named, described, items := build.Table(entresource.Table).As("named"), build.Table(entresource.Table).
		As("described"), build.Table(metadataitem.Table)
	valued := build.Select(items.C(metadataitem.FieldResourceID)).From(items).
		Where(textindex.MetadataValues.Contains(items.C, folded))
	if s.Dialect() != dialect.Postgres && !textindex.IsIndexed(folded) { // tested resource by resource
		return entsql.Or(textindex.ResourceNames.Contains(s.C, folded),
			textindex.ResourceDescriptions.Contains(s.C, folded), entsql.In(s.C(entresource.FieldID), valued))
	}
	return textindex.FoundIn(s.C(entresource.FieldID), build.
		Select(named.C(entresource.FieldID)).From(named).Where(textindex.ResourceNames.Contains(named.C, folded)).
		UnionAll(build.Select(described.C(entresource.FieldID)).From(described).
			Where(textindex.ResourceDescriptions.Contains(described.C, folded))).
		UnionAll(valued))
}

// isBelow holds for the resources at any depth below the one with a uuid. Every
// resource on the way must be visible to the viewer.
func isBelow(s *entsql.Selector, viewer access.Viewer, uuid string) *entsql.Predicate {
	build := entsql.Dialect(s.Dialect())
	top, child := build.Table(entresource.Table).As("top"), build.Table(entresource.Table).As("child")
	first := build.Select(top.C(entresource.FieldID)).From(top).
		Where(entsql.And(entsql.EQ(top.C(entresource.FieldUUID), uuid), visible.ResourceCondition(viewer, top.C)))
	seen, parent := visible.ResourceCondition(viewer, child.C), s.C(entresource.FieldParentID)
	return entsql.P(func(b *entsql.Builder) {
		b.Ident(parent).WriteString(" IN (WITH RECURSIVE below (id) AS (").Join(first).
			WriteString(" UNION SELECT ").Ident(child.C(entresource.FieldID)).
			WriteString(" FROM resources AS child JOIN below ON ").Ident(child.C(entresource.FieldParentID)).
			WriteString(" = below.id WHERE ").Join(seen).
			WriteString(") SELECT id FROM below)")
	})
}

// hasValue holds for the items with one of the values. One index has the
// prefixes of values, which are the whole values if they are short. For long
// values, another index has the hashes, and the database then compares the
// values.
func hasValue(s *entsql.Selector, items *entsql.SelectTable, values []string) *entsql.Predicate {
	if !slices.ContainsFunc(values, func(value string) bool { return !sqldb.IsWholePrefix(value) }) {
		return among(s, items.C(metadataitem.FieldValuePrefix), values)
	}
	return entsql.And(among(s, items.C(metadataitem.FieldValueHash), lists.Map(values, sqldb.HashOf)),
		among(s, items.C(metadataitem.FieldValue), values))
}

// among holds where a column has one of the values.
func among[Value int64 | string](s *entsql.Selector, column string, values []Value) *entsql.Predicate {
	if len(values) == 1 {
		return entsql.EQ(column, values[0])
	}
	return paging.IsAmong(s, column, values)
}

// hasPrefix holds where a column begins with a string. prefixColumn has the
// first characters of the column, in an index. The database looks up a range
// there, and then compares a longer prefix.
func hasPrefix(column, prefixColumn, input string) *entsql.Predicate {
	return entsql.P(func(b *entsql.Builder) {
		indexed := sqldb.PrefixOf(input)
		b.Ident(prefixColumn).WriteString(" >= ").Arg(indexed)
		if end, ok := text.PrefixEnd(indexed); ok {
			b.WriteString(" AND ").Ident(prefixColumn).WriteString(" < ").Arg(end)
		}
		if indexed != input {
			b.WriteString(" AND substr(").Ident(column).WriteString(", 1, ").
				Arg(text.Length(input)).WriteString(") = ").Arg(input)
		}
	})
}

// isBelowTag holds for the folded tags at or below a tag, by the definitions
// that the viewer may see.
func isBelowTag(s *entsql.Selector, viewer access.Viewer, nameKey, key string) *entsql.Predicate {
	build := entsql.Dialect(s.Dialect())
	namespaces := build.Table(namespace.Table)
	visible := build.Select(namespaces.C(namespace.FieldID)).From(namespaces).
		Where(visible.NamespaceCondition(viewer, namespaces.C))
	return entsql.P(func(b *entsql.Builder) {
		b.Ident(nameKey).
			WriteString(" IN (WITH RECURSIVE below (id, name_key) AS (SELECT id, name_key FROM tags WHERE name_key = ").
			Arg(key).
			WriteString(" AND namespace_id IN (").Join(visible).
			WriteString(") UNION SELECT tags.id, tags.name_key FROM tags JOIN below ON tags.parent_id = below.id) SELECT name_key FROM below)")
	})
}

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
