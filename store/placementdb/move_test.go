package placementdb_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// applied describes outcomes.
func applied(outcomes []store.AppliedMove) string {
	var told []string
	for _, outcome := range outcomes {
		text := string(outcome.Outcome)
		for _, one := range outcome.Problems {
			text += " " + one.Field + " " + one.Message
		}
		if outcome.Row != nil {
			text += " " + heldBy(outcome.Row)
		}
		told = append(told, text)
	}
	return strings.Join(told, "; ")
}

func heldBy(consumer *placement.Consumer) (text string) {
	for _, allocation := range consumer.Held {
		text += fmt.Sprintf("%d on %s ", allocation.Used, allocation.Provider[:8])
	}
	return text + fmt.Sprint("in generation ", consumer.Generation)
}

// planned returns the moves of a drain plan for providers.
func planned(t *testing.T, s *store.Store, providers ...int) (moves placement.PlannedMoves) {
	t.Helper()
	draining := placement.Draining{MovesPerHost: 1000}
	for _, provider := range providers {
		draining.Providers = append(draining.Providers, storetest.UUID(provider))
	}
	_, plan, err := s.DrainPlan(storetest.AsAdmin(), nil, &draining)
	if err != nil {
		t.Fatal(err)
	}
	for _, move := range plan.Moves {
		moves.Moves = append(moves.Moves,
			placement.PlannedMove{Consumer: move.Consumer, Generation: move.Generation, Allocations: move.Allocations})
	}
	return moves
}

// crowd makes 12 providers and consumers on them, up to 10 units on each.
func crowd(t *testing.T, s *store.Store, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 7))
	hotProviders(t, s, 12)
	var claims []placement.ConsumerClaim
	for provider := range 12 {
		for used, n := int64(0), 0; used < 10; n++ {
			amount := min(1+random.Int64N(4), 10-used)
			used += amount
			claims = append(claims, vcpus("p", 100+20*provider+n, provider, amount))
		}
	}
	if err := setVCPUs(storetest.AsAdmin(), s, claims...); err != nil {
		t.Fatal(err)
	}
}

// stateOf returns the allocations of the consumers of a plan.
func stateOf(t *testing.T, s *store.Store, moves placement.PlannedMoves) map[string]string {
	t.Helper()
	state := map[string]string{}
	for _, move := range moves.Moves {
		held, err := s.AllocationsOfConsumers(storetest.AsAdmin(), []string{move.Consumer})
		if err != nil {
			t.Fatal(err)
		}
		for _, of := range held[move.Consumer] {
			state[move.Consumer] += fmt.Sprintf("%d on %s ", of.Used, of.Provider)
		}
	}
	return state
}

func wanted(move placement.PlannedMove) (text string) {
	for _, of := range move.Allocations {
		text += fmt.Sprintf("%d on %s ", of.Resources[0].Amount, of.Provider)
	}
	return text
}

func isEmpty(t *testing.T, s *store.Store, providers ...int) {
	t.Helper()
	for _, n := range providers {
		provider, _ := worldOf(t, s).Provider(storetest.UUID(n))
		if used := provider.Inventories[0].Used; used != 0 {
			t.Errorf("%d are used on the drained %s", used, provider.Name)
		}
	}
}

// wholeMoves returns the number of moves that are made. The consumers of the others
// must have the allocations of before.
func wholeMoves(t *testing.T, s *store.Store, moves placement.PlannedMoves, before map[string]string) (count int) {
	t.Helper()
	now := stateOf(t, s, moves)
	for _, move := range moves.Moves {
		switch now[move.Consumer] {
		case wanted(move):
			count++
		case before[move.Consumer]:
		default:
			t.Errorf("%s has %s", move.Consumer, now[move.Consumer])
		}
	}
	return count
}

// goneOn checks the outcomes after a number of moves were made before.
func goneOn(t *testing.T, outcomes []store.AppliedMove, count int) {
	t.Helper()
	for i, outcome := range outcomes {
		want := placement.Moved
		if i < count || i == count && outcome.Outcome == placement.MovedBefore { // its commit may have been under way
			want = placement.MovedBefore
		}
		if outcome.Outcome != want {
			t.Errorf("move %d of %d after %d: %s", i, len(outcomes), count, applied(outcomes[i:i+1]))
		}
	}
}

