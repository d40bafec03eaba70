package placement

import (
	"maps"
	"strings"
)

// MaxPlannedMoves is the maximum number of moves that are made by one call.
const MaxPlannedMoves = 100

// PlannedMoves are moves of a plan to be made one after the other. They follow
// `ApplyPlanInput`.
type PlannedMoves struct {
	Moves  []PlannedMove
	DryRun bool
}

// PlannedMove is a Move to make. Generation is the consumer's generation in the
// plan.
type PlannedMove struct {
	Consumer    string // uuid
	Generation  int64
	Allocations []ProviderAllocation // all that the consumer has after the move
}

// MoveOutcome is the result of a planned move.
type MoveOutcome string

// The outcomes.
const (
	Moved       MoveOutcome = "MOVED"
	MovedBefore MoveOutcome = "DONE"
	MoveRefused MoveOutcome = "REFUSED"
)

// Validate returns every problem of the moves' form, each at its path below path
// ("input").
func (p *PlannedMoves) Validate(path string) []Problem {
	var v validator
	path = under(path, "moves")
	v.require(len(p.Moves) > 0, path, "must name at least one move")
	v.atMost(MaxPlannedMoves, path, len(p.Moves))
	seen := map[string]bool{}
	for i, move := range p.Moves {
		path := at(path, i)
		v.checkDistinctUUID(seen, under(path, "consumer"), move.Consumer)
		v.require(len(move.Allocations) > 0, under(path, "allocations"), "must name at least one provider")
		v.checkAllocations(under(path, "allocations"), move.Allocations)
	}
	return v.problems
}

// Move makes move i of valid moves, or returns why it is refused and leaves the
// ledger unchanged. The refusals are of one kind, each at its path below path
// ("input"). With beyondLimits, no limit refuses the move.
//
// A consumer that already has the allocations stays as it is (MovedBefore). Others
// must have the generation of the plan, and the same amounts of each class. The
// consumer keeps its project, user, type and hold, and loses its mappings.
func (l *Ledger) Move(p *PlannedMoves, i int, path string, known Known, beyondLimits bool) (MoveOutcome, []Refusal) {
	move, path := &p.Moves[i], under(path, "moves")
	is, after := l.Consumer(move.Consumer), map[AllocationKey]int64{}
	for _, allocation := range move.Allocations {
		for _, amount := range allocation.Resources {
			after[AllocationKey{allocation.Provider, amount.ResourceClass}] = amount.Amount
		}
	}
	if maps.Equal(is.Allocations, after) {
		return MovedBefore, nil
	}
	var refused refusals
	if is.Generation != 0 && is.Generation == move.Generation && !maps.Equal(byClass(is.Allocations), byClass(after)) {
		refused.add(GenerationConflict, under(at(path, i), "allocations"),
			"consumer %s has other amounts than in the plan", move.Consumer)
		return MoveRefused, refused
	}
	claim := ConsumerClaim{UUID: move.Consumer, ProjectID: is.ProjectID, UserID: is.UserID,
		Generation: &move.Generation, Allocations: move.Allocations, ExpiresAt: is.ExpiresAt}
	refused = l.apply(&Claim{Consumers: []ConsumerClaim{claim}, BeyondLimits: beyondLimits}, path, known)
	if len(refused) == 0 {
		return Moved, nil
	}
	for k := range refused {
		refused[k].Path = at(path, i) + strings.TrimPrefix(refused[k].Path, at(path, 0))
	}
	return MoveRefused, refused
}

// byClass returns the sums of amounts of each class.
func byClass(allocations map[AllocationKey]int64) map[string]int64 {
	sums := map[string]int64{}
	for key, used := range allocations {
		sums[key.ResourceClass] = sumUpTo(sums[key.ResourceClass], used)
	}
	return sums
}
