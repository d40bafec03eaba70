package store

import (
	"context"
	"fmt"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/catalog"
	"github.com/cadastre-dev/cadastre/ent/capabilitymember"
	"github.com/cadastre-dev/cadastre/ent/resource"
)

// ExplainResources tells for each condition of a filter how many of the
// resources that the viewer may see it holds of, and how many are left with all
// conditions before it: in one statement.
func (s *Store) ExplainResources(ctx context.Context, filter catalog.ResourceFilter) (*catalog.ResourceExplanation, error) {
	clauses, err := s.clausesOf(ctx, filter)
	if err != nil {
		return nil, err
	}
	build := entsql.Dialect(s.db.dialect)
	judged := build.Select().From(build.Table(resource.Table))
	judged.Select(judged.C(resource.FieldID))
	visibleResources(ctx)(judged)
	for i, clause := range clauses {
		judged.AppendSelectExprAs(clause.judge(judged), passes(i))
		judged.AppendSelectExprAs(clause.notNumbers(judged), odd(i))
	}
	judged.As("judged")
	counts := build.Select(entsql.Count("*")).From(judged)
	together := ""
	for i := range clauses {
		alone := judged.C(passes(i))
		together += alone
		counts.AppendSelectExpr(countWhere(alone), countWhere(together), countWhere(judged.C(odd(i))))
		together += " AND "
	}
	query, args := counts.Query()
	rows, err := s.ent.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("explain a filter: %w", err)
	}
	defer rows.Close()
	explanation := &catalog.ResourceExplanation{Clauses: make([]catalog.ResourceClause, len(clauses))}
	targets := []any{&explanation.Considered}
	for i := range explanation.Clauses {
		of := &explanation.Clauses[i]
		of.Clause, of.Ignored = clauses[i].name, clauses[i].ignored
		targets = append(targets, &of.Passing, &of.Remaining, &of.NotNumbers)
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return nil, fmt.Errorf("explain a filter: %w", err)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("explain a filter: %w", err)
	}
	return explanation, nil
}

func passes(i int) string { return fmt.Sprintf("passes_%d", i) }
func odd(i int) string    { return fmt.Sprintf("odd_%d", i) }

func countWhere(holds string) entsql.Querier {
	return entsql.ExprFunc(func(b *entsql.Builder) {
		b.WriteString("COALESCE(SUM(CASE WHEN " + holds + " THEN 1 ELSE 0 END), 0)")
	})
}

// judge is the clause as a column of each resource.
func (c clause) judge(s *entsql.Selector) entsql.Querier {
	if c.ignored {
		return entsql.ExprP("1 = 1")
	}
	return inParentheses(c.holds(s))
}

func inParentheses(of entsql.Querier) entsql.Querier {
	return entsql.ExprFunc(func(b *entsql.Builder) { b.WriteString("(").Join(of).WriteString(")") })
}

// notNumbers is, as a column of each resource, whether it has a value that is no
// number where the clause compares numbers.
func (c clause) notNumbers(s *entsql.Selector) entsql.Querier {
	ids := c.comparesNumbers
	if len(ids) == 0 {
		return entsql.ExprP("(1 = 0)")
	}
	members := entsql.Dialect(s.Dialect()).Table(capabilitymember.Table)
	return inParentheses(resourcesAmong(s, entsql.Dialect(s.Dialect()).Select(members.C(capabilitymember.FieldResourceID)).From(members).
		Where(entsql.And(isAmong(s, members.C(capabilitymember.FieldCapabilityID), ids), entsql.IsNull(members.C(capabilitymember.FieldNumberKey))))))
}
