package placementdb_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// hotCapacity is the capacity of each provider in a history.
const hotCapacity = 20

// claimOp is an operation of one client. It sets the amount that a consumer has
// of a provider (0 for nothing), given a generation (0 for none), or as a sync
// found it. Or it releases everything, regardless of the generation. Or it reads
// the allocations of the provider.
type claimOp struct {
	provider, consumer int
	amount, generation int64
	asFound            bool
	release, read      bool
}

// claimAnswer is the answer to a claimOp.
type claimAnswer struct {
	refusal string // "" on success, else "full", "stale", "absent"
	held    string // the consumer after a claim or before a release; the result of a read
}

// claimServer is the system under test: the store, or the racy ledger.
type claimServer interface {
	do(op claimOp) (claimAnswer, error)
}

// storeServer claims through a store.
type storeServer struct{ *store.Store }

func (s storeServer) do(op claimOp) (claimAnswer, error) {
	ctx := storetest.AsAdmin()
	if op.read {
		return s.read(ctx, op)
	}
	if op.release {
		consumer, err := s.DeleteAllocations(ctx, consumerOf(op))
		return answerOf(err, consumer)
	}
	claim := placement.ConsumerClaim{UUID: consumerOf(op), ProjectID: "p", UserID: "u"}
	if op.generation > 0 {
		claim.Generation = &op.generation
	}
	if op.amount > 0 {
		claim.Allocations = []placement.ProviderAllocation{{Provider: storetest.UUID(op.provider),
			Resources: []placement.Amount{{ResourceClass: "VCPU", Amount: op.amount}}}}
	}
	consumers, err := s.SetAllocations(ctx,
		placement.Claim{Consumers: []placement.ConsumerClaim{claim}, AsFound: op.asFound})
	return answerOf(err, consumers...)
}

// answerOf returns the answer to a claim or a release.
func answerOf(err error, consumers ...*placement.Consumer) (claimAnswer, error) {
	switch {
	case errors.Is(err, problem.ErrCapacityExceeded):
		return claimAnswer{refusal: "full"}, nil
	case errors.Is(err, problem.ErrConcurrentUpdate):
		return claimAnswer{refusal: "stale"}, nil
	case errors.Is(err, problem.ErrNotFound):
		return claimAnswer{refusal: "absent"}, nil
	}
	var answer claimAnswer
	for _, consumer := range consumers {
		if consumer == nil {
			continue
		}
		for _, allocation := range consumer.Held {
			answer.held += holding{allocation.Used, consumer.Generation}.of(consumer.UUID)
		}
	}
	return answer, err
}

func (s storeServer) read(ctx context.Context, op claimOp) (claimAnswer, error) {
	first := page.MaxSize
	pages, err := s.AllocationsOfProviders(ctx, []string{storetest.UUID(op.provider)}, page.Request{First: &first})
	held := hotState{}
	for _, allocation := range pages[storetest.UUID(op.provider)].Items {
		held[allocation.Consumer] = holding{amount: allocation.Used}
	}
	return claimAnswer{held: held.amounts()}, err
}

func consumerOf(op claimOp) string { return storetest.UUID(10_000 + 100*op.provider + op.consumer) }

// hotState is one provider in the sequential model: consumers and what they
// hold.
type hotState map[string]holding

type holding struct{ amount, generation int64 }

// of describes the allocation of a consumer.
func (h holding) of(consumer string) string {
	return fmt.Sprintf("%s=%d, generation %d", consumer, h.amount, h.generation)
}

func (h hotState) used() (sum int64) {
	for _, held := range h {
		sum += held.amount
	}
	return sum
}

// allows reports whether a consumer may have an amount instead of its old one:
// also above the capacity if the use does not rise.
func (h hotState) allows(old, amount int64) bool {
	return h.used()-old+amount <= hotCapacity || h.used() > hotCapacity && amount <= old
}

func (h hotState) amounts() string {
	var text []string
	for _, consumer := range slices.Sorted(maps.Keys(h)) {
		text = append(text, fmt.Sprint(consumer, "=", h[consumer].amount))
	}
	return strings.Join(text, " ")
}

