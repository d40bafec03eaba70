package placementdb

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/placement"
)

// TestClaimsThatWaitShareATransaction blocks a transaction while others arrive.
// The next transaction must decide all of them.
func TestClaimsThatWaitShareATransaction(t *testing.T) {
	t.Parallel()
	q := claimQueue{atOnce: 1}
	held, sizes := make(chan struct{}), make(chan int, 100)
	decide := func(_ context.Context, together []*waitingClaim) error {
		sizes <- len(together)
		<-held
		return nil
	}
	var working sync.WaitGroup
	claim := func() { working.Go(func() { _ = q.decide(t.Context(), &waitingClaim{}, decide) }) }
	claim()
	if n := <-sizes; n != 1 {
		t.Fatalf("the first transaction has %d claims", n)
	}
	for range 40 {
		claim()
	}
	if !patience.Until(t, 10*time.Second, func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return len(q.waiting) == 40
	}) {
		t.Fatal("not all claims wait")
	}
	close(held)
	working.Wait()
	if n := <-sizes; n != 40 || q.running != 0 || len(q.waiting) != 0 {
		t.Errorf("the second transaction has %d claims, %d run, %d wait", n, q.running, len(q.waiting))
	}
}

// TestALateClaimWaitsForNoOther blocks transactions, up to one below the limit.
// Every new claim must still be decided. At the limit a claim waits, and leaves
// when its context ends.
func TestALateClaimWaitsForNoOther(t *testing.T) {
	t.Parallel()
	q := claimQueue{atOnce: 3}
	held, begun := make(chan struct{}), make(chan struct{}, 3)
	hold := func(context.Context, []*waitingClaim) error {
		begun <- struct{}{}
		<-held
		return nil
	}
	pass := func(context.Context, []*waitingClaim) error { return nil }
	var working sync.WaitGroup
	for range 2 {
		working.Go(func() { _ = q.decide(t.Context(), &waitingClaim{}, hold) })
		<-begun
		if err := q.decide(t.Context(), &waitingClaim{}, pass); err != nil {
			t.Fatal(err)
		}
	}
	working.Go(func() { _ = q.decide(t.Context(), &waitingClaim{}, hold) })
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 5*claimLate)
	defer cancel()
	if err := q.decide(ctx, &waitingClaim{}, pass); err == nil {
		t.Error("a fourth transaction ran")
	}
	close(held)
	working.Wait()
	if q.running != 0 || len(q.waiting) != 0 {
		t.Errorf("%d run, %d wait", q.running, len(q.waiting))
	}
}

// TestViewersTakeTurns queues random claims: many of one viewer, large ones of
// another, and last one each of other viewers. The last ones must be in one of
// the next three transactions. Every transaction is bounded, and the claims of
// a viewer keep their order.
func TestViewersTakeTurns(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var came []*waitingClaim
		add := func(user string, consumers int) {
			came = append(came, &waitingClaim{claimant: claimant{user: user},
				concerned: concerned{consumers: make([]string, consumers)},
				lead:      make(chan []*waitingClaim, 1)})
		}
		for range random.IntN(200) {
			if random.IntN(3) == 0 {
				add("large", 1+random.IntN(concernedAtOnce*3/2))
			} else {
				add("many", 1)
			}
		}
		crowd := len(came)
		for i := range 1 + random.IntN(claimsAtOnce-2) {
			add(strconv.Itoa(i), 1)
		}
		places := decideAll(t, came)
		last := map[claimant][2]int{}
		for i, w := range came {
			place, decided := places[w]
			before, earlier := last[w.claimant]
			if last[w.claimant] = place; !decided || earlier && slices.Compare(before[:], place[:]) >= 0 {
				t.Fatalf("a claim is decided at %v, and the one before it of its viewer at %v", place, before)
			}
			if i >= crowd && place[0] > 2 {
				t.Fatalf("behind %d claims, the only one of a viewer is decided by transaction %d", crowd, place[0])
			}
		}
	}
}

// decideAll makes the queue pass on all waiting claims. It returns the
// transaction of each and its position in the transaction.
func decideAll(t *testing.T, claims []*waitingClaim) map[*waitingClaim][2]int {
	t.Helper()
	q := claimQueue{waiting: slices.Clone(claims)}
	places := make(map[*waitingClaim][2]int, len(claims))
	for transaction := 0; len(q.waiting) > 0; transaction++ {
		q.handOver()
		together, size := handedOver(claims), 0
		for i, w := range together {
			places[w] = [2]int{transaction, i}
			size += w.concerned.size()
		}
		if len(together) == 0 || len(together) > claimsAtOnce || size > concernedAtOnce && len(together) > 1 {
			t.Fatalf("a transaction of %d claims concerns %d", len(together), size)
		}
	}
	return places
}

// TestWhoChoseMostOftenChoosesFirst lets claims of several rounds choose together.
func TestWhoChoseMostOftenChoosesFirst(t *testing.T) {
	t.Parallel()
	var claims []*waitingClaim
	var chosen []int
	for _, round := range []int{1, 2, 3, 1, 3} {
		claims = append(claims, &waitingClaim{round: round,
			choose: func(world *placement.World, isGuess bool) (*placement.World, error) {
				if isGuess != (len(chosen) > 0) {
					t.Errorf("after %v: a guess is %t", chosen, isGuess)
				}
				chosen = append(chosen, round)
				return world, nil
			}})
	}
	leader := claims[0]
	if chooseForAll(nil, claims); !slices.Equal(chosen, []int{3, 3, 2, 1, 1}) || claims[0] != leader {
		t.Errorf("chosen in the order %v", chosen)
	}
}

// handedOver returns the claims that were handed over, or nil.
func handedOver(claims []*waitingClaim) []*waitingClaim {
	for _, w := range claims {
		select {
		case together := <-w.lead:
			return together
		default:
		}
	}
	return nil
}
