package placementdb

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// Limits returns the limits of a project with their use, ordered by class and
// trait. It returns none for a project whose consumers the viewer does not see.
func (s *PlacementStore) Limits(ctx context.Context, project string) ([]*placement.Limit, error) {
	if err := visible.SeesPlacement(ctx); err != nil {
		return nil, err
	}
	if err := text.CheckAny("projectId", project); err != nil {
		return nil, err
	}
	seen, args := visible.ConsumerClause(ctx, "l.project_id", 2)
	limits, err := s.readLimits(ctx, s.Pool, seen+` ORDER BY l.resource_class, l.trait`,
		append([]any{sqldb.JSONOf([]string{project})}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("list limits: %w", err)
	}
	return lists.Map(limits, func(l placement.Limit) *placement.Limit { return &l }), nil
}

// FirstLimits returns limits with their use, ordered by project, class and
// trait. It takes whole projects that the viewer sees, in order, as long as
// they have at most the given number of limits together. isAll reports whether
// it took all projects.
func (s *PlacementStore) FirstLimits(ctx context.Context, most int) (limits []placement.Limit, isAll bool, err error) {
	if err := visible.SeesPlacement(ctx); err != nil {
		return nil, false, err
	}
	seen, args := visible.ConsumerClause(ctx, "l.project_id", 1)
	projects, err := sqldb.Column[string](ctx, s.DB, s.Pool, `SELECT l.project_id FROM project_limits l WHERE `+seen+
		fmt.Sprintf(` ORDER BY l.project_id LIMIT $%d`, len(args)+1), append(args, most+1)...)
	if err != nil {
		return nil, false, fmt.Errorf("list projects with limits: %w", err)
	}
	if isAll = len(projects) <= most; !isAll {
		cut := projects[most]
		projects = slices.DeleteFunc(projects, func(project string) bool { return project == cut })
	}
	limits, err = s.readLimits(ctx, s.Pool, `1 = 1 ORDER BY l.project_id, l.resource_class, l.trait`,
		sqldb.JSONOf(slices.Compact(projects)))
	if err != nil {
		return nil, false, fmt.Errorf("list limits: %w", err)
	}
	return limits, isAll, nil
}

// SetLimits replaces the limits of a project. It returns them with their use,
// ordered by class and trait.
//
// No claim may be decided without the new limits and committed after them. So
// SetLimits waits for the running claims of all projects, and later claims wait
// for SetLimits.
func (s *PlacementStore) SetLimits(ctx context.Context, input placement.ProjectLimits) ([]*placement.Limit, error) {
	var limits []*placement.Limit
	err := s.Write(ctx, "setLimits", func(tx *sqldb.Tx) error {
		if err := s.checkLimits(ctx, tx, &input); err != nil {
			return err
		}
		if s.Postgres() {
			if err := s.Execute(sqldb.Uncounted(ctx), tx, `LOCK TABLE project_limits IN EXCLUSIVE MODE`); err != nil {
				return err
			}
		}
		of := `1 = 1 ORDER BY l.resource_class, l.trait`
		project := sqldb.JSONOf([]string{input.ProjectID})
		before, err := s.readLimits(ctx, tx, of, project)
		if err != nil {
			return err
		}
		if err := s.writeLimits(ctx, tx, &input); err != nil {
			return err
		}
		after, err := s.readLimits(ctx, tx, of, project)
		limits = lists.Map(after, func(l placement.Limit) *placement.Limit { return &l })
		tx.Record(ctx,
			sqldb.Event{Kind: "Limit", Key: input.ProjectID, Before: limitFields(before), After: limitFields(after)})
		return err
	}, &limits)
	if err != nil {
		return nil, fmt.Errorf("set limits: %w", err)
	}
	return limits, nil
}

// checkLimits returns the problems of limits as an error. It locks the traits
// and classes that they name until the transaction ends.
func (s *PlacementStore) checkLimits(ctx context.Context, tx *sqldb.Tx, input *placement.ProjectLimits) error {
	var traits, classes []string
	for _, limit := range input.Limits {
		classes = append(classes, limit.ResourceClass)
		if limit.Trait != nil {
			traits = append(traits, *limit.Trait)
		}
	}
	knownTraits, err := s.rowsOf(ctx, tx, "traits", traits)
	if err != nil {
		return err
	}
	knownClasses, err := s.rowsOf(ctx, tx, "resource_classes", classes)
	if err != nil {
		return err
	}
	known := placement.KnownNames{Traits: setOf(knownTraits), ResourceClasses: setOf(knownClasses)}
	return problemsIn(s.cache.World(), input.Validate("input", known)).Err()
}

// writeLimits replaces the limits of a project.
func (s *PlacementStore) writeLimits(ctx context.Context, tx *sqldb.Tx, input *placement.ProjectLimits) error {
	if err := s.Execute(ctx, tx, `DELETE FROM project_limits WHERE project_id = $1`, input.ProjectID); err != nil {
		return err
	}
	rows := lists.Map(input.Limits, func(l placement.NewLimit) []any {
		return []any{l.ResourceClass, text.OrEmpty(l.Trait), l.Amount}
	})
	return s.Execute(ctx, tx, `INSERT INTO project_limits (project_id, resource_class, trait, amount)
		SELECT $2, d.resource_class, d.trait, d.amount FROM `+s.Rows("$1", "d", "resource_class text", "trait text",
		"amount bigint"), sqldb.JSONOf(rows), input.ProjectID)
}

// renameInLimits gives the limits of a resource class another class, except
// where the project has a limit of that class already.
func (s *PlacementStore) renameInLimits(ctx context.Context, tx *sqldb.Tx, class, to string) error {
	projects, err := sqldb.Column[string](ctx, s.DB, tx, `UPDATE project_limits SET resource_class = $2
		WHERE resource_class = $1 AND NOT EXISTS (SELECT 1 FROM project_limits o
			WHERE o.project_id = project_limits.project_id AND o.resource_class = $2 AND o.trait = project_limits.trait)
		RETURNING project_id`, class, to)
	for _, project := range lists.Distinct(projects) {
		tx.Record(ctx, sqldb.Event{Kind: "Limit", Key: project, Before: sqldb.Fields{"resourceClass": class},
			After: sqldb.Fields{"resourceClass": to}})
	}
	return err
}

// limitFields returns the limits of a project for the audit log.
func limitFields(limits []placement.Limit) sqldb.Fields {
	return sqldb.Fields{"limits": lists.Map(limits, func(l placement.Limit) sqldb.Fields {
		return sqldb.Fields{"resourceClass": l.ResourceClass, "trait": l.Trait, "limit": l.Amount}
	})}
}

// readLimits returns the limits, with their use, that belong to the projects in
// args[0], a JSON list, and satisfy the SQL condition where. The condition may
// end with an order and a lock.
func (s *PlacementStore) readLimits(ctx context.Context, on sqldb.Conn, where string,
	args ...any) ([]placement.Limit, error) {
	limits := []placement.Limit{}
	rows := map[int64]int{} // indexes in limits
	err := s.Query(ctx, on, `SELECT l.id, l.project_id, l.resource_class, NULLIF(l.trait, ''), l.amount FROM project_limits l
		WHERE `+s.Listed("l.project_id", "$1", "text")+` AND `+where, func(found *sql.Rows) error {
		var id int64
		var limit placement.Limit
		err := found.Scan(&id, &limit.ProjectID, &limit.ResourceClass, &limit.Trait, &limit.Amount)
		rows[id], limits = len(limits), append(limits, limit)
		return err
	}, args...)
	if err != nil {
		return nil, err
	}
	// The sums are another statement: it must see all that committed before the
	// limits were locked.
	return limits, s.Query(ctx, on, `SELECT l.id, CAST(SUM(a.used) AS bigint), CAST(SUM(CASE WHEN o.expires_at IS NULL THEN 0 ELSE a.used END) AS bigint)
		FROM project_limits l JOIN consumers o ON o.project_id = l.project_id JOIN allocations a ON a.consumer_id = o.id
		JOIN resource_classes c ON c.id = a.resource_class_id AND c.name = l.resource_class
		WHERE `+s.Listed("l.project_id", "$1", "text")+` AND (l.trait = '' OR EXISTS (SELECT 1 FROM provider_traits h JOIN traits t ON t.id = h.trait_id
			WHERE h.provider_id = a.provider_id AND t.name = l.trait)) GROUP BY l.id`, func(found *sql.Rows) error {
		var id, used, held int64
		err := found.Scan(&id, &used, &held)
		if i, ok := rows[id]; ok {
			limits[i].Used, limits[i].Held = used, held
		}
		return err
	}, args[0])
}

// lockLimits locks the limits of the projects of claims, and sets them in the
// ledger. It also sets which of the traits in the limits the providers have. So
// claims of a project with limits wait for each other, and each sum has the use
// of earlier claims.
func (s *PlacementStore) lockLimits(ctx context.Context, c *claimTx) error {
	limits, err := s.readLimits(ctx, c, `1 = 1 ORDER BY l.id`+s.Locking("NO KEY UPDATE"), sqldb.JSONOf(c.projects))
	if err != nil {
		return err
	}
	var traits []string
	for _, limit := range limits {
		if limit.Trait != nil {
			traits = append(traits, *limit.Trait)
		}
	}
	c.ledger.SetLimits(limits)
	if len(traits) == 0 {
		return nil
	}
	byRow := map[int64]string{}
	for uuid, provider := range c.providers {
		byRow[provider.id] = uuid
	}
	return s.Query(ctx, c, `SELECT h.provider_id, t.name FROM provider_traits h JOIN traits t ON t.id = h.trait_id
		WHERE `+s.Listed("h.provider_id", "$1", "bigint")+` AND `+s.Listed("t.name", "$2", "text"),
		func(rows *sql.Rows) error {
			var row int64
			var name string
			err := rows.Scan(&row, &name)
			if provider := c.ledger.Provider(byRow[row]); err == nil {
				if provider.Traits == nil {
					provider.Traits = map[string]bool{}
				}
				provider.Traits[name] = true
			}
			return err
		}, sqldb.JSONOf(slices.Sorted(maps.Keys(byRow))), sqldb.JSONOf(lists.Distinct(traits)))
}

func projectsOf(claims []placement.ConsumerClaim) []string {
	return lists.Distinct(lists.Map(claims, func(claim placement.ConsumerClaim) string { return claim.ProjectID }))
}

// mayExceedLimits reports whether the viewer of a mutation may raise the use of
// projects above their limits.
func mayExceedLimits(ctx context.Context, mutation string) bool {
	return access.ViewerFrom(ctx).At(mutation).May(access.RuleLimitsExceed)
}

// limitProblems converts refusals for exceeded limits to problems.
func limitProblems(refusals []placement.Refusal) problem.Problems {
	return lists.Map(refusals, func(r placement.Refusal) problem.Problem {
		return problem.Problem{Kind: problem.ErrQuotaExceeded, Field: r.Path, Message: r.Message}
	})
}
