package resourcedb

import (
	"cmp"
	"fmt"
	"slices"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/ent/metadataitem"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/text"
)

// partSearch is a search for resources whose texts have a part, or whose metadata
// meets a test. Where few are found, indexes find them; where many are, the first
// page of them is soon found among the resources in the order of the list, and
// what the indexes find would all have to be put in order.
type partSearch struct {
	// found returns a SELECT of the ids of the resources, which finds them by the
	// indexes as they are asked for, some of them more than once.
	found func(*entsql.DialectBuilder) entsql.Querier
	// has holds for a resource whose texts have the part, which it looks at.
	has func(build *entsql.DialectBuilder, of func(column string) string) *entsql.Predicate
	// isCheap is whether the first rows that are found cost no more than their
	// number, so that they are looked for again where all of them are wanted.
	isCheap bool
	// isWide is whether all resources are looked at to find some: then they are
	// looked at in the order of the list first.
	isWide bool
}

// partLimits decide, within a statement, which way to a page is taken.
type partLimits struct {
	// few is up to how many rows that the indexes find are few: those are put in
	// order. It is as many as a few pages of them take to look at.
	few int
	// walked is how many resources are looked at in the order of the list, where
	// more rows were found. Where that is no page, all that the indexes find is put
	// in order after all.
	walked int
}

func defaultPartLimits() partLimits { return partLimits{few: 1000, walked: 4000} }

// maxSearches is how many searches of a filter are judged before a page is
// looked for. Others are conditions like any other one.
const maxSearches = 4

// byPart returns the condition of a page for clauses of which some are searches:
// the others hold, and what is searched for is found in the better way.
func byPart(paging sqldb.Paging, clauses []clause, visible func(*entsql.Selector), limits partLimits) func(*entsql.Selector) {
	var others []clause
	var searches []*partSearch
	for _, c := range clauses {
		if c.part != nil && len(searches) < maxSearches {
			searches = append(searches, c.part)
		} else {
			others = append(others, c)
		}
	}
	if len(searches) == 0 || paging.Key.Of != nil { // no index has that order
		return func(s *entsql.Selector) {
			visible(s)
			keep(s, clauses)
		}
	}
	// Those that an index finds are judged first, and the rest is looked for in them.
	slices.SortStableFunc(searches, func(a, b *partSearch) int {
		return cmp.Compare(placeOf(a), placeOf(b))
	})
	wanted := func(s *entsql.Selector) {
		asked(s, visible)
		keep(s, others)
	}
	return func(s *entsql.Selector) {
		wanted(s)
		of := partOnPage{searches, limits, paging, wanted}
		s.Where(of.holds(s))
		if len(searches) > 1 { // which are found one by one
			s.Where(of.hasAll(entsql.Dialect(s.Dialect()), s.C))
		}
	}
}

// asked adds a condition that is asked of each resource which is looked at. SQLite
// would look for all resources that it holds of, by several indexes, where it is
// an alternative as the viewer's rights are.
func asked(s *entsql.Selector, condition func(*entsql.Selector)) {
	if s.Dialect() == dialect.Postgres {
		condition(s)
		return
	}
	alone := entsql.Dialect(s.Dialect()).Select().From(s.Table())
	condition(alone)
	if holds := alone.P(); holds != nil {
		s.Where(entsql.P(func(b *entsql.Builder) { b.WriteString("(").Join(holds).WriteString(") IS TRUE") }))
	}
}

func placeOf(of *partSearch) int {
	if of.isWide {
		return 1
	}
	return 0
}

// partOnPage is what is searched for as one page of a list needs it.
type partOnPage struct {
	searches []*partSearch
	limits   partLimits
	paging   sqldb.Paging
	wanted   func(*entsql.Selector) // the other conditions of the list
}

// isFew is whether few are found by one of the searches, once they are judged.
func (p partOnPage) isFew() string { return p.areFew(len(p.searches)) }

// areFew is whether few are found by one of the first searches.
func (p partOnPage) areFew(searches int) string {
	few := "(1 = 0"
	for i, of := range p.searches[:searches] {
		if !of.isWide {
			few += fmt.Sprintf(" OR (SELECT few FROM judged_%d)", i)
		}
	}
	return few + ")"
}

