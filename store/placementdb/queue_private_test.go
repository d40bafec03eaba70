package placementdb

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
)

// TestClaimsThatWaitShareATransaction holds a transaction while others arrive: all
// of them are decided by the next one.
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

// TestALateClaimWaitsForNoOther holds transactions for ever, up to one less than
// there may be: each claim that comes is decided all the same. One more waits, and
// leaves when its context ends.
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
