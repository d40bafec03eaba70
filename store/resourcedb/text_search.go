package resourcedb

import (
	"slices"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/ent/metadataitem"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/query"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/sqldb/textindex"
	"github.com/cadastre-dev/cadastre/text"
)

// textSearch is a search for a substring. If the substring is rare, indexes
// find the resources. If it is frequent, a walk in the order of the list soon
// finds the first page, while an index would find all resources.
type textSearch struct {
	// found selects the ids of the resources with the substring, some
	// repeatedly.
	found entsql.Querier
	// has is the condition that a single resource has the substring.
	has func(build *entsql.DialectBuilder, of func(column string) string) *entsql.Predicate
}

// searchOf returns the search that a condition needs. It is nil for conditions
// that do not search, and on SQLite for strings too short for the index. It is
// also nil if PostgreSQL can choose the way itself from its statistics of names
// and values.
func searchOf(c resource.Condition, isPostgres bool) *textSearch {
	isItem := c.Kind == resource.ConditionMetadata && c.Test.Operator == resource.Has
	switch {
	case c.Kind == resource.ConditionSearch && (isPostgres || textindex.IsIndexed(c.Test.Operands[0])):
		return searchEverywhere(c.Test.Operands[0])
	case isPostgres:
		return nil
	case c.Kind == resource.ConditionNameContains && textindex.IsIndexed(c.Test.Operands[0]):
		return searchNames(c.Test.Operands[0])
	case isItem && textindex.IsIndexed(text.Fold(c.Test.Operands[0])):
		return searchItems(c.Test.Name, c.Test.Operands[0])
	}
	return nil
}

// searchEverywhere searches names, descriptions and values of metadata.
func searchEverywhere(folded string) *textSearch {
	return &textSearch{
		found: entsql.P(func(b *entsql.Builder) {
			b.Join(textindex.ResourceNames.Found(entresource.FieldID, folded)).
				WriteString(" UNION ALL ").Join(textindex.ResourceDescriptions.Found(entresource.FieldID, folded)).
				WriteString(" UNION ALL ").Join(textindex.MetadataValues.Found(metadataitem.FieldResourceID, folded))
		}),
		has: func(build *entsql.DialectBuilder, of func(string) string) *entsql.Predicate {
			items := build.Table(metadataitem.Table)
			return entsql.Or(textindex.ResourceNames.Has(of, folded), textindex.ResourceDescriptions.Has(of, folded),
				hasItem(build, of, textindex.MetadataValues.Has(items.C, folded)))
		},
	}
}

func searchNames(folded string) *textSearch {
	return &textSearch{
		found: textindex.ResourceNames.Found(entresource.FieldID, folded),
		has: func(_ *entsql.DialectBuilder, of func(string) string) *entsql.Predicate {
			return textindex.ResourceNames.Has(of, folded)
		},
	}
}

// searchItems searches the values of a metadata key, case-sensitively.
func searchItems(key, part string) *textSearch {
	return &textSearch{
		found: textindex.MetadataValues.FoundExactly(metadataitem.FieldResourceID, part,
			func(column func(string) string) *entsql.Predicate {
				return entsql.EQ("+"+column(metadataitem.FieldKey), key)
			}),
		has: func(build *entsql.DialectBuilder, of func(string) string) *entsql.Predicate {
			items := build.Table(metadataitem.Table)
			return hasItem(build, of, entsql.And(entsql.EQ(items.C(metadataitem.FieldKey), key),
				textindex.MetadataValues.HasExactly(items.C, part)))
		},
	}
}

// hasItem holds for a resource with a metadata item that passes a test. The
// database tests the items of each resource, so that the walk needs no set of
// all such items.
func hasItem(build *entsql.DialectBuilder, of func(string) string, test *entsql.Predicate) *entsql.Predicate {
	items := build.Table(metadataitem.Table)
	one := build.Select().From(items).
		Where(entsql.And(entsql.ColumnsEQ(items.C(metadataitem.FieldResourceID), of(entresource.FieldID)), test)).
		Limit(1)
	one.SelectExpr(entsql.Expr("TRUE"))
	return entsql.P(func(b *entsql.Builder) { b.WriteString("COALESCE((").Join(one).WriteString("), FALSE)") })
}

// searched returns the condition of a page for clauses. The first search among
// them becomes a searchedPage, a statement that chooses the faster way itself,
// unless memory has narrowed the resources or the page is in the order of types.
func (s *ResourceStore) searched(pages paging.Paging, clauses []clause,
	visible func(*entsql.Selector)) func(*entsql.Selector) {
	var search *textSearch
	at := slices.IndexFunc(clauses, func(c clause) bool {
		if c.among == nil && !c.Ignored {
			search = searchOf(c.Condition, s.Postgres())
		}
		return search != nil
	})
	isNarrow := slices.ContainsFunc(clauses, func(c clause) bool { return c.among != nil })
	switch {
	case isNarrow: // looks up the remaining ids, and tests the viewer's rights on each
		return func(s *entsql.Selector) {
			asked(s, visible)
			keep(s, clauses)
		}
	case at < 0 || pages.Key.Of != nil: // no index has the order of types
		return func(s *entsql.Selector) {
			visible(s)
			keep(s, clauses)
		}
	}
	others := slices.Delete(slices.Clone(clauses), at, at+1)
	page := searchedPage{search, s.walk, pages, func(s *entsql.Selector) {
		asked(s, visible)
		keep(s, others)
	}}
	return func(s *entsql.Selector) {
		page.others(s)
		s.Where(page.holds(s))
	}
}