// holds holds for the resources of the page, and for others that have the part.
func (p partOnPage) holds(s *entsql.Selector) *entsql.Predicate {
	build, id := entsql.Dialect(s.Dialect()), s.C(entresource.FieldID)
	begin, end, all := " IN (", ")", "-1"
	if s.Dialect() == dialect.Postgres { // which supposes that an array is short
		begin, end, all = " = ANY (ARRAY(", "))", "NULL"
	}
	return entsql.P(func(b *entsql.Builder) {
		b.Ident(id).WriteString(begin + "WITH ")
		for i := range p.searches {
			p.judge(b, build, i)
		}
		b.WriteString("ordered AS NOT MATERIALIZED (").Join(p.ordered(build)).
			WriteString("), walked (id) AS MATERIALIZED (").Join(p.walked(build)).WriteString(") ")
		for i, of := range p.searches {
			if !of.isWide {
				b.WriteString(fmt.Sprintf("SELECT id FROM probed_%d WHERE (SELECT few FROM judged_%d) UNION ALL ", i, i))
			}
		}
		b.WriteString("SELECT id FROM walked UNION ALL SELECT id FROM (SELECT id FROM found_0 LIMIT (SELECT CASE WHEN NOT " + p.isFew() + " AND (SELECT COUNT(*) FROM walked) < ").Arg(p.paging.Limit()).
			WriteString(" AND (SELECT COUNT(*) FROM (").Join(p.inOrder(build, entresource.FieldID).Limit(p.limits.walked)).WriteString(") AS looked_at) = ").Arg(p.limits.walked).
			WriteString(" THEN " + all + " ELSE 0 END)) AS everything" + end)
	})
}

// judge writes what is found by a search, unless few were found by one before it.
// The first search is also what finds all, where it comes to that.
func (p partOnPage) judge(b *entsql.Builder, build *entsql.DialectBuilder, i int) {
	of := p.searches[i]
	once := "NOT MATERIALIZED"
	if b.Dialect() == dialect.Postgres && !of.isCheap { // which goes on with what is found where it stopped
		once = "MATERIALIZED"
	}
	if i == 0 || !of.isWide {
		b.WriteString(fmt.Sprintf("found_%d (id) AS %s (", i, once)).Join(of.found(build)).WriteString("), ")
	}
	if of.isWide {
		return
	}
	b.WriteString(fmt.Sprintf("probed_%d (id) AS MATERIALIZED (SELECT id FROM ", i))
	if i == 0 {
		b.WriteString("found_0 LIMIT ").Arg(p.limits.few + 1)
	} else {
		b.WriteString(fmt.Sprintf("found_%d LIMIT (SELECT CASE WHEN ", i) + p.areFew(i) + " THEN 0 ELSE ").Arg(p.limits.few + 1).WriteString(" END)")
	}
	b.WriteString(fmt.Sprintf("), judged_%d (few) AS MATERIALIZED (SELECT COUNT(*) <= ", i)).Arg(p.limits.few).WriteString(fmt.Sprintf(" FROM probed_%d), ", i))
}

// hasAll holds for a resource that every search is for.
func (p partOnPage) hasAll(build *entsql.DialectBuilder, of func(column string) string) *entsql.Predicate {
	return entsql.And(lists.Map(p.searches, func(one *partSearch) *entsql.Predicate { return one.has(build, of) })...)
}

// inOrder returns the resources that are looked at first, in the order of the
// list.
func (p partOnPage) inOrder(build *entsql.DialectBuilder, columns ...string) *entsql.Selector {
	resources := build.Select().From(build.Table(entresource.Table))
	resources.Select(resources.Columns(columns...)...)
	p.wanted(resources)
	p.paging.Within(resources)
	p.paging.Sort(resources)
	return resources
}

