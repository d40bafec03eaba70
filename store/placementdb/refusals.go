package placementdb

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
)

const (
	// refusalsKept is how long the refusal of a place is kept.
	refusalsKept = 24 * time.Hour
	// refusalsSwept is the interval at which a server deletes old refusals.
	refusalsSwept = 10 * time.Minute
	// maxRefusals bounds the kept refusals: a sweep deletes the oldest beyond it.
	maxRefusals = 20_000
	// maxRefusal is the maximum number of bytes of a stored refusal. A larger
	// one is stored without its explanation.
	maxRefusal = 16 << 10
)

// PlaceRefusal is why the last place for a consumer was refused.
type PlaceRefusal struct {
	Consumer  string
	ProjectID string
	RefusedAt time.Time
	Problems  problem.Problems
	stored    storedRefusal
}

// storedRefusal is a refusal as JSON.
type storedRefusal struct {
	Problems   []storedProblem             `json:"problems"`
	Explained  bool                        `json:"explained,omitempty"`
	Considered int                         `json:"considered,omitempty"`
	Steps      []placement.ExplanationStep `json:"steps,omitempty"`
	Nearest    []storedMiss                `json:"nearest,omitempty"`
}

type storedProblem struct {
	IsLimit bool   `json:"isLimit,omitempty"` // otherwise there was no room
	Field   string `json:"field"`
	Message string `json:"message"`
}

type storedMiss struct {
	Provider string               `json:"provider"`
	Missing  []placement.Shortage `json:"missing,omitempty"`
	Traits   []string             `json:"traits,omitempty"`
}

// keepRefusals stores the outcomes of consumers that were refused for lack of
// room or quota. It explains a lack of room by the full world, which may be
// nil. It only logs an error, since the place is over.
func (s *PlacementStore) keepRefusals(ctx context.Context, input *placement.Placing,
	outcomes []PlacedOutcome, full *placement.World) {
	var explained storedRefusal
	var rows [][]any
	for i, outcome := range outcomes {
		of := storedRefusal{Problems: problemsToKeep(outcome.Problems)}
		if len(of.Problems) == 0 {
			continue
		}
		if !of.Problems[0].IsLimit && full != nil {
			if !explained.Explained {
				explained = explanationToKeep(input.Explain(full))
			}
			of.Explained, of.Considered, of.Steps, of.Nearest = true,
				explained.Considered, explained.Steps, explained.Nearest
		}
		text := sqldb.JSONOf(of)
		if len(text) > maxRefusal {
			text = sqldb.JSONOf(storedRefusal{Problems: of.Problems})
		}
		rows = append(rows, []any{input.Consumers[i].UUID, input.Consumers[i].ProjectID, text})
	}
	if len(rows) == 0 {
		return
	}
	err := s.Execute(ctx, s.Pool, `INSERT INTO place_refusals (consumer, project_id, refused_at, refusal)
		SELECT d.consumer, d.project_id, `+s.Time("$2")+`, d.refusal FROM `+s.Rows("$1", "d", "consumer text", "project_id text", "refusal text")+`
		WHERE true ORDER BY d.consumer
		ON CONFLICT (consumer) DO UPDATE SET project_id = excluded.project_id, refused_at = excluded.refused_at, refusal = excluded.refusal`,
		sqldb.JSONOf(rows), s.Now())
	if err == nil {
		err = s.ShowsAll(ctx, s.Pool)
	}
	if err != nil {
		s.Log.WarnContext(ctx, "cannot keep why a place was refused", "error", err)
	}
}

// problemsToKeep returns the problems of an outcome that are refusals for lack
// of room or quota.
func problemsToKeep(of problem.Problems) (kept []storedProblem) {
	for _, one := range of {
		isLimit := errors.Is(one.Kind, problem.ErrQuotaExceeded)
		if isLimit || errors.Is(one.Kind, problem.ErrCapacityExceeded) {
			kept = append(kept, storedProblem{isLimit, one.Field, one.Message})
		}
	}
	return kept
}

func explanationToKeep(of placement.Explanation) storedRefusal {
	return storedRefusal{Explained: true, Considered: of.Considered, Steps: of.Steps,
		Nearest: lists.Map(of.Nearest, func(m placement.NearMiss) storedMiss {
			return storedMiss{m.Provider.UUID, m.Missing, m.Traits}
		})}
}

// forgetRefusals deletes the kept refusals of the consumers that claims wrote.
func (s *PlacementStore) forgetRefusals(ctx context.Context, c *claimTx) error {
	if !c.wasRefused {
		return nil
	}
	return s.Execute(ctx, c, `DELETE FROM place_refusals WHERE `+s.Listed("consumer", "$1", "text"),
		sqldb.JSONOf(c.ledger.Written()))
}

// sweepRefusals deletes old refusals, and the oldest beyond maxRefusals.
func (s *PlacementStore) sweepRefusals(ctx context.Context) error {
	return s.Execute(ctx, s.Pool, `DELETE FROM place_refusals WHERE refused_at <= `+s.Time("$1")+`
		OR refused_at <= (SELECT refused_at FROM place_refusals ORDER BY refused_at DESC LIMIT 1 OFFSET $2)`,
		s.Now().Add(-refusalsKept), maxRefusals)
}

// LastRefusal returns why the last place for a consumer was refused, within a
// day. It returns nil if there was none, if the consumer has allocations now,
// and if the viewer may not see the consumers of its project.
func (s *PlacementStore) LastRefusal(ctx context.Context, consumer string) (*PlaceRefusal, error) {
	if err := visible.SeesPlacement(ctx); err != nil {
		return nil, err
	}
	var found *PlaceRefusal
	seen, args := visible.ConsumerClause(ctx, "r.project_id", 3)
	err := s.Query(ctx, s.Pool, `SELECT r.project_id, r.refused_at, r.refusal FROM place_refusals r WHERE r.consumer = $1 AND r.refused_at > `+s.Time("$2")+`
		AND NOT EXISTS (SELECT 1 FROM consumers c WHERE c.uuid = r.consumer) AND `+seen, func(rows *sql.Rows) error {
		found = &PlaceRefusal{Consumer: consumer}
		var text string
		if err := rows.Scan(&found.ProjectID, &found.RefusedAt, &text); err != nil {
			return err
		}
		found.RefusedAt = found.RefusedAt.UTC()
		err := json.Unmarshal([]byte(text), &found.stored)
		found.Problems = lists.Map(found.stored.Problems, storedProblem.problem)
		return err
	}, append([]any{consumer, s.Now().Add(-refusalsKept)}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("read the last refusal: %w", err)
	}
	return found, nil
}

func (p storedProblem) problem() problem.Problem {
	kind := problem.ErrCapacityExceeded
	if p.IsLimit {
		kind = problem.ErrQuotaExceeded
	}
	return problem.Problem{Kind: kind, Field: p.Field, Message: p.Message}
}

// Explanation explains why there was no room, without near misses whose
// provider the world lacks. It returns nil if another rule refused the place,
// or if no explanation was stored.
func (r *PlaceRefusal) Explanation(world *placement.World) *placement.Explanation {
	if !r.stored.Explained {
		return nil
	}
	explanation := &placement.Explanation{Considered: r.stored.Considered,
		Steps: r.stored.Steps, Nearest: []placement.NearMiss{}}
	for _, miss := range r.stored.Nearest {
		if provider, ok := world.Provider(miss.Provider); ok {
			explanation.Nearest = append(explanation.Nearest,
				placement.NearMiss{Provider: provider, Missing: miss.Missing, Traits: miss.Traits})
		}
	}
	return explanation
}
