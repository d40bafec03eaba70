package model

import (
	"sync"

	"github.com/cadastre-dev/cadastre/placement"
)

// DrainPlan is a plan that empties hosts of a world.
type DrainPlan struct {
	*placement.DrainPlan
	world   *placement.World
	explain func() *CandidateExplanation
}

// DrainPlanIn returns a plan with the world that it was made in.
func DrainPlanIn(world *placement.World, plan *placement.DrainPlan) *DrainPlan {
	return &DrainPlan{plan, world, sync.OnceValue(func() *CandidateExplanation {
		if len(plan.Unplaced) == 0 {
			return nil
		}
		return explanationIn(plan.Full, plan.Unplaced[0].Request)
	})}
}

// Explanation returns why the first of the consumers that do not fit has no
// place, or nil if all fit.
func (p *DrainPlan) Explanation() *CandidateExplanation { return p.explain() }

// Moves returns the moves in order.
func (p *DrainPlan) Moves() []*DrainMove {
	moves := make([]*DrainMove, len(p.DrainPlan.Moves))
	for i := range moves {
		moves[i] = &DrainMove{&p.DrainPlan.Moves[i], p.world}
	}
	return moves
}

// UnplacedCount returns the number of consumers that do not fit.
func (p *DrainPlan) UnplacedCount() int { return len(p.DrainPlan.Unplaced) }

// Unplaced returns the stored consumers that do not fit, MaxUnplaced at most.
func (p *DrainPlan) Unplaced() []*placement.Unplaced { return firstUnplaced(p.DrainPlan.Unplaced) }

// Roots returns the roots of the trees of the moves.
func (p *DrainPlan) Roots() []*ResourceProvider { return rootsOf(p.world, p.Moves()) }

// rootsOf returns the roots of the trees of moves, each once.
func rootsOf(world *placement.World, moves []*DrainMove) []*ResourceProvider {
	var roots []*ResourceProvider
	seen := map[string]bool{}
	for _, move := range moves {
		for _, allocation := range append(move.From(), move.To()...) {
			root := allocation.node.Provider.Root
			if !seen[root] {
				seen[root] = true
				roots = append(roots, ProviderAt(world, root))
			}
		}
	}
	return roots
}

// DrainMove is a move in a world.
type DrainMove struct {
	*placement.Move
	world *placement.World
}

// From returns the amounts that the consumer leaves.
func (m *DrainMove) From() []CandidateAllocation { return allocationsIn(m.world, m.Move.From) }

// To returns the amounts that the consumer gets instead.
func (m *DrainMove) To() []CandidateAllocation { return allocationsIn(m.world, m.Move.To) }

// RebalancePlan is a plan that moves consumers of a world.
type RebalancePlan struct {
	*placement.RebalancePlan
	World *placement.World
}

// Moves returns the moves in order.
func (p *RebalancePlan) Moves() []*RebalanceMove {
	moves := make([]*RebalanceMove, len(p.RebalancePlan.Moves))
	for i := range moves {
		of := &p.RebalancePlan.Moves[i]
		moves[i] = &RebalanceMove{DrainMove{&of.Move, p.World}, of.Fits, of.Gain}
	}
	return moves
}

// Roots returns the roots of the trees of the moves.
func (p *RebalancePlan) Roots() []*ResourceProvider {
	var moves []*DrainMove
	for _, move := range p.Moves() {
		moves = append(moves, &move.DrainMove)
	}
	return rootsOf(p.World, moves)
}

// RebalanceMove is a move in a world, with its effect on requests.
type RebalanceMove struct {
	DrainMove
	Fits []int64
	Gain int64
}