// ordered returns what is looked at of them: nothing where few are found.
// Each database has its own way to find that out before it looks at any.
func (p partOnPage) ordered(build *entsql.DialectBuilder) entsql.Querier {
	resources := p.inOrder(build, entresource.FieldID, entresource.FieldNameKey, entresource.FieldDescriptionKey, entresource.FieldDescription,
		p.paging.Key.Column, p.paging.Key.TieColumn())
	if resources.Dialect() == dialect.Postgres {
		return resources.Where(entsql.ExprP("NOT " + p.isFew())).Limit(p.limits.walked)
	}
	return entsql.P(func(b *entsql.Builder) {
		b.Join(resources).WriteString(" LIMIT (SELECT CASE WHEN " + p.isFew() + " THEN 0 ELSE ").Arg(p.limits.walked).WriteString(" END)")
	})
}

// walked returns those that are searched for, a page at most.
func (p partOnPage) walked(build *entsql.DialectBuilder) *entsql.Selector {
	ordered := build.Table("ordered")
	walked := build.Select(ordered.C(entresource.FieldID)).From(ordered).Where(p.hasAll(build, ordered.C))
	if walked.Dialect() == dialect.Postgres { // SQLite takes rows as they come, and would look at all of them to order them
		p.paging.Sort(walked)
	}
	return walked.Limit(p.paging.Limit())
}

// searchOf returns the search for a folded text in names, descriptions and
// values of metadata.
func searchOf(folded string) *partSearch {
	return &partSearch{
		found: func(*entsql.DialectBuilder) entsql.Querier {
			return entsql.P(func(b *entsql.Builder) {
				b.Join(sqldb.ResourceNames.Found(entresource.FieldID, folded)).
					WriteString(" UNION ALL ").Join(sqldb.ResourceDescriptions.Found(entresource.FieldID, folded)).
					WriteString(" UNION ALL ").Join(sqldb.MetadataValues.Found(metadataitem.FieldResourceID, folded))
			})
		},
		has: func(build *entsql.DialectBuilder, of func(string) string) *entsql.Predicate {
			items := build.Table(metadataitem.Table)
			return entsql.Or(sqldb.ResourceNames.Has(of, folded), sqldb.ResourceDescriptions.Has(of, folded),
				hasItem(build, of, sqldb.MetadataValues.Has(items.C, folded)))
		},
	}
}

// hasItem holds for a resource that has a metadata item of which a test holds.
// It is asked for each of them: a set of all such items is what the walk avoids.
func hasItem(build *entsql.DialectBuilder, of func(string) string, test *entsql.Predicate) *entsql.Predicate {
	items := build.Table(metadataitem.Table)
	one := build.Select().From(items).Where(entsql.And(entsql.ColumnsEQ(items.C(metadataitem.FieldResourceID), of(entresource.FieldID)), test)).Limit(1)
	one.SelectExpr(entsql.Expr("TRUE"))
	return entsql.P(func(b *entsql.Builder) { b.WriteString("COALESCE((").Join(one).WriteString("), FALSE)") })
}

// nameSearchOf returns the search for a folded text in names.
func nameSearchOf(folded string) *partSearch {
	return &partSearch{
		found: func(*entsql.DialectBuilder) entsql.Querier {
			return sqldb.ResourceNames.Found(entresource.FieldID, folded)
		},
		has: func(_ *entsql.DialectBuilder, of func(string) string) *entsql.Predicate {
			return sqldb.ResourceNames.Has(of, folded)
		},
	}
}

// itemSearchOf returns the search for a part of the value of a metadata key,
// code point by code point; nil for any other condition.
func itemSearchOf(c resource.Condition) *partSearch {
	if c.Kind != resource.ConditionMetadata || c.Test.Operator != resource.Has || !sqldb.IsIndexed(text.Fold(c.Test.Operands[0])) {
		return nil
	}
	part := c.Test.Operands[0]
	return &partSearch{
		found: func(*entsql.DialectBuilder) entsql.Querier {
			return sqldb.MetadataValues.FoundExactly(metadataitem.FieldResourceID, part, func(column func(string) string) *entsql.Predicate {
				return entsql.EQ("+"+column(metadataitem.FieldKey), c.Test.Name)
			})
		},
		has: func(build *entsql.DialectBuilder, of func(string) string) *entsql.Predicate {
			items := build.Table(metadataitem.Table)
			return hasItem(build, of, entsql.And(entsql.EQ(items.C(metadataitem.FieldKey), c.Test.Name), sqldb.MetadataValues.HasExactly(items.C, part)))
		},
	}
}
