package resourcedb

import (
	"context"
	"slices"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent/metadataitem"
	"github.com/cadastre-dev/cadastre/ent/namespace"
	"github.com/cadastre-dev/cadastre/ent/predicate"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/ent/resourcetag"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/resource/resident"
	"github.com/cadastre-dev/cadastre/store/metadefdb"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// clause is one condition of a filter.
type clause struct {
	name    string // how explainResources shows it: its field, then what of it
	path    string // of the argument it is about
	holds   func(*entsql.Selector) *entsql.Predicate
	byID    bool // whether it asks for the id of a resource and for no other column
	ignored bool
	// part is the clause as a search for a part of texts, nil for any other one and
	// where the database itself knows the better way.
	part *partSearch
	// item is the clause as a test of one metadata key, nil for any other one.
	item *resource.Test
	// inMemory is the clause as resources in memory decide it, nil where they do not.
	inMemory inMemory
	// comparesNumbers is the capabilities whose values it compares as numbers.
	comparesNumbers []int64
}

// field returns the field of the filter that the clause comes from.
func (c clause) field() string {
	field, _, _ := strings.Cut(c.name, " ")
	field, _, _ = strings.Cut(field, "[")
	return field
}

// resourcesMatching keeps the resources that the viewer may see and that match
// a filter.
func (s *ResourceStore) resourcesMatching(ctx context.Context, filter resource.Filter) (predicate.Resource, error) {
	clauses, err := s.clausesOf(ctx, "filter", filter)
	if err != nil {
		return nil, err
	}
	return matchingAll(ctx, clauses), nil
}

// matchingAll keeps the resources that the viewer may see and of which all
// clauses hold.
func matchingAll(ctx context.Context, clauses []clause) predicate.Resource {
	visible := visible.Resources(ctx)
	return func(s *entsql.Selector) {
		visible(s)
		keep(s, clauses)
	}
}

// keep keeps what clauses hold of.
func keep(s *entsql.Selector, clauses []clause) {
	for i, clause := range clauses {
		if clause.ignored {
			continue
		}
		holds := clause.holds(s) // with the name that the table has now: a statement around it may give it another
		if i >= joinedClauses {
			s.Where(entsql.P(func(b *entsql.Builder) { b.WriteString("(").Join(holds).WriteString(") IS TRUE") }))
		} else {
			s.Where(holds)
		}
	}
}

// joinedClauses is how many clauses PostgreSQL may join with the resources. It
// weighs every order of joins, for seconds where there are 60; the clauses
// after these it asks one by one, as it does with what stands behind IS TRUE.
const joinedClauses = 8

// clausesOf returns the conditions of a filter at a path, one by one.
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
	clauses := s.clausesUnder(ctx, filter, plan, known, all, &problems)
	return clauses, problems.Err()
}

// clausesUnder returns the conditions of a filter and of its plan, given the
// capabilities that the viewer may know of, and all of their names where one is
// unknown.
func (s *ResourceStore) clausesUnder(ctx context.Context, filter resource.Filter, plan resource.FilterPlan, known map[string][]int64, all []string, problems *problem.Problems) []clause {
	conditions := plan.Conditions(namesIn(known, all), problems)
	clauses := s.plainClauses(ctx, filter)
	for _, c := range conditions {
		of := clause{name: c.Clause, path: c.Path, holds: condition{c.Condition, known}.holds, byID: true, ignored: c.Ignored, inMemory: meets(c.Condition)}
		if c.Condition.Kind == resource.ConditionCapability && c.Condition.Test.ComparesNumbers() {
			of.comparesNumbers = known[c.Condition.Test.Name]
		}
		if !s.onPostgres() && !c.Ignored {
			of.part = itemSearchOf(c.Condition)
		}
		if of.part == nil && !c.Ignored {
			of.part = pairSearchOf(c.Condition)
		}
		if c.Condition.Kind == resource.ConditionMetadata && !c.Ignored {
			of.item = &c.Condition.Test
		}
		clauses = append(clauses, of)
	}
	return clauses
}