// TestAStoppedPlanGoesOn ends the request that applies a plan. Each move has then
// happened whole or not at all. Another request, on another server, ends the plan.
func TestAStoppedPlanGoesOn(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, servers []*store.Store) {
		crowd(t, servers[0], 1)
		stopped := 0
		for n := range 4 {
			drained := []int{3 * n, 3*n + 1, 3*n + 2}
			moves := planned(t, servers[0], drained...)
			before := stateOf(t, servers[0], moves)
			ctx, stop := context.WithCancel(storetest.AsAdmin())
			second := placement.PlannedMoves{Moves: moves.Moves[1:2]}
			var watching sync.WaitGroup
			watching.Go(func() {
				for ctx.Err() == nil &&
					stateOf(t, servers[0], second)[moves.Moves[1].Consumer] != wanted(moves.Moves[1]) {
					time.Sleep(time.Millisecond)
				}
				stop()
			})
			_, err := servers[0].ApplyPlan(ctx, moves)
			if err != nil && ctx.Err() == nil {
				t.Fatal(err)
			}
			stop()
			watching.Wait() // the database closes when the test ends
			count := wholeMoves(t, servers[0], moves, before)
			if count > 0 && count < len(moves.Moves) {
				stopped++
			}
			outcomes, err := servers[len(servers)-1].ApplyPlan(storetest.AsAdmin(), moves)
			if err != nil {
				t.Fatal(err)
			}
			goneOn(t, outcomes, count)
			if after := wholeMoves(t, servers[0], moves, nil); after != len(moves.Moves) {
				t.Errorf("%d of %d moves are made", after, len(moves.Moves))
			}
			checkUse(t, servers)
			isEmpty(t, servers[0], drained...)
		}
		if stopped == 0 {
			t.Error("no plan was stopped in between")
		}
	})
}

// TestAPlanAmongOtherWriters applies one plan twice at the same time, while others
// claim the free units.
func TestAPlanAmongOtherWriters(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, servers []*store.Store) {
		crowd(t, servers[0], 2)
		moves := planned(t, servers[0], 0, 1, 2, 3)
		before := stateOf(t, servers[0], moves)
		var running sync.WaitGroup
		results := make([][]store.AppliedMove, 2)
		for i := range results {
			running.Go(func() {
				var err error
				if results[i], err = servers[i%len(servers)].ApplyPlan(storetest.AsAdmin(), moves); err != nil {
					t.Error(err)
				}
			})
		}
		for writer := range 3 {
			running.Go(func() {
				random := rand.New(rand.NewPCG(uint64(writer), 3))
				for n := range 30 {
					err := setVCPUs(storetest.AsAdmin(), servers[writer%len(servers)],
						vcpus("q", 5000+100*writer+n, 4+random.IntN(8), 1+random.Int64N(3)))
					if err != nil && !errors.Is(err, problem.ErrCapacityExceeded) {
						t.Error(err)
					}
				}
			})
		}
		running.Wait()
		if t.Failed() {
			return
		}
		checkUse(t, servers)
		onlyOnce(t, moves, before, stateOf(t, servers[0], moves), results)
	})
}

// onlyOnce checks that a move happened at most once in two results, and that its
// consumer has the new allocations if it did, else the ones of before.
func onlyOnce(t *testing.T, moves placement.PlannedMoves, before,
	after map[string]string, results [][]store.AppliedMove) {
	t.Helper()
	for i, move := range moves.Moves {
		one, other := results[0][i].Outcome, results[1][i].Outcome
		isMoved, want := one == placement.Moved || other == placement.Moved, before[move.Consumer]
		if isMoved {
			want = wanted(move)
		}
		isTwice := one == placement.Moved && other == placement.Moved
		isDone := one == placement.MovedBefore || other == placement.MovedBefore
		if after[move.Consumer] != want || isTwice || !isMoved && isDone {
			t.Errorf("%s: %s and %s, has %s", move.Consumer, one, other, after[move.Consumer])
		}
	}
}

