package placement_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	. "github.com/cadastre-dev/cadastre/placement"
)

// wholeLedger returns a ledger of all consumers, in generation 1.
func (r *reality) wholeLedger() *Ledger {
	consumers, providers := map[string]*LedgerConsumer{}, map[string]*LedgerProvider{}
	for _, p := range r.list() {
		providers[p.UUID] = &LedgerProvider{Inventories: map[string]Inventory{}}
		for _, inventory := range p.Inventories {
			providers[p.UUID].Inventories[inventory.ResourceClass] = inventory
		}
	}
	for consumer, held := range r.held {
		consumers[consumer] = &LedgerConsumer{ProjectID: "p", UserID: "u", Generation: 1,
			Allocations: map[AllocationKey]int64{}, Mappings: []Mapping{{}}}
		for _, a := range held {
			consumers[consumer].Allocations[AllocationKey{Provider: a.Provider, ResourceClass: a.ResourceClass}] = a.Used
		}
	}
	return NewLedger(consumers, providers)
}

func usesOf(l *Ledger, providers []Provider) string {
	var uses []string
	for _, p := range providers {
		for _, class := range slices.Sorted(maps.Keys(l.Provider(p.UUID).Inventories)) {
			uses = append(uses, fmt.Sprint(p.UUID, class, l.Provider(p.UUID).Inventories[class].Used))
		}
	}
	return strings.Join(uses, " ")
}

// TestAPlanCanBeMade makes the moves of drain plans in a ledger. The use is then
// the one of the plan, no inventory exceeds its capacity, and all moves are done.
// A move of another generation or with other amounts changes nothing.
func TestAPlanCanBeMade(t *testing.T) {
	made := 0
	eachRandom(t, func(t *testing.T, d *dice, providers []Provider, _ *Request) {
		r := d.tenants(providers)
		draining := Draining{Providers: []string{providers[d.roll(len(providers))].UUID}, MovesPerHost: 1}
		plan, err := draining.Plan(NewWorld(diceNames, providers), r.allocations())
		if err != nil {
			t.Fatal(err)
		}
		// A part that stays may be one that no claim may have.
		plan.Moves = slices.DeleteFunc(plan.Moves, func(m Move) bool {
			return fmt.Sprint(m.To) != fmt.Sprint(m.Allocations)
		})
		ledger, moves := r.wholeLedger(), &PlannedMoves{}
		for i, move := range plan.Moves {
			moves.Moves = append(moves.Moves,
				PlannedMove{Consumer: move.Consumer, Generation: 1, Allocations: move.Allocations})
			refuseWrong(t, ledger, moves, providers)
			if outcome, refused := ledger.Move(moves, i, "input", known, false); outcome != Moved || len(refused) > 0 {
				t.Errorf("%s %v: %+v", outcome, refused, move)
			}
			if is := ledger.Consumer(move.Consumer); is.Generation != 2 || is.ProjectID != "p" ||
				is.UserID != "u" || len(is.Mappings) > 0 {
				t.Errorf("%+v", is)
			}
			withinCapacity(t, ledger, providers)
		}
		for i := range plan.Moves {
			if outcome, _ := ledger.Move(moves, i, "input", known, false); outcome != MovedBefore {
				t.Errorf("%s: %+v", outcome, moves.Moves[i])
			}
		}
		made += len(plan.Moves)
	})
	if made == 0 {
		t.Error("no moves")
	}
}

// known knows all classes.
var known = Known{ResourceClass: func(string) bool { return true }}

// refuseWrong tries the last move with another generation and with other amounts.
func refuseWrong(t *testing.T, ledger *Ledger, moves *PlannedMoves, providers []Provider) {
	t.Helper()
	i, before := len(moves.Moves)-1, usesOf(ledger, providers)
	for _, wrong := range []func(*PlannedMove){
		func(m *PlannedMove) { m.Generation = 2 },
		func(m *PlannedMove) {
			m.Allocations = slices.Clone(m.Allocations)
			m.Allocations[0].Resources = slices.Clone(m.Allocations[0].Resources)
			m.Allocations[0].Resources[0].Amount++
		},
	} {
		one := moves.Moves[i]
		wrong(&one)
		of := &PlannedMoves{Moves: append(slices.Clone(moves.Moves[:i]), one)}
		outcome, refused := ledger.Move(of, i, "input", known, false)
		if outcome != MoveRefused || refused[0].Kind != GenerationConflict || usesOf(ledger, providers) != before {
			t.Errorf("%s %v: %+v", outcome, refused, one)
		}
	}
}

// withinCapacity checks that no inventory has more use than its capacity, unless
// it had before.
func withinCapacity(t *testing.T, ledger *Ledger, providers []Provider) {
	t.Helper()
	for i := range providers {
		for _, inventory := range ledger.Provider(providers[i].UUID).Inventories {
			if inventory.Used > inventory.Capacity && !contains(&providers[i], inventory) {
				t.Errorf("%+v", inventory)
			}
		}
	}
}

// contains reports whether the inventory of a provider has at least as much use.
func contains(p *Provider, of Inventory) bool {
	return slices.ContainsFunc(p.Inventories, func(was Inventory) bool {
		return was.ResourceClass == of.ResourceClass && was.Used >= of.Used
	})
}

func TestPlannedMovesNameEveryProblem(t *testing.T) {
	t.Parallel()
	allocation := []ProviderAllocation{{Provider: uuidOf(1), Resources: []Amount{{ResourceClass: "VCPU", Amount: 1}}}}
	many := PlannedMoves{Moves: slices.Repeat([]PlannedMove{{}}, 101)}
	for want, of := range map[string]PlannedMoves{
		"input.moves: must name at least one move": {},
		"input.moves[0].allocations: must name at least one provider\ninput.moves[1].consumer: duplicate": {
			Moves: []PlannedMove{{Consumer: uuidOf(0)}, {Consumer: uuidOf(0), Allocations: allocation}}},
		"input.moves: has 101 entries, at most 100 are allowed": many,
	} {
		if got := strings.Join(texts(of.Validate("input")), "\n"); !strings.HasPrefix(got, want) {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}