// step is the sequential model: it returns the expected answer and the next
// state.
func (h hotState) step(op claimOp) (claimAnswer, hotState) {
	if op.read {
		return claimAnswer{held: h.amounts()}, h
	}
	consumer := consumerOf(op)
	held, found := h[consumer]
	if op.release {
		if !found {
			return claimAnswer{refusal: "absent"}, h
		}
		next := maps.Clone(h)
		delete(next, consumer)
		return claimAnswer{held: held.of(consumer)}, next
	}
	if held.generation != op.generation {
		return claimAnswer{refusal: "stale"}, h
	}
	if op.amount > 0 && !op.asFound && !h.allows(held.amount, op.amount) {
		return claimAnswer{refusal: "full"}, h
	}
	next := maps.Clone(h)
	if op.amount == 0 {
		delete(next, consumer)
		return claimAnswer{}, next
	}
	next[consumer] = holding{amount: op.amount, generation: held.generation + 1}
	return claimAnswer{held: next[consumer].of(consumer)}, next
}

var claimModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := map[int][]porcupine.Operation{}
		for _, operation := range history {
			provider := operation.Input.(claimOp).provider
			parts[provider] = append(parts[provider], operation)
		}
		return slices.Collect(maps.Values(parts))
	},
	Init: func() any { return hotState{} },
	Step: func(state, input, output any) (bool, any) {
		answer, next := state.(hotState).step(input.(claimOp))
		return answer == output.(claimAnswer), next
	},
	Equal: func(a, b any) bool { return maps.Equal(a.(hotState), b.(hotState)) },
}

// record runs clients that claim at random, each on its server, and returns the
// operations and answers.
func record(t testing.TB, servers []claimServer, clients, providers, operations int,
	seed uint64) []porcupine.Operation {
	t.Helper()
	started := time.Now()
	histories := make([][]porcupine.Operation, clients)
	var working sync.WaitGroup
	for client := range clients {
		working.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(client)))
			generations := map[string]int64{} // as far as this client knows
			for range operations {
				op := claimOp{provider: random.IntN(providers), consumer: random.IntN(5),
					amount: random.Int64N(9), read: random.IntN(8) == 0}
				op.release = !op.read && random.IntN(4) == 0
				op.asFound = random.IntN(8) == 0
				op.generation = generations[consumerOf(op)]
				if op.amount == 0 && op.generation == 0 {
					op.amount = 1
				}
				called := time.Since(started)
				answer, err := servers[client%len(servers)].do(op)
				if err != nil {
					t.Errorf("%+v: %v", op, err)
					return
				}
				histories[client] = append(histories[client],
					porcupine.Operation{ClientId: client, Input: op, Call: int64(called),
						Output: answer, Return: int64(time.Since(started))})
				switch {
				case op.read:
				case op.release:
					generations[consumerOf(op)] = 0
				case answer.refusal == "" && op.amount > 0:
					generations[consumerOf(op)] = op.generation + 1
				case answer.refusal == "":
					generations[consumerOf(op)] = 0
				case answer.refusal == "stale":
					generations[consumerOf(op)] = random.Int64N(op.generation + 3)
				}
			}
		})
	}
	working.Wait()
	last := int64(time.Since(started))
	history := slices.Concat(histories...)
	for provider := range providers { // the final state, as one more read
		op := claimOp{provider: provider, read: true}
		answer, err := servers[0].do(op)
		if err != nil {
			t.Fatal(err)
		}
		history = append(history, porcupine.Operation{ClientId: clients, Input: op, Call: last + int64(provider)*2 + 1,
			Output: answer, Return: last + int64(provider)*2 + 2})
	}
	return history
}