// TestAMoveIsRefused has a move for each way in which the world can differ from the
// plan, and one that fits only after another one.
func TestAMoveIsRefused(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := storetest.AsAdmin()
		hotProviders(t, s, 4)
		if err := setVCPUs(ctx, s, vcpus("p", 100, 0, 5), vcpus("p", 101, 1, 20), vcpus("p", 102, 2, 4),
			vcpus("p", 103, 3, 16)); err != nil {
			t.Fatal(err)
		}
		move := func(consumer, provider int, amount, generation int64) placement.PlannedMove {
			return placement.PlannedMove{Consumer: storetest.UUID(consumer), Generation: generation,
				Allocations: vcpus("", consumer, provider, amount).Allocations}
		}
		plan := placement.PlannedMoves{DryRun: true, Moves: []placement.PlannedMove{
			move(100, 1, 5, 1), move(101, 2, 20, 1), move(102, 3, 4, 1), move(103, 2, 16, 7),
			move(105, 2, 1, 1), move(106, 9, 1, 1)}}
		check := func(want ...string) {
			t.Helper()
			outcomes, err := s.ApplyPlan(ctx, plan)
			if err != nil {
				t.Fatal(err)
			}
			for i := range outcomes {
				if got := applied(outcomes[i : i+1]); !strings.HasPrefix(got, want[i]) {
					t.Errorf("dry %v, move %d: %s, want %s", plan.DryRun, i, got, want[i])
				}
			}
		}
		want := []string{"REFUSED input.moves[0].allocations[0].resources[0].amount 5 VCPU on " + storetest.UUID(1),
			"REFUSED input.moves[1].allocations[0].resources[0].amount 20 VCPU on " + storetest.UUID(2),
			"MOVED " + on(4, 3) + " in generation 2",
			"REFUSED input.moves[3].generation consumer " + storetest.UUID(103) + " has generation 1, not 7",
			"REFUSED input.moves[4].generation consumer " + storetest.UUID(105) + " has no allocations",
			"REFUSED input.moves[5].allocations[0].provider resource provider " + storetest.UUID(9) + " does not exist"}
		check(want...)
		check(want...)
		plan.DryRun = false
		check(want...)
		want[1], want[2] = "MOVED "+on(20, 2)+" in generation 2", "DONE "+on(4, 3)+" in generation 2"
		check(want...)
		plan.Moves = []placement.PlannedMove{move(101, 1, 20, 2), move(100, 2, 5, 1), move(102, 2, 3, 2)}
		want = []string{"MOVED " + on(20, 1), "MOVED " + on(5, 2),
			"REFUSED input.moves[2].allocations consumer " + storetest.UUID(102) +
				" has other amounts than in the plan"}
		plan.DryRun = true
		check(want...)
		plan.DryRun = false
		check(want...)
		if _, err := hold(s, 3600, 104); err != nil { // on the provider 0
			t.Fatal(err)
		}
		held := consumerOn(t, s, 104)
		plan.Moves = []placement.PlannedMove{move(104, 0, 1, held.Generation), move(104, 2, 1, held.Generation)}
		if _, err := s.ApplyPlan(ctx, plan); !isKind(err, problem.ErrInvalidInput) {
			t.Errorf("a consumer twice: %v", err)
		}
		plan.Moves = plan.Moves[1:]
		check("MOVED")
		if is := consumerOn(t, s, 104); is.ExpiresAt == nil || !is.ExpiresAt.Equal(*held.ExpiresAt) ||
			is.ProjectID != held.ProjectID || is.UserID != held.UserID {
			t.Errorf("%+v, was %+v", is, held)
		}
		checkUse(t, []*store.Store{s})
	})
}

// TestAMoveKeepsLimits moves a consumer to a provider with a trait that a limit
// counts.
func TestAMoveKeepsLimits(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := storetest.AsAdmin()
		hotProviders(t, s, 2)
		if err := setVCPUs(ctx, s, vcpus("p", 100, 0, 5)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.SetProviderTraits(ctx,
			placement.ProviderTraits{Provider: storetest.UUID(1), Traits: []string{"HW_CPU_X86_AVX"}}); err != nil {
			t.Fatal(err)
		}
		for most, want := range map[int64]placement.MoveOutcome{4: placement.MoveRefused, 5: placement.Moved} {
			if _, err := s.SetLimits(ctx,
				placement.ProjectLimits{ProjectID: "p",
					Limits: []placement.NewLimit{{ResourceClass: "VCPU",
						Trait: new("HW_CPU_X86_AVX"), Amount: most}}}); err != nil {
				t.Fatal(err)
			}
			plan := placement.PlannedMoves{DryRun: true,
				Moves: []placement.PlannedMove{{Consumer: storetest.UUID(100), Generation: 1,
					Allocations: vcpus("", 100, 1, 5).Allocations}}}
			outcomes, err := s.ApplyPlan(ctx, plan)
			if err != nil || outcomes[0].Outcome != want {
				t.Errorf("at most %d: %s, %v", most, applied(outcomes), err)
			}
		}
	})
}

// TestAPlanIsRepeatedByKey repeats a request with the same key after others have
// moved a consumer. The moves that were made have the same answer, and the refused
// one is judged again.
func TestAPlanIsRepeatedByKey(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		hotProviders(t, s, 3)
		if err := setVCPUs(storetest.AsAdmin(), s, vcpus("p", 100, 0, 5), vcpus("p", 101, 0, 6), vcpus("p", 102, 0, 9),
			vcpus("p", 103, 2, 12)); err != nil {
			t.Fatal(err)
		}
		plan := placement.PlannedMoves{}
		for i, provider := range []int{1, 1, 2} {
			move := placement.PlannedMove{Consumer: storetest.UUID(100 + i), Generation: 1}
			move.Allocations = vcpus("", 100+i, provider, []int64{5, 6, 9}[i]).Allocations
			plan.Moves = append(plan.Moves, move)
		}
		once := func() string {
			ctx, done, err := s.MakeOnce(asOperator("ann"), "key", "fingerprint")
			if err != nil {
				t.Fatal(err)
			}
			defer done()
			outcomes, err := s.ApplyPlan(ctx, plan)
			if err != nil {
				t.Fatal(err)
			}
			return applied(outcomes)
		}
		first := "MOVED " + on(5, 1) + " in generation 2; MOVED " + on(6, 1) + " in generation 2; "
		if got := once(); !strings.HasPrefix(got, first+"REFUSED") {
			t.Error(got)
		}
		if err := setVCPUs(storetest.AsAdmin(), s, vcpus("p", 100, 0, 1), vcpus("p", 103, 2, 1)); err != nil {
			t.Fatal(err)
		}
		if got := once(); got != first+"MOVED "+on(9, 2)+" in generation 2" {
			t.Error(got)
		}
	})
}
