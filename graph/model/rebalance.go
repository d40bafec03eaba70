package model

import "github.com/cadastre-dev/cadastre/placement"

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