// onPostgres reports whether the database is PostgreSQL, whose statistics say how
// frequent most texts are.
func (s *ResourceStore) onPostgres() bool { return s.Pool.Dialect() == dialect.Postgres }

// plainClauses returns the conditions of a filter that ask for no capability.
func (s *ResourceStore) plainClauses(ctx context.Context, filter resource.Filter) []clause {
	viewer := access.ViewerFrom(ctx)
	var clauses []clause
	add := func(name string, inMemory inMemory, holds func(*entsql.Selector) *entsql.Predicate) {
		clauses = append(clauses, clause{name: name, path: problem.Join("filter", name), holds: holds, inMemory: inMemory})
	}
	if filter.Types != nil {
		add("types", isOfTypes(filter.Types), func(s *entsql.Selector) *entsql.Predicate {
			return metadefdb.IsOfType(s, s.C(entresource.FieldResourceTypeID), filter.Types)
		})
	}
	equals := func(name, column string, value *string, inMemory inMemory) {
		if value != nil {
			add(name, inMemory, func(s *entsql.Selector) *entsql.Predicate { return entsql.EQ(s.C(column), *value) })
		}
	}
	equals("projectId", entresource.FieldProjectID, filter.ProjectID, has(resident.OfProject, text.OrEmpty(filter.ProjectID)))
	if filter.ProjectIDs != nil {
		add("projectIds", has(resident.OfProject, filter.ProjectIDs...), func(s *entsql.Selector) *entsql.Predicate {
			return sqldb.IsAmong(s, s.C(entresource.FieldProjectID), filter.ProjectIDs)
		})
	}
	if filter.Visibility != nil {
		add("visibility", has(resident.OfVisibility, string(*filter.Visibility)), func(s *entsql.Selector) *entsql.Predicate {
			return entsql.EQ(s.C(entresource.FieldVisibility), string(*filter.Visibility))
		})
	}
	equals("name", entresource.FieldName, filter.Name, nil)
	clauses = append(clauses, s.partClauses(filter)...)
	if filter.UpdatedSince != nil {
		add("updatedSince", nil, func(s *entsql.Selector) *entsql.Predicate {
			return entsql.GTE(s.C(entresource.FieldUpdatedAt), filter.UpdatedSince.UTC())
		})
	}
	if filter.UUIDs != nil {
		add("uuids", func(*heldResources) resident.Clause { return resident.Among(filter.UUIDs) }, func(s *entsql.Selector) *entsql.Predicate {
			return sqldb.IsAmong(s, s.C(entresource.FieldUUID), filter.UUIDs)
		})
	}
	if filter.Parent != nil {
		add("parent", nil, func(s *entsql.Selector) *entsql.Predicate {
			parents := entsql.Dialect(s.Dialect()).Table(entresource.Table).As("parents")
			return entsql.In(s.C(entresource.FieldParentID), entsql.Dialect(s.Dialect()).
				Select(parents.C(entresource.FieldID)).From(parents).
				Where(entsql.And(entsql.EQ(parents.C(entresource.FieldUUID), *filter.Parent), visible.ResourceCondition(viewer, parents.C))))
		})
	}
	if filter.Ancestor != nil {
		add("ancestor", nil, func(s *entsql.Selector) *entsql.Predicate { return isBelow(s, viewer, *filter.Ancestor) })
	}
	for i, tag := range filter.Tags {
		clauses = append(clauses, clause{name: "tags " + tag.Name, path: problem.Index("filter.tags", i), byID: true, inMemory: isTagged(tag), holds: func(s *entsql.Selector) *entsql.Predicate { return hasTag(s, viewer, tag) }})
	}
	if filter.AnyTags != nil {
		clauses = append(clauses, clause{name: "anyTags", path: "filter.anyTags", byID: true, inMemory: isTagged(filter.AnyTags...), holds: func(s *entsql.Selector) *entsql.Predicate { return hasTag(s, viewer, filter.AnyTags...) }})
	}
	keys, values := filter.MetadataByKey()
	for _, key := range keys {
		pair := resource.Condition{Kind: resource.ConditionMetadata, Test: resource.Test{Name: key, Operator: resource.Equals, Operands: values[key]}}
		clauses = append(clauses, clause{name: "metadata " + key + ": " + strings.Join(values[key], ", "), path: "filter.metadata", byID: true,
			holds: condition{Condition: pair}.holds, part: pairSearchOf(pair), item: &pair.Test, inMemory: meets(pair)})
	}
	return clauses
}

