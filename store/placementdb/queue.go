package placementdb

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/cadastre-dev/cadastre/placement"
)

// claimQueue lets claims that wait for the same thing share a transaction: while
// one transaction is under way for a key, the claims that arrive wait, and the
// next transaction takes them all. So a busy provider is locked once for many
// claims.
//
// It is here because of what BenchmarkClaims measures, in claims a second on two
// cores that did other work besides, medians with the queue and without:
//
//	providers  clients   PostgreSQL     SQLite
//	        1       32    884 :  51   4005 : 674
//	        1        4    246 :  79   1194 : 579
//	    1,000       32    634 : 303   2623 : 439
//	    1,000        4    392 : 382    864 : 441
//
// A single client meets nobody, so the queue changes nothing for it.
type claimQueue struct {
	mu      sync.Mutex
	waiting map[int][]*waitingClaim // a key is there while a transaction is under way for it
}

// waitingClaim is a claim with its outcome.
type waitingClaim struct {
	ctx       context.Context
	claim     placement.Claim
	consumers []*placement.Consumer
	err       error

	lead chan []*waitingClaim // takes these to decide, itself first
	done chan struct{}        // closed when another one has decided it
}

// claimsAtOnce bounds how many claims share a transaction.
const claimsAtOnce = 64

// decide gets a claim decided, alone or with others, by this caller or another,
// and returns its error.
func (q *claimQueue) decide(ctx context.Context, key int, w *waitingClaim, decide func(context.Context, []*waitingClaim) error) error {
	w.lead, w.done = make(chan []*waitingClaim, 1), make(chan struct{})
	if q.enter(key, w) {
		w.lead <- []*waitingClaim{w}
	}
	gone := ctx.Done()
	for {
		select {
		case <-w.done:
			return w.err
		case together := <-w.lead:
			q.run(ctx, key, together, decide)
			return w.err
		case <-gone:
			if q.leave(key, w) {
				return ctx.Err()
			}
			gone = nil // too late: it is being decided, or is to lead
		}
	}
}

// enter lets a claim wait, or says that it goes first.
func (q *claimQueue) enter(key int, w *waitingClaim) (first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == nil {
		q.waiting = map[int][]*waitingClaim{}
	}
	list, busy := q.waiting[key]
	if busy {
		q.waiting[key] = append(list, w)
	} else {
		q.waiting[key] = nil
	}
	return !busy
}

// leave takes a claim out that nobody has begun to decide.
func (q *claimQueue) leave(key int, w *waitingClaim) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	list, busy := q.waiting[key]
	i := slices.Index(list, w)
	if !busy || i < 0 {
		return false
	}
	q.waiting[key] = slices.Delete(list, i, i+1)
	return true
}

// run decides claims together and wakes whoever is next. A transaction for
// several does not end with the request of the one that leads it.
func (q *claimQueue) run(ctx context.Context, key int, together []*waitingClaim, decide func(context.Context, []*waitingClaim) error) {
	defer q.next(key)
	if len(together) > 1 {
		ctx = context.WithoutCancel(ctx)
	}
	err := errUndecided
	defer func() {
		for i, w := range together {
			if err != nil {
				w.err, w.consumers = err, nil
			}
			if i > 0 {
				close(w.done)
			}
		}
	}()
	err = decide(ctx, together)
}

// errUndecided is the error of claims whose decision panicked.
var errUndecided = errors.New("the transaction came to no end")

// next hands what waits to the first of those that do.
func (q *claimQueue) next(key int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.waiting[key]
	if len(list) == 0 {
		delete(q.waiting, key)
		return
	}
	n := min(len(list), claimsAtOnce)
	together := slices.Clone(list[:n])
	q.waiting[key] = slices.Clone(list[n:])
	together[0].lead <- together
}
