package resourcedb

import (
	"context"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/ent/metadataitem"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/visible"
)

// pairSearchOf returns the search for resources whose metadata meets a condition;
// nil for one that asks for anything else, or for a part of a value. The
// statistics of a database know how frequent a key is and how frequent a value,
// but not how frequent the two are together: what the search finds says it.
func pairSearchOf(c resource.Condition) *partSearch {
	if !asksForItems(c) {
		return nil
	}
	of := condition{Condition: c}
	if tests, ok := testsOfAny(c); ok {
		return &partSearch{
			found: func(build *entsql.DialectBuilder) entsql.Querier { return itemsMeeting(build, tests) },
			has:   of.looked, isCheap: true,
		}
	}
	return &partSearch{
		found: func(build *entsql.DialectBuilder) entsql.Querier {
			resources := build.Select().From(build.Table(entresource.Table).As("meeting"))
			return resources.Select(resources.C(entresource.FieldID)).Where(of.holds(resources))
		},
		has: of.looked, isCheap: true, isWide: true,
	}
}

// itemsCounted returns the condition of the metadata items that are as many as the
// resources of which clauses hold: there is one clause, a test of one key, of which
// a resource has one item, and the viewer sees every resource. It is nil otherwise.
func itemsCounted(ctx context.Context, clauses []clause) func(*entsql.Selector) {
	if len(clauses) != 1 || clauses[0].item == nil || !visible.AreResourcesOpen(ctx) {
		return nil
	}
	return func(s *entsql.Selector) {
		of := alternatives{s: s, items: s.Table()}
		s.Where(of.itemTest(*clauses[0].item))
	}
}

// asksForItems reports whether a condition asks for keys, values and beginnings
// of values of metadata alone.
func asksForItems(c resource.Condition) bool {
	switch c.Kind {
	case resource.ConditionMetadata:
		return c.Test.Operator == resource.Exists || c.Test.Operator == resource.Equals || c.Test.Operator == resource.HasPrefix
	case resource.ConditionAll, resource.ConditionAny, resource.ConditionNot:
		for _, member := range c.Members {
			if !asksForItems(member) {
				return false
			}
		}
		return len(c.Members) > 0
	}
	return false
}

// testsOfAny returns the tests of which a condition wants one to hold; false for
// a condition that wants anything else.
func testsOfAny(c resource.Condition) (tests []resource.Test, ok bool) {
	switch c.Kind {
	case resource.ConditionMetadata:
		return []resource.Test{c.Test}, true
	case resource.ConditionAny:
		for _, member := range c.Members {
			more, ok := testsOfAny(member)
			if !ok {
				return nil, false
			}
			tests = append(tests, more...)
		}
		return tests, true
	}
	return nil, false
}

// itemsMeeting returns a SELECT of the resources of the items of which one of some
// tests holds: an index finds those of each test as they are asked for.
func itemsMeeting(build *entsql.DialectBuilder, tests []resource.Test) entsql.Querier {
	return entsql.P(func(b *entsql.Builder) {
		for i, test := range tests {
			items := build.Table(metadataitem.Table)
			selected := build.Select(items.C(metadataitem.FieldResourceID)).From(items)
			of := alternatives{s: selected, items: items}
			if i > 0 {
				b.WriteString(" UNION ALL ")
			}
			b.Join(selected.Where(of.itemTest(test)))
		}
	})
}

// looked returns the condition as a predicate on one resource, whose items are
// looked at. It is a condition of metadata.
func (c condition) looked(build *entsql.DialectBuilder, of func(column string) string) *entsql.Predicate {
	members := func() []*entsql.Predicate {
		return lists.Map(c.Members, func(member resource.Condition) *entsql.Predicate {
			return condition{Condition: member}.looked(build, of)
		})
	}
	switch c.Kind {
	case resource.ConditionAll:
		return entsql.And(members()...)
	case resource.ConditionAny:
		return entsql.Or(members()...)
	case resource.ConditionNot:
		return entsql.Not(members()[0])
	}
	items := build.Table(metadataitem.Table)
	test := alternatives{s: build.Select().From(items), items: items}
	return hasItem(build, of, test.itemTest(c.Test))
}
