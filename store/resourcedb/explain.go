package resourcedb

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/ent/capabilitymember"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/query"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/visible"
)

// ExplainResources counts, for each condition of a filter, the visible
// resources that meet it, the ones that also meet all conditions before it, and
// the ones with a value that is not a number although the condition compares
// numbers. Memory counts them, or one statement, which numbers each resource by
// the first condition that the resource fails.
func (s *ResourceStore) ExplainResources(ctx context.Context, filter resource.Filter) (*resource.Explanation, error) {
	clauses, err := s.clausesOf(ctx, "filter", filter)
	if err != nil {
		return nil, err
	}
	if err := s.untype(ctx, clauses, filter.Types); err != nil {
		return nil, err
	}
	found, err := s.answerOf(ctx, query.Question{Use: query.Explain}, clauses)
	if err != nil {
		return nil, err
	}
	if found.bySets() {
		return found.explanation(clauses), nil
	}
	build := entsql.Dialect(s.Pool.Dialect())
	judged := build.Select().From(build.Table(entresource.Table))
	judged.Select(judged.C(entresource.FieldID))
	visible.Resources(ctx)(judged)
	for i, clause := range clauses {
		judged.AppendSelectExprAs(oneIf(clause.column(judged)), passes(i))
		judged.AppendSelectExprAs(oneIf(clause.notNumbers(judged)), odd(i))
	}
	asItIs(judged).As("judged")
	held := build.Select().From(judged)
	held.Select("*").AppendSelectExprAs(entsql.ExprFunc(func(b *entsql.Builder) {
		b.WriteString("CASE")
		for i := range clauses {
			b.WriteString(fmt.Sprintf(" WHEN %s = 0 THEN %d", passes(i), i))
		}
		b.WriteString(fmt.Sprintf(" WHEN 1 = 1 THEN %d END", len(clauses)))
	}), "held")
	asItIs(held).As("held")
	counts := build.Select(entsql.Count("*")).From(held)
	for i := range clauses {
		counts.AppendSelectExpr(sum(passes(i)), sum(fmt.Sprintf("CASE WHEN held > %d THEN 1 ELSE 0 END", i)),
			sum(odd(i)))
	}
	explanation := explanationOf(clauses)
	targets := []any{&explanation.Considered}
	for i := range explanation.Clauses {
		of := &explanation.Clauses[i]
		targets = append(targets, &of.Passing, &of.Remaining, &of.NotNumbers)
	}
	if err := s.Select(ctx, counts, func(rows *entsql.Rows) error { return rows.Scan(targets...) }); err != nil {
		return nil, fmt.Errorf("explain a filter: %w", err)
	}
	return explanation, nil
}

// untype lets the conditions on capabilities apply to resources of all types,
// not only to the types of the filter: each condition counts alone.
func (s *ResourceStore) untype(ctx context.Context, clauses []clause, types []string) error {
	if types == nil || len(clauses) == 0 {
		return nil
	}
	names := slices.Collect(maps.Keys(clauses[0].compiler.capabilities)) // of the whole filter
	everywhere, err := s.knownCapabilities(ctx, names, nil)
	for i := range clauses {
		clauses[i].compiler.capabilities = everywhere
	}
	return err
}

// explanationOf returns the explanation of clauses, with all counts 0.
func explanationOf(clauses []clause) *resource.Explanation {
	return &resource.Explanation{Clauses: lists.Map(clauses, func(c clause) resource.Clause {
		return resource.Clause{Kind: c.Field(), Path: c.Path, Clause: c.Clause, Ignored: c.Ignored}
	})}
}

func passes(i int) string { return fmt.Sprintf("passes_%d", i) }
func odd(i int) string    { return fmt.Sprintf("odd_%d", i) }

// asItIs keeps the planner from merging a selection into the outer one, which
// reads its columns several times. So each clause is tested once for each
// resource.
func asItIs(s *entsql.Selector) *entsql.Selector {
	if s.Dialect() != dialect.Postgres {
		s.Limit(-1)
	}
	return s.Offset(0)
}

func sum(expression string) entsql.Querier { return entsql.Raw("COALESCE(SUM(" + expression + "), 0)") }

func oneIf(holds entsql.Querier) entsql.Querier {
	return entsql.ExprFunc(func(b *entsql.Builder) {
		b.WriteString("CASE WHEN ").Join(holds).WriteString(" THEN 1 ELSE 0 END")
	})
}

// column returns the clause as a column that is true or false for each
// resource.
func (c clause) column(s *entsql.Selector) entsql.Querier {
	if c.Ignored {
		return entsql.ExprP("1 = 1")
	}
	return inParentheses(c.holds(s))
}

func inParentheses(of entsql.Querier) entsql.Querier {
	return entsql.ExprFunc(func(b *entsql.Builder) { b.WriteString("(").Join(of).WriteString(")") })
}

// notNumbers returns a column that is true for a resource with a value that is
// not a number, if the clause compares numbers.
func (c clause) notNumbers(s *entsql.Selector) entsql.Querier {
	ids := c.compiler.capabilities[c.Condition.Test.Name]
	if len(ids) == 0 || c.Condition.Kind != resource.ConditionCapability || !c.Condition.Test.ComparesNumbers() {
		return entsql.ExprP("(1 = 0)")
	}
	members := entsql.Dialect(s.Dialect()).Table(capabilitymember.Table)
	return inParentheses(resourcesWith(s, members,
		entsql.And(paging.IsAmong(s, members.C(capabilitymember.FieldCapabilityID), ids),
			entsql.IsNull(members.C(capabilitymember.FieldNumberKey)))))
}