// legal checks that some sequential order of the operations explains every
// answer, and replays that order. The order must respect real time: an
// operation comes after all that had ended when it began.
func legal(t testing.TB, history []porcupine.Operation) bool {
	t.Helper()
	result, info := porcupine.CheckOperationsVerbose(claimModel, history, patience.Of(t, 30*time.Second))
	if result == porcupine.Unknown {
		t.Fatal("the checker came to no end")
	}
	if result != porcupine.Ok {
		return false
	}
	parts := claimModel.Partition(history)
	replayed := 0
	for _, orders := range info.PartialLinearizationsOperations() {
		state := hotState{}
		for _, operation := range orders[0] {
			op := operation.Input.(claimOp)
			answer, next := state.step(op)
			if answer != operation.Output.(claimAnswer) {
				t.Errorf("replay: %+v was told %+v, has to be %+v", op, operation.Output, answer)
			}
			if used := next.used(); used > max(hotCapacity, state.used()) && !op.asFound {
				t.Errorf("replay: %+v was accepted: %d of %d are used", op, used, hotCapacity)
			}
			state = next
			replayed++
		}
	}
	if replayed != len(history) {
		t.Errorf("replayed %d of %d operations in %d parts", replayed, len(history), len(parts))
	}
	return true
}

func hotProviders(t testing.TB, s *store.Store, n int) {
	t.Helper()
	providers := make([]placement.Provider, n)
	for i := range providers {
		providers[i] = placement.Provider{UUID: storetest.UUID(i),
			Name: fmt.Sprintf("hot %d", i), Inventories: []placement.Inventory{
				{ResourceClass: "VCPU", Total: hotCapacity, MinUnit: 1,
					MaxUnit: hotCapacity, StepSize: 1, AllocationRatio: 1}}}
	}
	if err := s.FillPlacement(storetest.AsAdmin(), placement.Names{}, providers, nil); err != nil {
		t.Fatal(err)
	}
}

// TestClaimsAreLinearizable records claims and releases of many clients, on one
// server of either database and on two servers of one. Some sequential order
// must explain them.
func TestClaimsAreLinearizable(t *testing.T) {
	t.Parallel()
	for _, shape := range []struct {
		name                           string
		clients, providers, operations int
	}{{"hot", 16, 4, 20}, {"wide", 32, 200, 20}} {
		t.Run(shape.name, func(t *testing.T) {
			t.Parallel()
			run := func(t *testing.T, stores ...*store.Store) {
				hotProviders(t, stores[0], shape.providers)
				var servers []claimServer
				for _, s := range stores {
					storetest.Within(t, 5*time.Second, "told of the providers", func() bool {
						return worldOf(t, s).Len() == shape.providers
					})
					servers = append(servers, storeServer{s})
				}
				history := record(t, servers, shape.clients, shape.providers, shape.operations, 1)
				if !legal(t, history) {
					t.Error("no order of the claims explains their answers")
				}
				isCounted(t, stores[0])
				for _, s := range stores {
					storetest.Within(t, time.Second, "the world of the database", func() bool {
						difference, err := s.WorldDifference(storetest.AsAdmin())
						return err == nil && difference == ""
					})
				}
			}
			storetest.Each(t, func(t *testing.T, s *store.Store) { run(t, s) })
			t.Run("two on postgres", func(t *testing.T) {
				t.Parallel()
				url := storetest.Postgres(t)
				run(t, storetest.Open(t, url), storetest.Open(t, url))
			})
		})
	}
}

// racyServer checks and then acts without a lock. The store must not behave
// like this.
type racyServer struct {
	mu     sync.Mutex
	states map[int]hotState
}

func (r *racyServer) state(provider int) hotState {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.states[provider] == nil {
		return hotState{}
	}
	return r.states[provider]
}

func (r *racyServer) do(op claimOp) (claimAnswer, error) {
	answer, next := r.state(op.provider).step(op)
	for range 50 {
		runtime.Gosched()
	}
	if !op.read && answer.refusal == "" {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.states[op.provider] = next
	}
	return answer, nil
}

// TestTheCheckerCatchesARace checks that the checker detects a lost update.
func TestTheCheckerCatchesARace(t *testing.T) {
	t.Parallel()
	for seed := range 20 {
		racy := &racyServer{states: map[int]hotState{}}
		if !legal(t, record(t, []claimServer{racy}, 16, 4, 20, uint64(seed))) {
			return
		}
	}
	t.Error("twenty histories of a racy ledger passed the checker")
}