// partClauses returns the conditions of a filter on parts of texts of resources.
func (s *ResourceStore) partClauses(filter resource.Filter) []clause {
	var clauses []clause
	add := func(name, folded string, part func(folded string) *partSearch, holds func(s *entsql.Selector, folded string) *entsql.Predicate) {
		of := clause{name: name, path: problem.Join("filter", name), holds: func(s *entsql.Selector) *entsql.Predicate { return holds(s, folded) }}
		if part != nil && (s.onPostgres() || sqldb.IsIndexed(folded)) {
			of.part = part(folded)
		}
		clauses = append(clauses, of)
	}
	if filter.NameContains != nil {
		part := nameSearchOf
		if s.onPostgres() {
			part = nil
		}
		add("nameContains", text.Fold(*filter.NameContains), part, func(s *entsql.Selector, folded string) *entsql.Predicate {
			return sqldb.ResourceNames.Contains(s.C, folded)
		})
	}
	if filter.Search != nil {
		add("search", text.Fold(*filter.Search), searchOf, mentions)
	}
	return clauses
}

// mentions holds for the resources with a folded text in their name, their
// description or the value of a metadata item. Each is looked for by itself,
// where an index can serve it.
func mentions(s *entsql.Selector, folded string) *entsql.Predicate {
	build := entsql.Dialect(s.Dialect())
	named, described, items := build.Table(entresource.Table).As("named"), build.Table(entresource.Table).As("described"), build.Table(metadataitem.Table)
	valued := build.Select(items.C(metadataitem.FieldResourceID)).From(items).Where(sqldb.MetadataValues.Contains(items.C, folded))
	if s.Dialect() != dialect.Postgres && !sqldb.IsIndexed(folded) { // looked for in one resource after the other
		return entsql.Or(sqldb.ResourceNames.Contains(s.C, folded), sqldb.ResourceDescriptions.Contains(s.C, folded), entsql.In(s.C(entresource.FieldID), valued))
	}
	return sqldb.FoundIn(s.C(entresource.FieldID), build.
		Select(named.C(entresource.FieldID)).From(named).Where(sqldb.ResourceNames.Contains(named.C, folded)).
		UnionAll(build.Select(described.C(entresource.FieldID)).From(described).Where(sqldb.ResourceDescriptions.Contains(described.C, folded))).
		UnionAll(valued))
}

// isBelow holds for the resources at any depth below the one with a uuid, by
// resources that the viewer may see.
func isBelow(s *entsql.Selector, viewer access.Viewer, uuid string) *entsql.Predicate {
	build := entsql.Dialect(s.Dialect())
	top, child := build.Table(entresource.Table).As("top"), build.Table(entresource.Table).As("child")
	first := build.Select(top.C(entresource.FieldID)).From(top).
		Where(entsql.And(entsql.EQ(top.C(entresource.FieldUUID), uuid), visible.ResourceCondition(viewer, top.C)))
	seen, parent := visible.ResourceCondition(viewer, child.C), s.C(entresource.FieldParentID)
	return entsql.P(func(b *entsql.Builder) {
		b.Ident(parent).WriteString(" IN (WITH RECURSIVE below (id) AS (").Join(first).
			WriteString(" UNION SELECT ").Ident(child.C(entresource.FieldID)).WriteString(" FROM resources AS child JOIN below ON ").Ident(child.C(entresource.FieldParentID)).WriteString(" = below.id WHERE ").Join(seen).
			WriteString(") SELECT id FROM below)")
	})
}

