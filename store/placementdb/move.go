package placementdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// AppliedMove is the result of a planned move: the consumer with its allocations,
// or the problems for which it was refused.
type AppliedMove struct {
	sqldb.RowOutcome[placement.Consumer]
	Outcome placement.MoveOutcome
}

// errUnmoved means that no move was made: the outcomes say why.
var errUnmoved = errors.New("nothing was moved")

// ApplyPlan makes moves, one after the other, each committed before the next.
// It returns the outcome of each, in order. If it returns an error, it may have
// made the first moves; another call reports these as done.
//
// A dry run judges all moves in one transaction, each after those before it.
func (s *PlacementStore) ApplyPlan(ctx context.Context, plan placement.PlannedMoves) ([]AppliedMove, error) {
	if err := problemsOf(plan.Validate("input")).Err(); err != nil {
		return nil, err
	}
	uuids := lists.Map(plan.Moves, func(m placement.PlannedMove) string { return m.Consumer })
	projects, err := sqldb.Column[string](ctx, s.DB, s.Pool,
		`SELECT DISTINCT project_id FROM consumers WHERE `+s.Listed("uuid", "$1", "text"), sqldb.JSONOf(uuids))
	if err != nil {
		return nil, fmt.Errorf("read the projects of consumers: %w", err)
	}
	applied := make([]AppliedMove, len(plan.Moves))
	step := 1
	if plan.DryRun {
		step = len(applied)
	}
	for from := 0; from < len(applied); from += step {
		of := sqldb.AtStep(sqldb.DryRun(ctx, plan.DryRun), plan.Moves[from].Consumer)
		err := ctx.Err()
		if err == nil {
			err = s.claim(of, s.movesFrom(ctx, &plan, from, applied[from:from+step], projects))
		}
		if err != nil && !errors.Is(err, errUnmoved) {
			return nil, err
		}
	}
	for i := range applied {
		if applied[i].Row != nil {
			holding(applied[i].Row)
		}
	}
	return applied, nil
}

// movesFrom returns the claim that makes len(applied) moves from an index on
// and sets their outcomes.
func (s *PlacementStore) movesFrom(
	ctx context.Context, plan *placement.PlannedMoves, from int, applied []AppliedMove, projects []string,
) *waitingClaim {
	claims := lists.Map(plan.Moves[from:from+len(applied)], func(m placement.PlannedMove) placement.ConsumerClaim {
		return placement.ConsumerClaim{UUID: m.Consumer, Allocations: m.Allocations}
	})
	w := &waitingClaim{mutation: "applyPlan", answer: &applied, concerned: concerned{consumers: consumersOf(claims),
		providers: providersOf(claims), classes: classesOf(claims), projects: projects}}
	beyondLimits := mayExceedLimits(ctx, w.mutation)
	w.judge = func(c *claimTx) error {
		w.written = []string{}
		for k := range applied {
			outcome, refused := c.ledger.Move(plan, from+k, "input", c.known(), beyondLimits)
			applied[k] = AppliedMove{Outcome: outcome}
			switch outcome {
			case placement.MoveRefused:
				applied[k].Problems = problem.InError(refusalOf(s.cache.World(), refused))
			case placement.Moved:
				w.written = append(w.written, claims[k].UUID)
				fallthrough
			default:
				applied[k].Row = c.consumer(claims[k].UUID)
			}
		}
		if len(w.written) == 0 {
			return errUnmoved
		}
		return nil
	}
	return w
}