// asked adds a condition that the database tests for each resource that it
// reads. SQLite would otherwise collect all resources of each right of a viewer
// by an index.
func asked(s *entsql.Selector, condition func(*entsql.Selector)) {
	if s.Dialect() == dialect.Postgres {
		condition(s)
		return
	}
	alone := entsql.Dialect(s.Dialect()).Select().From(s.Table())
	condition(alone)
	if holds := alone.P(); holds != nil {
		s.Where(isTrue(holds))
	}
}

// searchedPage is one page of a list with a search.
type searchedPage struct {
	*textSearch
	walk   query.Walk
	pages  paging.Paging
	others func(*entsql.Selector) // the other conditions of the list
}

// isFew is the expression for whether the index found few rows.
const isFew = "(SELECT few FROM judged)"

// holds holds for the resources of the page, and for others that the search
// finds.
func (p searchedPage) holds(s *entsql.Selector) *entsql.Predicate {
	build, id := entsql.Dialect(s.Dialect()), s.C(entresource.FieldID)
	begin, end, all, once := " IN (", ")", "-1", "NOT MATERIALIZED"
	// PostgreSQL assumes that an array is short, and resumes a search where it stopped
	if s.Dialect() == dialect.Postgres {
		begin, end, all, once = " = ANY (ARRAY(", "))", "NULL", "MATERIALIZED"
	}
	return entsql.P(func(b *entsql.Builder) {
		b.Ident(id).WriteString(begin + "WITH found (id) AS " + once + " (").Join(p.found).
			WriteString("), probed (id) AS MATERIALIZED (SELECT id FROM found LIMIT ").Arg(p.walk.Few + 1).
			WriteString("), judged (few) AS MATERIALIZED (SELECT COUNT(*) <= ").Arg(p.walk.Few).
			WriteString(" FROM probed), ordered AS NOT MATERIALIZED (").Join(p.ordered(build)).
			WriteString("), walked (id) AS MATERIALIZED (").Join(p.walked(build)).
			WriteString(") SELECT id FROM probed WHERE " + isFew +
				" UNION ALL SELECT id FROM walked UNION ALL SELECT id FROM (SELECT id FROM found LIMIT (SELECT CASE WHEN NOT " + isFew +
				" AND (SELECT COUNT(*) FROM walked) < ").Arg(p.pages.Limit()).
			WriteString(" AND (SELECT COUNT(*) FROM (").Join(p.inOrder(build, entresource.FieldID).Limit(p.walk.Most)).
			WriteString(") AS looked_at) = ").Arg(p.walk.Most).
			WriteString(" THEN " + all + " ELSE 0 END)) AS everything" + end)
	})
}

// inOrder returns the SELECT of the resources that meet the other conditions, in
// the order of the list and within the bounds of the page.
func (p searchedPage) inOrder(build *entsql.DialectBuilder, columns ...string) *entsql.Selector {
	resources := build.Select().From(build.Table(entresource.Table))
	resources.Select(resources.Columns(columns...)...)
	p.others(resources)
	p.pages.Within(resources)
	p.pages.Sort(resources)
	return resources
}

// ordered returns the SELECT of the resources that the walk reads, at most
// walk.Most. It yields no rows if the index found few. Each database needs its
// own form to check that before it reads any.
func (p searchedPage) ordered(build *entsql.DialectBuilder) entsql.Querier {
	resources := p.inOrder(build, entresource.FieldID, entresource.FieldNameKey,
		entresource.FieldDescriptionKey, entresource.FieldDescription, p.pages.Key.Column, p.pages.Key.TieColumn())
	if resources.Dialect() == dialect.Postgres {
		return resources.Where(entsql.ExprP("NOT " + isFew)).Limit(p.walk.Most)
	}
	return entsql.P(func(b *entsql.Builder) {
		b.Join(resources).WriteString(" LIMIT (SELECT CASE WHEN " + isFew + " THEN 0 ELSE ").
			Arg(p.walk.Most).WriteString(" END)")
	})
}

// walked returns the query for the ids of walked resources that match the
// search, at most one page.
func (p searchedPage) walked(build *entsql.DialectBuilder) *entsql.Selector {
	ordered := build.Table("ordered")
	walked := build.Select(ordered.C(entresource.FieldID)).From(ordered).Where(p.has(build, ordered.C))
	if walked.Dialect() == dialect.Postgres { // SQLite returns rows in order anyway, and would read all of them to sort
		p.pages.Sort(walked)
	}
	return walked.Limit(p.pages.Limit())
}