// hasValue holds for the items with one of some values. An index holds the
// prefixes of values, which are the values themselves where they are short; where
// one is long, another holds the hashes of values, which are compared after it.
func hasValue(s *entsql.Selector, items *entsql.SelectTable, values []string) *entsql.Predicate {
	if !slices.ContainsFunc(values, func(value string) bool { return !sqldb.IsWholePrefix(value) }) {
		return among(s, items.C(metadataitem.FieldValuePrefix), values)
	}
	return entsql.And(among(s, items.C(metadataitem.FieldValueHash), hashesOf(values)), among(s, items.C(metadataitem.FieldValue), values))
}

// among holds where a column has one of some values.
func among[Value int64 | string](s *entsql.Selector, column string, values []Value) *entsql.Predicate {
	if len(values) == 1 {
		return entsql.EQ(column, values[0])
	}
	return sqldb.IsAmong(s, column, values)
}

// hasPrefix holds where a column begins with a text. Another column keeps the
// first characters of it, which an index holds: the range of those that can
// begin so is looked up there, and a longer prefix is compared after it.
func hasPrefix(column, prefixColumn, input string) *entsql.Predicate {
	return entsql.P(func(b *entsql.Builder) {
		indexed := sqldb.PrefixOf(input)
		b.Ident(prefixColumn).WriteString(" >= ").Arg(indexed)
		if end, ok := text.PrefixEnd(indexed); ok {
			b.WriteString(" AND ").Ident(prefixColumn).WriteString(" < ").Arg(end)
		}
		if indexed != input {
			b.WriteString(" AND substr(").Ident(column).WriteString(", 1, ").Arg(text.Length(input)).WriteString(") = ").Arg(input)
		}
	})
}

// hasTag holds for the resources with one of several tags, or with one that the
// definitions which the viewer may see place below it.
func hasTag(s *entsql.Selector, viewer access.Viewer, wanted ...resource.TagFilter) *entsql.Predicate {
	if len(wanted) == 0 {
		return entsql.ExprP("1 = 0")
	}
	tagged := entsql.Dialect(s.Dialect()).Table(resourcetag.Table)
	nameKey := tagged.C(resourcetag.FieldNameKey)
	var tests []*entsql.Predicate
	for _, tag := range wanted {
		key := text.Fold(tag.Name)
		tests = append(tests, entsql.EQ(nameKey, key))
		if tag.IncludeDescendants {
			tests = append(tests, isBelowTag(s, viewer, nameKey, key))
		}
	}
	return resourcesWith(s, tagged, tests...)
}

// isBelowTag holds for the folded tags that the definitions which the viewer may
// see place at or below one.
func isBelowTag(s *entsql.Selector, viewer access.Viewer, nameKey, key string) *entsql.Predicate {
	build := entsql.Dialect(s.Dialect())
	namespaces := build.Table(namespace.Table)
	visible := build.Select(namespaces.C(namespace.FieldID)).From(namespaces).Where(visible.NamespaceCondition(viewer, namespaces.C))
	return entsql.P(func(b *entsql.Builder) {
		b.Ident(nameKey).WriteString(" IN (WITH RECURSIVE below (id, name_key) AS (SELECT id, name_key FROM tags WHERE name_key = ").Arg(key).
			WriteString(" AND namespace_id IN (").Join(visible).
			WriteString(") UNION SELECT tags.id, tags.name_key FROM tags JOIN below ON tags.parent_id = below.id) SELECT name_key FROM below)")
	})
}
