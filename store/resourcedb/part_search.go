package resourcedb

import (
	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/ent/metadataitem"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/text"
)

// partSearch is a search for resources whose texts have a part. Where few have
// it, the indexes of texts find them; where many do, the first page of them is
// soon found among the resources in the order of the list, and what the indexes
// find would all have to be put in order.
type partSearch struct {
	// found returns a SELECT of the ids of the resources, which finds them by the
	// indexes as they are asked for, some of them more than once.
	found func(*entsql.DialectBuilder) entsql.Querier
	// has holds for a resource whose texts have the part, which it looks at.
	has func(*entsql.DialectBuilder, *entsql.SelectTable) *entsql.Predicate
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

// byPart returns the condition of a page for clauses of which one is a search
// for a part: the others hold, and the part is searched for in the better way.
func byPart(paging sqldb.Paging, clauses []clause, visible func(*entsql.Selector), limits partLimits) func(*entsql.Selector) {
	var others []clause
	var part *partSearch
	for _, c := range clauses {
		if part == nil && c.part != nil {
			part = c.part
		} else {
			others = append(others, c)
		}
	}
	if part == nil || paging.Key.Of != nil { // no index has that order
		return func(s *entsql.Selector) {
			visible(s)
			keep(s, clauses)
		}
	}
	wanted := func(s *entsql.Selector) {
		visible(s)
		keep(s, others)
	}
	return func(s *entsql.Selector) {
		wanted(s)
		s.Where(partOnPage{part, limits, paging, wanted}.holds(s))
	}
}

// partOnPage is a search for a part as one page of a list needs it.
type partOnPage struct {
	*partSearch
	limits partLimits
	paging sqldb.Paging
	wanted func(*entsql.Selector) // the other conditions of the list
}

// isFew is whether few have the part, once it is judged.
const isFew = "(SELECT few FROM judged)"

// holds holds for the resources of the page, and for others that have the part.
func (p partOnPage) holds(s *entsql.Selector) *entsql.Predicate {
	build, id := entsql.Dialect(s.Dialect()), s.C(entresource.FieldID)
	begin, end, once, all := " IN (", ")", "NOT MATERIALIZED", "-1"
	if s.Dialect() == dialect.Postgres { // which supposes that an array is short, and goes on with what is found where it stopped
		begin, end, once, all = " = ANY (ARRAY(", "))", "MATERIALIZED", "NULL"
	}
	return entsql.P(func(b *entsql.Builder) {
		b.Ident(id).WriteString(begin + "WITH found (id) AS " + once + " (").Join(p.found(build)).
			WriteString("), probed (id) AS MATERIALIZED (SELECT id FROM found LIMIT ").Arg(p.limits.few + 1).
			WriteString("), judged (few) AS MATERIALIZED (SELECT COUNT(*) <= ").Arg(p.limits.few).
			WriteString(" FROM probed), ordered AS NOT MATERIALIZED (").Join(p.ordered(build)).
			WriteString("), walked (id) AS MATERIALIZED (").Join(p.walked(build)).
			WriteString(") SELECT id FROM probed WHERE " + isFew + " UNION ALL SELECT id FROM walked" +
				" UNION ALL SELECT id FROM (SELECT id FROM found LIMIT (SELECT CASE WHEN NOT " + isFew + " AND (SELECT COUNT(*) FROM walked) < ").Arg(p.paging.Limit()).
			WriteString(" AND (SELECT COUNT(*) FROM (").Join(p.inOrder(build, entresource.FieldID).Limit(p.limits.walked)).WriteString(") AS looked_at) = ").Arg(p.limits.walked).
			WriteString(" THEN " + all + " ELSE 0 END)) AS everything" + end)
	})
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

// ordered returns what is looked at of them: nothing where few have the part.
// Each database has its own way to find that out before it looks at any.
func (p partOnPage) ordered(build *entsql.DialectBuilder) entsql.Querier {
	resources := p.inOrder(build, entresource.FieldID, entresource.FieldNameKey, entresource.FieldDescriptionKey, entresource.FieldDescription,
		p.paging.Key.Column, p.paging.Key.TieColumn())
	if resources.Dialect() == dialect.Postgres {
		return resources.Where(entsql.ExprP("NOT " + isFew)).Limit(p.limits.walked)
	}
	return entsql.P(func(b *entsql.Builder) {
		b.Join(resources).WriteString(" LIMIT (SELECT CASE WHEN few THEN 0 ELSE ").Arg(p.limits.walked).WriteString(" END FROM judged)")
	})
}

// walked returns those that have the part, a page at most.
func (p partOnPage) walked(build *entsql.DialectBuilder) *entsql.Selector {
	ordered := build.Table("ordered")
	walked := build.Select(ordered.C(entresource.FieldID)).From(ordered).Where(p.has(build, ordered))
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
		has: func(build *entsql.DialectBuilder, of *entsql.SelectTable) *entsql.Predicate {
			items := build.Table(metadataitem.Table)
			return entsql.Or(sqldb.ResourceNames.Has(of.C, folded), sqldb.ResourceDescriptions.Has(of.C, folded),
				hasItem(build, of, sqldb.MetadataValues.Has(items.C, folded)))
		},
	}
}

// hasItem holds for a resource that has a metadata item of which a test holds.
// It is asked for each of them: a set of all such items is what the walk avoids.
func hasItem(build *entsql.DialectBuilder, of *entsql.SelectTable, test *entsql.Predicate) *entsql.Predicate {
	items := build.Table(metadataitem.Table)
	one := build.Select().From(items).Where(entsql.And(entsql.ColumnsEQ(items.C(metadataitem.FieldResourceID), of.C(entresource.FieldID)), test)).Limit(1)
	one.SelectExpr(entsql.Expr("TRUE"))
	return entsql.P(func(b *entsql.Builder) { b.WriteString("(").Join(one).WriteString(")") })
}

// nameSearchOf returns the search for a folded text in names.
func nameSearchOf(folded string) *partSearch {
	return &partSearch{
		found: func(*entsql.DialectBuilder) entsql.Querier {
			return sqldb.ResourceNames.Found(entresource.FieldID, folded)
		},
		has: func(_ *entsql.DialectBuilder, of *entsql.SelectTable) *entsql.Predicate {
			return sqldb.ResourceNames.Has(of.C, folded)
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
		has: func(build *entsql.DialectBuilder, of *entsql.SelectTable) *entsql.Predicate {
			items := build.Table(metadataitem.Table)
			return hasItem(build, of, entsql.And(entsql.EQ(items.C(metadataitem.FieldKey), c.Test.Name), sqldb.MetadataValues.HasExactly(items.C, part)))
		},
	}
}
